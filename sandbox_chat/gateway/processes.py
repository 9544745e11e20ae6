"""Processes below this one: found, and ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE = 0.01  # s between two looks


def become_reaper() -> None:
    """Make this process the parent of all below it whose own parent has ended (on Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def follow_parent(parent: int) -> None:
    """Have this process asked to end when ``parent`` has ended, however (on Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def below(pid: int) -> list[int]:
    """Return the processes whose parent, or parent's parent and so on, is ``pid``."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] != b"Z":
                parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found = list(parents.get(pid, []))
    for child in found:
        found += parents.get(child, [])
    return found


def end_below(pid: int, limit: float) -> None:
    """Kill every process below ``pid`` and wait until there is none, at most ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while left := below(pid):
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(_PAUSE)


def reap() -> dict[int, int]:
    """Take note of all children of this process that have ended; return the wait status of each."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (got := os.waitpid(-1, os.WNOHANG))[0]:
            ended[got[0]] = got[1]
    return ended


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
