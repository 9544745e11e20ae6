"""A response that is streamed and knows at once when its reader has gone. Used inside and at the edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from typing import Any

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def gone(receive: Receive) -> None:
    """Returns when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def first(*waits: Awaitable[Any]) -> int:
    """Run all until one is done, cancel and await the others; its index. Its exception is raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        winner = next((index for index, task in enumerate(tasks) if task.done()), 0)
        for task in tasks:
            if not task.done():
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    tasks[winner].result()
    return winner


class Stream:
    """An ASGI response from an asynchronous generator of bytes. The generator is closed when the client leaves."""

    def __init__(
        self,
        content: AsyncIterator[bytes],
        media_type: str,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        self._content = content
        self._status = status
        self._headers = [(b"content-type", media_type.encode())]
        self._headers += [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        async def pour() -> None:
            async with aclosing(self._content) as chunks:  # type: ignore[type-var]
                await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        await first(pour(), gone(receive))
