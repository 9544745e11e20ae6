"""Temporary folders that do not outlive the program, also when it is killed.

A shell of about one megabyte waits beside each folder for the end of its program, and removes the folder then.
Should that shell be gone too, the next start of the program clears up: a folder holds a file that its program keeps
locked for as long as it lives. The kernel takes the lock away at any kind of end, also at ``kill -9``, so a
folder whose lock can be had is nobody's any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if sys.platform != "win32":  # there folders are made and removed, but nothing is cleared after others
    import fcntl

PREFIX = "sandbox-chat-tmp-"
LOCK = ".in-use"
_NEW = 60.0
"""Seconds in which a folder may still have no lock, because it is just being made."""
_GUARD_END = 2.0
"""Seconds that the guard is waited for when it is no longer needed."""
GUARD = """
read -r _
tries=0
while [ -d "$1" ] && [ "$tries" -lt 50 ]; do
  rm -rf -- "$1"
  [ -d "$1" ] && sleep 0.1
  tries=$((tries + 1))
done
"""
"""Waits for the end of its input, which is the end of the program; then removes the folder, in which others may still write."""


class Scratch:
    """A private temporary folder of this process, in the system's place for them.

    Making one also clears what dead programs left there. Raises ``OSError`` when none can be made.
    """

    def __init__(self) -> None:
        clear_leftovers()
        # A short path: the CLI makes a socket in its folder, and a socket's path has a limit.
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._fd = -1
        self._guard = _guard(self.path)
        try:
            self._fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if sys.platform != "win32":
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a full disk, or one without locks: the folder is still of use
            with contextlib.suppress(OSError):
                (self.path / LOCK).unlink()

    def remove(self) -> None:
        """Remove the folder with all that is in it. Any number of times."""
        shutil.rmtree(self.path, ignore_errors=True)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        guard, self._guard = self._guard, None
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()
            try:
                guard.wait(_GUARD_END)
            except subprocess.TimeoutExpired:  # what is left in the folder cannot be removed
                guard.kill()
                guard.wait()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _guard(folder: Path) -> subprocess.Popen[bytes] | None:
    """Start what removes ``folder`` after this process; ``None`` where that cannot be had."""
    if sys.platform == "win32":
        return None
    try:
        # In a session of its own: what is sent to this program's group is not for it.
        return subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sandbox-chat", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )
    except OSError:
        return None


def clear_leftovers() -> None:
    """Remove this user's folders in the system's temporary place whose programs are gone. Never raises."""
    if sys.platform == "win32":
        return
    try:
        with os.scandir(tempfile.gettempdir()) as found:
            folders = [Path(entry.path) for entry in found if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for folder in folders:
        with contextlib.suppress(OSError):
            _clear(folder)


def _clear(folder: Path) -> None:
    if sys.platform == "win32":
        return
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        return
    try:
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        if time.time() - info.st_mtime > _NEW:
            folder.rmdir()  # only if nothing is in it: it may be in use where locks cannot be had
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)
