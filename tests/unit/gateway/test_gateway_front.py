"""The gateway's side towards its clients: who is let in, and what the library is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from sandbox_chat.gateway import library
from sandbox_chat.gateway.front import Front
from sandbox_chat.gateway.log import Log
from sandbox_chat.gateway.servers import Places, Servers

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def none(tmp_path: Path) -> Servers:
    """No servers at all."""
    log = Log(tmp_path / "log")
    log.close()
    return Servers([], Places(tmp_path), log)


async def post(servers: Servers, token: str, host: str = "0.0.0.0", **headers: str) -> httpx2.Response:
    """An ``initialize`` to a front with this token."""
    front = Front(servers, token, host)
    transport = httpx2.ASGITransport(app=front)
    async with (
        front.running(),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client,
    ):
        return await client.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers})


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer x", "bearer"])
async def test_an_empty_token_lets_nobody_in(none: Servers, given: str) -> None:
    answer = await post(none, "", **({"Authorization": given} if given else {}))
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_the_token_is_compared_whole(none: Servers) -> None:
    for given, status in (("Bearer abc", 200), ("BEARER abc", 200), ("Bearer ABC", 401), ("Bearer ab", 401), ("Bearer abcd", 401)):  # fmt: skip
        assert (await post(none, "abc", Authorization=given)).status_code == status


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 421), ("localhost", 421), ("0.0.0.0", 200)])
async def test_host_names_are_looked_at_on_loopback(none: Servers, host: str, status: int) -> None:
    answer = await post(none, "abc", host, Authorization="Bearer abc", Host="50005-box.example.org")
    assert answer.status_code == status


async def test_other_protocols_are_left_alone(none: Servers) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError

    await Front(none, "abc", "0.0.0.0")({"type": "websocket", "path": "/mcp", "headers": []}, never, never)


async def test_no_servers_is_an_empty_list(none: Servers) -> None:
    await none.start()
    none.offer(library.accepts)
    assert dict(none.offered) == {}
    assert len(none) == 0
    await none.close()


def test_sessions_end_after_an_idle_hour(none: Servers) -> None:
    manager: Any = library.make_manager(none, "127.0.0.1")
    assert manager.session_idle_timeout == 3600
    assert manager.max_sessions == 1000
    assert not manager.stateless
