"""What goes over one connection of the code: a request and its answer, each ``u32 length, JSON``, in UTF-8.

What comes was written by code in the sandbox, so every length is checked before anything is read.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

HEADER = struct.Struct("!I")
PATIENCE = 60.0
"""Seconds that a request may take to come in whole."""


class BadFrame(Exception):
    """What came is no request. The message says why; the connection is closed."""


class TooLarge(BadFrame):
    """The request or the answer is longer than it may be."""


async def receive(reader: asyncio.StreamReader, longest: int) -> dict[str, Any]:
    """Read one request of at most ``longest`` bytes. Raises ``BadFrame``."""
    try:
        async with asyncio.timeout(PATIENCE):
            (length,) = HEADER.unpack(await reader.readexactly(HEADER.size))
            if length > longest:
                raise TooLarge(
                    f"a request of {length:,} bytes is longer than the {longest:,} that it may have "
                    "(SANDBOX_CHAT_CODE_MODE_REQUEST_MB)"
                )
            data = await reader.readexactly(length)
    except TimeoutError:
        raise BadFrame("a request did not come in whole in time") from None
    except (asyncio.IncompleteReadError, OSError):
        raise BadFrame("a request ended in the middle") from None
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise BadFrame("a request was not JSON") from None
    if not isinstance(message, dict):
        raise BadFrame("a request was not a JSON object")
    return message


def pack(answer: dict[str, Any], longest: int) -> bytes:
    """Return the bytes of an answer. Raises ``TooLarge`` when they are more than ``longest``."""
    data = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str).encode(
        "utf-8", "replace"
    )
    if len(data) > longest:
        raise TooLarge(
            f"The result has {len(data):,} bytes, more than the {longest:,} that code may get at once "
            "(SANDBOX_CHAT_CODE_MODE_RESULT_MB). Ask for less at a time."
        )
    return HEADER.pack(len(data)) + data
