"""Words for numbers and tool calls."""

from __future__ import annotations

import pytest

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Attached,
    Choice,
    ImageContent,
    Progress,
    TextContent,
)
from sandbox_chat.plain import (
    answer_text,
    arguments_line,
    attached_text,
    content_text,
    cost_text,
    duration_text,
    last_line,
    progress_text,
    size_text,
    tool_name,
    tool_parts,
)


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


def test_tools_of_other_servers_are_named_with_their_server() -> None:
    assert tool_name("mcp__sandbox__run_code") == "run_code"
    assert tool_name("mcp__other__run_code") == "other · run_code"
    assert tool_parts("mcp__other__a__b") == ("other", "a__b")
    for name in ("Read", "mcp__", "mcp__other", "mcp____x", "mcp__other__", "__x__y", ""):
        assert tool_parts(name) == ("", name)
        assert tool_name(name) == name


def test_arguments_are_said_on_one_line() -> None:
    assert arguments_line({}) == ""
    assert arguments_line({"repo": "/src\n x"}) == "/src x"
    assert (
        arguments_line({"repo": "/src", "n": 5, "deep": {"a": [1, "你"]}})
        == 'repo: /src · n: 5 · deep: {"a": [1, "你"]}'
    )
    long = arguments_line({f"a{number}": "x" * 10_000 for number in range(1000)})
    assert len(long) < 20 * 220


def test_the_text_of_a_result_and_its_last_line() -> None:
    content = (TextContent("a\n"), ImageContent("p", "image/png", 1, 1), TextContent("NameError: x\n\n  \n"))
    assert last_line(content_text(content)) == "NameError: x"
    assert last_line("") == ""


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_600, "1.0 MB"),
        (340_000_000, "340 MB"),
        (5_000_000_000_000, "5,000 GB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_transfers_and_attached_files() -> None:
    assert progress_text(Progress(subject="x", label="f", done=120_000_000, total=300_000_000)) == (
        "120 MB of 300 MB, 40 %"
    )
    assert progress_text(Progress(subject="x", label="f", done=5, total=0)) == "5 bytes"
    there = Attached(attach_id="x", name="f.csv", path="/tmp/attached/f.csv", size=12, kind="text/csv")
    assert (
        attached_text(there)
        == "Attached f.csv (12 bytes, text/csv): it is at /tmp/attached/f.csv in the sandbox."
    )
    assert attached_text(Attached(attach_id="x", name="f", path="", size=0, error="No.")) == "No."


@pytest.mark.parametrize(
    ("choice", "by", "text"),
    [
        ("no", "user", "do not save"),
        ("no", "default", "do not save (nobody was asked)"),
        ("no", "option", "do not save (option of the command line)"),
        ("", "cancelled", "withdrawn"),
        ("later", "user", "later"),
    ],
)
def test_answers(choice: str, by: str, text: str) -> None:
    asked = ApprovalRequested(
        approval_id="a",
        kind="overwrite",
        question="?",
        detail="",
        choices=(Choice("no", "n", "do not save"),),
        default="no",
    )
    assert answer_text(asked, ApprovalAnswered(approval_id="a", choice=choice, by=by)) == text
