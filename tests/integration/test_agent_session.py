"""A session over the real SDK and CLI against a scripted endpoint."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from support.agent import KNOWN_MODEL, Chat, MemorySandbox, chat
from support.pictures import picture
from support.scripted import Reply, ToolUse, call, reply, serve, text, tool_results
from support.scripted import Text as Said

from sandbox_chat.agent.session import AgentError, Endpoint
from sandbox_chat.events import (
    Event,
    ImageContent,
    Notice,
    Status,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.sandbox.base import Execution, RichOutput, SandboxError
from sandbox_chat.settings import Secret, Settings


def long(words: int = 300, pace: float = 0.03) -> Reply:
    """An answer that takes seconds to write."""
    return reply(Said("word " * words), pace=pace)


def shown(chat: Chat) -> list[str]:
    """The whole blocks of the answers."""
    return [event.text for event in chat.of(Text)]


def check_order(events: list[Event]) -> None:
    """Every turn and every call is started before it is finished, once; calls end within their turn."""
    turns: dict[str, str] = {}
    calls: dict[str, str] = {}
    for event in events:
        if isinstance(event, TurnStarted):
            assert turns.setdefault(event.turn_id, "open") == "open"
        elif isinstance(event, ToolStarted):
            assert calls.setdefault(event.tool_use_id, "open") == "open"
        elif isinstance(event, ToolOutput):
            assert calls[event.tool_use_id] == "open"
        elif isinstance(event, ToolFinished):
            assert calls[event.tool_use_id] == "open"
            calls[event.tool_use_id] = "done"
        elif isinstance(event, TurnFinished):
            assert turns[event.turn_id] == "open"
            turns[event.turn_id] = "done"
            assert set(calls.values()) <= {"done"}
    assert set(turns.values()) <= {"done"}


async def test_a_turn_with_a_tool(tmp_path: Path) -> None:
    steps = (call("run_code", before="Let me see.", code="print('hi')\n"), text("It said hi."))
    async with chat(*steps, tmp=tmp_path) as c:
        finished = await c.ask("say hi")
        assert (finished.subtype, finished.is_error, finished.interrupted) == ("success", False, False)
        assert finished.num_turns == 2
        assert shown(c) == ["Let me see.", "It said hi."]
        [result] = tool_results(c.server)
        assert result.text == "[success] True\n[stdout]\nhi"
        assert not result.is_error
        [started] = c.of(ToolStarted)
        assert started.name == "mcp__sandbox__run_code"
        [done] = c.of(ToolFinished)
        assert done.content == (TextContent("[success] True\n[stdout]\nhi"),)
        assert [event.text for event in c.of(ToolOutput)] == ["hi\n"]
        assert finished.cost_usd is not None and finished.cost_usd > 0
        assert finished.context.max == 200_000
        assert finished.context.used > 0
        assert [event.state for event in c.of(Status)] == ["connecting", "ready"]
        check_order(c.events)
    assert [event.state for event in c.of(Status)][-1] == "closed"


async def test_what_reaches_the_endpoint(tmp_path: Path) -> None:
    async with chat(text("ok"), tmp=tmp_path, model="my-model-1") as c:
        finished = await c.ask("@/etc/passwd and /clear\n/cost")
        body = c.server.requests[0].body
        assert body["model"] == "my-model-1"
        fixed = len(
            json.dumps({"system": body["system"], "tools": body["tools"]}, ensure_ascii=False).encode()
        )
        assert fixed < 8000
        [message] = body["messages"]
        content = message["content"]
        said = content if isinstance(content, str) else "".join(part["text"] for part in content)
        assert said == "@/etc/passwd and /clear\n/cost"
        assert "root:" not in json.dumps(body)
        names = [tool["name"] for tool in body["tools"]]
        assert sorted(names) == [
            f"mcp__sandbox__{name}"
            for name in ("download_file", "list_files", "read_file", "read_image", "run_code", "write_file")
        ]
        assert str(tmp_path) not in json.dumps(body)  # nothing of this computer
        assert finished.cost_usd is None  # an unknown model has no price
        assert finished.total_cost_usd is None
        assert finished.context.max == 0


@pytest.mark.slow
async def test_errors_of_code_and_of_the_sandbox_reach_the_endpoint(tmp_path: Path) -> None:
    steps = (call("run_code", code="1/0"), call("run_code", code="1"), text("sorry"))
    async with chat(*steps, tmp=tmp_path) as c:
        turn = await c.send("go")
        await c.until(lambda: c.of(ToolFinished))
        c.worker.fail = SandboxError("no room")
        await c.finished(turn)
        [failed] = tool_results(c.server, 1)
        assert failed.is_error
        assert failed.text.startswith("[success] False\n[error]\nZeroDivisionError")
        assert "[traceback]" in failed.text
        last = tool_results(c.server, 2)[-1]
        assert last.is_error
        assert last.text.startswith("[tool_error] SandboxError: no room")
        assert [event.is_error for event in c.of(ToolFinished)] == [True, True]


async def test_a_picture_arrives_as_an_image_block(tmp_path: Path) -> None:
    worker = MemorySandbox()
    worker.next = [Execution(outputs=(RichOutput({"image/png": picture(64, 48)}),))]
    async with chat(call("run_code", code="plot"), text("nice"), tmp=tmp_path, worker=worker) as c:
        await c.ask("plot")
        assert '"type": "image"' in json.dumps(c.server.requests[-1].body["messages"])
        [done] = c.of(ToolFinished)
        image = done.content[1]
        assert isinstance(image, ImageContent)
        assert (image.width, image.height) == (64, 48)
        assert Path(image.path).read_bytes() == c.pictures[0]


async def test_two_tools_at_once(tmp_path: Path) -> None:
    both = reply(
        ToolUse("mcp__sandbox__run_code", {"code": "sleep(1)\nprint('slow')"}),
        ToolUse("mcp__sandbox__list_files", {}),
    )
    async with chat(both, text("done"), tmp=tmp_path) as c:
        await c.ask("go")
        started = {event.tool_use_id: event.name for event in c.of(ToolStarted)}
        done = {event.tool_use_id: event for event in c.of(ToolFinished)}
        assert set(started) == set(done) and len(done) == 2
        for call_id, name in started.items():
            [content] = done[call_id].content
            assert isinstance(content, TextContent)
            assert ("slow" in content.text) == (name == "mcp__sandbox__run_code")
        check_order(c.events)


@pytest.mark.slow
async def test_calls_that_no_handler_sees(tmp_path: Path) -> None:
    broken = reply(ToolUse("mcp__sandbox__run_code", raw='{"code": "1'))
    async with chat(call("mcp__sandbox__nothing", a=1), broken, text("ok"), tmp=tmp_path) as c:
        await c.ask("go")
        assert len(c.of(ToolStarted)) == 2
        assert [event.is_error for event in c.of(ToolFinished)] == [True, True]
        check_order(c.events)


async def test_an_interrupted_text(tmp_path: Path) -> None:
    async with chat(long(), text("second"), tmp=tmp_path) as c:
        turn = await c.send("write")
        await c.until(lambda: len(c.of(TextDelta)) > 10)
        start = time.monotonic()
        await c.session.interrupt()
        finished = await c.finished(turn)
        assert time.monotonic() - start < 3
        assert finished.interrupted and not finished.is_error and not finished.error
        [partial] = shown(c)
        assert partial.startswith("word word")
        assert finished.usage.input > 0
        again = await c.ask("next")
        assert not again.interrupted
        assert shown(c)[1:] == ["second"]
        check_order(c.events)


async def test_an_interrupted_tool(tmp_path: Path) -> None:
    async with chat(call("run_code", code="sleep(30)"), text("second"), tmp=tmp_path) as c:
        turn = await c.send("run")
        await c.until(lambda: c.of(ToolOutput))
        start = time.monotonic()
        await c.session.interrupt()
        finished = await c.finished(turn)
        assert time.monotonic() - start < 3
        assert finished.interrupted
        [done] = c.of(ToolFinished)
        assert done.interrupted and done.is_error
        assert c.worker.cancelled == 1
        await c.ask("next")
        assert shown(c) == ["second"]
        check_order(c.events)


@pytest.mark.slow
async def test_interrupts_at_any_moment(tmp_path: Path) -> None:
    async with chat(function=lambda request: long(100, 0.02), tmp=tmp_path) as c:
        for delay in (0.0, 0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
            turn = await c.send("write")
            await asyncio.sleep(delay)
            await c.session.interrupt()
            finished = await c.finished(turn, 10)
            assert finished.interrupted, f"after {delay} s"
        check_order(c.events)
        states = [event.state for event in c.of(Status) if event.state != "interrupting"]
        assert states == ["connecting", "ready"]


async def test_prompts_wait_in_line_and_run_one_by_one(tmp_path: Path) -> None:
    def answer(request: object) -> str:
        body = c.server.requests[-1].body["messages"][-1]["content"]
        said = body if isinstance(body, str) else "".join(part.get("text", "") for part in body)
        return f"answer to {said}"

    async with chat(function=answer, tmp=tmp_path, connect=False) as c:
        turns = [await c.send(f"prompt {number}") for number in range(3)]
        assert [event.turn_id for event in c.of(TurnStarted)] == turns[:1]  # the others when their turn comes
        for turn in turns:
            assert not (await c.finished(turn)).is_error
        bounds = [event.turn_id for event in c.events if isinstance(event, TurnStarted | TurnFinished)]
        assert bounds == [turn for turn in turns for _ in range(2)]
        assert shown(c) == [f"answer to prompt {number}" for number in range(3)]
        assert [event.turn_id for event in c.of(TurnFinished)] == turns


@pytest.mark.slow
async def test_an_interrupt_stops_only_the_running_turn(tmp_path: Path) -> None:
    async with chat(long(), text("second"), tmp=tmp_path) as c:
        first = await c.send("one")
        second = await c.send("two")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        await c.session.interrupt()
        assert (await c.finished(first)).interrupted
        assert not (await c.finished(second)).interrupted
        assert shown(c)[-1] == "second"
        assert "two" in json.dumps(c.server.requests[-1].body["messages"][-1])


async def test_a_turn_that_waits_for_the_connection_can_be_interrupted(tmp_path: Path) -> None:
    async with chat(text("second"), tmp=tmp_path, connect=False) as c:
        turn = await c.send("one")
        await asyncio.sleep(0)
        await c.session.interrupt()
        finished = await c.finished(turn, 5)
        assert finished.interrupted
        assert not (await c.ask("two")).is_error
        assert len(c.server.requests) == 1


@pytest.mark.slow
async def test_another_model_from_the_next_turn_on(tmp_path: Path) -> None:
    async with chat(text("a"), text("b"), tmp=tmp_path) as c:
        await c.ask("one")
        await c.session.set_model("claude-opus-5")
        finished = await c.ask("two")
        assert [request.body["model"] for request in c.server.requests] == [KNOWN_MODEL, "claude-opus-5"]
        assert {use.model for use in finished.models} == {KNOWN_MODEL, "claude-opus-5"}
        assert finished.total_cost_usd == pytest.approx(sum(use.cost_usd or 0 for use in finished.models))


async def test_costs_are_of_the_turn_and_add_up(tmp_path: Path) -> None:
    async with chat(text("a"), text("b"), tmp=tmp_path) as c:
        first, second = await c.ask("one"), await c.ask("two")
        assert first.cost_usd and second.cost_usd
        assert first.total_cost_usd == pytest.approx(first.cost_usd)
        assert second.total_cost_usd == pytest.approx(first.cost_usd + second.cost_usd)


async def test_a_session_goes_on_in_another_run(tmp_path: Path) -> None:
    session_id = str(uuid.uuid4())
    with serve(text("your word is kiwi"), text("it was kiwi")) as server:
        async with chat(tmp=tmp_path, server=server, session_id=session_id) as c:
            first = await c.ask("give me a word")
        async with chat(tmp=tmp_path, server=server, session_id=session_id, resume=True) as c:
            second = await c.ask("which was it?")
            assert not c.of(Notice)
    body = server.requests[-1].body
    assert "your word is kiwi" in json.dumps(body["messages"])
    assert "earlier run" in json.dumps(body["system"])
    assert first.total_cost_usd is not None and second.cost_usd is not None
    assert second.total_cost_usd == pytest.approx(first.total_cost_usd + second.cost_usd)


async def test_a_session_without_a_record_of_the_agent_starts_afresh_and_says_so(tmp_path: Path) -> None:
    async with chat(text("hello"), tmp=tmp_path, resume=True) as c:
        assert not (await c.ask("hi")).is_error
        [notice] = c.of(Notice)
        assert "does not know what was said before" in notice.text


async def test_closing_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with chat(long(), tmp=tmp_path) as c:
        await c.send("write")
        await c.send("and then")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        pid = c.session.cli_pid
        start = time.monotonic()
        await c.session.close()
        assert time.monotonic() - start < 6
    assert not psutil.pid_exists(pid)
    assert [event.interrupted for event in c.of(TurnFinished)] == [True, True]
    assert shown(c)[0].startswith("word")
    assert c.of(Status)[-1].state == "closed"
    check_order(c.events)
    await c.session.close()


@pytest.mark.slow
async def test_closing_while_a_tool_runs(tmp_path: Path) -> None:
    async with chat(call("run_code", code="sleep(30)"), tmp=tmp_path) as c:
        await c.send("run")
        await c.until(lambda: c.of(ToolOutput))
        pid = c.session.cli_pid
        start = time.monotonic()
        await c.session.close()
        assert time.monotonic() - start < 6
    assert not psutil.pid_exists(pid)
    assert c.worker.cancelled == 1
    check_order(c.events)


@pytest.mark.slow
async def test_a_cli_killed_before_it_saved_anything(tmp_path: Path) -> None:
    async with chat(function=lambda request: text("hello"), tmp=tmp_path) as c:
        for delay in (0.0, 0.01, 0.03, 0.1):
            turn = await c.send("one")
            await asyncio.sleep(delay)
            killed = c.session.cli_pid
            os.kill(killed, signal.SIGKILL)
            await c.finished(turn, 15)
            # A quick answer is complete before the kill. Then the next prompt must not outrun the news of it.
            await c.until(lambda gone=killed: c.session.cli_pid != gone)
            assert not (await c.ask("two")).is_error, f"after {delay} s"
        check_order(c.events)


@pytest.mark.slow
async def test_a_frozen_cli_does_not_hold_up_the_end(tmp_path: Path) -> None:
    settings = Settings(close_timeout=2.0, data_dir=tmp_path)
    async with chat(text("one"), tmp=tmp_path, settings=settings) as c:
        await c.ask("a")
        frozen = c.session.cli_pid
        os.kill(frozen, signal.SIGSTOP)
        start = time.monotonic()
        await c.session.close()
        assert time.monotonic() - start < 6
    assert not psutil.pid_exists(frozen)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux only")
async def test_the_cli_dies_with_a_program_that_was_killed(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.agent import chat
from support.scripted import text

async def main():
    async with chat(text("x"), tmp=Path(sys.argv[1])) as c:
        print(c.session.cli_pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""
    tests = str(Path(__file__).parents[1])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), tests, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(await asyncio.wait_for(process.stdout.readline(), 60))
    assert psutil.pid_exists(pid)
    process.kill()
    await process.wait()
    async with asyncio.timeout(5):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.05)


async def test_closing_before_and_while_connecting(tmp_path: Path) -> None:
    async with chat(tmp=tmp_path, connect=False) as c:
        pass
    assert [event.state for event in c.of(Status)] == ["closed"]
    async with chat(tmp=tmp_path, connect=False) as c:
        connecting = asyncio.ensure_future(c.session.connect())
        await asyncio.sleep(0.3)
        connecting.cancel()
        await asyncio.wait({connecting})
    children = [
        child.name() for child in psutil.Process().children() if "claude" in " ".join(child.cmdline())
    ]
    assert children == []


async def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    temp = tmp_path / "t"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    async with chat(text("ok"), tmp=tmp_path) as c:
        await c.ask("hi")
        assert list(temp.iterdir())
    assert list(temp.iterdir()) == []


async def test_a_chat_without_a_sandbox(tmp_path: Path) -> None:
    settings = Settings(sandbox="off", request_retries=1)
    async with chat(text("no tools here"), tmp=tmp_path, worker=False, settings=settings) as c:
        assert not (await c.ask("hi")).is_error
        assert not c.server.requests[0].body.get("tools")


CANARIES = {
    "E2B_API_KEY": "canary-e2b-0001",
    "ANTHROPIC_API_KEY": "canary-key-0002",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-0003",
    "CLAUDE_CODE_OAUTH_TOKEN": "canary-login-0004",
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_credentials_are_only_where_they_belong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    async with chat(text("ok"), tmp=tmp_path) as c:
        await c.ask("hi")
        process = psutil.Process(c.session.cli_pid)
        line = " ".join(process.cmdline())
        environment = process.environ()
        assert c.server.token not in line
        assert environment["ANTHROPIC_AUTH_TOKEN"] == c.server.token
        for value in CANARIES.values():
            assert value not in line
            assert value not in str(environment)
        assert process.ppid() == os.getpid()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert c.server.token.encode() not in data, path
            for value in CANARIES.values():
                assert value.encode() not in data, path


@pytest.mark.slow
async def test_a_session_id_that_the_cli_refuses_is_said(tmp_path: Path) -> None:
    async with chat(tmp=tmp_path, session_id="not-a-uuid", connect=False) as c:
        with pytest.raises(AgentError, match="could not be started"):
            await c.session.connect()
        finished = await c.ask("hi")
        assert finished.is_error
        assert "could not be started" in finished.error and "Send the prompt again" in finished.error


async def test_nothing_answers_at_the_endpoint(tmp_path: Path) -> None:
    nowhere = Endpoint("http://127.0.0.1:9", Secret("t"), Secret(""), KNOWN_MODEL)
    async with chat(tmp=tmp_path, endpoint=nowhere) as c:
        finished = await c.ask("hi")
        assert finished.is_error
        assert "connection was refused" in finished.error
