"""The machine of a session's phases: its table, and walks over the events of real chats."""

from __future__ import annotations

import dataclasses
import random
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.screen import START, tool_finished, tool_started, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.event_json import from_json
from sandbox_chat.phases import CAUSES, IN_TURN, PHASES, TABLE, Machine, Phase

RECORDED = Path(__file__).parent / "golden" / "chat.jsonl"
"""Made by tests/support/record_chats.py."""


def status(state: str) -> ev.Status:
    return ev.Status(component="agent", state=state)


def ask(approval_id: str = "q1", call: str = "u1") -> ev.ApprovalRequested:
    return ev.ApprovalRequested(
        approval_id=approval_id,
        kind="overwrite",
        question="?",
        detail="",
        choices=(),
        default="",
        tool_use_id=call,
    )


def answered(approval_id: str = "q1") -> ev.ApprovalAnswered:
    return ev.ApprovalAnswered(approval_id=approval_id, choice="no", by="user")


OPENED = ev.SessionStarted(session_id="s", model="m", sandbox="local", demo=False)
PROMPT = ev.TurnStarted(turn_id="t1", prompt="p")
RETRY = ev.Retry(reason="r", attempt=1, delay_ms=1)
TEXT = ev.TextDelta(text="x")
DRAFT = ev.ToolInputDelta(tool_use_id="u1", name="run_code", text="")
IDLE = (OPENED, status("ready"))
TURN = (*IDLE, PROMPT)
TOOL = (*TURN, tool_started())
END = turn_finished("t1")

WAYS: dict[Phase, tuple[ev.Event, ...]] = {
    "connecting": (OPENED,),
    "idle": IDLE,
    "thinking": TURN,
    "streaming": (*TURN, TEXT),
    "tool": TOOL,
    "awaiting_approval": (*TOOL, ask()),
    "retrying": (*TURN, RETRY),
    "interrupting": (*TURN, status("interrupting")),
    "dead": (*IDLE, status("lost")),
}
"""Events that lead into each phase."""


def machine(*events: ev.Event) -> Machine:
    made = Machine()
    for event in events:
        made.apply(event)
    return made


def walk(*events: ev.Event) -> list[Phase]:
    made = Machine()
    return [made.apply(event) for event in events]


def test_the_table_has_an_outcome_for_every_cause_in_every_phase() -> None:
    assert set(TABLE) == set(CAUSES)
    for row in TABLE.values():
        assert tuple(row) == PHASES
        assert set(row.values()) <= {*PHASES, "stay", "here", "odd"}


def test_each_phase_is_reached() -> None:
    for phase, way in WAYS.items():
        made = machine(*way)
        assert (made.phase, made.odd) == (phase, 0)
    assert set(WAYS) == set(PHASES)


@pytest.mark.parametrize("phase", PHASES)
def test_an_end_leads_to_idle_from_every_phase_of_a_turn(phase: Phase) -> None:
    made = machine(*WAYS[phase])
    before = made.odd
    made.apply(END)
    if phase in (*IN_TURN, "interrupting"):
        assert (made.phase, made.busy, made.odd) == ("idle", False, before)
    else:
        assert (made.phase, made.odd) == (phase, before + 1), "there was no turn to end"


@pytest.mark.parametrize("phase", [*IN_TURN, "connecting"])
def test_an_interruption_lasts_until_the_end(phase: Phase) -> None:
    way = WAYS[phase] if phase != "connecting" else (OPENED, PROMPT)
    made = machine(*way, status("interrupting"))
    assert made.phase == "interrupting"
    for event in (
        TEXT,
        ev.Text(text="x"),
        RETRY,
        tool_started("u9"),
        tool_finished("u9"),
        DRAFT,
        status("lost"),
    ):
        assert made.apply(event) == "interrupting"
    made.apply(END)
    assert made.phase == "dead"
    assert machine(*way, status("interrupting"), END).phase == ("idle" if phase != "connecting" else phase)


def test_an_interruption_of_nothing_is_nothing() -> None:
    assert walk(*IDLE, status("interrupting"))[-1] == "idle"
    assert walk(OPENED, status("interrupting"))[-1] == "connecting"


def test_a_whole_turn() -> None:
    assert walk(
        *IDLE,
        PROMPT,
        ev.ThinkingDelta(text="hm"),
        TEXT,
        ev.Text(text="x"),
        DRAFT,
        tool_started(),
        ev.ToolOutput(tool_use_id="u1", stream="stdout", text="1"),
        ask(),
        answered(),
        tool_finished(),
        RETRY,
        TEXT,
        ev.Text(text="x"),
        END,
    ) == [
        "connecting", "idle", "thinking", "thinking", "streaming", "thinking", "streaming", "tool", "tool",
        "awaiting_approval", "tool", "thinking", "retrying", "streaming", "thinking", "idle",
    ]  # fmt: skip


def test_two_calls_at_once() -> None:
    two = (*TOOL, tool_started("u2"))
    assert walk(*two, tool_finished("u1"))[-1] == "tool"
    assert walk(*two, tool_finished("u1"), tool_finished("u2"))[-1] == "thinking"
    assert walk(*two, ask("a", "u1"), ask("b", "u2"), answered("a"))[-1] == "awaiting_approval"
    assert walk(*two, ask("a", "u1"), ask("b", "u2"), answered("a"), answered("b"))[-1] == "tool"
    assert walk(*two, ask("a", "u1"), tool_finished("u2"))[-1] == "awaiting_approval"
    assert walk(*TOOL, TEXT, tool_finished("u1"))[-1] == "streaming", "the reply is still being written"


def test_a_question_that_belongs_to_no_call_stops_nothing() -> None:
    assert walk(*TURN, ask("q", ""))[-1] == "thinking"
    assert walk(*IDLE, ask("q", ""), answered("q"))[-1] == "idle"


def test_a_turn_waits_for_the_agent() -> None:
    assert walk(OPENED, PROMPT, status("ready")) == ["connecting", "connecting", "thinking"]
    assert walk(*IDLE, PROMPT, status("connecting"), status("ready"))[-2:] == ["connecting", "thinking"]
    assert walk(*IDLE, status("lost"), PROMPT, status("connecting"), status("ready"))[-4:] == [
        "dead",
        "dead",
        "connecting",
        "thinking",
    ]


def test_a_loss_in_a_turn_and_a_new_start() -> None:
    end = turn_finished("t1", is_error=True)
    assert walk(
        *TOOL,
        status("lost"),
        tool_finished(is_error=True),
        ev.Text(text="x"),
        end,
        status("connecting"),
        status("ready"),
    )[-6:] == ["dead", "dead", "dead", "dead", "connecting", "idle"]


def test_another_run_and_the_end_forget_what_was_open() -> None:
    made = machine(*TOOL, ask())
    made.apply(OPENED)
    assert (made.phase, made.busy, made.calls, made.questions) == ("connecting", False, set(), set())
    made = machine(*TOOL, ask(), ev.SessionFinished())
    assert (made.phase, made.busy, made.calls, made.questions) == ("dead", False, set(), set())


def test_what_makes_no_sense_is_counted_and_changes_nothing() -> None:
    for event in (TEXT, DRAFT, RETRY, tool_started(), ask(), END, tool_finished(), ev.Text(text="x")):
        made = machine(*IDLE, event)
        assert (made.phase, made.odd) == ("idle", 1), event
        assert event.type in made.oddity
        made.apply(PROMPT)
        assert made.phase == "thinking", "and leaves nothing open"


def test_since_is_the_time_of_the_event_that_brought_the_phase() -> None:
    made = machine(*IDLE)
    for second, event, since in (
        (1, PROMPT, 1),
        (2, ev.ThinkingDelta(text="a"), 1),
        (3, ev.TextDelta(text="a"), 3),
        (4, ev.TextDelta(text="b"), 3),
        (5, END, 5),
    ):
        made.apply(dataclasses.replace(event, at=START + timedelta(seconds=second)))
        assert made.since == START + timedelta(seconds=since)


def recorded() -> list[ev.Event]:
    events = [from_json(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return [event for event in events if event is not None]


def test_a_real_chat_makes_sense_and_ends_closed() -> None:
    events = recorded()
    made = Machine()
    seen = {made.apply(event) for event in events}
    assert (made.oddity, made.odd, made.phase) == ("", 0, "dead")
    assert seen == set(PHASES)
    again = machine(*recorded())
    assert made == again


def test_no_turn_of_a_real_chat_ends_elsewhere_than_at_rest() -> None:
    made = Machine()
    for event in recorded():
        phase = made.apply(event)
        if isinstance(event, ev.TurnFinished):
            assert phase in ("idle", "dead")
            assert not (made.busy or made.calls or made.questions)


@given(st.integers(0, 2**32), st.sampled_from(["drop", "twice", "swap", "cut"]))
def test_walks_over_a_damaged_chat(seed: int, damage: str) -> None:
    """Whatever is missing, doubled or out of order: every event has an outcome, and the next run begins well."""
    chance = random.Random(seed)
    events = recorded()
    for _ in range(chance.randint(1, 20)):
        place = chance.randrange(len(events) - 1)
        match damage:
            case "drop":
                del events[place]
            case "twice":
                events.insert(place, events[place])
            case "swap":
                events[place], events[place + 1] = events[place + 1], events[place]
            case _:
                del events[max(place, 30) :]
                break
    made = Machine()
    for event in events:
        before = made.phase
        phase = made.apply(event)
        assert phase in PHASES
        assert made.phase == phase
        if phase in IN_TURN:
            assert made.busy
        if phase == "idle":
            assert not made.busy or made.odd, (before, event)
    for event in (OPENED, status("ready"), PROMPT):
        made.apply(event)
    assert (made.phase, made.turns) == ("thinking", ["t1"])
    assert made.apply(END) == "idle"


@given(
    st.lists(
        st.sampled_from(
            [event for way in WAYS.values() for event in way]
            + [END, ev.SessionFinished(), ask(), answered(), tool_finished(), ev.Text(text="x")]
        ),
        max_size=60,
    )
)
def test_random_walks(events: list[ev.Event]) -> None:
    made = Machine()
    for event in events:
        assert made.apply(event) in PHASES
    assert made.odd <= len(events)
    assert machine(*events) == made
