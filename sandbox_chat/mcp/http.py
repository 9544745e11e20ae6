"""Streams to a server that answers over streamable HTTP, bounded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client

from sandbox_chat.mcp.base import Endpoint

CONNECT = 30.0
"""Seconds that a connection may take. How long an answer may take is decided where it is waited for."""


@dataclass
class Seen:
    """What was seen of a server's answers: the last status that refused, and why an answer was not taken."""

    status: int = 0
    fault: str = ""


@contextlib.asynccontextmanager
async def http_streams(endpoint: Endpoint, seen: Seen, *, limit: int) -> AsyncIterator[Any]:
    """Yield what the messages of a server come from and go to. ``limit``: bytes of the largest answer."""

    async def look(response: httpx2.Response) -> None:
        if response.request.method == "POST":  # a server may well refuse the others
            seen.status = response.status_code if response.status_code >= 400 else 0
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            seen.fault = "It sends compressed answers although that was not asked for."
            raise httpx2.StreamError(seen.fault)
        # Told apart as the library does, which reads everything else whole.
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, limit, seen)

    headers = {name: value.reveal() for name, value in endpoint.headers.items()}
    async with (
        httpx2.AsyncClient(
            headers={**headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(CONNECT, read=None),
            event_hooks={"response": [look]},
            trust_env=not is_loopback(endpoint.url),
        ) as client,
        streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=limit) as streams,
    ):
        yield streams


def is_loopback(url: str) -> bool:
    """Whether an address is one of this computer."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def not_sent(failure: BaseException | None) -> int | None:
    """Return the id of the request for which no connection was made, so that nothing of it was sent."""
    if not isinstance(failure, httpx2.ConnectError | httpx2.ConnectTimeout):
        return None
    try:
        number = json.loads(failure.request.content).get("id")
    except (AttributeError, RuntimeError, ValueError):  # it was none of the protocol's, or is not known
        return None
    return number if isinstance(number, int) else None


def words_of(seen: Seen) -> str:
    """Say what was seen of the last answer, once."""
    fault, status = seen.fault, seen.status
    seen.fault, seen.status = "", 0
    if fault:
        return fault
    if status in (401, 403):
        return f"It refused the credential (HTTP status {status}): check the token in its headers."
    return f"It answered with HTTP status {status}." if status else ""


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer, which ends with an error when it is larger than ``limit`` bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, seen: Seen) -> None:
        self._stream = stream
        self._limit = limit
        self._seen = seen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._limit:
                self._seen.fault = (
                    f"Its answer has more than the {self._limit / 1e6:g} MB that are taken "
                    "(SANDBOX_CHAT_MCP_RESULT_MB). Ask for less at a time."
                )
                raise httpx2.StreamError(self._seen.fault)
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._stream.aclose()
