"""Words for numbers and tool calls."""

from __future__ import annotations

import pytest

from sandbox_chat.events import ImageContent, TextContent
from sandbox_chat.plain import content_text, cost_text, duration_text, last_line, tool_name


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (None, "n/a"),
        (0, "$0.0000"),
        (0.01234, "$0.0123"),
        (0.99996, "$1.00"),
        (1.5, "$1.50"),
        (1234.5, "$1,234.50"),
    ],
)
def test_costs(cost: float | None, text: str) -> None:
    assert cost_text(cost) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (-5, "0.00 s"),
        (0, "0.00 s"),
        (420, "0.42 s"),
        (9_994, "9.99 s"),
        (9_999, "10.0 s"),
        (59_900, "59.9 s"),
        (59_999, "1 min 00 s"),
        (125_000, "2 min 05 s"),
        (3_725_000, "1 h 02 min"),
    ],
)
def test_durations(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text


def test_tool_names_lose_the_prefix_of_our_own_server_only() -> None:
    assert tool_name("mcp__sandbox__run_code") == "run_code"
    assert tool_name("mcp__other__run_code") == "mcp__other__run_code"


def test_the_text_of_a_result_and_its_last_line() -> None:
    content = (TextContent("a\n"), ImageContent("p", "image/png", 1, 1), TextContent("NameError: x\n\n  \n"))
    assert last_line(content_text(content)) == "NameError: x"
    assert last_line("") == ""
