"""A server's own requests: so many are in hand at a time, and nothing else is held up by them."""

from __future__ import annotations

import anyio
from mcp import types
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from sandbox_chat.mcp.bounded import REQUESTS, bounded


def ping(number: int) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method="ping")


def cancelled(number: object) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": number})


def answer(number: int) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={})


class Both:
    """The streams of a connection, with what the server sends."""

    def __init__(self) -> None:
        self.give, came = anyio.create_memory_object_stream[SessionMessage | Exception](10_000)
        went, self.sent = anyio.create_memory_object_stream[SessionMessage](10_000)
        self.read, self.write = bounded(came, went)

    def server(self, *messages: JSONRPCMessage) -> None:
        for message in messages:
            self.give.send_nowait(SessionMessage(message))

    async def seen(self) -> list[int]:
        """The ids of the requests that come through, up to the answer that ends them."""
        self.server(answer(-1))
        found: list[int] = []
        async for item in self.read:
            if isinstance(item.message, types.JSONRPCResponse):
                break
            if isinstance(item.message, types.JSONRPCRequest):
                found.append(int(item.message.id))
        return found


async def test_no_more_than_so_many_requests_are_in_hand() -> None:
    both = Both()
    async with both.give, both.sent, both.read, both.write:
        both.server(*map(ping, range(1000)))
        assert await both.seen() == list(range(REQUESTS))
        both.server(ping(2000))
        assert await both.seen() == []
        for number in (3, 4):
            await both.write.send(SessionMessage(answer(number)))
        both.server(cancelled(5), cancelled([5]), cancelled(None), *map(ping, range(3000, 3010)))
        assert await both.seen() == [3000, 3001, 3002]


async def test_one_id_is_in_hand_once() -> None:
    both = Both()
    async with both.give, both.sent, both.read, both.write:
        both.server(ping(7), ping(7), ping(7))
        assert await both.seen() == [7]
        await both.write.send(SessionMessage(answer(7)))
        both.server(ping(7))
        assert await both.seen() == [7]
