"""MCP servers over streamable HTTP: the token, bounds, ends in the middle, both families of protocols."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from support.http_mcp import TOKEN, HttpServer, http_server
from support.mcp_host import Hosted, hosted

from sandbox_chat.events import ServerChanged
from sandbox_chat.mcp.base import Endpoint, McpError, ServerConfig
from sandbox_chat.settings import Secret


def at(server: HttpServer, token: str = TOKEN) -> ServerConfig:
    return ServerConfig(
        name="web", endpoint=Endpoint(url=server.url, headers={"Authorization": Secret(f"Bearer {token}")})
    )


async def add(h: Hosted, a: int, b: int) -> None:
    outcome = await h.call("add", "web", a=a, b=b)
    assert (outcome.text, outcome.is_error) == (str(a + b), False)


@pytest.mark.parametrize("json_response", [False, True])
async def test_calls(tmp_path: Path, json_response: bool) -> None:
    with http_server(json_response=json_response) as server:
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            assert [tool.full_name for tool in await h.servers.definitions()] == [
                "mcp__web__add",
                "mcp__web__wait",
                "mcp__web__big",
            ]
            await asyncio.gather(*(add(h, n, 1) for n in range(5)))
            assert (await h.call("add", "web", a="x")).text.startswith(
                "[error] The argument 'a' of add is not"
            )
            assert {event.transport for event in h.of(ServerChanged)} == {"http"}
        assert {head["authorization"] for head in server.headers} == {f"Bearer {TOKEN}"}


async def test_a_wrong_token_is_said_and_never_shown(tmp_path: Path) -> None:
    with http_server() as server:
        async with hosted(tmp_path, at(server, "wr0ng-token"), allow=("web/*",)) as h:
            assert await h.servers.definitions() == []
            assert "It refused the credential (HTTP status 401): check the token" in h.notices
            assert "wr0ng" not in h.notices


async def test_nobody_there(tmp_path: Path) -> None:
    with http_server() as server:
        pass
    async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
        assert await h.servers.definitions() == []
        assert "The MCP server web cannot be reached" in h.notices


async def test_one_that_was_started_anew_is_connected_again(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        with http_server() as server:
            h = await stack.enter_async_context(hosted(tmp_path, at(server), allow=("web/*",)))
            await add(h, 1, 2)
        outcome = await h.call("add", "web")
        assert outcome.is_error and "web" in outcome.text
        with http_server(port=server.port):  # it knows nothing of the session
            await add(h, 2, 3)


async def test_one_that_was_started_anew_in_between_gets_the_call(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        with http_server() as server:
            h = await stack.enter_async_context(hosted(tmp_path, at(server), allow=()))
            h.on_question = lambda question: "once"
            await add(h, 1, 2)
        with http_server(port=server.port):
            await add(h, 2, 3)
            assert len(h.questions) == 2


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Texts of the requests for which no connection is made, each once, and what was asked."""
    refused: list[str] = []
    asked: list[str] = []
    send = httpx2.AsyncHTTPTransport.handle_async_request

    async def handle(self: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        words = request.content.decode() if request.method == "POST" else ""
        asked.append(words)
        for each in refused:
            if each in words:
                refused.remove(each)
                raise httpx2.ConnectError("refused")
        return await send(self, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle)
    return refused, asked


async def test_only_the_call_that_was_not_sent_is_made_again(
    tmp_path: Path, away: tuple[list[str], list[str]]
) -> None:
    refused, asked = away
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 1, 2)
            refused.append("tools/call")
            await add(h, 2, 3)
            assert refused == []
            waiting = asyncio.ensure_future(h.call("wait", "web"))
            await h.until(lambda: any('"wait"' in words for words in asked))
            refused.append('"add"')
            await add(h, 3, 4)
            outcome = await waiting
            assert outcome.is_error and "cannot be reached any more" in outcome.text
            assert sum('"wait"' in words for words in asked) == 1


async def test_a_call_is_not_made_again_because_something_else_was_not_sent(
    tmp_path: Path, away: tuple[list[str], list[str]]
) -> None:
    refused, asked = away
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 1, 2)
            waiting = asyncio.ensure_future(h.call("wait", "web"))
            await h.until(lambda: any('"wait"' in words for words in asked))
            refused.append("tools/list")
            managed = h.servers._named("web")
            assert managed is not None
            managed._changed()
            outcome = await waiting
            assert refused == []
            assert outcome.is_error and "cannot be reached any more" in outcome.text
            assert sum('"wait"' in words for words in asked) == 1


@pytest.mark.parametrize("json_response", [False, True])
async def test_a_large_result_is_refused(tmp_path: Path, json_response: bool) -> None:
    with http_server(json_response=json_response) as server:
        async with hosted(tmp_path, at(server), allow=("web/*",), mcp_result_mb=1.0) as h:
            outcome = await h.call("big", "web")
            assert outcome.is_error
            await add(h, 1, 1)


async def test_compressed_answers_are_not_unpacked(tmp_path: Path) -> None:
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 1, 1)
            bomb = gzip.compress(b" " * 50_000_000)
            server.raw = (200, "application/json", bomb, {"content-encoding": "gzip"})
            assert (await h.call("add", "web")).is_error
            server.raw = None
            await add(h, 2, 2)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("kind", ["application/json", "application/json; as=text/event-stream"])
async def test_a_whole_answer_is_bounded_whatever_it_calls_itself(
    tmp_path: Path, kind: str, status: int
) -> None:
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",), mcp_result_mb=1) as h:
            await add(h, 1, 1)
            server.raw = (status, kind, b" " * 5_000_000, {})
            outcome = await h.call("add", "web")
            assert outcome.is_error and "more than the 1 MB" in outcome.text
            server.raw = None
            await add(h, 2, 2)


@pytest.mark.parametrize(
    "raw",
    [
        (500, "text/html", b"<h1>oops</h1>", {}),
        (200, "text/html", b"<h1>welcome</h1>", {}),
        (200, "application/json", b"{broken", {}),
        (200, "application/json", b'{"jsonrpc":"2.0","id":ID,"result":5}', {}),
        (202, "application/json", b"", {}),
        (307, "text/plain", b"", {"location": "http://example.invalid/steal"}),
        (200, "text/event-stream", b"event: message\ndata: {nonsense}\n\n", {}),
        (200, "text/event-stream", b"", {}),
        (404, "text/plain", b"gone", {}),
    ],
)
async def test_odd_answers_end_the_call_and_nothing_more(
    tmp_path: Path, raw: tuple[int, str, bytes, dict[str, str]]
) -> None:
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",), mcp_call_timeout=10.0) as h:
            await add(h, 1, 1)
            server.raw = raw
            outcome = await h.call("add", "web")
            assert outcome.is_error and outcome.text.startswith("[error] The MCP server web")
            server.raw = None
            await add(h, 2, 2)


async def test_a_call_that_is_stopped(tmp_path: Path) -> None:
    with http_server() as server:
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 1, 1)
            task = asyncio.ensure_future(h.call("wait", "web"))
            await h.until(lambda: h.context.running)
            await asyncio.sleep(0.3)
            for each in h.context.running:
                each.cancel()
            assert (await task).interrupted
            assert await asyncio.to_thread(server.cancelled.wait, 10)
            await add(h, 2, 2)


async def test_the_newest_protocol_alone(tmp_path: Path) -> None:
    with http_server() as server:
        server.refuse = ("initialize",)
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 20, 22)
        assert server.headers[-1].get("mcp-protocol-version") == "2026-07-28"


async def test_an_address_that_is_found_when_it_is_needed(tmp_path: Path) -> None:
    asked = 0
    with http_server() as server:

        async def resolve() -> Endpoint:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise McpError("the sandbox could not be started.")
            found = at(server).endpoint
            assert found is not None
            return found

        config = ServerConfig(name="web", place="sandbox", resolve=resolve)
        async with hosted(tmp_path, config, allow=()) as h:
            assert await h.servers.definitions() == []
            assert "web cannot be started: the sandbox could not be started." in h.notices
            await add(h, 1, 2)
            assert h.questions == []  # it runs in the sandbox
            await h.servers.restart("web")
            assert asked == 3


@pytest.mark.parametrize("method", ["initialize", "notifications/initialized", "tools/list"])
async def test_one_that_hangs_is_given_up(tmp_path: Path, method: str) -> None:
    with http_server() as server:
        server.hang = (method, "DELETE")
        async with hosted(tmp_path, at(server), mcp_start_timeout=1.0) as h:
            assert await h.servers.definitions() == []
            assert "was not ready within 1 s" in h.notices


async def test_a_farewell_without_an_answer_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with http_server() as server:
        server.hang = ("DELETE",)
        async with hosted(tmp_path, at(server), allow=("web/*",)) as h:
            await add(h, 1, 2)
            async with asyncio.timeout(10):
                await h.servers.close(0.2)
