"""The process above a guest.

Inside bubblewrap it is the first process of the guest's namespace, and the kernel ends all others with it. A guest
without isolation has a small process between the host and itself that ends everything that it started, whatever
happens. All orphans below it become its children, so that none can slip away by forking twice or by a session of
its own; and the kernel tells it when the host is gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from . import processes

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def stand_above(host: int, socket_fd: int) -> None:
    """Split in two: return in a child, which is to be the guest; this process stays above it and never returns.

    ``host`` is the process id of the program that started this one, ``socket_fd`` the guest's connection.
    """
    libc = ctypes.CDLL(None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != host:  # it died before the line above
        os._exit(0)
    me = os.getpid()
    guest = os.fork()
    if guest == 0:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != me:
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return
    _let_go(socket_fd)
    _watch(guest)


def stand_first(socket_fd: int) -> None:
    """Split in two: return in a child, which is to be the guest; this process, the first of its namespace, only waits.

    Nothing else is to be the first: bubblewrap's own would be a program of the machine, run from outside all that is
    covered and read-only, and ``/proc/1/exe`` would lead code to it. This one cannot be looked into, waits for
    orphans, and ends as the guest ends (with 128 + n for a signal n).
    """
    libc = ctypes.CDLL(None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the first process does not get
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    guest = os.fork()
    if guest == 0:
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        return
    _let_go(socket_fd)
    while True:
        pid, status = os.wait()
        if pid == guest:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _let_go(socket_fd: int) -> None:
    """Hold none of the guest's connections open: the host takes their end for the guest's."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2, socket_fd):
        os.dup2(null, fd)


def _watch(guest: int) -> None:
    code = 0
    try:
        while True:
            if signal.sigwait(_SIGNALS) != signal.SIGCHLD:
                break
            status = _reap().get(guest)
            if status is not None:
                code = os.waitstatus_to_exitcode(status)
                break
        processes.end_new(set(), alone=False)
    finally:
        os._exit(code if code >= 0 else 128 - code)


def _reap() -> dict[int, int]:
    """Wait for those that have ended; return their states by process id."""
    found = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            found[pid] = status
    return found
