"""Writes a small file whole or not at all, for its owner only."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Put ``data`` into ``path`` so that a reader sees the old file or the new one, never a part. Raises ``OSError``.

    The new file is its owner's only; a link at ``path`` is replaced, not followed. ``.NAME.*.tmp`` beside it may stay
    behind when the program is killed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
