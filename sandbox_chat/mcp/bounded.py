"""A server's own requests, bounded: each is a task until it is answered, and a server need not read the answers."""

from __future__ import annotations

from typing import Any

from mcp.types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

REQUESTS = 32
"""Requests of a server that may wait for their answers. Those beyond are passed over, and those whose id another has that waits."""


def bounded(read: Any, write: Any) -> tuple[Any, Any]:
    """Return the two streams of a connection such that no more than ``REQUESTS`` of the server are in hand at a time."""
    waiting: set[RequestId] = set()
    return _Read(read, waiting), _Write(write, waiting)


class _Read:
    """What comes from the server."""

    def __init__(self, inner: Any, waiting: set[RequestId]) -> None:
        self._inner = inner
        self._waiting = waiting

    @property
    def last_context(self) -> Any:
        """The context of what was last received, as the library's streams have it."""
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> _Read:
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._inner.__anext__()
            message = getattr(item, "message", None)
            if isinstance(message, JSONRPCRequest):
                if len(self._waiting) >= REQUESTS or message.id in self._waiting:
                    continue
                self._waiting.add(message.id)
            elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                number = (message.params or {}).get("requestId")
                if isinstance(number, int | str):
                    self._waiting.discard(number)
            return item

    async def __aenter__(self) -> _Read:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Write:
    """What goes to the server."""

    def __init__(self, inner: Any, waiting: set[RequestId]) -> None:
        self._inner = inner
        self._waiting = waiting

    async def send(self, item: Any) -> None:
        """Send a message; an answer makes room for another request."""
        await self._inner.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._waiting.discard(item.message.id)

    async def __aenter__(self) -> _Write:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)
