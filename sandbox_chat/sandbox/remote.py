"""Sandboxes that live outside this program's processes: in a cloud, or in Docker's care.

They carry marks (metadata, labels) by which a later run tells those of a crashed run from those of a running one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

APP = "sandbox-chat"
"""Value of the mark ``app`` on everything that is ours."""
_MACHINE_ID = 32  # digits
_MAX_DIGITS = 9
_SKEW = 300.0  # seconds that the clocks of a cloud and of this machine may differ


@dataclass(frozen=True, slots=True)
class Remote:
    """One sandbox of ours that is alive somewhere.

    ``kind``: ``e2b`` or ``docker``. ``session``: id of the chat it was made for; ``tag``: the user's own word.
    ``started`` and ``ends`` have a time zone; ``ends`` is ``None`` where nothing ends it by itself. ``state`` as its
    keeper says it (``running``, ``paused``). ``here``: made on this machine. ``left``: made here by a run of the
    program that no longer exists, so that nobody will end it.
    """

    kind: str
    id: str
    session: str = ""
    tag: str = ""
    started: datetime | None = None
    ends: datetime | None = None
    state: str = ""
    left: bool = False
    here: bool = False


def marks(session_id: str, tag: str) -> dict[str, str]:
    """Return the marks for a sandbox of this process: ``app``, ``session``, ``tag``, ``host``, ``space``, ``pid``, ``started``."""
    found = {
        "app": APP,
        "session": session_id,
        "host": _host(),
        "space": _space(),
        "pid": str(os.getpid()),
        "started": _started(os.getpid()),
    }
    if tag:
        found["tag"] = tag
    return found


def is_here(found: Mapping[str, str]) -> bool:
    """True when a sandbox with these marks was made on this machine."""
    return found.get("host") == _host()


def is_mine(found: Mapping[str, str]) -> bool:
    """True when a sandbox with these marks was made by this very process."""
    pid = os.getpid()
    return (
        is_here(found)
        and found.get("space", "") == _space()
        and found.get("pid") == str(pid)
        and found.get("started") == _started(pid)
    )


def is_left(found: Mapping[str, str], made: datetime | None = None) -> bool:
    """True when a sandbox with these marks, of that time, was made on this machine by a process that is no more.

    In doubt it is false: what another container, user or machine of the same name has made may be in use.
    """
    if found.get("app") != APP or not is_here(found):
        return False
    number, started = found.get("pid", ""), found.get("started", "")
    if not number.isascii() or not number.isdigit() or len(number) > _MAX_DIGITS:
        return False
    if _boot(started) != _boot(_started(os.getpid())):
        # The machine was started again since, if it surely is the same one and the sandbox is older than that.
        return bool(_machine()) and made is not None and made.timestamp() < _booted() - _SKEW
    if found.get("space", "") != _space():
        return False  # its process has another number here, or none
    now = _started(int(number))
    return now != started and not (not now and _is_hidden(int(number)))


@functools.cache
def _host() -> str:
    """Return a name of this machine (or container) that says nothing of it to a stranger."""
    return hashlib.sha256(f"{platform.node()}\0{_machine()}".encode()).hexdigest()[:12]


@functools.cache
def _machine() -> str:
    """Return what tells this machine from others of the same name; empty when nothing does."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError, ValueError):
            text = Path(name).read_text("ascii").strip()
            if len(text) == _MACHINE_ID:
                return text
    if Path("/proc/self").exists():
        return ""
    import uuid

    node = uuid.getnode()
    return "" if node >> 40 & 1 else f"{node:x}"  # a number with that bit was made up for this process


def _space() -> str:
    """Return a name of the space in which process numbers hold; empty where there is only one."""
    try:
        return hashlib.sha256(os.readlink("/proc/self/ns/pid").encode()).hexdigest()[:8]  # noqa: PTH115
    except OSError:
        return ""


def _booted() -> float:
    """Return when this machine was started, in seconds since the epoch; 0 when nobody knows."""
    try:
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return 0.0


def _boot(started: str) -> str:
    return started.rpartition("-")[0]


def _started(pid: int) -> str:
    """Return what tells a process from a later one of the same number; empty when there is no such process."""
    if pid <= 0:
        return ""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return _started_elsewhere(pid)
    if stat[0] in (b"Z", b"X"):
        return ""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()[:8]
    return f"{boot}-{stat[19].decode()}"


def _started_elsewhere(pid: int) -> str:
    """The same where there is no ``/proc``: only whether the process exists."""
    if Path("/proc/self").exists():
        return ""
    return "alive" if _is_hidden(pid) else ""


def _is_hidden(pid: int) -> bool:
    """True when there is a process of this number, although ``/proc`` may not show it (``hidepid``)."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return not Path("/proc/self").exists()
