"""The host's end: who is heard, what is no request, and what may be found."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridging import ECHO, Bridged, Memory, answer_of, bridged, call, echo, memory, refused, tool

from sandbox_chat.bridge import server as server_module
from sandbox_chat.bridge.frames import HEADER
from sandbox_chat.bridge.server import BAD_TOKEN, LOGGED, NO_RUN
from sandbox_chat.bridge.shelf import Shelf
from sandbox_chat.events import NestedStarted
from sandbox_chat.skills import Store

# -- who is heard ------------------------------------------------------------------------------------------


async def test_tokens_are_long_and_each_sessions_own(tmp_path: Path) -> None:
    one, two = bridged(tmp_path), bridged(tmp_path)
    assert one.token != two.token
    assert len(one.token) >= 40
    async with one.bridge.run("call-1") as way:
        assert way.token.reveal() == one.token
        assert one.token not in repr(way)


def test_the_token_is_kept_from_the_model(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    assert b.bridge.without_token(f"a {b.token}{b.token} b") == "a [token][token] b"


@pytest.mark.parametrize(
    "token", ["missing", None, "", 0, True, [], {}, "x" * 43, "\ud800", "é", lambda token: token[:-1],
              lambda token: token + "\0", lambda token: [token], lambda token: token.swapcase()]
)  # fmt: skip
async def test_without_the_token_nothing_is_done(
    token: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    fields: dict[str, Any] = {"op": "call", "name": "notes__echo", "arguments": {"text": "x"}}
    if token != "missing":
        fields["token"] = token(b.token) if callable(token) else token
    async with b.bridge.run("call-1"):
        answer = await b.raw(json.dumps(fields).encode())
    assert answer == {"ok": False, "kind": "denied", "text": BAD_TOKEN}
    assert memory(b).got == []
    assert b.events == []
    assert refused(caplog) == ["code mode refused (call-1): a wrong token"]
    assert b.token not in caplog.text


async def test_only_while_a_run_is_under_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    with b.connect() as early:  # before the first run nobody is there to hear it
        assert early.recv(1) == b""
    async with b.bridge.run("call-1"):
        assert (await call(b, text="x"))["ok"]
    for op in ("call", "list", "skills", "draft"):
        answer = await b.ask(op, name="notes__echo", arguments={"text": "x"})
        assert answer == {"ok": False, "kind": "stopped", "text": NO_RUN}
    assert len(memory(b).got) == 1
    assert refused(caplog) == ["code mode refused (no run): a call outside of a run"] * 4
    async with b.bridge.run("call-2"):
        assert (await call(b, text="x"))["ok"]


async def test_a_connection_of_one_run_is_no_right_in_none(tmp_path: Path) -> None:
    """Made while one was under way, but asked when it was over."""
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        sock = b.connect()
    body = json.dumps({"token": b.token, "op": "list", "detail": "names"}).encode()
    assert (await answer_of(sock, HEADER.pack(len(body)) + body))["kind"] == "stopped"


async def test_runs_come_one_after_the_other(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    order: list[str] = []

    async def run(name: str) -> None:
        async with b.bridge.run(name):
            order.append(f"{name} begins")
            await call(b, text="x")
            order.append(f"{name} ends")

    await asyncio.gather(run("a"), run("b"))
    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert [event.call_id for event in b.of(NestedStarted)] == ["a.1", "b.1"]


async def test_a_connection_after_the_session(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    loop = asyncio.new_event_loop()
    loop.close()
    b.bridge._loop = loop
    ours, theirs = socket.socketpair()
    b.bridge.serve(theirs)
    assert ours.recv(1) == b""
    ours.close()


async def test_only_so_many_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(server_module, "CONNECTIONS", 2)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        held = [b.connect() for _ in range(2)]
        await asyncio.sleep(0)
        with b.connect() as one_more:
            await b.host.until(lambda: refused(caplog))
            assert one_more.recv(1) == b""
        assert refused(caplog) == ["code mode refused (call-1): too many connections"]
        held[0].close()
        await b.host.until(lambda: len(b.bridge._open) == 1)
        assert (await call(b, text="x"))["ok"]
        held[1].close()
        await b.host.until(lambda: not b.bridge._open)


# -- what is no request ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind", "why"),
    [
        (HEADER.pack(0xFFFFFFFF), "limit", "SANDBOX_CHAT_CODE_MODE_REQUEST_MB"),
        (HEADER.pack(8_000_001), "limit", "longer than the 8,000,000"),
        (HEADER.pack(2) + b"[]", "failed", "not a JSON object"),
        (HEADER.pack(2) + b"{]", "failed", "not JSON"),
        (HEADER.pack(0), "failed", "not JSON"),
    ],
)
async def test_bad_frames(
    data: bytes, kind: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        answer = await answer_of(b.connect(), data)
        assert (answer["ok"], answer["kind"]) == (False, kind)
        assert why in answer["text"]
        assert len(refused(caplog)) == 1
        assert (await call(b, text="after"))["ok"]


@pytest.mark.parametrize(
    "fields", [{}, {"op": None}, {"op": "nothing"}, {"op": ["call"]}, {"op": {"call": 1}}, {"op": "skill"}]
)
async def test_requests_that_are_none(
    fields: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a shelf a skill is none either."""
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        answer = await b.raw(json.dumps({"token": b.token, **fields}).encode())
    assert answer == {"ok": False, "kind": "failed", "text": "The host does not know this request."}
    assert refused(caplog) == ["code mode refused (call-1): a request that is none"]


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    op=st.sampled_from(["call", "list", "search", "details", "server", "skills", "skill", "draft"]),
    fields=st.dictionaries(
        st.sampled_from(
            ["name", "arguments", "timeout", "query", "limit", "detail", "code", "description", "x"]
        ),
        junk,
    ),
)
def test_whatever_is_asked_there_is_one_answer(op: str, fields: dict[str, Any], tmp_path: Path) -> None:
    async def asked() -> None:
        b = bridged(tmp_path, shelf=Shelf(Store(tmp_path / "skills"), lambda event: None, origin=""))
        async with b.bridge.run("call-1"):
            answer = await b.ask(op, **fields)
            assert answer["ok"] is True or (answer["kind"] and answer["text"])
            assert "Error" not in str(answer.get("text"))  # no fault of ours
            assert (await call(b, text="after"))["ok"]

    asyncio.run(asked())


async def test_refusals_are_logged_but_not_without_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        for _ in range(LOGGED + 10):
            await b.ask("nothing")
    assert len(refused(caplog)) == LOGGED
    async with b.bridge.run("call-2"):
        await b.ask("nothing")
    assert len(refused(caplog)) == LOGGED + 1


# -- finding -----------------------------------------------------------------------------------------------


async def test_finding(tmp_path: Path) -> None:
    b = bridged(tmp_path, echo, (tool("count", description="Count words."), echo))
    async with b.bridge.run("call-1"):
        both = ["notes__echo", "notes__count"]
        assert (await b.ask("list", detail="names"))["value"] == both
        assert (await b.ask("list", detail="names", query="words"))["value"] == ["notes__count"]
        assert (await b.ask("list", detail="summary"))["value"][1] == {
            "name": "notes__count",
            "about": "Count words.",
        }
        full = (await b.ask("list", detail="full"))["value"]
        assert (await b.ask("details", name="notes__echo"))["value"] == full[0]
        assert full[0]["schema"] == dict(ECHO.schema)
        assert [each["name"] for each in (await b.ask("search", query="notes", limit=1))["value"]] == both[:1]
        for limit in (None, 0, -1, "x", 10**9):
            assert len((await b.ask("search", query="notes", limit=limit))["value"]) == 2
        assert (await b.ask("list", detail="all"))["text"] == "detail must be one of names, summary, full."
    assert b.events == []  # to look for a tool is to call none


async def test_the_module_of_a_server(tmp_path: Path) -> None:
    odd = tool("echo", server="my-notes")
    b = Bridged(tmp_path, lambda found, path: [Memory(found, path, [(odd, echo)], name="my-notes")])
    async with b.bridge.run("call-1"):
        for name in ("my-notes", "my_notes"):
            value = (await b.ask("server", name=name))["value"]
            assert value["server"] == "my-notes"
            assert [each["name"] for each in value["tools"]] == ["my-notes__echo"]
        answer = await b.ask("server", name="x\x1b[2J" * 100)
        assert answer["kind"] == "unknown"
        assert answer["text"].endswith("there are my_notes.")
        assert len(answer["text"]) < 300
        assert "\x1b" not in answer["text"]


async def test_a_tool_that_there_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        for op in ("call", "details"):
            answer = await b.ask(op, name="notes__ecco_echo", arguments={})
            assert answer["kind"] == "unknown"
            assert "There is no tool 'notes__ecco_echo'. Did you mean notes__echo?" in answer["text"]
            assert "list_mcp_tools() lists all" in answer["text"]
        said = (await b.ask("details", name="zebra"))["text"]
        assert "Did you mean" not in said
    assert refused(caplog) == ["code mode refused (call-1): a tool that there is not"]
    assert b.events == []


async def test_without_servers(tmp_path: Path) -> None:
    b = Bridged(tmp_path)
    async with b.bridge.run("call-1"):
        assert (await b.ask("list", detail="names"))["value"] == []
        assert (await b.ask("server", name="x"))["text"].endswith("there are none.")
        assert (await call(b, "x__y"))["kind"] == "unknown"


async def test_a_server_that_is_off_is_told_of(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    await memory(b).switch(False)
    async with b.bridge.run("call-1"):
        answer = await call(b, text="x")
        assert answer["kind"] == "unknown"
        assert "switched off" in answer["text"]
        assert "switched off" in (await b.ask("server", name="notes"))["text"]
