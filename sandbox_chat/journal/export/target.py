"""Where a document goes: a file that appears whole or not at all, and a folder beside it for its pictures."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
import time
from pathlib import Path
from typing import TextIO

from sandbox_chat.journal.errors import SessionError
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr

if sys.platform != "win32":  # there nothing is cleared after others
    import fcntl

ENDING = ".sandbox-chat-export"
"""Ends a passing name: nobody else's does."""
_PASSING = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(ENDING)}", re.DOTALL)
OLD = 60.0
"""Seconds for which what an export left has not been written to before another one removes it."""
NAME_LENGTH = 16
"""Characters of a picture's digest that name it."""


class ExportError(SessionError):
    """A session cannot be exported. The message is a sentence for the user."""


class TargetExists(ExportError):
    """Something has the name already."""


class Target:
    """A document on its way to ``path``. Used in a ``with``: without ``place`` nothing of the document remains."""

    def __init__(self, path: Path, temporary: Path, out: TextIO, *, force: bool) -> None:
        """Use ``make``."""
        self.path = path
        self.out = out
        self.files: list[Path] = []
        """Files beside the document, in the order in which it names them."""
        self._temporary = temporary
        self._force = force
        self._placed = False
        self._made: list[Path] = []
        self._names: dict[str, str] = {}

    @classmethod
    def make(cls, path: Path, *, force: bool) -> Target:
        """Begin a document. Raises ``TargetExists``, ``ExportError``, and ``OSError`` when the folder takes nothing."""
        path = path.absolute()
        shown = clean_line(str(path), 500)
        try:
            found = path.lstat()
        except FileNotFoundError:
            found = None
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise ExportError(tr("export.is_folder", path=shown))
        if found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            raise ExportError(tr("export.no_file", path=shown))
        if found is not None and not force:
            raise TargetExists(tr("export.exists", path=shown))
        if not path.parent.is_dir():
            raise ExportError(tr("export.no_folder", path=clean_line(str(path.parent), 500)))
        clear_left(path.parent)
        temporary, handle = _beside(path)
        out = os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n")
        return cls(path, temporary, out, force=force)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.out.close()
        if self._placed:
            return
        for path in (self._temporary, *self.files):
            with contextlib.suppress(OSError):
                path.unlink()
        for folder in self._made:
            with contextlib.suppress(OSError):  # not empty: it holds what is not ours
                folder.rmdir()

    @property
    def folder(self) -> Path:
        """The folder beside the document."""
        return self.path.with_name(f"{self.path.stem}_files")

    def add(self, data: bytes, ending: str) -> str:
        """Put a file beside the document, once for the same content; return its name relative to the document.

        It is named by its content, so nothing else is ever replaced. Raises ``OSError``.
        """
        digest = hashlib.sha256(data).hexdigest()
        key = f"{digest}.{ending}"
        if key in self._names:
            return self._names[key]
        if not self._names:
            clear_left(self.folder)
        if not self.folder.is_dir():
            self.folder.mkdir()
            self._made.append(self.folder)
        for length in (NAME_LENGTH, len(digest)):
            path = self.folder / f"{digest[:length]}.{ending}"
            if self._fits(path, data):
                break
        else:
            raise FileExistsError(f"another file is called {path.name}")
        self._names[key] = f"{self.folder.name}/{path.name}"
        return self._names[key]

    def _fits(self, path: Path, data: bytes) -> bool:
        """Have ``data`` at ``path``; false when something else is there."""
        same = path.is_file() and not path.is_symlink() and path.stat().st_size == len(data)
        if same and path.read_bytes() == data:
            return True
        if os.path.lexists(path):
            return False
        temporary, handle = _beside(path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self.files.append(path)
        return True

    def place(self) -> None:
        """Give the document its name. Raises ``TargetExists`` when that was taken meanwhile, and ``OSError``."""
        self.out.flush()
        os.fsync(self.out.fileno())
        self.out.close()
        if self._force:
            self._temporary.replace(self.path)
        else:
            self._link()
        self._placed = True

    def _link(self) -> None:
        try:
            os.link(self._temporary, self.path, follow_symlinks=False)
        except FileExistsError:
            raise TargetExists(tr("export.exists", path=clean_line(str(self.path), 500))) from None
        except (OSError, NotImplementedError):  # a file system without hard links
            try:
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                raise TargetExists(tr("export.exists", path=clean_line(str(self.path), 500))) from None
            self._temporary.replace(self.path)
        else:
            self._temporary.unlink(missing_ok=True)


def _beside(path: Path) -> tuple[Path, int]:
    """Make a file with a passing name in the same folder, short enough for every file system; return it open to write.

    It is locked for as long as it is open: the kernel takes the lock away at any kind of end. Raises ``OSError``.
    """
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}{ENDING}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return temporary, handle


def clear_left(folder: Path) -> None:
    """Remove what exports left in ``folder`` that were killed. Never raises.

    That are plain files of the user's own with a passing name of ours, not written to for a while, whose lock can be
    had: no program writes them. Where files cannot be locked nothing is removed.
    """
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PASSING.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _clear(Path(entry.path))


def _clear(path: Path) -> None:
    """Remove a file with a passing name, if it is one that was left. Raises ``OSError`` when it cannot be."""
    if sys.platform == "win32":
        return
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or time.time() - found.st_mtime < OLD:
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(found, os.fstat(fd)):
            path.unlink()
    finally:
        os.close(fd)
