"""File operations for the host, done inside the sandbox and so with its rights only."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from pathlib import Path
from typing import Any

HOME = "/tmp"  # noqa: S108 - the sandbox's own folder, where relative paths begin
_MAX_CHUNK = 32 << 20


class FileError(Exception):
    """The operation cannot be done; the message is a sentence for the model."""


def absolute(path: str) -> str:
    """Return ``path`` as an absolute one; relative ones are under ``/tmp``, ``~`` is the home folder."""
    if not path or "\0" in path:
        raise FileError("The path is empty or holds a null byte.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise FileError("The path holds a character that no file name can have.") from None
    return os.path.normpath(os.path.join(HOME, os.path.expanduser(path)))  # noqa: PTH118, PTH111 - text, not a Path


def write(path: str, data: bytes, *, append: bool) -> dict[str, Any]:
    """Write ``data`` to ``path`` or add it at the end, making folders. Returns ``{"path"}``."""
    full = absolute(path)
    try:
        Path(full).parent.mkdir(parents=True, exist_ok=True)
        # Never wait for the reader of a named pipe.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | (os.O_APPEND if append else os.O_TRUNC)
        fd = os.open(full, flags, 0o644)
        with os.fdopen(fd, "wb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise FileError(f"{full} is not a regular file.")
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError:
                with contextlib.suppress(FileError):
                    discard(path)  # it was emptied, and is there in part only
                raise
    except OSError as error:
        raise FileError(_sentence(full, error, "written")) from None
    return {"path": full}


def discard(path: str) -> dict[str, Any]:
    """Remove the file ``path``, which is there in part only. Returns ``{"path"}``; a link stays, and what it leads to goes."""
    full = absolute(path)
    try:
        real = os.path.realpath(full)
        if stat.S_ISREG(os.lstat(real).st_mode):
            os.unlink(real)  # noqa: PTH108 - beside the others
    except OSError as error:
        raise FileError(_sentence(full, error, "removed")) from None
    return {"path": full}


def read(path: str, offset: int, size: int) -> tuple[dict[str, Any], bytes]:
    """Return ``({"path", "size"}, part)`` of a regular file: at most ``size`` bytes from ``offset``."""
    full = absolute(path)
    try:
        fd = os.open(full, os.O_RDONLY | os.O_NONBLOCK)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)  # fdopen refuses a folder, and would leave it open
            what = "a folder, not a file" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise FileError(f"{full} is {what}.")
        with os.fdopen(fd, "rb", buffering=0) as file:
            file.seek(offset)
            wanted = min(size, _MAX_CHUNK)
            parts = bytearray()
            while len(parts) < wanted and (part := file.read(wanted - len(parts))):
                parts += part
            return {"path": full, "size": info.st_size}, bytes(parts)
    except OSError as error:
        raise FileError(_sentence(full, error, "read")) from None


def entries(path: str, limit: int) -> dict[str, Any]:
    """Return ``{"path", "entries": [[name, is_dir, size, is_link, changed], …], "total"}``, by name, at most ``limit``."""
    full = absolute(path)
    total = 0

    def scan() -> Any:
        nonlocal total
        with os.scandir(full) as found:
            for entry in found:
                total += 1
                yield entry.name, entry

    try:
        chosen = heapq.nsmallest(limit, scan(), key=lambda pair: pair[0])
    except OSError as error:
        raise FileError(_sentence(full, error, "listed")) from None
    rows = []
    for name, entry in chosen:
        try:
            is_dir, facts = entry.is_dir(), entry.stat(follow_symlinks=False)
            size, changed = 0 if is_dir else facts.st_size, facts.st_mtime_ns
        except OSError:
            is_dir, size, changed = False, 0, 0
        rows.append([name, is_dir, size, entry.is_symlink(), changed])
    return {"path": full, "entries": rows, "total": total}


def _sentence(path: str, error: OSError, what: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"There is no file or folder {path} in the sandbox."
    return f"{path} cannot be {what} in the sandbox: {(error.strerror or str(error)).lower()}."
