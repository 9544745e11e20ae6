"""The real agent SDK and its program against the endpoint: the demo model, a script, and faults."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
    tool,
)
from support.demo_chat import PlainPython
from support.scripted import call, cli_env, error, rate_limited, serve, text, tool_results, wait_for

from sandbox_chat.demo.model import DemoModel
from sandbox_chat.demo.server import MessagesServer

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TURN_LIMIT = 60.0
"""Seconds after which a turn counts as hanging."""


@pytest.fixture(autouse=True)
def _no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own set-up reaches the program."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "CLAUDE_", "MCP_")):
            monkeypatch.delenv(name)


def tool_server(python: PlainPython) -> Any:
    """An in-process server with the tools that the demo needs, run in this process."""

    def content(result: dict[str, Any]) -> dict[str, Any]:
        if isinstance(result["content"], str):
            result = {**result, "content": [{"type": "text", "text": result["content"]}]}
        for block in result["content"]:
            if block["type"] == "image":
                block.pop("source")
                block.update(data=PNG, mimeType="image/png")
        return result

    @tool(
        "run_code",
        "Run Python code.",
        {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    )
    async def run_code(arguments: dict[str, Any]) -> dict[str, Any]:
        if "time.sleep" in arguments["code"]:
            await asyncio.sleep(30)
        return content(await asyncio.to_thread(python.run_code, arguments["code"]))

    @tool("read_image", "Look at a picture.", {"path": str})
    async def read_image(arguments: dict[str, Any]) -> dict[str, Any]:
        return content(python.read_image(arguments["path"]))

    return create_sdk_mcp_server("sandbox", tools=[run_code, read_image])


@asynccontextmanager
async def client(
    server: MessagesServer,
    folder: Path,
    *,
    python: PlainPython | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[ClaudeSDKClient]:
    """A connected client that talks to ``server`` only."""
    folder.mkdir(exist_ok=True)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    async with ClaudeSDKClient(
        ClaudeAgentOptions(
            tools=[],
            setting_sources=[],
            strict_mcp_config=True,
            allowed_tools=["mcp__sandbox__*"],
            include_partial_messages=True,
            verbatim_prompts=True,
            max_buffer_size=64 << 20,
            mcp_servers={"sandbox": tool_server(python or PlainPython(work))},
            env={**cli_env(server, folder), **(env or {})},
            cwd=str(work),
            model="demo-model",
            system_prompt="You are a test.",
            stderr=lambda line: None,
            **options,
        )
    ) as connected:
        yield connected


async def turn(connected: ClaudeSDKClient, prompt: str) -> list[Any]:
    """Send a prompt and collect the messages up to its result."""
    async with asyncio.timeout(TURN_LIMIT):
        await connected.query(prompt)
        return [message async for message in connected.receive_response()]


def result_of(messages: list[Any]) -> ResultMessage:
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1]


def answer_of(messages: list[Any]) -> str:
    """All text of the answer."""
    return "\n".join(
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    )


def subtypes(messages: list[Any]) -> list[str]:
    return [message.subtype for message in messages if isinstance(message, SystemMessage)]


def streamed(messages: list[Any]) -> str:
    """All text that was streamed, also what was withdrawn later."""
    events = [message.event for message in messages if isinstance(message, StreamEvent)]
    return "".join(
        event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"
    )


async def test_demo_turns_use_the_tools_and_each_others_variables(tmp_path: Path) -> None:
    with MessagesServer(DemoModel(pace=0)) as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "sum 1 to 100 and check it with Gauss's formula")
            result = result_of(messages)
            assert (result.subtype, result.is_error, result.num_turns) == ("success", False, 2)
            calls = [
                block.name
                for message in messages
                if isinstance(message, AssistantMessage)
                for block in message.content
                if isinstance(block, ToolUseBlock)
            ]
            assert calls == ["mcp__sandbox__run_code"]
            assert "**5050**" in answer_of(messages)
            assert "**5050**" in streamed(messages)

            messages = await turn(connected, "plot a damped sine and tell me its half-life")
            assert "**2.08 s**" in answer_of(messages)
            messages = await turn(connected, "where does it cross zero")
            assert "19 times" in answer_of(messages)
        assert server.requests == []  # a demo chat does not grow in memory
        assert server.errors == []


async def test_demo_mends_its_mistake(tmp_path: Path) -> None:
    with MessagesServer(DemoModel(pace=0)) as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "make a mistake and fix it")
    assert result_of(messages).num_turns == 3
    assert "KeyError: 'Sun'" in answer_of(messages)
    assert "21.42" in answer_of(messages)


async def test_demo_in_a_resumed_session_makes_lost_variables_again(tmp_path: Path) -> None:
    with MessagesServer(DemoModel(pace=0)) as server:
        async with client(server, tmp_path) as connected:
            session = result_of(await turn(connected, "base = 20")).session_id
        async with client(server, tmp_path, resume=session) as connected:
            messages = await turn(connected, "base + 22")
    assert "NameError" in answer_of(messages)
    assert "`42`" in answer_of(messages)


async def test_demo_after_an_interrupt(tmp_path: Path) -> None:
    with MessagesServer(DemoModel(pace=0.01)) as server:
        async with client(server, tmp_path) as connected:
            started = asyncio.Event()

            async def read() -> list[Any]:
                found = []
                async for message in connected.receive_response():
                    found.append(message)
                    if isinstance(message, AssistantMessage) and isinstance(message.content[0], ToolUseBlock):
                        started.set()
                return found

            await connected.query("run a slow job")
            reading = asyncio.create_task(read())
            async with asyncio.timeout(TURN_LIMIT):
                await started.wait()
                await asyncio.sleep(0.2)
                await connected.interrupt()
                messages = await reading
            assert result_of(messages).terminal_reason == "aborted_tools"
            messages = await turn(connected, "1+1")
            assert "`2`" in answer_of(messages)


async def test_script_sees_tool_results_and_pictures(tmp_path: Path) -> None:
    steps = (
        call("run_code", before="I try.", code="{}['x']"),
        call("run_code", code="40 + 2"),
        call("read_image", path="/tmp/a.png"),
        text("It is 42.", thinking="so it is"),
    )
    python = PlainPython(tmp_path)
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    with serve(*steps) as server:
        async with client(server, tmp_path, python=python) as connected:
            messages = await turn(connected, "@/etc/passwd go")
    assert answer_of(messages) == "I try.\nIt is 42."
    assert result_of(messages).num_turns == 4
    assert [record.body["model"] for record in server.requests] == ["demo-model"] * 4
    parsed = server.requests[0].request
    assert parsed is not None and parsed.prompt == "@/etc/passwd go"
    assert parsed.system.endswith("You are a test.")
    first, second, third = tool_results(server)
    assert first.is_error and "KeyError" in first.text
    assert not second.is_error and "[result]\n42" in second.text
    assert third.images == 1


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "something-else"])
async def test_prompt_is_found_whatever_form_the_reminders_take(tmp_path: Path, name: str) -> None:
    with serve("one", "two") as server:
        async with client(server, tmp_path) as connected:
            await connected.set_model(name)
            await turn(connected, "first prompt")
            await turn(connected, "second prompt")
    parsed = [record.request for record in server.requests]
    assert [request.prompt for request in parsed if request] == ["first prompt", "second prompt"]
    assert {request.model for request in parsed if request} == {name}
    assert [record.body["messages"][0]["content"][0]["text"] for record in server.others] == [
        "Hi"
    ]  # it tries the name


async def test_unknown_model(tmp_path: Path) -> None:
    with serve(error(404, "model: nope"), after=error(404, "model: nope")) as server:
        async with client(server, tmp_path) as connected:
            result = result_of(await turn(connected, "x"))
    assert result.is_error
    assert result.subtype == "success"
    assert "may not exist" in (result.result or "")
    assert [record.body.get("stream", False) for record in server.requests][:2] == [True, False]


async def test_wrong_token(tmp_path: Path) -> None:
    env = {"ANTHROPIC_AUTH_TOKEN": "wrong", "CLAUDE_CODE_MAX_RETRIES": "1"}
    with serve(after="never") as server:
        async with client(server, tmp_path, env=env) as connected:
            messages = await turn(connected, "x")
    assert result_of(messages).is_error
    assert "api_retry" in subtypes(messages)
    assert {record.status for record in server.requests} == {401}


async def test_rate_limit_is_waited_for(tmp_path: Path) -> None:
    with serve(rate_limited(0.2), "after all") as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "x")
    assert "api_retry" in subtypes(messages)
    assert answer_of(messages) == "after all"
    assert server.requests[1].at - server.requests[0].at >= 0.2


async def test_cut_stream_is_tried_again_and_the_part_withdrawn(tmp_path: Path) -> None:
    with serve(text("partial words", piece=4, cut_at=8, pace=0.1), "the whole answer") as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "x")
    assert "api_retry" in subtypes(messages)
    assert streamed(messages).startswith("partial")
    assert answer_of(messages) == "the whole answer"
    assert server.requests[0].outcome == "cut"


async def test_error_event_leads_to_a_whole_reply(tmp_path: Path) -> None:
    with serve(text("partial words", piece=4, error_at=8), "the whole answer") as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "x")
    assert answer_of(messages) == "the whole answer"
    assert [record.body.get("stream", False) for record in server.requests] == [True, False]


async def test_interrupted_text_reaches_the_endpoint_and_the_history(tmp_path: Path) -> None:
    hold = threading.Event()
    with serve(text("one two three", piece=4, hold_at=8, hold=hold), "next") as server:
        async with client(server, tmp_path) as connected:
            await connected.query("first")
            seen = ""
            async with asyncio.timeout(TURN_LIMIT):
                async for message in connected.receive_response():
                    seen += streamed([message])
                    if seen == "one two " and not hold.is_set():
                        hold.set()
                        hold = threading.Event()
                        await connected.interrupt()
            messages = await turn(connected, "second")
    assert answer_of(messages) == "next"
    request = server.requests[1].request
    assert request is not None and request.prompt == "second"
    assert request.messages[-2].text.startswith("one two")


async def test_broken_arguments_and_usage(tmp_path: Path) -> None:
    with serve(call("no_such_tool", code="1"), "sorry") as server:
        async with client(server, tmp_path) as connected:
            messages = await turn(connected, "x")
    assert "No such tool available" in tool_results(server)[0].text
    usage = result_of(messages).usage
    assert usage is not None and usage["output_tokens"] > 0
    assert usage["cache_read_input_tokens"] > 0
    wait_for(lambda: server.requests[-1].outcome == "done")
