"""Texts that are put away on disk: an append-only file without a name, which is gone with the program at any end."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from typing import IO, NamedTuple


class Ticket(NamedTuple):
    """Where a text is in the file: offset and length in bytes."""

    offset: int
    length: int


class Spill:
    """The file. All methods block and may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._written: dict[bytes, Ticket] = {}  # by the digest of the text: none is written twice
        self._closed = False

    def write(self, text: str) -> Ticket | None:
        """Put a text away. ``None`` when it cannot be written; the text is to stay where it is then."""
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=16).digest()
        with self._lock:
            if self._closed:
                return None
            if digest in self._written:
                return self._written[digest]
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="sandbox-chat-", buffering=0)  # noqa: SIM115
                ticket = Ticket(self._end, len(data))
                done = 0
                while done < len(data):
                    done += os.pwrite(self._file.fileno(), data[done:], self._end + done)
            except OSError:  # a full disk, or none to write to
                return None
            self._end += len(data)
            self._written[digest] = ticket
            return ticket

    def read(self, ticket: Ticket) -> str:
        """Read a text back. Raises ``OSError``."""
        data = bytearray()
        with self._lock:
            if self._file is None:
                raise OSError("nothing was put away")
            while len(data) < ticket.length:
                left = ticket.length - len(data)
                piece = os.pread(self._file.fileno(), left, ticket.offset + len(data))
                if not piece:
                    raise OSError("the file ends too early")
                data += piece
        return data.decode("utf-8", "surrogatepass")

    def close(self) -> None:
        """Let the file go, and with it all that was put away."""
        with self._lock:
            file, self._file, self._closed = self._file, None, True
        if file is not None:
            file.close()
