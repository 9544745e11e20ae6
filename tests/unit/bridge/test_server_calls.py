"""The host's end: what is called on what terms, what code gets of it, and what people are shown."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from support.bridging import SECRET, bridged, call, echo, memory, refused, text, tool
from support.exported import PNG

from sandbox_chat.bridge import server as server_module
from sandbox_chat.events import ImageContent, NestedFinished, NestedStarted, TextContent
from sandbox_chat.mcp.base import McpError
from sandbox_chat.settings import ConfigError

# -- calling -----------------------------------------------------------------------------------------------


async def test_a_call(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        assert await call(b, text="é", n=1) == {"ok": True, "value": {"text": "é", "n": 1}}
        assert (await call(b, "mcp__notes__echo", text="x"))["ok"]
    assert memory(b).got[0] == ("echo", {"text": "é", "n": 1}, None)
    start, end = b.of(NestedStarted)[0], b.of(NestedFinished)[0]
    assert (start.tool_use_id, start.call_id, start.name) == ("call-1", "call-1.1", "mcp__notes__echo")
    assert start.input == {"text": "é", "n": 1}
    assert (end.tool_use_id, end.call_id, end.is_error, end.interrupted) == (
        "call-1", "call-1.1", False, False,
    )  # fmt: skip
    assert end.content == (TextContent('{"text": "é", "n": 1}'),)
    assert end.duration_ms >= 0
    assert [event.call_id for event in b.of(NestedStarted)] == ["call-1.1", "call-1.2"]


@pytest.mark.parametrize(
    ("timeout", "limit"),
    [(None, None), (1, 1.0), (0.5, 0.5), (1e9, 20.0), (float("inf"), 20.0), (10**400, 20.0)],
    ids=["usual", "whole", "short", "long", "endless", "huge"],
)
async def test_a_timeout(timeout: Any, limit: float | None, tmp_path: Path) -> None:
    """Code may ask for a shorter one than the settings have, and for no longer one."""
    b = bridged(tmp_path, mcp_call_timeout=20.0)
    async with b.bridge.run("call-1"):
        answer = await b.ask("call", name="notes__echo", arguments={"text": "x"}, timeout=timeout)
    assert answer["ok"], answer
    assert memory(b).got == [("echo", {"text": "x"}, limit)]


@pytest.mark.parametrize("timeout", [0, -1, "5", True, [], {}, float("nan")])
async def test_timeouts_that_are_none(timeout: Any, tmp_path: Path) -> None:
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        answer = await b.ask("call", name="notes__echo", arguments={"text": "x"}, timeout=timeout)
    assert (answer["kind"], answer["text"]) == (
        "arguments",
        "timeout must be a number of seconds above 0.",
    )
    assert memory(b).got == []


@pytest.mark.parametrize("arguments", [None, [], "text", 1])
async def test_arguments_that_are_no_dict(arguments: Any, tmp_path: Path) -> None:
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        answer = await b.ask("call", name="notes__echo", arguments=arguments)
    assert (answer["kind"], answer["text"]) == ("arguments", "The arguments must be a dict.")
    assert b.events == []


async def test_wrong_arguments_are_told_with_those_that_are_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        answer = await call(b, text=1)
    assert answer["kind"] == "arguments"
    assert answer["text"].endswith("Expected: echo(text: str, n: int = …).")
    assert not answer["text"].startswith("[error]")
    assert memory(b).got == []
    (end,) = b.of(NestedFinished)
    assert end.is_error
    assert end.content[0].text == answer["text"]
    assert len(refused(caplog)) == 1


async def test_a_failure_in_the_servers_own_words(tmp_path: Path) -> None:
    def fail(arguments: Mapping[str, Any]) -> types.CallToolResult:
        return text(f"no \x1b[31mpaper {SECRET}", is_error=True)

    b = bridged(tmp_path, fail, (tool("silent"), lambda given: text(is_error=True)))
    async with b.bridge.run("call-1"):
        answer = await call(b, text="x")
        assert (answer["ok"], answer["kind"]) == (False, "failed")
        assert answer["text"].startswith("no paper ")
        assert SECRET not in answer["text"]
        assert (await call(b, "notes__silent"))["text"] == "The tool failed and said nothing."
    assert [event.is_error for event in b.of(NestedFinished)] == [True, True]
    assert SECRET not in str([event.content for event in b.of(NestedFinished)])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (McpError("The MCP server notes did not answer within 5 s, and the call was cancelled"), "timeout"),
        (McpError("The MCP server notes ended."), "failed"),
    ],
)
async def test_a_server_that_does_not_answer(error: Exception, kind: str, tmp_path: Path) -> None:
    def act(arguments: Mapping[str, Any]) -> Any:
        raise error

    b = bridged(tmp_path, act)
    async with b.bridge.run("call-1"):
        answer = await call(b, text="x")
    assert (answer["kind"], answer["text"]) == (kind, str(error))
    assert [(event.is_error, event.interrupted) for event in b.of(NestedFinished)] == [(True, False)]


async def test_a_fault_of_ours_is_an_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def act(arguments: Mapping[str, Any]) -> Any:
        raise ZeroDivisionError("of ours")

    b = bridged(tmp_path, act)
    async with b.bridge.run("call-1"):
        answer = await call(b, text="x")
        assert (answer["kind"], answer["text"]) == ("failed", "ZeroDivisionError: of ours")
    assert "a request of code failed" in caplog.text
    assert [event.is_error for event in b.of(NestedFinished)] == [True]


async def test_credentials_of_the_server_do_not_reach_code(tmp_path: Path) -> None:
    b = bridged(tmp_path, lambda given: {"a": [f"key {SECRET}"], SECRET: 1})
    async with b.bridge.run("call-1"):
        answer = await call(b, text="x")
    assert answer["ok"]
    assert SECRET not in str(answer)
    assert SECRET not in str(b.of(NestedFinished)[0].content)


async def test_pictures(tmp_path: Path) -> None:
    data = base64.b64encode(PNG).decode()
    drawn = types.CallToolResult(content=[types.ImageContent(type="image", data=data, mime_type="image/png")])
    b = bridged(tmp_path, lambda given: drawn)
    async with b.bridge.run("call-1"):
        assert await call(b, text="x") == {"ok": True, "parts": [{"data": data}]}
    words, picture = b.of(NestedFinished)[0].content
    assert isinstance(picture, ImageContent)
    assert b.host.pictures == [PNG]
    assert words.text == f"({len(PNG)} bytes)"


async def test_a_result_that_is_too_large(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(
        tmp_path, lambda given: "x" * (20_000 if given["text"] == "big" else 100), code_mode_result_mb=0.01
    )
    async with b.bridge.run("call-1"):
        answer = await call(b, text="big")
        assert answer["kind"] == "limit"
        assert "SANDBOX_CHAT_CODE_MODE_RESULT_MB" in answer["text"]
        assert (await call(b, text="small"))["ok"]
    assert [event.is_error for event in b.of(NestedFinished)] == [True, False]
    assert b.of(NestedFinished)[0].content[0].text == answer["text"]
    assert len(refused(caplog)) == 1


async def test_a_list_that_is_too_large(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path, echo, (tool("long", description="x" * 20_000), echo), code_mode_result_mb=0.01)
    async with b.bridge.run("call-1"):
        assert (await b.ask("list", detail="full"))["kind"] == "limit"
        assert (await b.ask("list", detail="names"))["ok"]
    assert len(refused(caplog)) == 1


async def test_what_is_shown_is_bounded_and_what_code_gets_is_not(tmp_path: Path) -> None:
    b = bridged(
        tmp_path,
        lambda given: "y" * 50_000,
        (tool("fail"), lambda given: text("z" * 50_000, is_error=True)),
        code_mode_shown=200,
    )
    async with b.bridge.run("call-1"):
        assert len((await call(b, text="x" * 100_000))["value"]) == 50_000
        await call(b, "notes__fail")
    start, (end, failed) = b.of(NestedStarted)[0], b.of(NestedFinished)
    assert len(end.content[0].text) < 300
    assert "the code got 50,000" in end.content[0].text
    assert len(failed.content[0].text) < 300
    (name,) = start.input
    assert name == "arguments"
    assert len(start.input[name]) < server_module.LONGEST_INPUT + 100


async def test_arguments_are_shown_clean(tmp_path: Path) -> None:
    b = bridged(tmp_path)
    async with b.bridge.run("call-1"):
        await call(b, text="\ud800", **{"na\x1b[2Jme": 1})
    (start,) = b.of(NestedStarted)
    json.dumps(start.input, ensure_ascii=False).encode()  # no broken characters
    assert "\x1b" not in str(list(start.input))


async def test_calls_of_a_run_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    b = bridged(tmp_path, code_mode_calls=2)
    for number in (1, 2):
        async with b.bridge.run(f"call-{number}"):
            answers = [await call(b, text="x") for _ in range(3)]
        assert [each["ok"] for each in answers] == [True, True, False]
        assert answers[2]["kind"] == "limit"
        assert "One run may make 2 calls" in answers[2]["text"]
    assert len(b.of(NestedStarted)) == 4
    assert len(refused(caplog)) == 2


# -- rights ------------------------------------------------------------------------------------------------


async def test_the_user_is_asked(tmp_path: Path) -> None:
    b = bridged(tmp_path, policy=(), answers=("once", "no", "never"))
    async with b.bridge.run("call-1"):
        assert (await call(b, text="one"))["ok"]
        assert (await call(b, text="two"))["kind"] == "denied"
        answer = await call(b, text="three")
        assert (answer["kind"], answer["text"].startswith("[error]")) == ("denied", False)
    assert [given["text"] for _, given, _ in memory(b).got] == ["one"]
    question = b.host.questions[0]
    assert question.tool_use_id == "call-1"
    assert '"text": "one"' in question.detail
    assert server_module.ASKED_BY_CODE in question.detail
    assert len(b.host.questions) == 3


async def test_what_only_reads_may_be_free(tmp_path: Path) -> None:
    b = bridged(tmp_path, echo, (tool("write"), echo), policy=("notes=read-only",))
    async with b.bridge.run("call-1"):
        assert (await call(b, text="x"))["ok"]
        assert b.host.questions == []
        assert (await call(b, "notes__write"))["kind"] == "denied"
    assert len(b.host.questions) == 1


def test_a_policy_of_wrong_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="code_mode_policy"):
        bridged(tmp_path, policy=("notes",))
