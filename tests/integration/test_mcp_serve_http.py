"""``sandbox-chat mcp serve --http``: token, sessions of their own, limits, ends; driven by the official client."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from support.program import gone_within, run, watching_leftovers
from support.serving import INITIALIZE, PATIENCE, Http, http, text_of

BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


CALL = {
    "jsonrpc": "2.0",
    "id": 5,
    "method": "tools/call",
    "params": {"name": "run_code", "arguments": {"code": "1"}},
}
DONE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def post(server: Http, body: Any = None, query: str = "", **headers: str) -> httpx.Response:
    """One request as it is."""
    return httpx.post(
        server.url + query,
        json=INITIALIZE if body is None else body,
        headers={**BOTH, **headers},
        timeout=PATIENCE,
    )


async def test_two_clients_do_not_see_each_other(tmp_path: Path) -> None:
    with watching_leftovers() as left, http(tmp_path) as server:
        async with server.client() as one, server.client() as other:
            await one.call_tool("run_code", {"code": "secret = 41; open('/tmp/mine', 'w').write('x')"})
            assert "NameError" in text_of(await other.call_tool("run_code", {"code": "secret"}))
            assert "mine" not in text_of(await other.call_tool("list_files", {}))
            assert "42" in text_of(await one.call_tool("run_code", {"code": "secret + 1"}))
        assert server.end() == 143
        assert gone_within(10, left) == []


async def test_a_client_without_sessions_names_its_sandbox(tmp_path: Path) -> None:
    with http(tmp_path) as server:
        async with server.client(mode="2026-07-28") as one, server.client(mode="auto") as other:
            for tool in (await one.list_tools()).tools:
                assert "sandbox" in tool.input_schema["properties"]
                assert "sandbox" not in tool.input_schema["required"]
            first = text_of(await one.call_tool("run_code", {"code": "secret = 41"}))
            found = re.search(r"^\[sandbox\] (\w{32}) ", first, re.MULTILINE)
            assert found is not None, first
            go_on = await one.call_tool("run_code", {"code": "secret + 1", "sandbox": found[1]})
            assert "42" in text_of(go_on) and "[sandbox]" not in text_of(go_on)
            assert "NameError" in text_of(await other.call_tool("run_code", {"code": "secret"}))
            for wrong in ("0" * 32, 5, "../x"):
                refused = await other.call_tool("run_code", {"code": "secret", "sandbox": wrong})
                assert refused.is_error and text_of(refused).startswith("[error] ")


async def test_an_address_can_name_the_sandbox_of_its_client(tmp_path: Path) -> None:
    with http(tmp_path) as server:
        async with (
            server.client(mode="2026-07-28", query="?sandbox=me") as one,
            server.client(mode="2026-07-28", query="?sandbox=you") as other,
            server.client(mode="2026-07-28", query="?sandbox=a/b") as nobody,
        ):
            assert "[sandbox]" not in text_of(await one.call_tool("run_code", {"code": "kept = 41"}))
            assert "42" in text_of(await one.call_tool("run_code", {"code": "kept + 1"}))
            assert "NameError" in text_of(await other.call_tool("run_code", {"code": "kept"}))
            assert "[sandbox]" in text_of(await nobody.call_tool("run_code", {"code": "1"}))


async def test_only_the_token_opens_it(tmp_path: Path) -> None:
    with http(tmp_path) as server:
        token = server.token
        assert server.token_file == tmp_path / ".local/share/sandbox-chat/mcp/serve-token"
        assert server.token_file.stat().st_mode & 0o777 == 0o600
        assert len(token) >= 32
        modern = {"mcp-protocol-version": "2026-07-28"}
        for offered in (
            "",
            "Bearer",
            "Bearer x",
            f"Bearer {token}x",
            f"Bearer {token[:-1]}",
            f"Basic {token}",
            token,
        ):
            for more in ({}, modern):
                for method in ("GET", "POST", "DELETE"):
                    answer = httpx.request(
                        method,
                        server.url,
                        headers={**BOTH, **more, "authorization": offered},
                        timeout=PATIENCE,
                    )
                    assert answer.status_code == 401
                    assert answer.headers["www-authenticate"] == "Bearer"
        odd = httpx.post(server.url, headers={b"authorization": b"Bearer \xc3\xbc\xff"}, timeout=PATIENCE)
        assert odd.status_code == 401
        right = f"Bearer {token}"
        assert post(server, authorization=right).status_code == 200
        assert post(server, authorization=right, host="evil.example").status_code == 421
        assert post(server, authorization=right, origin="http://evil.example").status_code == 403
        other = httpx.get(
            server.url.replace("/mcp", "/else"), headers={"authorization": right}, timeout=PATIENCE
        )
        assert other.status_code == 404
        process = psutil.Process(server.process.pid)
        for each in (process, *process.children(recursive=True)):
            assert token not in " ".join(each.cmdline())
            assert token not in json.dumps(each.environ())
        assert token not in server.said


def test_a_token_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("a-token-of-my-own-0123456789\n")
    path.chmod(0o600)
    with http(tmp_path, "--token-file", str(path)) as server:
        assert server.token_file == path
        assert post(server, authorization="Bearer a-token-of-my-own-0123456789").status_code == 200
    path.chmod(0o644)
    ended = run("mcp", "serve", "--http", "0", "--token-file", str(path), home=tmp_path)
    assert ended.code == 2 and "chmod 600" in ended.stderr
    assert "my-own" not in ended.stderr


def test_sessions_are_bounded_and_end_when_they_are_unused(tmp_path: Path) -> None:
    env = {"SANDBOX_CHAT_SERVE_SESSIONS": "2", "SANDBOX_CHAT_SERVE_IDLE": "8"}
    with watching_leftovers() as left, http(tmp_path, env=env) as server:
        right = f"Bearer {server.token}"
        before = len(left())
        ids = [post(server, authorization=right).headers["mcp-session-id"] for _ in range(2)]
        with ExitStack() as listening:
            for each in ids:
                headers = {**BOTH, "authorization": right, "mcp-session-id": each}
                answer = httpx.stream("GET", server.url, headers=headers, timeout=PATIENCE)
                assert listening.enter_context(answer).status_code == 200
            full = post(server, authorization=right)
            assert full.status_code == 503 and "SERVE_SESSIONS" in full.text
        for each in ids:
            mine = {"authorization": right, "mcp-session-id": each}
            assert post(server, DONE, **mine).status_code == 202
            assert "success" in post(server, CALL, **mine).text
        assert len(left()) > before
        assert gone_within(30, lambda: left()[before:]) == []
        assert post(server, CALL, authorization=right, **{"mcp-session-id": ids[0]}).status_code == 404
        assert post(server, authorization=right).status_code == 200


def test_clients_that_went_without_a_word_make_room(tmp_path: Path) -> None:
    with watching_leftovers() as left, http(tmp_path, env={"SANDBOX_CHAT_SERVE_SESSIONS": "2"}) as server:
        right = f"Bearer {server.token}"
        before = len(left())
        ids = []
        for _ in range(5):
            begun = post(server, authorization=right)
            assert begun.status_code == 200
            ids.append(begun.headers["mcp-session-id"])
            mine = {"authorization": right, "mcp-session-id": ids[-1]}
            assert post(server, DONE, **mine).status_code == 202
            assert "success" in post(server, CALL, **mine).text
        answers = [post(server, CALL, authorization=right, **{"mcp-session-id": each}) for each in ids]
        assert [each.status_code for each in answers] == [404, 404, 404, 200, 200]
        two = len(left()) - before
        assert post(server, authorization=right).status_code == 200
        assert gone_within(20, lambda: left()[before + two // 2 :]) == []


async def test_the_older_protocols_can_name_a_sandbox_too(tmp_path: Path) -> None:
    env = {"SANDBOX_CHAT_SERVE_SESSIONS": "2", "SANDBOX_CHAT_SERVE_IDLE": "8"}
    with watching_leftovers() as left, http(tmp_path, env=env) as server:
        before = len(left())
        async with server.client(query="?sandbox=me") as one:
            assert "[sandbox]" not in text_of(await one.call_tool("run_code", {"code": "kept = 41"}))
        for _ in range(5):  # clients that go without a word
            answer = post(server, query="?sandbox=me", authorization=f"Bearer {server.token}")
            assert answer.status_code == 200
        async with (
            server.client(query="?sandbox=me") as one,
            server.client(query="?sandbox=me", mode="2026-07-28") as newest,
            server.client(query="?sandbox=you") as other,
        ):
            assert "42" in text_of(await one.call_tool("run_code", {"code": "kept + 1"}))
            assert "42" in text_of(await newest.call_tool("run_code", {"code": "kept + 1"}))
            assert "NameError" in text_of(await other.call_tool("run_code", {"code": "kept"}))
        assert gone_within(30, lambda: left()[before:]) == []
        async with server.client(query="?sandbox=me") as one:
            assert "NameError" in text_of(await one.call_tool("run_code", {"code": "kept"}))


async def test_the_sandbox_that_only_a_name_holds_makes_room(tmp_path: Path) -> None:
    with http(tmp_path, env={"SANDBOX_CHAT_SERVE_SESSIONS": "2"}) as server:
        async with server.client(mode="2026-07-28") as client:
            names = []
            for _ in range(3):
                said = text_of(await client.call_tool("run_code", {"code": "1"}))
                found = re.search(r"^\[sandbox\] (\w+)", said, re.MULTILINE)
                assert found is not None, said
                names.append(found[1])
            gone = await client.call_tool("run_code", {"code": "1", "sandbox": names[0]})
            assert gone.is_error and "any more" in text_of(gone)
            for name in names[1:]:
                assert not (await client.call_tool("run_code", {"code": "1", "sandbox": name})).is_error


async def test_what_begins_no_session_costs_nobody_a_sandbox(tmp_path: Path) -> None:
    with http(tmp_path, env={"SANDBOX_CHAT_SERVE_SESSIONS": "1"}) as server:
        right = {**BOTH, "authorization": f"Bearer {server.token}"}
        async with server.client(mode="2026-07-28", query="?sandbox=me") as one:
            await one.call_tool("run_code", {"code": "kept = 41"})
            for method in ("GET", "DELETE", "PUT"):
                answer = httpx.request(method, server.url, headers=right, timeout=PATIENCE)
                assert answer.status_code == 400
            listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            asked = json.dumps({**INITIALIZE, "id": None}).replace('"id": null, ', "")
            for body in ("", "{", "[]", "[" * 100_000, "null", listing, asked):
                answer = httpx.post(server.url, content=body, headers=right, timeout=PATIENCE)
                assert answer.status_code == 400
                assert "initialize" in answer.json()["error"]["message"]
            assert "42" in text_of(await one.call_tool("run_code", {"code": "kept + 1"}))


async def test_the_sandbox_of_another_address_cannot_be_named(tmp_path: Path) -> None:
    with http(tmp_path) as server:
        async with (
            server.client(mode="2026-07-28", query="?sandbox=me") as one,
            server.client(mode="2026-07-28", query="?sandbox=you") as other,
            server.client(mode="2026-07-28") as nobody,
        ):
            await one.call_tool("run_code", {"code": "secret = 41"})
            for client in (other, nobody):
                refused = await client.call_tool("run_code", {"code": "secret + 1", "sandbox": "own:me"})
                assert refused.is_error and text_of(refused).startswith("[error] The argument 'sandbox'")
            assert "42" in text_of(
                await one.call_tool("run_code", {"code": "secret + 1", "sandbox": "own:me"})
            )


async def test_leaving_ends_the_sandbox_at_once(tmp_path: Path) -> None:
    with watching_leftovers() as left, http(tmp_path) as server:
        before = len(left())
        async with server.client() as client:
            await client.call_tool("run_code", {"code": "1"})
            assert len(left()) > before
        assert gone_within(20, lambda: left()[before:]) == []


async def test_cancelling_over_http_stops_the_code(tmp_path: Path) -> None:
    for mode in ("legacy", "2026-07-28"):
        with http(tmp_path / mode) as server:
            async with server.client(mode=mode) as client:
                begun = text_of(await client.call_tool("run_code", {"code": "import time; n = 0"}))
                found = re.search(r"^\[sandbox\] (\w+)", begun, re.MULTILINE)
                name = {"sandbox": found[1]} if found is not None else {}
                heard = asyncio.Event()

                async def tell(*_: Any, heard: asyncio.Event = heard) -> None:
                    heard.set()

                code = "while True:\n    n += 1\n    time.sleep(0.01)"
                task = asyncio.ensure_future(
                    client.call_tool("run_code", {"code": code, **name}, progress_callback=tell)
                )
                await asyncio.wait_for(heard.wait(), PATIENCE)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                counts = [
                    text_of(await client.call_tool("run_code", {"code": "n", **name})) for _ in range(2)
                ]
                assert counts[0] == counts[1] and "[result]" in counts[0]


async def test_it_ends_while_clients_are_connected_and_code_runs(tmp_path: Path) -> None:
    with watching_leftovers() as left, http(tmp_path) as server:

        async def use() -> None:
            async with server.client() as client:
                await client.call_tool("run_code", {"code": "while True: pass"})

        before = len(left())
        task = asyncio.ensure_future(use())
        while len(left()) <= before:
            await asyncio.sleep(0.05)
        assert await asyncio.to_thread(server.end) == 143
        await asyncio.wait({task}, timeout=PATIENCE)  # with an error or an answer that says so
        assert task.done()
        task.cancelled() or task.exception()
        assert gone_within(10, left) == []


def test_two_servers_cannot_have_one_port(tmp_path: Path) -> None:
    with http(tmp_path) as server:
        port = server.url.rpartition(":")[2].partition("/")[0]
        ended = run("mcp", "serve", "--http", port, home=tmp_path)
        assert ended.code == 2
        assert f"Cannot listen on 127.0.0.1:{port}" in ended.stderr


def test_another_host(tmp_path: Path) -> None:
    with http(tmp_path, where="0.0.0.0:0") as server:
        assert "proxy with TLS" in server.said
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        server.url = url
        assert post(server).status_code == 401
        assert post(server, authorization=f"Bearer {server.token}", host="box.example").status_code == 200
    ended = run("mcp", "serve", "--sandbox", "unsafe-local", "--http", "0.0.0.0:0", home=tmp_path)
    assert ended.code == 2 and "unsafe-local is served to this computer only" in ended.stderr
