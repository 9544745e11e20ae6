"""Lines of the screen as pure functions: title, status, cost, tool rows, and the texts of a call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.screen import CODE, HOSTILE, START, tool_finished, tool_started, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui import call_views, tooltext
from sandbox_chat.ui.calls import ToolCall
from sandbox_chat.ui.output_lines import OutputLines
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.cost import cost_lines
from sandbox_chat.ui.widgets.line import Part, arrange
from sandbox_chat.ui.widgets.status import cost_words, phase_words
from sandbox_chat.ui.widgets.title import TitleBar
from sandbox_chat.ui.widgets.tool_list import row


def state_of(*events: ev.Event, demo: bool = False, sandbox: str = "local") -> ChatState:
    state = ChatState()
    state.apply(ev.SessionStarted(at=START, session_id="s", model="m", sandbox=sandbox, demo=demo))
    state.apply(ev.Status(at=START, component="agent", state="ready"))
    state.apply_all(events)
    return state


def prompt(text: str = "plot it") -> ev.TurnStarted:
    return ev.TurnStarted(at=START, turn_id="t1", prompt=text)


def call(*events: ev.Event) -> ToolCall:
    return next(iter(state_of(prompt(), *events).tools.values()))


def plain(parts: tuple[list[Part], list[Part]]) -> str:
    return " | ".join("".join(part.text for part in side) for side in parts)


# -- lines -------------------------------------------------------------------------------------------------


def test_parts_are_dropped_by_importance_then_cut() -> None:
    left = [Part("name", drop=0), Part(" title", drop=3, shrink=3)]
    right = [Part("state"), Part(" cost", drop=1)]
    assert plain(arrange(left, right, 40)) == "name title | state cost"
    assert plain(arrange(left, right, 18)) == "name t… | state cost"
    assert plain(arrange(left, right, 15)) == "name | state cost"
    assert plain(arrange(left, right, 10)) == "name | state"


@given(
    st.lists(st.tuples(st.text(max_size=12), st.integers(0, 4), st.integers(0, 5)), max_size=5),
    st.lists(st.tuples(st.text(max_size=12), st.integers(0, 4), st.integers(0, 5)), max_size=5),
    st.integers(1, 60),
)
def test_a_line_never_exceeds_its_width(
    left: list[tuple[str, int, int]], right: list[tuple[str, int, int]], width: int
) -> None:
    sides = arrange(
        [Part(text, drop=drop, shrink=shrink) for text, drop, shrink in left],
        [Part(text, drop=drop, shrink=shrink) for text, drop, shrink in right],
        width,
    )
    assert sum(part.width for side in sides for part in side) <= width


# -- title and status --------------------------------------------------------------------------------------


def test_demo_and_unsafe_are_said_in_words_all_the_time() -> None:
    bar = TitleBar(Settings(demo=True, sandbox="unsafe-local"), ChatState())
    text = plain(bar.parts())
    assert "demo, no model" in text
    assert "UNSAFE: code runs on this machine" in text
    for width in (60, 70, 80, 200):
        shown = plain(arrange(*bar.parts(), width))
        assert "demo, no model" in shown
        assert "UNSAFE: code runs on this machine" in shown


def test_the_title_names_session_sandbox_and_model() -> None:
    state = state_of(prompt(), ev.Status(component="sandbox", state="ready"))
    text = plain(TitleBar(Settings(), state).parts())
    assert text == "sandbox-chat · plot it | local sandbox ● ready   m ▾"


def test_without_a_sandbox_that_is_said() -> None:
    assert "no sandbox" in plain(TitleBar(Settings(sandbox="off"), ChatState()).parts())


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((), "idle"),
        ((prompt(),), "thinking 2.0 s"),
        ((prompt(), ev.TextDelta(at=START, text="a")), "writing"),
        ((prompt(), ev.ToolInputDelta(at=START, tool_use_id="u", name="run_code", text="")), "writing code"),
        (
            (prompt(), ev.ToolStarted(at=START, tool_use_id="u", name="run_code", input={})),
            "running code 2.0 s",
        ),
        (
            (
                prompt(),
                ev.ToolStarted(at=START, tool_use_id="u", name="mcp__sandbox__read_file", input={}),
                ev.ToolStarted(at=START, tool_use_id="v", name="run_code", input={}),
            ),
            "running read_file +1 2.0 s",
        ),
        (
            (prompt(), ev.Retry(at=START, reason="overloaded", attempt=2, delay_ms=500)),
            "retrying, attempt 2: overloaded",
        ),
        ((ev.Status(component="agent", state="connecting"), prompt()), "connecting, the prompt waits"),
        ((ev.Status(component="agent", state="lost", text="it was killed"),), "agent lost: it was killed"),
        ((ev.Status(component="agent", state="closed"),), "closed"),
    ],
)
def test_the_state_is_never_in_doubt(events: tuple[ev.Event, ...], words: str) -> None:
    assert phase_words(state_of(*events), START + timedelta(seconds=2))[0] == words


def test_stopping_is_said() -> None:
    assert phase_words(state_of(prompt()), START, stopping=True)[0] == "stopping"
    state = state_of(prompt(), ev.Status(component="agent", state="interrupting"))
    assert phase_words(state, START)[0] == "stopping"


def test_silence_is_said_with_what_stops_it() -> None:
    state = state_of(prompt(), ev.Status(component="agent", state="silent"))
    now = START + timedelta(seconds=18)
    assert phase_words(state, now) == ("silent 18 s, esc stops it", "$warning")
    state.apply(ev.TextDelta(text="x"))
    assert phase_words(state, now)[0] == "writing"


def test_cost_words() -> None:
    assert cost_words(state_of(demo=True)) == "no cost"
    assert cost_words(state_of(prompt(), turn_finished("t1", cost_usd=0.05))) == "$0.05"
    assert cost_words(state_of(prompt(), turn_finished("t1", cost_usd=None))) == "n/a"


# -- cost --------------------------------------------------------------------------------------------------


def cost_text(state: ChatState, width: int = 44) -> str:
    return "\n".join(line.plain for line in cost_lines(state, width))


def test_the_cost_pane_says_turn_session_tokens_and_context() -> None:
    text = cost_text(state_of(prompt(), turn_finished("t1")))
    assert "this turn  $0.0123" in text
    assert "3.1k in  412 out" in text
    assert "12k read  900 written" in text
    assert "12 % of 200k" in text
    assert "claude-sonnet-5" in text


def test_a_price_that_is_not_known_is_said_as_such() -> None:
    models = (ev.ModelUse("local-model", ev.Usage(1, 2), None),)
    text = cost_text(state_of(prompt(), turn_finished("t1", cost_usd=None, models=models)))
    assert text.count("n/a, price not known") == 3
    assert "$" not in text


def test_the_demo_has_no_cost() -> None:
    text = cost_text(state_of(prompt(), turn_finished("t1", cost_usd=None), demo=True))
    assert text.count("no cost (demo)") == 2
    assert "n/a" not in text


@given(st.integers(10, 60))
def test_cost_lines_fit(width: int) -> None:
    models = (ev.ModelUse("a-model-with-a-very-long-name-" * 3, ev.Usage(1, 2), None),)
    state = state_of(prompt(), turn_finished("t1", models=models), turn_finished("t1"))
    assert all(line.cell_length <= width for line in cost_lines(state, width))


# -- tool calls --------------------------------------------------------------------------------------------


def test_rows_have_sign_name_code_and_time() -> None:
    assert (
        row(call(tool_started(), tool_finished()), 50, START, "").plain
        == "✓ run_code     import numpy as np" + " " * 11 + "0.42 s"
    )
    assert row(call(tool_started()), 40, START + timedelta(seconds=5), "⠼").plain.startswith("⠼ run_code")
    failed = row(call(tool_started(), tool_finished("u1", is_error=True)), 40, START, "")
    assert failed.plain.startswith("✗")
    stopped = row(call(tool_started(), tool_finished("u1", interrupted=True)), 40, START, "")
    assert stopped.plain.startswith("⊘")


@given(st.integers(20, 120), st.text(max_size=80))
def test_rows_are_never_wider_than_the_pane(width: int, code: str) -> None:
    assert row(call(tool_started(code=code)), width, START, "").cell_length <= width


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stands_to_the_letter(hostile: str) -> None:  # case T3
    tool = call(
        tool_started("u1", hostile, code=hostile),
        ev.ToolOutput(tool_use_id="u1", stream="stderr", text=hostile),
        tool_finished("u1", ev.TextContent(hostile), is_error=True),
    )
    assert hostile in row(tool, 120, START, "").plain
    output = OutputLines()
    output.update(call_views.output_parts(tool))
    code, language = tooltext.code(tool)
    for lines in (call_views.code_lines(code, language), output.lines, call_views.result_lines(tool)):
        assert "\n".join("".join(run.text for run in line) for line in lines) == hostile
        assert not any(run.href for line in lines for run in line)
    title = plain(TitleBar(Settings(model=hostile), state_of(prompt(hostile))).parts())
    assert hostile in title


def test_code_shows_as_far_as_it_is_written() -> None:
    tool = call(
        ev.ToolInputDelta(tool_use_id="u", name="run_code", text='{"code": "import os\\nprint(\\"a\\u00'),
    )
    assert tooltext.code(tool) == ('import os\nprint("a', "python")
    assert tooltext.first_line(tool) == "import os"


@given(st.integers(0, 200))
def test_any_piece_of_arguments_can_be_shown(length: int) -> None:
    import json

    draft = json.dumps({"code": 'print("\\n é 你 \ud83d\ude00")\n' + CODE, "timeout": 5})
    tool = call(ev.ToolInputDelta(tool_use_id="u", name="run_code", text=draft[:length]))
    code, _ = tooltext.code(tool)
    assert ('print("\\n é 你 😀")\n' + CODE).startswith(code.rstrip("\ufffd"))


def test_other_tools_say_their_path() -> None:
    assert tooltext.first_line(call(tool_started("u1", "write_file", path="/tmp/a", content="x"))) == "/tmp/a"
    assert tooltext.first_line(call(tool_started("u1", "odd", number=3))) == "3"
    assert tooltext.first_line(call(tool_started("u1", "odd", nothing=None))) == ""


def test_result_names_pictures() -> None:
    tool = call(
        tool_started(),
        tool_finished("u1", ev.TextContent("done"), ev.ImageContent("/a.png", "image/png", 3, 4)),
    )
    assert tooltext.result(tool) == "done\n[picture 3×4 image/png: /a.png]"
    assert '"status": "ok"' in tooltext.raw(tool)


def test_large_output_is_shown_by_its_end_while_it_comes_and_by_both_ends_then() -> None:
    tool = call(tool_started())
    state = ChatState(tools={tool.id: tool})
    for number in range(8000):
        state.apply(ev.ToolOutput(tool_use_id=tool.id, stream="stdout", text=f"line {number:06}\n" * 5))
    text = "".join(part.text for part in call_views.output_parts(tool))
    assert len(text) < tooltext.LIVE_LIMIT + 100
    assert text.startswith("[… ")
    assert text.endswith("line 007999\n")
    state.apply(tool_finished(tool.id))
    text = "".join(part.text for part in call_views.output_parts(tool))
    assert text.startswith("line 000000\n")
    assert text.endswith("line 007999\n")
    assert "characters cut" in text


def test_results_name_tables_and_files_and_everything_holds_the_table() -> None:
    table = ev.TableContent(("", "a"), (("0", "1"),), 10, 1)
    page = ev.FileContent("/p.html", "text/html", 1_200_000, "plotly figure")
    tool = call(tool_started(), tool_finished("u1", ev.TextContent("done"), table, page))
    assert tooltext.result(tool) == "done\n[table 10 × 1]\n[plotly figure, 1,200,000 bytes: /p.html]"
    assert tooltext.everything(tool).startswith("done\n\n\ta\n0\t1\n\n")
    assert (tool.tables, tool.files) == ([table], [page])
    assert '"plotly figure"' in tooltext.raw(tool)
    shown = ["".join(run.text for run in line) for line in call_views.result_lines(tool)]
    assert "▣ plotly figure · 1.2 MB · o open  s save" in shown
    assert tooltext.arguments_json(tool).startswith('{\n  "code":')


def test_of_a_path_its_end_stays() -> None:
    left, _ = arrange([Part("/a/long/way/to/chart.png", shrink=12, tail=True), Part(" 80×40")], [], 24)
    assert left[0].text.endswith("to/chart.png")
    assert sum(part.width for part in left) <= 24
    assert left[0].cut(5).text == "….png"
    assert left[0].cut(0).text == ""
