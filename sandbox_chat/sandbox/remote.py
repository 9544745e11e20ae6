"""Sandboxes that live outside this program's processes: in a cloud, or in Docker's care.

They carry marks (metadata, labels) by which a later run tells those of a crashed run from those of a running one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

APP = "sandbox-chat"
"""Value of the mark ``app`` on everything that is ours."""


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
    """Return the marks for a sandbox of this process: ``app``, ``session``, ``tag``, ``host``, ``pid``, ``started``."""
    found = {
        "app": APP,
        "session": session_id,
        "host": _host(),
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
    return is_here(found) and found.get("pid") == str(pid) and found.get("started") == _started(pid)


def is_left(found: Mapping[str, str]) -> bool:
    """True when a sandbox with these marks was made on this machine by a process that is no more."""
    if found.get("app") != APP or not is_here(found):
        return False
    number = found.get("pid", "")
    if not number.isascii() or not number.isdigit():
        return False
    return _started(int(number)) != found.get("started", "")


def _host() -> str:
    """Return a name of this machine (or container) that says nothing of it to a stranger."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


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
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "alive"
