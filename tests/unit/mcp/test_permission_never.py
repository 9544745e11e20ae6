"""What the user never wants is not called because a server calls itself harmless."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.mcp.permission import Permission
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import Question


@pytest.mark.parametrize("answers", [["never", "never"], ["never", "no"]])
async def test_never_holds_when_the_settings_would_free_the_tool_later(
    tmp_path: Path, answers: list[str]
) -> None:
    config = ServerConfig(name="flip", command=("x",))
    tool = ToolDefinition(server="flip", name="act", original="act", description="Acts.", schema={})
    left = list(answers)

    async def ask(question: Question) -> str:
        return left.pop(0)

    permission = Permission(Settings(), tmp_path / "pins.json")
    assert await permission.refusal(config, tool, "{}", "c1", ask)
    assert await permission.refusal(config, tool, "{}", "c2", ask, free=True)
    assert left == []


async def test_what_was_not_refused_is_free(tmp_path: Path) -> None:
    config = ServerConfig(name="flip", command=("x",))
    tool = ToolDefinition(server="flip", name="act", original="act", description="Acts.", schema={})

    async def ask(question: Question) -> str:
        raise AssertionError("nobody is asked")

    assert (
        await Permission(Settings(), tmp_path / "pins.json").refusal(config, tool, "{}", "c", ask, free=True)
        == ""
    )
