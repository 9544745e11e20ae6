"""Code in real sandboxes of every kind finds and calls tools of real servers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.coding import Coding, coding
from support.docker_fixture import docker as docker  # noqa: PLC0414
from support.e2b_server import Cloud
from support.exported import PNG
from support.mcp_host import way

from sandbox_chat.events import ImageContent, NestedFinished, NestedStarted, ServerChanged, TextContent
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.settings import Secret

KINDS = [
    "local",
    pytest.param("warm", marks=pytest.mark.slow),
    pytest.param("docker", marks=pytest.mark.slow),
    pytest.param("e2b", marks=pytest.mark.slow),
]
kinds = pytest.mark.parametrize("kind", KINDS)


@contextmanager
def options(kind: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings of a kind of sandbox."""
    if kind == "docker":
        yield {"sandbox": "docker", "docker_image": request.getfixturevalue("docker").image}
    elif kind == "e2b":
        with Cloud() as cloud:
            yield cloud.settings()
    else:
        yield {"sandbox": "local", "sandbox_warm": kind == "warm"}


def notes(folder: Path) -> ServerConfig:
    """A server made with the official library."""
    script = Path(__file__).parent.parent / "support" / "notes_mcp.py"
    return ServerConfig(
        name="my-notes",
        command=(sys.executable, str(script), str(folder / "notes.txt")),
        env={"PYTHONPATH": Secret(str(script.parent.parent))},
    )


@kinds
async def test_tools_are_found(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), notes(tmp_path), **chosen) as c:
            said = await c.said("""
import inspect, json, tools
from tools.my_notes import add_note
import tools.bad
print(json.dumps({
    "names": list_mcp_tools(detail="names"),
    "summary": list_mcp_tools("note"),
    "full": list_mcp_tools("add_note", detail="full")[0],
    "details": get_mcp_tool_details("my-notes__add_note"),
    "search": tools.search("write a note down")[0],
    "signature": str(inspect.signature(add_note)),
    "doc": add_note.__doc__,
    "bad": tools.bad.__all__,
}))
""")
            found = json.loads(said)
            assert "bad__echo" in found["names"]
            assert "my-notes__add_note" in found["names"]
            assert {"name": "my-notes__add_note", "about": "Write a note down."} in found["summary"]
            assert found["full"] == found["details"]
            assert found["details"]["signature"] == "add_note(text: str)"
            assert found["details"]["call"] == "from tools.my_notes import add_note"
            assert found["search"]["name"] == "my-notes__add_note"
            assert found["signature"] == "(text: str, *, timeout: float = None)"
            assert found["doc"].startswith("Write a note down.")
            assert "echo" in found["bad"]
            assert c.of(NestedStarted) == []  # to look for a tool is to call none


@kinds
async def test_results_are_python_values(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), notes(tmp_path), **chosen) as c:
            said = await c.said("""
from tools.my_notes import add_note, draw_note
made = call_mcp_tool("bad__echo", {"text": "hi", "n": 3})
print(made, type(made).__name__)
print(add_note("one"), add_note(text="two"), call_mcp_tool("mcp__my-notes__read_notes"))
drawn = draw_note()
print(drawn[0], len(drawn[1]), type(drawn[1]).__name__)
print(await add_note.aio("three"))
""")
            lines = said.splitlines()
            assert lines[0].endswith("dict")
            assert "'text': 'hi'" in lines[0]
            assert "{'result': 'noted: one'}" in lines[1]
            assert "one\\ntwo" in lines[1]
            assert lines[2] == f"drawn {len(PNG)} bytes"
            assert "noted: three" in lines[3]
            assert [name for name, failed in c.calls if failed] == []
            drawn = next(event for event in c.of(NestedFinished) if len(event.content) == 2)
            assert isinstance(drawn.content[1], ImageContent)
            assert c.host.pictures == [PNG]
            first = c.of(NestedStarted)[0]
            assert (first.tool_use_id, first.call_id, first.name) == ("run-1", "run-1.1", "mcp__bad__echo")
            assert first.input == {"text": "hi", "n": 3}


@kinds
async def test_calls_run_side_by_side(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), **chosen) as c:
            said = await c.said("""
import asyncio, time, tools
from tools.bad import slow
slow(seconds=0)
started = time.monotonic()
tools.parallel([("bad__slow", {"seconds": 1.5}) for _ in range(6)])
await asyncio.gather(*[slow.aio(seconds=1.5) for _ in range(6)])
print(time.monotonic() - started)
""")
            assert float(said) < 9  # one after the other they take 18 s
            assert len(c.calls) == 13


@kinds
async def test_errors_are_exceptions(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, notes(tmp_path), way("good"), **chosen) as c:
            said = await c.said("""
import tools
def told(call):
    try:
        call()
    except tools.ToolError as error:
        print(type(error).__name__, "|", str(error).replace("\\n", " "))
told(lambda: call_mcp_tool("my-notes__fail"))
told(lambda: call_mcp_tool("my-notes__add_note", {"words": 1}))
told(lambda: call_mcp_tool("my-notes__adding"))
told(lambda: __import__("tools.my_notes").my_notes.add_note(1, 2))
told(lambda: call_mcp_tool("bad__slow", {"seconds": 30}, timeout=0.5))
told(lambda: list_mcp_tools(detail="all"))
try:
    import tools.nothing
except ModuleNotFoundError as error:
    print(error)
""")
            lines = said.splitlines()
            assert lines[0].startswith("ToolError |")
            assert "fail" in lines[0]
            assert lines[1].startswith("ToolArgumentError |")
            assert "Expected: add_note(text: str)" in lines[1]
            assert lines[2].startswith("ToolNotFoundError |")
            assert "my-notes__add_note" in lines[2]
            assert lines[3].startswith("ToolArgumentError | add_note(text: str")
            assert lines[4].startswith("ToolTimeoutError |")
            assert "0.5 s" in lines[4]
            assert lines[5].startswith("ToolArgumentError |")
            assert lines[6] == "There is no MCP server 'nothing'; there are my_notes, bad."
            assert [failed for _, failed in c.calls] == [True] * 3


BIG = """
import tools
try:
    print(len(call_mcp_tool("bad__count")))
except tools.ToolError as error:
    print(type(error).__name__, error)
print(len(list_mcp_tools()) > 0)
"""


@kinds
async def test_a_big_result_is_bounded(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with options(kind, request) as chosen:
        async with coding(
            tmp_path, way("large"), mcp_result_mb=50.0, code_mode_result_mb=30.0, **chosen
        ) as c:
            first, second = (await c.said(BIG)).splitlines()
            assert int(first) >= 20_000_000
            assert second == "True"
            shown = c.of(NestedFinished)[0].content[0]
            assert isinstance(shown, TextContent)
            assert len(shown.text) < 5000
            assert "the code got 2" in shown.text
        async with coding(tmp_path, way("large"), mcp_result_mb=50.0, **chosen) as c:
            first, second = (await c.said(BIG)).splitlines()
            assert first.startswith("ToolLimitError The result has 2")
            assert "SANDBOX_CHAT_CODE_MODE_RESULT_MB" in first
            assert second == "True"
            assert c.calls == [("mcp__bad__count", True)]


@kinds
async def test_a_server_that_dies_in_a_call(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("dies_in_call"), **chosen) as c:
            said = await c.said("""
import tools
for _ in range(2):
    try:
        print(call_mcp_tool("bad__echo", {"text": "hi"}))
    except tools.ToolError as error:
        print(type(error).__name__, error)
""")
            lines = said.splitlines()
            assert len(lines) == 2
            assert all(line.startswith("ToolError The MCP server bad") for line in lines)


@kinds
async def test_waiting_does_not_eat_the_time_limit(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), **chosen) as c:
            await c.said("call_mcp_tool('bad__slow', {'seconds': 0})")
            done = await c.run("print(call_mcp_tool('bad__slow', {'seconds': 4}))", timeout=2)
            assert done.ok, done
            done = await c.run(
                "import time; call_mcp_tool('bad__slow', {'seconds': 1}); time.sleep(30)", timeout=2
            )
            assert done.stopped == "timeout"
            assert 2500 < done.duration_ms < 20_000


@kinds
async def test_stopping_a_run_ends_its_calls(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), **chosen) as c:
            await c.said("call_mcp_tool('bad__slow', {'seconds': 0})")
            running = asyncio.ensure_future(
                c.run("import tools\ntools.parallel([('bad__slow', {'seconds': 60})] * 3)")
            )
            await c.until(lambda: len(c.of(NestedStarted)) == 4)
            start = time.monotonic()
            c.worker.interrupt()
            done = await running
            assert done.stopped == "interrupted"
            assert time.monotonic() - start < 30
            await c.until(lambda: len(c.of(NestedFinished)) == 4)
            assert [event.interrupted for event in c.of(NestedFinished)] == [False, True, True, True]
            assert "kept" in await c.said("print('kept')")


@kinds
async def test_processes_of_the_code_call_too(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with options(kind, request) as chosen:
        async with coding(tmp_path, way("good"), **chosen) as c:
            said = await c.said("""
import os
pid = os.fork()
if pid == 0:
    with open("/tmp/said", "w") as file:
        file.write(str(call_mcp_tool("bad__echo", {"text": "child"})))
    os._exit(0)
os.waitpid(pid, 0)
print(open("/tmp/said").read())
""")
            assert "'text': 'child'" in said


async def asked(c: Coding) -> str:
    return await c.said("""
import tools
try:
    print(call_mcp_tool("bad__echo", {"text": "hi"}))
except tools.ToolError as error:
    print(type(error).__name__, error)
""")


async def test_the_user_is_asked(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good"), policy=(), answers=("once", "no", "never")) as c:
        assert "'text': 'hi'" in await asked(c)
        question = c.host.questions[0]
        assert question.tool_use_id == "run-1"
        assert '"text": "hi"' in question.detail
        assert "code in the sandbox" in question.detail
        assert (await asked(c)).startswith("ToolDeniedError The user did not allow this call.")
        assert (await asked(c)).startswith("ToolDeniedError The user does not allow calls of this tool")
        assert len(c.host.questions) == 3  # once is for one call: what was allowed cannot be repeated


async def test_what_only_reads_may_be_free(tmp_path: Path) -> None:
    async with coding(tmp_path, way("read_only"), policy=("bad=read-only",)) as c:
        said = await c.said("""
import tools
for name in ("reads", "writes"):
    try:
        print(name, call_mcp_tool(f"bad__{name}"))
    except tools.ToolDeniedError as error:
        print(name, "denied")
""")
        assert said.splitlines()[0].startswith("reads {")
        assert said.splitlines()[1] == "writes denied"


async def test_a_tool_that_changed_is_asked_about(tmp_path: Path) -> None:
    """Also where it is free: what it says of itself was what the user allowed."""
    async with coding(tmp_path, way("rug_pull")) as c:
        await asked(c)
        assert c.host.questions == []
        await c.until(lambda: "something else" in str(c.of(ServerChanged)[-1].tools))
        assert "ToolDeniedError" in await asked(c)
        assert len(c.host.questions) == 1
        assert "Now it does something else." in c.host.questions[0].detail


async def test_calls_of_a_run_are_counted(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good"), code_mode_calls=3) as c:
        code = """
import tools
for number in range(5):
    try:
        call_mcp_tool("bad__echo", {"text": "x"})
        print(number)
    except tools.ToolLimitError as error:
        print(error)
"""
        lines = (await c.said(code)).splitlines()
        assert lines[:3] == ["0", "1", "2"]
        assert lines[3].startswith("One run may make 3 calls")
        assert (await c.said(code)).splitlines()[:3] == ["0", "1", "2"]


async def test_calls_wait_when_they_are_too_quick(tmp_path: Path) -> None:
    async with coding(tmp_path, way("good"), code_mode_rate=5.0) as c:
        said = await c.said("""
import time
call_mcp_tool("bad__echo")
started = time.monotonic()
for _ in range(14):
    call_mcp_tool("bad__echo")
print(time.monotonic() - started)
""")
        assert float(said) > 1.5  # 15 calls, 5 of them at once and then 5 in each second


async def test_the_shell_of_another_session_knows_nothing(tmp_path: Path) -> None:
    """Each session has its own token and its own way."""
    async with coding(tmp_path / "a", way("good")) as a, coding(tmp_path / "b", way("good")) as b:
        await a.said("call_mcp_tool('bad__echo')")
        await b.said("call_mcp_tool('bad__echo')")
        assert a.bridge._token.reveal() != b.bridge._token.reveal()
        assert len(a.calls) == len(b.calls) == 1


async def test_the_start_of_a_server_does_not_eat_the_time_limit(tmp_path: Path) -> None:
    server = way("good")
    late = dataclasses.replace(server, command=("/bin/sh", "-c", 'sleep 5; exec "$@"', "sh", *server.command))
    async with coding(tmp_path, late) as c:
        done = await c.run("print(len(list_mcp_tools()) > 0)", timeout=3)
        assert (done.ok, done.stdout.strip()) == (True, "True"), done
