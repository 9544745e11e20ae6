"""Events as lines that are listened to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox_chat import events as ev
from sandbox_chat import words
from sandbox_chat.narrator import LIVE_LINES, RESULT_LINES, Narrator, call_lines


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    words.use("en")
    yield
    words.use("en")


def told(*events: ev.Event) -> list[str]:
    lines: list[str] = []
    narrator = Narrator(lines.append)
    for event in events:
        narrator.take(event)
    return lines


def started(tool_id: str = "u", **given: object) -> ev.ToolStarted:
    return ev.ToolStarted(tool_use_id=tool_id, name="mcp__sandbox__run_code", input=given)


def output(text: str, **changes: object) -> ev.ToolOutput:
    return ev.ToolOutput(tool_use_id="u", stream="stdout", text=text, **changes)  # type: ignore[arg-type]


def finished(*content: ev.Content, **changes: object) -> ev.ToolFinished:
    values: dict[str, object] = {"is_error": False, "duration_ms": 420, **changes}
    return ev.ToolFinished(tool_use_id="u", content=content, **values)  # type: ignore[arg-type]


def turn(**changes: object) -> ev.TurnFinished:
    values: dict[str, object] = {
        "turn_id": "t",
        "subtype": "success",
        "is_error": False,
        "interrupted": False,
        "num_turns": 1,
        "duration_ms": 1500,
        "cost_usd": 0.01,
        "total_cost_usd": 0.01,
        "usage": ev.Usage(1000, 20, 500, 0),
        "context": ev.ContextUse(24_000, 200_000),
        **changes,
    }
    return ev.TurnFinished(**values)  # type: ignore[arg-type]


def test_an_answer_is_told_line_by_line_in_any_pieces() -> None:
    whole = "First line.\nSecond line.\n\nLast"
    pieces = [ev.TextDelta(text=character) for character in whole]
    assert told(*pieces[:13]) == ["", "First line."]
    assert told(*pieces, ev.Text(text=whole)) == ["", "First line.", "Second line.", "", "Last"]
    assert told(ev.Text(text=whole)) == ["", "First line.", "Second line.", "", "Last"]


def test_a_block_that_comes_out_otherwise_is_told_whole() -> None:
    assert told(ev.TextDelta(text="No\nwa"), ev.Text(text="Yes\nindeed")) == ["", "No", "wa", "Yes", "indeed"]


def test_two_blocks_do_not_run_together() -> None:
    lines = told(ev.Text(text="One."), ev.Text(text="Two."))
    assert [line for line in lines if line] == ["One.", "Two."]


def test_a_call_from_its_start_to_its_end() -> None:
    lines = told(
        started(code="import x\nx()"),
        output("half a "),
        output("line\nmore\n"),
        finished(ev.TextContent("[success]\n[stdout]\nhalf a line\nmore\n[result]\n42")),
    )
    assert lines == [
        "tool run_code started: import x (2 lines)",
        "  half a line",
        "  more",
        "  42",
        "tool run_code ok, 0.42 s",
    ]


def test_a_failed_call_says_why() -> None:
    lines = told(
        started(code="1/0"),
        finished(ev.TextContent("[traceback]\nTraceback\nZeroDivisionError: no"), is_error=True),
    )
    assert lines == ["tool run_code started: 1/0", "tool run_code failed, 0.42 s: ZeroDivisionError: no"]


def test_an_interrupted_call() -> None:
    assert told(started(), finished(interrupted=True)) == [
        "tool run_code started",
        "tool run_code interrupted, 0.42 s",
    ]


def test_much_output_is_cut_and_kept() -> None:
    lines: list[str] = []
    narrator = Narrator(lines.append)
    many = "".join(f"line {number}\n" for number in range(LIVE_LINES + 50))
    for event in (started(code="x"), output(many), finished()):
        narrator.take(event)
    assert sum(line.startswith("  line") for line in lines) == LIVE_LINES
    assert lines[-2] == "  more output follows; /output reads all of it"
    assert len(call_lines(narrator.calls[0], "output")) == LIVE_LINES + 50


def test_a_long_result_is_cut() -> None:
    text = "\n".join(str(number) for number in range(RESULT_LINES + 3))
    lines = told(started(), finished(ev.TextContent(text)))
    assert lines[-2] == "  3 more lines; /output reads all of it"


def test_all_that_came_of_a_call_can_be_read() -> None:
    """A result that was cut, and the traceback of a failure, of which only the reason is told by itself."""
    narrator = Narrator(lambda _: None)
    result = "\n".join(str(number) for number in range(RESULT_LINES + 3))
    for event in (
        started(code="x"),
        output("said\n"),
        finished(ev.TextContent(f"[success]\n[stdout]\nsaid\n[result]\n{result}")),
    ):
        narrator.take(event)
    assert call_lines(narrator.calls[-1], "output") == [
        "  said",
        *(f"  {line}" for line in result.splitlines()),
    ]
    for event in (
        started(code="1/0"),
        finished(ev.TextContent("[traceback]\nTraceback\n  1/0\nZeroDivisionError: no"), is_error=True),
    ):
        narrator.take(event)
    assert call_lines(narrator.calls[-1], "output") == ["  Traceback", "    1/0", "  ZeroDivisionError: no"]


def test_pictures_tables_and_files_are_told_in_words() -> None:
    lines = told(
        started(),
        finished(
            ev.ImageContent("/p/a.png", "image/png", 1200, 800),
            ev.TableContent(("a",), (("1",),), 1000, 3),
            ev.FileContent("/p/a.html", "text/html", 1_200_000, "plotly figure"),
        ),
    )
    assert lines[1:-1] == [
        "  picture 1200×800: /p/a.png",
        "  table with 1,000 rows and 3 columns",
        "  file plotly figure, 1.2 MB: /p/a.html",
    ]


def test_the_end_of_a_turn_tells_time_cost_tokens_and_context() -> None:
    assert told(turn()) == [
        "turn: 1.50 s, cost $0.0100, session $0.0100, 1,500 tokens in, 20 out, context 12 %",
    ]
    assert (
        "cost n/a, session $0.0100 and 1 turn with an unknown price" in told(turn(), turn(cost_usd=None))[-1]
    )


def test_the_demo_costs_nothing() -> None:
    lines = told(
        ev.SessionStarted(session_id="s", model="demo", sandbox="local", demo=True), turn(cost_usd=0.0)
    )
    assert lines == ["turn: 1.50 s, no cost (demo), 1,500 tokens in, 20 out, context 12 %"]


def test_trouble_is_told() -> None:
    assert told(
        ev.TextDelta(text="begun"),
        ev.Retry(reason="overloaded", attempt=2, delay_ms=2000),
        ev.Notice(level="warning", text="Take care."),
        turn(error="It failed.", is_error=True),
    )[:6] == [
        "",
        "begun",
        "",
        "Trying again in 2.00 s, attempt 2: overloaded",
        "warning: Take care.",
        "error: It failed.",
    ]


def test_in_chinese() -> None:
    words.use("zh")
    assert told(started(), finished()) == ["工具 run_code 已开始", "工具 run_code 成功，用时 0.42 s"]
    assert ", " not in told(turn(), turn(cost_usd=None))[-1]


def test_a_progress_line_is_told_when_it_is_settled() -> None:
    lines = told(started(), output("10%"), output("55%", rewind=3), output("100%\n", rewind=3), finished())
    assert lines[1:-1] == ["  100%"]
