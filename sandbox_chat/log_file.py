"""The log's file: private, begun anew when it is full, and shared by programs that write at the same time."""

from __future__ import annotations

import fcntl
import logging
import logging.handlers
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import TextIOWrapper


class PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """A file of mode 0600 that is begun anew when it has ``size`` bytes; ``parts`` older ones are kept.

    Several programs may write to the same file: who begins it anew holds a lock, and the others follow to the new
    one. What is not a regular file (a pipe, a device) is only written to. Raises ``OSError`` when it cannot be opened.
    """

    def __init__(self, path: Path, *, size: int, parts: int) -> None:
        super().__init__(path, maxBytes=size, backupCount=parts, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.fchmod(fd, 0o600)
        except OSError:
            os.close(fd)
            raise
        return os.fdopen(fd, "a", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            self._follow()
        except (OSError, ValueError):
            self.handleError(record)
        super().emit(record)

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - its name in the library
        """Say whether the file is full. A link is only written to: it may name a stream of the program."""
        return not Path(self.baseFilename).is_symlink() and bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802 - the same
        """Begin the file anew, unless another program has done so meanwhile."""
        if self.stream is None:
            return
        held = self.stream  # closing it lets the lock go
        fcntl.flock(held.fileno(), fcntl.LOCK_EX)
        if self._is_ours():
            self.stream = None  # else the base would close it, and let the lock go too early
            try:
                super().doRollover()
            finally:
                held.close()
        else:
            self._reopen(held)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the same
        """Say nothing: the terminal belongs to the chat, and a log that cannot be written must not stop it."""

    def _follow(self) -> None:
        if self.stream is not None and not self._is_ours():
            self._reopen(self.stream)

    def _reopen(self, held: TextIOWrapper) -> None:
        """Go over to the file that has the name now. If it cannot be opened there is none: each record tries again."""
        self.stream = None
        held.close()
        self.stream = self._open()

    def _is_ours(self) -> bool:
        """True when the path still names the file that is open."""
        assert self.stream is not None
        try:
            named, held = Path(self.baseFilename).stat(), os.fstat(self.stream.fileno())
        except FileNotFoundError:
            return False
        return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
