"""The reducer: events → state."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from support.screen import START, tool_finished, tool_started, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.event_json import from_json, to_json
from sandbox_chat.sgr import valid_styles
from sandbox_chat.ui.calls import OUTPUT_LIMIT, OutputBuffer, Part
from sandbox_chat.ui.state import ChatState


def started(demo: bool = False) -> list[ev.Event]:
    return [
        ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=demo),
        ev.Status(at=START, component="agent", state="ready"),
    ]


def prompt(turn: str = "t1", text: str = "plot it") -> ev.TurnStarted:
    return ev.TurnStarted(at=START, turn_id=turn, prompt=text)


def state_of(*events: ev.Event) -> ChatState:
    state = ChatState()
    state.apply_all(events)
    return state


def test_phases_follow_the_events() -> None:
    state = ChatState()
    assert state.phase == "connecting"
    seen = []
    for event in (
        *started(),
        prompt(),
        ev.TextDelta(at=START, text="I"),
        ev.ToolInputDelta(at=START, tool_use_id="u1", name="run_code", text=""),
        tool_started(),
        tool_finished(),
        ev.Retry(at=START, reason="overloaded", attempt=1, delay_ms=500),
        ev.TextDelta(at=START, text="I"),
        turn_finished("t1"),
    ):
        state.apply(event)
        seen.append(state.phase)
    assert seen == [
        "connecting",
        "idle",
        "thinking",
        "streaming",
        "streaming",
        "tool",
        "thinking",
        "retrying",
        "streaming",
        "idle",
    ]


def test_a_prompt_sent_while_connecting_is_seen_to_wait() -> None:
    state = state_of(started()[0], prompt())
    assert state.phase == "connecting"
    assert state.busy
    state.apply(ev.Status(at=START, component="agent", state="ready"))
    assert state.phase == "thinking"


def test_the_words_of_the_machine_are_those_of_the_state() -> None:
    state = state_of(*started(), prompt(), ev.ToolInputDelta(tool_use_id="a", name="run_code", text="{"))
    assert (state.phase, state.coding, state.busy) == ("streaming", True, True)
    state.apply(tool_started("a"))
    state.apply(ev.Status(component="agent", state="interrupting"))
    assert (state.phase, state.agent) == ("interrupting", "ready")
    state.apply(turn_finished("t1", interrupted=True))
    assert (state.phase, state.busy) == ("idle", False)


def test_silence_is_known_until_something_comes() -> None:
    quiet = ev.Status(at=START + timedelta(seconds=15), component="agent", state="silent", text="15 s")
    state = state_of(*started(), prompt(), quiet)
    assert (state.silent, state.phase, state.agent) == (START, "thinking", "ready")
    state.apply(ev.Notice(level="info", text="Something else."))
    assert state.silent == START
    state.apply(ev.TextDelta(at=START + timedelta(seconds=20), text="I"))
    assert state.silent is None
    for event in (quiet, ev.Status(component="agent", state="ready")):
        state.apply(event)
    assert state.silent is None, "something came that is not shown"


def test_a_retry_is_known_while_it_lasts() -> None:
    retry = ev.Retry(reason="overloaded", attempt=1, delay_ms=100)
    state = state_of(*started(), prompt(), retry)
    assert state.retry == retry
    state.apply(ev.ThinkingDelta(text="h"))
    assert state.retry is None


def test_the_controls_are_known() -> None:
    state = state_of(*started(), ev.ControlsChanged(model="n", effort="low", thinking="off"))
    assert (state.model, state.effort, state.thinking) == ("n", "low", "off")


def test_a_lost_agent_is_told() -> None:
    state = state_of(*started(), prompt(), ev.Status(component="agent", state="lost", text="it was killed"))
    assert (state.phase, state.agent_text) == ("dead", "it was killed")


def test_two_calls_at_once_end_on_their_own() -> None:
    state = state_of(*started(), prompt(), tool_started("a"), tool_started("b"), tool_finished("b"))
    assert [(t.id, t.status) for t in state.tools.values()] == [("a", "running"), ("b", "ok")]
    assert state.phase == "tool"
    state.apply(tool_finished("a", is_error=True))
    assert state.tools["a"].status == "failed"
    assert state.phase == "thinking"


def test_a_call_is_known_from_its_first_character() -> None:
    state = state_of(*started(), prompt(), ev.ToolInputDelta(tool_use_id="a", name="run_code", text=""))
    state.apply(ev.ToolInputDelta(tool_use_id="a", name="run_code", text='{"code": "1'))
    tool = state.tools["a"]
    assert (tool.status, tool.draft) == ("writing", '{"code": "1')
    state.apply(tool_started("a", code="1+1"))
    assert (tool.status, tool.draft, dict(tool.input)) == ("running", "", {"code": "1+1"})


def test_interrupted_turn_stops_its_calls() -> None:
    state = state_of(*started(), prompt(), tool_started(), turn_finished("t1", interrupted=True))
    assert state.tools["u1"].status == "interrupted"
    assert not state.busy


def test_output_is_kept_by_stream_and_bounded() -> None:
    buffer = OutputBuffer(limit=10)
    for text in ("ab", "cd", "efgh", "ijklmn"):
        buffer.add("stdout", text)
    assert buffer.text().startswith("abcde")
    assert buffer.text().endswith("jklmn")
    assert buffer.cut == 4
    assert "4 characters cut" in buffer.text()


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(max_size=30)), max_size=40))
def test_output_never_exceeds_its_bound_and_counts_what_it_cut(pieces: list[tuple[ev.Stream, str]]) -> None:
    buffer = OutputBuffer(limit=40)
    for stream, text in pieces:
        buffer.add(stream, text)
    whole = "".join(text for _, text in pieces)
    kept = "".join(part.text for part in [*buffer.head, *buffer.tail])
    assert len(kept) <= 40
    assert len(kept) + buffer.cut == len(whole)
    assert whole.startswith("".join(part.text for part in buffer.head))
    assert whole.endswith("".join(part.text for part in buffer.tail))


@given(
    st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr"]), st.text("ab\n", max_size=30), st.integers(0, 25)),
        max_size=40,
    )
)
def test_what_was_written_over_is_withdrawn(pieces: list[tuple[ev.Stream, str, int]]) -> None:
    buffer, large = OutputBuffer(limit=40), OutputBuffer()
    for stream, text, rewind in pieces:
        styles = ((0, len(text), "red"),) if text else ()
        for each in (buffer, large):
            each.add(stream, text, styles, rewind)
    for stream in ("stdout", "stderr"):
        whole = ""
        for name, text, rewind in pieces:
            if name == stream:
                whole = whole[: max(0, len(whole) - rewind)] + text
        assert "".join(part.text for part in large.parts() if part.stream == stream) == whole
    assert sum(len(part.text) for part in [*buffer.head, *buffer.tail]) <= 40
    assert buffer.cut >= 0
    for part in [*buffer.parts(), *large.parts()]:
        assert valid_styles(part.styles, len(part.text))


def test_one_progress_line_is_kept_with_its_colours() -> None:  # case T5
    buffer = OutputBuffer()
    buffer.add("stderr", "10%", ((0, 3, "red"),))
    buffer.add("stdout", "between\n")
    buffer.add("stderr", "100%", ((0, 4, "green"),), 3)
    assert buffer.parts() == [Part("stdout", "between\n"), Part("stderr", "100%", ((0, 4, "green"),))]


def test_ten_megabytes_of_output_stay_small() -> None:
    state = state_of(*started(), prompt(), tool_started())
    for _ in range(1000):
        state.apply(ev.ToolOutput(tool_use_id="u1", stream="stdout", text="x" * 10_000))
    assert len(state.tools["u1"].output.text()) < OUTPUT_LIMIT + 100


def test_costs_add_up_and_unknown_prices_are_counted() -> None:
    state = state_of(
        *started(),
        prompt("t1"),
        turn_finished("t1", cost_usd=0.05),
        prompt("t2"),
        turn_finished("t2", cost_usd=None),
        prompt("t3"),
        turn_finished("t3", cost_usd=0.02),
    )
    known, unknown = state.cost
    assert (round(known, 6), unknown) == (0.07, 1)
    assert state.usage == ev.Usage(9300, 1236, 36_000, 2700)


def test_a_turn_that_never_reached_the_model_costs_nothing() -> None:
    state = state_of(*started(), prompt(), turn_finished("t1", cost_usd=0.0, usage=ev.Usage(), is_error=True))
    assert state.cost == (0, 0)


def test_a_turn_of_which_nothing_was_told_may_have_cost_something() -> None:
    lost = turn_finished("t1", cost_usd=None, usage=ev.Usage(), is_error=True)
    assert state_of(*started(), prompt(), lost).cost == (0, 1)


def test_the_budget_is_what_was_said_last() -> None:
    assert state_of(*started()).budget is None
    changes = [ev.BudgetChanged(limit_usd=1.0), ev.BudgetChanged(limit_usd=0.0)]
    assert state_of(*started(), *changes).budget == 0.0


def test_a_resumed_session_keeps_its_costs_and_ends_what_was_open() -> None:
    state = state_of(
        *started(), prompt("t1"), turn_finished("t1", cost_usd=0.05), prompt("t2"), tool_started("u9")
    )
    state.apply_all([*started(), prompt("t3"), turn_finished("t3", cost_usd=0.02)])
    assert state.tools["u9"].status == "interrupted"
    assert [t.ended for t in state.turns] == [True, True, True]
    assert state.turns[1].interrupted
    assert round(state.cost[0], 6) == 0.07


def test_queued_turns_run_one_by_one() -> None:
    state = state_of(*started(), prompt("t1", "one"), prompt("t2", "two"))
    assert state.turn is not None
    assert state.turn.id == "t1"
    state.apply(turn_finished("t1"))
    assert state.turn is not None
    assert state.turn.id == "t2"


def test_the_title_is_the_first_prompt_on_one_line() -> None:
    assert state_of(*started(), prompt(text="plot\n  a sine")).title == "plot a sine"


def test_elapsed_time_is_the_events_not_the_clocks() -> None:
    state = state_of(*started(), prompt(), tool_started())
    tool = state.tools["u1"]
    assert tool.elapsed_ms(START + timedelta(seconds=5)) == 2000
    state.apply(tool_finished())
    assert tool.elapsed_ms(START + timedelta(hours=1)) == 420


def test_live_and_replayed_state_are_equal() -> None:
    events = [
        *started(),
        ev.Status(component="sandbox", state="starting"),
        prompt("t1"),
        ev.ThinkingDelta(text="hm"),
        ev.TextDelta(text="I "),
        ev.Retry(reason="overloaded", attempt=1, delay_ms=100),
        ev.TextDelta(text="I'll"),
        ev.Text(text="I'll"),
        ev.ToolInputDelta(tool_use_id="u1", name="mcp__sandbox__run_code", text='{"co'),
        tool_started(),
        ev.ToolOutput(tool_use_id="u1", stream="stderr", text="warn"),
        tool_finished("u1", ev.TextContent("x"), ev.ImageContent("/p.png", "image/png", 3, 4)),
        ev.Notice(level="warning", text="Mind."),
        turn_finished("t1"),
        prompt("t2"),
        turn_finished("t2", is_error=True, error="The endpoint refused.", cost_usd=None),
        ev.SessionFinished(),
    ]
    replayed = [from_json(to_json(event)) for event in events]
    live, again = state_of(*events), state_of(*[e for e in replayed if e is not None])
    assert live == again
    assert live.finished


def test_unknown_ids_are_no_error() -> None:
    state = state_of(
        ev.ToolOutput(tool_use_id="?", stream="stdout", text="x"), turn_finished("?"), tool_finished("late")
    )
    assert state.tools["late"].status == "ok"
