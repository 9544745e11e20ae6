"""One server behind the gateway, whatever it sends: real processes that speak badly."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.gateway import link as module
from sandbox_chat.gateway.config import Plan
from sandbox_chat.gateway.link import Link, LinkClosed, RemoteError
from sandbox_chat.gateway.log import Log
from sandbox_chat.gateway.servers import Places, Servers

HEAD = """
import json, os, sys, time
def send(data):
    sys.stdout.buffer.write(data if isinstance(data, bytes) else (json.dumps(data) + "\\n").encode()); sys.stdout.flush()
def result(message, value):
    send({"jsonrpc": "2.0", "id": message["id"], "result": value})
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
def usual(message):
    if message.get("method") == "initialize":
        result(message, {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}})
    elif message.get("method") == "tools/list":
        result(message, {"tools": [TOOL]})
for line in sys.stdin:
    message = json.loads(line)
"""


class Bad:
    """Starts servers whose loop is a few lines of Python."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "log"
        self.log = Log(self.path)
        self.changes = 0
        self.links: list[Link] = []

    def command(self, body: str) -> tuple[str, ...]:
        """The command of a server."""
        return (sys.executable, "-c", HEAD + "\n".join(f"    {line}" for line in body.strip().splitlines()))

    async def link(self, body: str) -> Link:
        """A server that runs."""

        def changed() -> None:
            self.changes += 1

        link = await Link.open(
            "bad",
            self.command(body),
            environment=dict(os.environ),
            folder=None,
            log=self.log,
            on_tools_changed=changed,
        )
        self.links.append(link)
        return link


@pytest.fixture
async def bad(tmp_path: Path) -> AsyncIterator[Bad]:
    """Ends the servers of a test."""
    bad = Bad(tmp_path)
    yield bad
    for link in bad.links:
        link.kill()
        await link.close()
    bad.log.close()


async def test_noise_on_standard_output_is_logged_and_skipped(bad: Bad) -> None:
    link = await bad.link(
        r"""
send(b"a banner \xff\xfe\n\n   \n[1, {\"id\": 77}]\nnull\n" + b"[" * 100000 + b"\n")
send({"id": 99, "result": {}}); send({"id": None, "result": {}}); send({"id": [1], "result": {}})
send({"id": True, "result": {"wrong": 1}}); send({"id": "x", "result": {}}); send({"id": "1" * 5000, "result": {}})
send([{"jsonrpc": "2.0", "id": str(message["id"]), "result": {"right": 1}}])
"""
    )
    assert await link.request("anything") == {"right": 1}
    assert "a banner" in bad.path.read_text()


async def test_half_characters_become_whole_ones(bad: Bad) -> None:
    link = await bad.link(
        r"""
if message["method"] == "fails":
    send({"id": message["id"], "error": {"code": 1, "message": "\ud83d", "data": {"\ude00": 1}}})
else:
    result(message, {"\ud83d": ["\ude00", "\U0001f600", "\\ud83d"]})
"""
    )
    assert await link.request("anything") == {"\ufffd": ["\ufffd", "\U0001f600", "\\ud83d"]}
    with pytest.raises(RemoteError, match="\ufffd") as got:
        await link.request("fails")
    assert got.value.data == {"\ufffd": 1}


async def test_a_list_that_holds_no_messages_is_logged_once(bad: Bad) -> None:
    link = await bad.link(
        r"""
send(b"[" + b"1," * 100000 + b"1]\n")
usual(message); send({"id": message["id"], "result": {"right": 1}})
"""
    )
    assert await link.request("anything") == {"right": 1}
    assert bad.path.read_text().count("(on standard output)") == 1


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"error": {"code": -5, "message": "no", "data": [1]}}, -5, "no"),
        ({"error": {"code": "x", "message": 7}}, -32603, "no message"),
        ({"error": {"code": True, "message": "m"}}, -32603, "m"),
        ({"result": []}, -32603, "no result"),
        ({"result": None}, -32603, "no result"),
        ({}, -32603, "no result"),
        ({"error": "text", "result": 1}, -32603, "no result"),
    ],
)
async def test_answers_that_are_errors(bad: Bad, answer: dict[str, Any], code: int, words: str) -> None:
    link = await bad.link(f"send({{'id': message['id'], **{answer!r}}})")
    with pytest.raises(RemoteError, match=words) as got:
        await link.request("anything")
    assert got.value.code == code


async def test_requests_of_the_server_are_answered(bad: Bad) -> None:
    link = await bad.link(
        """
if message.get("method") == "ask":
    asked = message
    send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    send({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {}})
    answers = []
elif "method" not in message:
    answers.append(message)
    if len(answers) == 2:
        result(asked, {"answers": answers})
"""
    )
    answers = (await asyncio.wait_for(link.request("ask"), 20))["answers"]
    assert answers[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert answers[1]["error"]["code"] == -32601


async def test_a_flood_of_notifications_loses_no_answer_and_is_bounded(bad: Bad) -> None:
    link = await bad.link(
        """
note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": message["id"], "progress": 1}}
other = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 100}}
for _ in range(3000):
    send(note); send(other); send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
result(message, {"done": 1})
"""
    )
    seen = 0

    async def note(_params: Any) -> None:
        nonlocal seen
        seen += 1
        await asyncio.sleep(0)

    assert await asyncio.wait_for(link.request("t", {"_meta": {"keep": 1}}, note), 60) == {"done": 1}
    assert 0 < seen <= 3000
    assert bad.changes == 3000
    assert await asyncio.wait_for(link.request("t"), 60) == {"done": 1}
    assert 0 < seen <= 3000


async def test_a_message_that_is_too_large_ends_the_server(bad: Bad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 2 << 20)
    link = await bad.link(
        """
if message["method"] == "fits":
    result(message, {"x": "y" * 1_500_000})
else:
    while True: send(b"x" * 1_000_000)
"""
    )
    assert len((await link.request("fits"))["x"]) == 1_500_000
    with pytest.raises(LinkClosed, match="more than 2 MB"):
        await asyncio.wait_for(link.request("flood"), 60)
    await asyncio.wait_for(link.close(), 10)


async def test_a_server_that_does_not_read(bad: Bad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNREAD", 1 << 20)
    link = await bad.link("time.sleep(600)")
    tasks = [asyncio.ensure_future(link.request("t", {"x": "y" * 400_000})) for _ in range(8)]
    done, waiting = await asyncio.wait(tasks, timeout=5, return_when=asyncio.FIRST_EXCEPTION)
    assert {str(task.exception()) for task in done} == {"it does not read what it is sent"}
    link.kill()
    for task in waiting:
        with pytest.raises(LinkClosed, match="signal 9"):
            await asyncio.wait_for(task, 20)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(4)", r"exit code 4"),
        ("os.kill(os.getpid(), 11)", "signal 11"),
        ("os.close(1); sys.stdin.read()", "closed its output"),
        ("result(message, {}); os._exit(0)", ""),
    ],
)
async def test_a_server_that_ends_during_a_call(bad: Bad, body: str, words: str) -> None:
    link = await bad.link(body)
    if words:
        with pytest.raises(LinkClosed, match=words):
            await asyncio.wait_for(link.request("t"), 20)
        with pytest.raises(LinkClosed, match=words):
            await link.request("t")
    else:
        assert await asyncio.wait_for(link.request("t"), 20) == {}


async def test_a_command_that_is_none(bad: Bad) -> None:
    for command in (("/no/such/program",), ("a\0b",), ("/tmp",)):
        with pytest.raises(LinkClosed, match=command[0]):
            await Link.open(
                "bad", command, environment={}, folder=None, log=bad.log, on_tools_changed=lambda: None
            )


def servers(bad: Bad, folder: Path, *bodies: str, timeout: float = 20.0) -> Servers:
    """Several servers behind one list."""
    plans = [Plan(f"s{number}", bad.command(body)) for number, body in enumerate(bodies)]
    return Servers(plans, Places(folder, timeout=timeout), bad.log)


async def test_a_list_that_does_not_come_to_its_end(bad: Bad, tmp_path: Path) -> None:
    all_of_them = servers(
        bad,
        tmp_path,
        """
if message.get("method") == "tools/list":
    result(message, {"tools": [TOOL], "nextCursor": "same"})
else:
    usual(message)
""",
        """
if message.get("method") == "tools/list":
    page = int((message.get("params") or {}).get("cursor", 0))
    result(message, {"tools": [{**TOOL, "name": f"p{page}"}], **({"nextCursor": str(page + 1)} if page < 4 else {})})
else:
    usual(message)
""",
        """
if message.get("method") == "tools/list":
    page = int((message.get("params") or {}).get("cursor", 0))
    result(message, {"tools": "none", "nextCursor": str(page + 1)})
else:
    usual(message)
""",
    )
    await all_of_them.start()
    try:
        all_of_them.offer(lambda _definition: True)
        assert set(all_of_them.offered) == {"t", "p0", "p1", "p2", "p3", "p4"}
    finally:
        await all_of_them.close()


async def test_tools_that_change_during_a_start(bad: Bad, tmp_path: Path) -> None:
    all_of_them = servers(
        bad,
        tmp_path,
        """
if message.get("method") == "tools/list":
    lists = globals().setdefault("lists", [])
    if "params" in message:  # the rest of the first list takes a while
        time.sleep(0.5)
    elif len(lists) < 2:
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    more = {} if lists else {"nextCursor": "x"}
    lists.append(message)
    result(message, {"tools": [{**TOOL, "name": f"t{len(lists)}"}], **more})
else:
    usual(message)
""",
    )
    await all_of_them.start()
    try:
        all_of_them.offer(lambda _definition: True)
        assert set(all_of_them.offered) == {"t1", "t2"}
        async with asyncio.timeout(20):
            while set(all_of_them.offered) != {"t3"}:
                await asyncio.sleep(0.02)
    finally:
        await all_of_them.close()


async def test_tools_that_change_during_a_listing(bad: Bad, tmp_path: Path) -> None:
    all_of_them = servers(
        bad,
        tmp_path,
        """
change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
if message.get("method") == "tools/list":
    lists = globals().setdefault("lists", [])
    lists.append(message)
    if len(lists) == 2:
        send(change); time.sleep(0.3)
    result(message, {"tools": [{**TOOL, "name": f"t{len(lists)}"}]})
elif message.get("method") == "tools/call":
    send(change); result(message, {"content": []})
else:
    usual(message)
""",
    )
    await all_of_them.start()
    try:
        all_of_them.offer(lambda _definition: True)
        await all_of_them.call("t1", {"arguments": {}})
        async with asyncio.timeout(20):
            while set(all_of_them.offered) != {"t3"}:
                await asyncio.sleep(0.02)
    finally:
        await all_of_them.close()


async def test_a_call_that_starts_a_server_again_has_an_end(bad: Bad, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    all_of_them = servers(
        bad,
        tmp_path,
        f"""
if os.path.exists({str(marker)!r}): time.sleep(600)
if message.get("method") == "tools/call": open({str(marker)!r}, "w"); os._exit(1)
usual(message)
""",
        timeout=3.0,
    )
    await all_of_them.start()
    all_of_them.offer(lambda _definition: True)
    try:
        with pytest.raises(RemoteError, match="exit code 1"):
            await all_of_them.call("t", {"arguments": {}})
        with pytest.raises(RemoteError, match="did not start within 3 s"):
            await asyncio.wait_for(all_of_them.call("t", {"arguments": {}}), 30)
        marker.unlink()
        with pytest.raises(RemoteError, match="exit code 1"):
            await all_of_them.call("t", {"arguments": {}})
    finally:
        await all_of_them.close()
    assert json.dumps(list(all_of_them.offered)) == '["t"]'
