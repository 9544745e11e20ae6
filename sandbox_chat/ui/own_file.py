"""A value on disk that outlives the program that wrote it, whatever ended that.

Each running program has a file of its own in a folder and keeps another beside it locked. The kernel takes the lock
away at any kind of end, also at ``kill -9``: a file whose lock can be had belongs to nobody, and is found again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from sandbox_chat.text import clean_line
from sandbox_chat.ui.trouble import Trouble

if sys.platform != "win32":  # there it is kept, but not found again
    import fcntl

T = TypeVar("T")

BYTES_LIMIT = 64_000_000
"""Bytes of the largest file that is read back; a larger one stays where it is."""


class OwnFile(Generic[T]):
    """Keeps one value in ``folder``. ``save`` returns at once; a thread writes, always what is newest.

    A value that cannot be written is no reason to stop a chat: ``problem`` says why then, and ``failed`` is called
    with it, once, on the thread that writes. A subclass says what a value is in JSON. One that is false is none.
    """

    thread_name = "own-file"

    def __init__(self, folder: Path, failed: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self._trouble = Trouble(failed)
        self._stem = uuid.uuid4().hex
        self._lock_fd = -1
        self._wanted: T | None = None
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._writing = False
        self._closed = False
        self._finding = threading.Lock()
        self._found: list[tuple[int, Path, T]] = []
        self._holds = False

    def encode(self, value: T) -> Any:
        """Return ``value`` as JSON data."""
        raise NotImplementedError

    def decode(self, raw: Any) -> T | None:
        """Return the value of JSON data. What is not valid raises ``ValueError``, ``TypeError``, ``KeyError``, or gives ``None``."""
        raise NotImplementedError

    def not_kept(self, folder: str, reason: str) -> str:
        """Return the sentence that says that nothing can be written."""
        raise NotImplementedError

    @property
    def problem(self) -> str:
        """Why the value could not be written; empty when it could."""
        return self._trouble.text

    @property
    def holds(self) -> bool:
        """True when what was saved last is something."""
        return self._holds

    # -- keeping ------------------------------------------------------------------------------------------

    def save(self, value: T) -> None:
        """Keep ``value``; one that is false removes the file. Returns at once."""
        with self._changed:
            if self._closed or (not value and self._writer is None):
                return
            self._holds = bool(value)
            self._wanted = value
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name=self.thread_name, daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def settle(self, timeout: float = 1.0) -> bool:
        """Wait until what was saved is written, for at most ``timeout`` seconds. Returns false when it is not yet."""
        with self._changed:
            return self._changed.wait_for(lambda: self._wanted is None and not self._writing, timeout)

    def close(self, *, keep: bool = False, timeout: float = 1.0) -> None:
        """End the writing, within about ``timeout`` seconds. The file is removed, unless it is to be found again."""
        with self._changed:
            writer, first = self._writer, not self._closed
            if writer is not None and not keep and first:
                self._wanted = self._nothing()
            self._closed = True
            self._changed.notify_all()
        if writer is not None:
            writer.join(timeout)
        with contextlib.suppress(OSError):
            if self._lock_fd >= 0 and not keep:
                self._path("lock").unlink()
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)
        self.let_go(remove=False)

    def _nothing(self) -> T:
        """Return a value that is false."""
        raise NotImplementedError

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self._stem}.{suffix}"

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._wanted is not None or self._closed)
                value, self._wanted = self._wanted, None
                if value is None:
                    return
                self._writing = True
            try:
                self._write(value)
                self._trouble.over()
            except OSError as error:
                folder = clean_line(str(self.folder), 500)
                self._trouble.met(self.not_kept(folder, error.strerror or type(error).__name__))

    def _write(self, value: T) -> None:
        target = self._path("json")
        if not value:
            target.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while self._lock_fd < 0:
            self._take_lock()
        body = json.dumps(self.encode(value)).encode()
        temporary = self._path("new")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        temporary.replace(target)

    def _take_lock(self) -> None:
        """Lock the file beside this one. Nothing is taken if another program, which found it unlocked, removed it."""
        path = self._path("lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(fd, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(fd)):
                    self._lock_fd, fd = fd, -1
        finally:
            if fd >= 0:
                os.close(fd)

    # -- finding again ------------------------------------------------------------------------------------

    def find(self, wanted: Callable[[T], bool] = lambda value: True) -> list[T]:
        """Return what programs left that are gone, newest first, and hold it until ``let_go``. Blocking; never raises.

        What ``wanted`` says no to stays where it is, and so does what cannot be read now, or is too large; what is
        damaged is removed. Nothing is found any more after ``close``.
        """
        if sys.platform == "win32":
            return []
        found: list[tuple[float, T]] = []
        with self._finding, contextlib.suppress(OSError):
            for lock in list(self.folder.glob("*.lock")):
                if self._closed:
                    break
                if lock.stem != self._stem and all(lock != held for _, held, _ in self._found):
                    with contextlib.suppress(OSError):
                        self._take(lock, wanted, found)
        found.sort(key=lambda item: item[0], reverse=True)
        return [value for _, value in found]

    def _take(self, lock: Path, wanted: Callable[[T], bool], found: list[tuple[float, T]]) -> None:
        if sys.platform == "win32":
            return
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = lock.with_suffix(".json")
            value: T | None = None
            with contextlib.suppress(FileNotFoundError):
                info = kept.stat()
                if info.st_size > BYTES_LIMIT:
                    return
                value = self._read(kept)
            if not value:
                _remove(lock)
            elif wanted(value):
                found.append((info.st_mtime, value))
                self._found.append((fd, lock, value))
                fd = -1
        finally:
            if fd >= 0:
                os.close(fd)

    def _read(self, path: Path) -> T | None:
        """Return what a file holds; ``None`` for a damaged one. Raises ``OSError``: then nobody knows what it holds."""
        body = path.read_bytes()
        try:
            return self.decode(json.loads(body))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None

    def let_go(self, *, remove: bool, but: Sequence[T] = ()) -> None:
        """Remove what was found, all ``but`` these, or leave it to be found again."""
        with self._finding:
            found, self._found = self._found, []
        for fd, lock, value in found:
            with contextlib.suppress(OSError):
                if remove and all(value is not each for each in but):
                    _remove(lock)
            os.close(fd)


def _remove(lock: Path) -> None:
    """Remove a file, what was being written of it, and its lock, which is held."""
    for path in (lock.with_suffix(".json"), lock.with_suffix(".new"), lock):
        path.unlink(missing_ok=True)
