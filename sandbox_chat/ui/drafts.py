"""The unsent prompt on disk, so that it outlives a crash.

Each running program has a draft of its own and keeps a file beside it locked. The kernel takes the lock away at any
kind of end, also at ``kill -9``: a draft whose lock can be had belongs to nobody, and is offered again.
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
from typing import Any

from sandbox_chat.text import clean, clean_line
from sandbox_chat.ui.tokens import Part
from sandbox_chat.words import tr

if sys.platform != "win32":  # there a draft is kept, but not found again
    import fcntl

BYTES_LIMIT = 64_000_000
"""Bytes of the largest draft that is read back."""


class Drafts:
    """Keeps one draft in ``folder``. ``save`` returns at once; a thread writes, always what is newest.

    A draft that cannot be written is no reason to stop a chat: ``problem`` says why then, and ``failed`` is called
    with it, once, on the thread that writes.
    """

    def __init__(self, folder: Path, failed: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self._failed = failed
        self.problem = ""
        self._stem = uuid.uuid4().hex
        self._lock_fd = -1
        self._wanted: Sequence[Part] | None = None
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._writing = False
        self._closed = False

    # -- keeping ------------------------------------------------------------------------------------------

    def save(self, parts: Sequence[Part]) -> None:
        """Keep ``parts`` as the draft; none of them removes it. Returns at once."""
        with self._changed:
            if self._closed or (not parts and self._writer is None):
                return
            self._wanted = parts
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="draft", daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def settle(self, timeout: float = 1.0) -> bool:
        """Wait until what was saved is written, for at most ``timeout`` seconds. Returns false when it is not yet."""
        with self._changed:
            return self._changed.wait_for(lambda: self._wanted is None and not self._writing, timeout)

    def close(self, *, keep: bool = False, timeout: float = 1.0) -> None:
        """End the writing, within about ``timeout`` seconds. The draft is removed, unless it is to be offered again."""
        with self._changed:
            writer, first = self._writer, not self._closed
            if writer is not None and not keep and first:
                self._wanted = ()
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

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self._stem}.{suffix}"

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._wanted is not None or self._closed)
                parts, self._wanted = self._wanted, None
                if parts is None:
                    return
                self._writing = True
            try:
                self._write(parts)
                self.problem = ""
            except OSError as error:
                before = self.problem
                self.problem = tr(
                    "composer.draft_not_kept",
                    folder=clean_line(str(self.folder), 500),
                    reason=error.strerror,
                )
                if self.problem != before and self._failed is not None:
                    self._failed(self.problem)

    def _write(self, parts: Sequence[Part]) -> None:
        target = self._path("json")
        if not parts:
            target.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while self._lock_fd < 0:
            self._take_lock()
        body = json.dumps([[part.kind, part.text, part.shown, part.size] for part in parts]).encode()
        temporary = self._path("new")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        temporary.replace(target)

    def _take_lock(self) -> None:
        """Lock the file of this draft. Nothing is taken if another program, which found it unlocked, removed it."""
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

    def recover(self) -> list[list[Part]]:
        """Return the drafts that programs left which are gone, newest first, and remove them. Blocking; never raises."""
        if sys.platform == "win32":
            return []
        found: list[tuple[float, list[Part]]] = []
        with contextlib.suppress(OSError):
            for lock in list(self.folder.glob("*.lock")):
                if lock.stem != self._stem:
                    with contextlib.suppress(OSError):
                        self._take(lock, found)
        found.sort(key=lambda item: item[0], reverse=True)
        return [parts for _, parts in found]

    def _take(self, lock: Path, found: list[tuple[float, list[Part]]]) -> None:
        if sys.platform == "win32":
            return
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = lock.with_suffix(".json")
            with contextlib.suppress(FileNotFoundError):
                info = kept.stat()
                parts = _read(kept) if info.st_size <= BYTES_LIMIT else []
                if parts:
                    found.append((info.st_mtime, parts))
            for path in (kept, lock.with_suffix(".new"), lock):
                path.unlink(missing_ok=True)
        finally:
            os.close(fd)


def _read(path: Path) -> list[Part]:
    try:
        raw: Any = json.loads(path.read_bytes())
        parts = []
        for kind, text, shown, size in raw:
            if kind not in ("text", "paste", "file") or not isinstance(text, str):
                return []
            parts.append(Part(kind, text if kind == "file" else clean(text), clean(str(shown)), int(size)))
        return parts
    except (OSError, ValueError, TypeError):
        return []
