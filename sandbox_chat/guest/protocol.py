"""The frames that host and guest exchange over a stream socket.

A frame is ``u32 json_len, u32 blob_len`` (big endian), then a JSON object, then raw bytes. The host
sends requests one at a time; each carries an ``id`` that grows.

Host to guest
    ``{"op": "run", "id", "code"}``: run code. Ends with ``done``.
    ``{"op": "interrupt", "id"}``: stop that run. The only frame that may come while one runs.
    ``{"op": "write", "id", "path", "append"}`` + bytes; ``{"op": "read", "id", "path", "offset", "size"}``;
    ``{"op": "list", "id", "path", "limit"}``; ``{"op": "discard", "id", "path"}``: remove what is there in part.
    ``{"op": "keeper", "id", "folder", "path"}`` + a descriptor beside it: start the keeper of the gateway in ``folder``,
    or with a ``path`` the way to the host that listens there; ``{"op": "tools", "id", "path", "token"}``: offer it to code.
    Each ends with ``reply``.

Guest to host
    ``{"op": "hello", "protocol", "python"}``: once, when ready.
    ``{"op": "display", "id", "result", "text": {mime: text}, "sizes": [[mime, bytes], …]}`` + those bytes.
    ``{"op": "cleared", "id"}``: before that run's code, when ended processes that an earlier run left were cleared away.
    ``{"op": "done", "id", "error": {"name", "value", "traceback"} | null}``.
    ``{"op": "reply", "id", …}`` + bytes, or ``{"op": "reply", "id", "problem"}`` with a sentence.
    ``{"op": "late", "id", "stream", "text"}``: a thread of an ended run wrote something.

Output of running code does not come in frames: the guest's file descriptors 1 and 2 are pipes that
the host reads. What is written before ``done`` is in the pipes before ``done`` is on the socket.
"""

from __future__ import annotations

import json
import struct
from typing import Any

VERSION = 1
HEADER = struct.Struct("!II")
MAX_JSON = 16 << 20
"""Bytes of the longest JSON part that either side accepts."""
MAX_BLOB = 64 << 20
"""Bytes of the longest binary part that either side accepts."""
MAX_PARTS = 1 << 20
"""Bytes of a JSON part outside its texts, and texts in it. What is sent here has few, and millions take seconds to read."""

Frame = tuple[dict[str, Any], bytes]


class ProtocolError(Exception):
    """The other side sent what no frame can be. The connection cannot be used any more."""


def pack(message: dict[str, Any], blob: bytes | memoryview = b"") -> bytes:
    """Return the bytes of a frame. Raises ``ProtocolError`` when it is larger than a frame may be."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_JSON or len(blob) > MAX_BLOB:
        raise ProtocolError(f"a frame of {len(body):,} + {len(blob):,} bytes is too large to send")
    return b"".join((HEADER.pack(len(body), len(blob)), body, blob))


class FrameReader:
    """Puts frames together from the bytes of a stream, holding at most one frame and one chunk."""

    def __init__(self, *, max_json: int = MAX_JSON, max_blob: int = MAX_BLOB) -> None:
        self._buffer = bytearray()
        self._max_json = max_json
        self._max_blob = max_blob

    def feed(self, data: bytes) -> list[Frame]:
        """Add ``data``; return the frames that are whole now. Raises ``ProtocolError`` on nonsense."""
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            json_len, blob_len = HEADER.unpack_from(self._buffer, start)
            if json_len > self._max_json or blob_len > self._max_blob:
                raise ProtocolError(f"a frame of {json_len:,} + {blob_len:,} bytes was announced")
            middle = start + HEADER.size + json_len
            end = middle + blob_len
            if len(self._buffer) < end:
                break
            frames.append((self._parse(start + HEADER.size, middle), bytes(self._buffer[middle:end])))
            start = end
        if start:
            del self._buffer[:start]
        return frames

    def _parse(self, start: int, end: int) -> dict[str, Any]:
        body = bytes(self._buffer[start:end])
        if end - start > MAX_PARTS and _crowded(body):
            raise ProtocolError("a frame has too many parts")
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a frame is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise ProtocolError("a frame is not a JSON object")
        return message


def _crowded(body: bytes) -> bool:
    """True when there is more in ``body`` than a few long texts. Quick, whatever it holds."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # what is left of quotation marks are texts' ends
    if plain.count(b'"') > MAX_PARTS // 8:
        return True
    return sum(len(part) for part in plain.split(b'"')[::2]) > MAX_PARTS
