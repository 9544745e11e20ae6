"""A turn whose cost became known after its end was told: the screen, the record and the sums are true afterwards."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.engine_past import Past
from sandbox_chat.event_json import to_json
from sandbox_chat.journal import Journal, fork
from sandbox_chat.journal.export.items import Remark
from sandbox_chat.journal.export.scrub import Scrubber
from sandbox_chat.journal.export.story import Story
from sandbox_chat.journal.index import summarise
from sandbox_chat.journal.spending import read_spending
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.narrator import Narrator
from sandbox_chat.phases import Machine
from sandbox_chat.sessions import transcript
from sandbox_chat.settings import Settings
from sandbox_chat.ui.state import ChatState

ONE, TWO = ev.Usage(100, 10, 0, 0), ev.Usage(150, 15, 0, 0)


def begun(turn_id: str) -> ev.TurnStarted:
    return ev.TurnStarted(at=START, turn_id=turn_id, prompt=f"prompt {turn_id}")


def model(usage: ev.Usage, cost: float) -> tuple[ev.ModelUse, ...]:
    return (ev.ModelUse("m", usage, cost),)


FIRST = turn_finished("a", usage=ONE, cost_usd=0.5, total_cost_usd=0.5, models=model(ONE, 0.5))
LATE = turn_finished(
    "b",
    interrupted=True,
    usage=ev.Usage(),
    cost_usd=None,
    total_cost_usd=None,
    models=model(ONE, 0.5),
    context=ev.ContextUse(700, 1000),
)
SETTLED = ev.TurnSettled(
    at=START,
    turn_id="b",
    cost_usd=0.25,
    total_cost_usd=0.75,
    usage=ev.Usage(50, 5, 0, 0),
    models=model(TWO, 0.75),
)
STORY: list[ev.Event] = [
    ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=False),
    ev.Status(component="agent", state="ready"),
    begun("a"),
    FIRST,
    begun("b"),
    LATE,
    begun("c"),
    SETTLED,
]


def numbered(events: list[ev.Event]) -> list[ev.Event]:
    return [dataclasses.replace(event, seq=number) for number, event in enumerate(events, 1)]


def test_the_panes_show_it_also_in_the_midst_of_the_next_turn() -> None:
    state, machine = ChatState(), Machine()
    for event in STORY[:-1]:
        state.apply(event)
        machine.apply(event)
    assert state.cost == (0.5, 1)
    state.apply(SETTLED)
    machine.apply(SETTLED)
    assert state.cost == (0.75, 0)
    assert state.turns[1].cost_usd == 0.25 and state.turns[1].usage == SETTLED.usage
    assert state.models == SETTLED.models
    assert state.busy and machine.busy and machine.oddity == ""


def test_one_of_a_turn_that_is_not_there_changes_only_the_totals() -> None:
    state = ChatState()
    state.apply(SETTLED)
    assert state.cost == (0.0, 0) and state.models == SETTLED.models


def test_a_resumed_session_goes_on_from_it() -> None:
    past = Past()
    for event in STORY[:6]:
        past.take(event)
    assert past.earlier is not None and past.earlier.total_cost_usd is None
    past.take(SETTLED)
    assert Ledger(earlier=past.earlier).figures.total_cost_usd == pytest.approx(0.75)
    assert past.earlier.context == LATE.context
    only = Past()
    for event in (begun("b"), turn_finished("b", cost_usd=None, total_cost_usd=None, models=()), SETTLED):
        only.take(event)
    assert Ledger(earlier=only.earlier).figures.total_cost_usd == pytest.approx(0.75)


def test_the_list_of_sessions_and_the_sums_know_it(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    journal = Journal.create(root, "s")
    for event in numbered(STORY):
        journal.append(event)
    journal.close()
    for _ in range(2):  # by what is kept of it, and by the events
        summary = summarise(root / "s")
        assert summary is not None and summary.total_cost_usd == 0.75
        (root / "s" / "meta.json").unlink(missing_ok=True)
    spent = read_spending(root / "s")
    assert [(each.cost, each.usage, each.first) for each in spent] == [
        (0.5, ONE, True),
        (0.25, SETTLED.usage, True),
    ]
    assert spent[1].at == LATE.at


def test_a_branch_from_that_turn_has_its_cost_too(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    (root / "s").mkdir(parents=True)
    lines = b"".join(to_json(event).encode() + b"\n" for event in numbered(STORY))
    (root / "s" / "events.jsonl").write_bytes(lines)
    for after, total in (("b", 0.75), ("a", 0.5)):
        fork.fork(root, "s", f"from-{after}", after_turn=after)
        summary = summarise(root / f"from-{after}")
        assert summary is not None and summary.total_cost_usd == total
        assert read_spending(root / f"from-{after}") == []


def test_it_is_said_where_the_turns_are_told_in_words() -> None:
    lines: list[str] = []
    narrator = Narrator(lines.append)
    for event in STORY:
        narrator.take(event)
    assert lines[-1].endswith("The turn that was stopped cost $0.2500; session $0.7500.")
    narrator.take(SETTLED)
    assert narrator.cost() == "$0.7500"  # once
    again: list[str] = []
    resumed = Chat(Settings(), Lines(io.StringIO(), io.StringIO()))
    resumed._narrator = Narrator(again.append)
    for event in STORY:
        resumed.replayed(event)
    assert (resumed._narrator.cost(), again) == ("$0.7500", []), (
        "what was said in the run before is not said again"
    )
    remarks = [item.text for item in Story(Scrubber.none()).items(STORY) if isinstance(item, Remark)]
    assert "The turn that was stopped cost $0.2500." in remarks
    assert "  [the turn that was stopped cost $0.2500]" in list(transcript(STORY))
