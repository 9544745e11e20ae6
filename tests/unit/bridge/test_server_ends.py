"""The host's end: what ends with a run, and what neither code nor the record gets: personal data, drafts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.bridging import bridged, call, echo, memory, text, tool

from sandbox_chat.bridge.frames import HEADER
from sandbox_chat.bridge.private import Private
from sandbox_chat.bridge.server import STOPPED
from sandbox_chat.bridge.shelf import Shelf
from sandbox_chat.events import NestedFinished, NestedStarted, TextContent
from sandbox_chat.settings import Settings
from sandbox_chat.skills import Store
from sandbox_chat.vault import Vault

MAIL = "ann.lee@example.com"

# -- ends --------------------------------------------------------------------------------------------------


class Held:
    """A tool that answers when it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = 0
        self.cancelled = 0

    async def __call__(self, arguments: Mapping[str, Any]) -> str:
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "done"


async def test_the_end_of_a_run_stops_its_calls(tmp_path: Path) -> None:
    held = Held()
    b = bridged(tmp_path, held)
    async with b.bridge.run("call-1"):
        calls = [asyncio.ensure_future(call(b, text="x")) for _ in range(3)]
        await b.host.until(lambda: held.begun == 3)
    assert held.cancelled == 3
    assert [(event.is_error, event.interrupted) for event in b.of(NestedFinished)] == [(True, True)] * 3
    assert b.of(NestedFinished)[0].content == (TextContent(STOPPED),)
    for answer in await asyncio.gather(*calls):
        assert answer == {"ok": False, "kind": "stopped", "text": STOPPED}


async def test_a_connection_that_is_closed_ends_its_call_alone(tmp_path: Path) -> None:
    held = Held()
    b = bridged(tmp_path, held)
    async with b.bridge.run("call-1"):
        other = asyncio.ensure_future(call(b, text="other"))
        sock = b.connect()
        body = json.dumps(
            {"token": b.token, "op": "call", "name": "notes__echo", "arguments": {"text": "x"}}
        ).encode()
        await asyncio.get_running_loop().sock_sendall(sock, HEADER.pack(len(body)) + body)
        await b.host.until(lambda: held.begun == 2)
        sock.close()
        await b.host.until(lambda: held.cancelled == 1)
        held.go.set()
        assert (await other)["value"] == "done"
    assert sorted(event.interrupted for event in b.of(NestedFinished)) == [False, True]


async def test_a_question_is_withdrawn_with_its_run(tmp_path: Path) -> None:
    b = bridged(tmp_path, policy=())
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def ask(question: Any) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        return "once"

    b.bridge._ask = ask
    async with b.bridge.run("call-1"):
        waiting = asyncio.ensure_future(call(b, text="x"))
        await asked.wait()
    assert withdrawn.is_set()
    assert (await waiting)["kind"] == "stopped"
    assert memory(b).got == []


async def test_what_the_host_does_is_not_the_codes_time(tmp_path: Path) -> None:
    held = Held()
    b = bridged(tmp_path, held)
    async with b.bridge.run("call-1") as way:
        assert way.waited() == 0
        sock = b.connect()  # a connection alone is no call: code cannot stop its clock by it
        await asyncio.sleep(0.02)
        assert way.waited() == 0
        sock.close()
        waiting = asyncio.ensure_future(call(b, text="x"))
        await b.host.until(lambda: held.begun)
        before = way.waited()
        await b.host.until(lambda: way.waited() > before)  # it goes on
        held.go.set()
        await waiting
        after = way.waited()
        await asyncio.sleep(0.02)
        assert way.waited() == after > 0


async def test_calls_side_by_side(tmp_path: Path) -> None:
    held = Held()
    b = bridged(tmp_path, held, code_mode_parallel=4)
    async with b.bridge.run("call-1"):
        calls = [asyncio.ensure_future(call(b, text="x")) for _ in range(10)]
        await b.host.until(lambda: held.begun == 4)
        await asyncio.sleep(0.02)
        assert held.begun == 4
        held.go.set()
        assert all(answer["ok"] for answer in await asyncio.gather(*calls))
    assert sorted(int(event.call_id.split(".")[1]) for event in b.of(NestedStarted)) == list(range(1, 11))


# -- personal data and skills ------------------------------------------------------------------------------


def vaulted(settings: Settings) -> Private:
    return Private(Vault(settings), settings)


async def test_personal_data_is_hidden_from_code_and_from_the_record(tmp_path: Path) -> None:
    b = bridged(tmp_path, lambda given: {"from": MAIL, "got": given["text"]}, private=vaulted)
    async with b.bridge.run("call-1"):
        value = (await call(b, text=f"to {MAIL}"))["value"]
    token = b.private._vault.hide(MAIL)
    assert value == {"from": token, "got": f"to {token}"}
    assert b.of(NestedStarted)[0].input == {"text": f"to {token}"}
    assert MAIL not in str(b.of(NestedFinished)[0].content)


async def test_tokens_are_real_values_only_where_the_user_said_so(tmp_path: Path) -> None:
    more = tool("other", properties={"text": {"type": "string"}})
    b = bridged(
        tmp_path, echo, (more, echo), private=vaulted, policy=(), answers=("once", "once"), pii_reveal=("notes/echo/text",)
    )  # fmt: skip
    token = b.private._vault.hide(MAIL)
    async with b.bridge.run("call-1"):
        assert (await call(b, text=token))["value"] == {"text": token}
        assert (await call(b, "notes__other", text=token))["value"] == {"text": token}
    assert [given for _, given, _ in memory(b).got] == [{"text": MAIL}, {"text": token}]
    first, second = b.host.questions
    assert "Tokens in text are sent as the personal data" in first.detail
    assert "Tokens in" not in second.detail
    assert MAIL not in first.detail
    assert MAIL not in str(b.of(NestedStarted)[0].input)


@pytest.mark.parametrize("failing", [False, True])
async def test_a_server_that_got_values_cannot_write_them_in_another_way(
    failing: bool, tmp_path: Path
) -> None:
    b = bridged(
        tmp_path,
        lambda given: text(given["text"].encode().hex(), is_error=failing),
        private=vaulted,
        pii_reveal=("notes/echo/text",),
    )
    token = b.private._vault.hide(MAIL)
    async with b.bridge.run("call-1"):
        answer = await call(b, text=token)
    assert memory(b).got[0][1] == {"text": MAIL}
    assert MAIL.encode().hex() not in str(answer)
    assert MAIL.encode().hex() not in str(b.of(NestedFinished)[0].content)


async def test_a_server_in_the_sandbox_gets_no_values(tmp_path: Path) -> None:
    b = bridged(tmp_path, private=vaulted, pii_reveal=("notes/echo/text",), place="sandbox")
    token = b.private._vault.hide(MAIL)
    async with b.bridge.run("call-1"):
        await call(b, text=token)
    assert memory(b).got[0][1] == {"text": token}


async def test_skills(tmp_path: Path) -> None:
    store = Store(tmp_path / "skills")
    b = bridged(tmp_path, shelf=Shelf(store, lambda event: None, origin="session-1"))
    async with b.bridge.run("call-1"):
        assert await b.ask("skills") == {"ok": True, "value": []}
        assert (await b.ask("draft", name="one", code="x = 1\n", description="One."))["ok"]
        assert (await b.ask("skill", name="one"))["kind"] == "denied"
    assert store.draft("one").origin == "session-1 call-1"
