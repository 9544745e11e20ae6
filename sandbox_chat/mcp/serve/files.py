"""What a client gets by its path: pictures, pages and long outputs, in a temporary folder that ends with the program."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from pathlib import Path

from sandbox_chat.events import FileContent, ImageContent

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "text/html": "html", "text/plain": "txt"}


class Shelf:
    """The files of one session in ``folder``, made when it is needed. ``limit`` in bytes: beyond it the oldest are removed."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self._limit = limit

    def save_picture(self, data: bytes, mime: str, width: int, height: int) -> ImageContent:
        """Keep a picture; its path is empty when the disk does not take it."""
        path = ""
        with contextlib.suppress(OSError):
            path = str(self._save(data, mime))
        return ImageContent(path, mime, width, height)

    def save_file(self, data: bytes, mime: str, title: str) -> FileContent:
        """Keep what only another program can show. Raises ``OSError``."""
        return FileContent(str(self._save(data, mime)), mime, len(data), title)

    def _save(self, data: bytes, mime: str) -> Path:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(data).hexdigest()[:16]}.{_ENDINGS.get(mime, 'bin')}"
        path.write_bytes(data)
        path.chmod(0o600)
        return path

    def trim(self) -> None:
        """Remove the oldest files until the others are within the limit. Never raises."""
        found: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                with contextlib.suppress(OSError):
                    info = path.stat()
                    found.append((info.st_mtime, info.st_size, path))
        size = sum(each[1] for each in found)
        for _, taken, path in sorted(found, key=lambda each: each[0]):
            if size <= self._limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                size -= taken

    def remove(self) -> None:
        """Remove all. Any number of times."""
        shutil.rmtree(self.folder, ignore_errors=True)
