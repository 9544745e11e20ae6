"""The Connect protocol with JSON messages: unary calls, streamed answers, streamed requests.

A streamed message is one byte of flags, four bytes of length (big endian) and the JSON; the last one of an
answer has flag 2 and holds ``{}`` or ``{"error": {"code": …, "message": …}}``.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .asgi import Stream

Message = dict[str, Any]
HTTP_STATUS = {
    "canceled": 499,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "already_exists": 409,
    "resource_exhausted": 429,
    "internal": 500,
    "unknown": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


class ConnectError(Exception):
    """An answer that is an error: a code of the protocol and a message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def body(self) -> Message:
        return {"code": self.code, "message": self.message}


def frame(message: Message, flags: int = 0) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


async def frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    """The messages of a streamed request."""
    buffer = bytearray()
    async for chunk in chunks:
        buffer += chunk
        while len(buffer) >= 5:
            flags, length = struct.unpack_from(">BI", buffer)
            if len(buffer) < 5 + length:
                break
            data = bytes(buffer[5 : 5 + length])
            del buffer[: 5 + length]
            if flags & 1:
                raise ConnectError("unimplemented", "compressed messages are not supported")
            yield json.loads(data) if data else {}
    if buffer:
        raise ConnectError("invalid_argument", "incomplete envelope at the end of the stream")


def deadline(request: Request) -> float | None:
    """Seconds that the client gives this call; None: no limit."""
    value = request.headers.get("connect-timeout-ms")
    return int(value) / 1000 if value else None


def unary(
    handler: Callable[[Message, Request], Awaitable[Message]],
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            if request.headers.get("content-type", "").split(";")[0] != "application/json":
                return Response(status_code=415, headers={"Accept-Post": "application/json"})
            return JSONResponse(await handler(json.loads(await request.body() or b"{}"), request))
        except ConnectError as error:
            return JSONResponse(error.body, HTTP_STATUS[error.code])

    return endpoint


def _streamed(content: AsyncIterator[Message]) -> Stream:
    async def written() -> AsyncIterator[bytes]:
        end: Message = {}
        try:
            async with aclosing(content) as messages:  # type: ignore[type-var]
                async for message in messages:
                    yield frame(message)
        except ConnectError as error:
            end = {"error": error.body}
        except TimeoutError:
            end = {"error": {"code": "deadline_exceeded", "message": "the time limit of the call has passed"}}
        yield frame(end, 2)

    return Stream(written(), "application/connect+json")


def server_stream(
    handler: Callable[[Message, Request], AsyncIterator[Message]],
) -> Callable[[Request], Awaitable[Stream]]:
    async def endpoint(request: Request) -> Stream:
        async def content() -> AsyncIterator[Message]:
            body = await request.body()
            message = json.loads(body[5:]) if len(body) > 5 else {}
            async with aclosing(handler(message, request)) as answers:  # type: ignore[type-var]
                async for answer in answers:
                    yield answer

        return _streamed(content())

    return endpoint


def client_stream(
    handler: Callable[[AsyncIterator[Message], Request], Awaitable[Message]],
) -> Callable[[Request], Awaitable[Stream]]:
    async def endpoint(request: Request) -> Stream:
        async def content() -> AsyncIterator[Message]:
            async with asyncio.timeout(deadline(request)):
                yield await handler(frames(request.stream()), request)

        return _streamed(content())

    return endpoint
