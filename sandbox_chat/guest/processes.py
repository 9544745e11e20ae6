"""The processes beside the guest: which there are, and ending those that a stopped run leaves."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

_PASSES = 50
_PAUSE = 0.01
_MANY = 64
_FEW = 16
_EVERYBODY = -1  # all processes of the namespace but the first and the caller
SPARED: set[int] = set()
"""Processes that the host had started, which with all below them are not the code's."""


def others(*, alone: bool) -> set[int]:
    """Ids of the processes that code has started.

    ``alone``: the guest has a process namespace to itself, so that everything but the first process, the guest,
    and what the host has put into the namespace is meant. Otherwise the descendants of the leader of its session, which is the process
    above the guest, and the members of that session.
    """
    me = os.getpid()
    parents: dict[int, int] = {}
    found: set[int] = set()
    session = os.getsid(0)
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only, quickly
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - on the way of every run
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] in (b"Z", b"X"):
            continue
        parents[pid] = int(fields[1])
        if alone or int(fields[3]) == session:
            found.add(pid)
    if not alone:
        return (found | _family({me, session}, parents)) - {1, me, session}
    # What was put into the namespace from outside has its parent there.
    hosts = {pid for pid, parent in parents.items() if (parent == 0 and pid != 1) or pid in SPARED}
    return found - {1, me} - (_family(hosts, parents) if hosts else hosts)


def _family(tops: set[int], parents: dict[int, int]) -> set[int]:
    """Return ``tops`` and all processes below them; ``parents`` maps each process to its parent."""
    found = set(tops)
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def bury_many() -> int:
    """Wait for ended children that code has forgotten, when they take up half of the processes it may have.

    Otherwise nothing could be started any more. Fewer are left alone: code may still want to know how they
    ended. Returns how many were waited for.
    """
    try:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return 0
    except ChildProcessError:
        return 0
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    me, dead = os.getpid(), []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only, quickly
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] == b"Z" and int(fields[1]) == me:
                    dead.append(int(name))
    if limit == resource.RLIM_INFINITY or len(dead) < max(_FEW, limit // 2):
        return 0
    for pid in dead:
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
    return len(dead)


def last_id() -> int:
    """Return the newest process id that was given out in this process namespace."""
    with open("/proc/loadavg", "rb") as file:  # noqa: PTH123 - on the way of every run
        return int(file.read().split()[-1])


def freeze_if_many(before: int) -> None:
    """Stop everything else at once when very many processes were started since ``last_id`` was ``before``.

    A fork bomb takes the processor from the guest, which then could not end it within its time.
    """
    if last_id() - before > _MANY:
        _signal(_EVERYBODY, signal.SIGSTOP)


def end_new(before: set[int], *, alone: bool) -> int:
    """Kill every process that is not in ``before``, until none is left. Returns how many were seen."""
    seen: set[int] = set()
    for _ in range(_PASSES):
        if alone:  # all are stopped before the first is killed, so that none can start another meanwhile
            _signal(_EVERYBODY, signal.SIGSTOP)
        new = others(alone=alone) - before
        if not new:
            break
        seen |= new
        for pid in new:
            _signal(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
    if alone:
        _signal(_EVERYBODY, signal.SIGCONT)
    if len(seen) > _MANY:
        for pid in seen:  # nobody else will wait for what a fork bomb leaves
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
    return len(seen)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)
