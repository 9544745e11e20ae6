"""The MCP server: schemas, failures as answers, cancellation, the id of a call."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp import Client
from support.toolbox import Tools

from sandbox_chat.sandbox.base import SandboxClosed, SandboxError, SandboxUnavailable
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.tools.schemas import check_arguments, tool_specs
from sandbox_chat.tools.server import call_tool, make_server

SPECS = {spec.name: spec for spec in tool_specs(Settings())}


def test_the_tools_of_the_spec() -> None:
    assert list(SPECS) == ["run_code", "write_file", "read_file", "read_image", "list_files", "download_file"]
    for spec in SPECS.values():
        assert spec.schema["type"] == "object"
        assert isinstance(spec.schema["required"], list)
        assert set(spec.schema["required"]) <= set(spec.schema["properties"])
    assert SPECS["run_code"].full_name == "mcp__sandbox__run_code"
    assert {name for name, spec in SPECS.items() if spec.read_only} == {
        "read_file",
        "read_image",
        "list_files",
    }


def test_the_limits_move_together() -> None:
    run = tool_specs(Settings(run_timeout=40, text_limit=9000))[0]
    assert run.schema["properties"]["timeout"]["maximum"] == 40
    assert "40 s" in run.description
    assert "9,000 characters" in run.description


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("run_code", {}, "'code' of run_code is missing"),
        ("run_code", {"code": 5}, "must be text"),
        ("run_code", {"code": "1", "timeout": "3"}, "whole number"),
        ("run_code", {"code": "1", "timeout": True}, "whole number"),
        ("run_code", {"code": "1", "timeout": 0}, "from 1 to 25"),
        ("run_code", {"code": "1", "timeout": 26}, "split longer work"),
        ("write_file", {"path": "x"}, "'content'"),
        ("list_files", {"folder": "x"}, "no argument 'folder'"),
    ],
)
async def test_wrong_arguments_are_answered(
    tools: Tools, tool: str, arguments: dict[str, object], words: str
) -> None:
    assert words in check_arguments(SPECS[tool], arguments)
    outcome = await call_tool(tools.context, SPECS[tool], "id", dict(arguments))
    assert outcome.is_error
    assert outcome.text.startswith("[error] ") and words in outcome.text
    assert len(tools.finished) == 1
    assert tools.sandbox.runs == []


@pytest.mark.parametrize("kind", [SandboxError, SandboxUnavailable, SandboxClosed, OSError, RuntimeError])
async def test_a_failure_of_the_sandbox_is_answered_with_the_advice_to_stop(
    tools: Tools, kind: type[Exception]
) -> None:
    tools.sandbox.fail = kind("the cause")
    for name, arguments in (("run_code", {"code": "1"}), ("list_files", {}), ("read_image", {"path": "x"})):
        outcome = await tools.call(name, **arguments)
        assert outcome.is_error
        assert outcome.text.startswith(f"[tool_error] {kind.__name__}: the cause\n")
        assert "Do not try again" in outcome.text and "tell the user" in outcome.text


async def test_no_credential_in_a_failure(tools: Tools) -> None:
    tools.settings = Settings(e2b_api_key=Secret("e2b_canary_1234"))
    tools.sandbox.fail = SandboxError("key e2b_canary_1234 refused \x1b[2J")
    text = (await tools.call("run_code", code="1")).text
    assert "canary" not in text
    assert "\x1b" not in text


async def test_a_cancelled_call_is_told_and_lets_go(tools: Tools) -> None:
    task = asyncio.ensure_future(tools.call("run_code", code="sleep(30)"))
    while not tools.sandbox.runs:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tools.sandbox.cancelled == 1
    [(_, outcome, _)] = tools.finished
    assert outcome.interrupted and outcome.is_error


async def test_over_mcp(tools: Tools) -> None:
    async with Client(make_server(tools.context)) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(SPECS)
        hints = {tool.name: bool(tool.annotations and tool.annotations.read_only_hint) for tool in listed}
        assert hints["read_file"] and not hints["run_code"]
        result = await client.call_tool("run_code", {"code": "6*7"})
        assert not result.is_error
        assert "42" in result.model_dump_json()
        assert (await client.call_tool("run_code", {"code": "1/0"})).is_error
        unknown = await client.call_tool("nothing", {})
        assert unknown.is_error
    ids = [call_id for call_id, _, _ in tools.started]
    assert len(ids) == 2 and len(set(ids)) == 2  # without an id of the model's, one is made


async def test_a_cancelled_request_over_mcp_does_not_spin(tools: Tools) -> None:
    async with Client(make_server(tools.context)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.call_tool("run_code", {"code": "sleep(30)"})
        async with asyncio.timeout(10):
            while not tools.finished:
                await asyncio.sleep(0.01)
        assert tools.finished[0][1].interrupted
        assert not (await client.call_tool("run_code", {"code": "1"})).is_error


def test_the_schemas_are_small() -> None:
    wire = json.dumps(
        [{"n": spec.full_name, "d": spec.description, "s": spec.schema} for spec in SPECS.values()]
    )
    assert len(wire) < 4500
