"""Connections that ask nothing: they keep nobody out, and one that asks is served."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from sandbox_chat.gateway import connections
from sandbox_chat.gateway.connections import Patient

PATIENCE = 30.0
"""Seconds that anything may take on a busy machine before a test gives up."""
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """The port of a server."""
    config = uvicorn.Config(app, http=Patient, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    with socket.create_server(("127.0.0.1", 0), backlog=500) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def asks(self, data: bytes = ASK) -> bytes:
        """The head of the answer, empty when the connection was closed."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            self.writer.write(data)
            async with asyncio.timeout(PATIENCE):
                return await self.reader.readuntil(b"\r\n\r\n")
        return b""

    async def closed(self) -> None:
        """Wait until the server has closed it."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(OSError):
                assert await self.reader.read() == b""


@asynccontextmanager
async def clients(port: int, count: int) -> AsyncIterator[list[Client]]:
    found = []
    try:
        for _ in range(count):
            found.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
        yield found
    finally:
        for each in found:
            each.writer.close()


async def test_many_at_a_time_that_ask_are_all_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE", PATIENCE)
    async with served() as port, clients(port, 200) as found:
        assert all(await asyncio.gather(*(each.asks() for each in found)))
        assert all(await asyncio.gather(*(each.asks() for each in found)))


async def test_of_those_that_only_wait_a_few_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GRACE", 0.2)
    async with served() as port, clients(port, 1) as [known]:
        assert await known.asks()
        async with clients(port, connections.STRANGERS + 5) as found:
            found[7].writer.write(ASK[:20])  # half a request is none
            gone = [asyncio.create_task(each.closed()) for each in found]
            await asyncio.wait(gone[:5], timeout=PATIENCE)
            while sum(task.done() for task in gone) < 5:
                await asyncio.sleep(0.05)
            assert sum(task.done() for task in gone) == 5
            assert await known.asks()
            for task in gone:
                task.cancel()
            await asyncio.gather(*gone, return_exceptions=True)


async def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.2)
    async with served() as port, clients(port, 3) as found:
        found[0].writer.write(ASK[:-2])
        for each in found:
            await each.closed()


async def test_a_flood_makes_room_for_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 10)
    async with served() as port, clients(port, 15) as found:
        for each in found[:5]:
            await each.closed()
        assert all(await asyncio.gather(*(each.asks() for each in found[5:])))
