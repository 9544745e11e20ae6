"""Calls that code made are seen: on cards, in lines of text, in the record, its search and every document."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
from support.nested_events import nested, run_of
from support.saved import NOON, Saved
from support.screen import clock

from sandbox_chat import events as ev
from sandbox_chat.event_json import from_json, to_json
from sandbox_chat.journal import Journal
from sandbox_chat.journal.export import export
from sandbox_chat.journal.files import read_events
from sandbox_chat.journal.search_text import SessionText
from sandbox_chat.narrator import NESTED_LINES, Narrator
from sandbox_chat.nested import FIRST, LAST, NestedCalls
from sandbox_chat.phases import Machine
from sandbox_chat.printers import JsonPrinter, PlainPrinter
from sandbox_chat.ui.transcript import Feed, Scene
from sandbox_chat.ui.transcript.card import ToolCard
from sandbox_chat.words import use


def card_of(events: list[ev.Event]) -> ToolCard:
    feed = Feed(Scene(motion=False, now=clock))
    for event in events:
        feed.apply(event)
    return feed.cards["u1"]


def lines(card: ToolCard, width: int = 90) -> list[str]:
    return [row.text.rstrip() for row in card.rows(width) if row.text.strip()]


def test_they_stand_below_their_run() -> None:
    card = card_of(run_of(nested(1), nested(2, error=True, text="no such page"), nested(3)))
    shown = lines(card)
    assert any("3 calls by the code" in line and "1 failed" in line for line in shown)
    assert [line for line in shown if "db · rows" in line] == [
        "  │ ✗ db · rows  0.02 s  table: orders · page: 2"
    ] or any("✗ db · rows  0.02 s" in line for line in shown)
    card.expand()
    whole = "\n".join(lines(card))
    assert whole.count("db · rows") == 3
    assert '"page": 1' in whole
    assert "no such page" in whole
    assert "[1, 2, 3]" in whole
    assert "db · rows" in card.text
    assert "no such page" in card.output_text


def test_one_that_runs_is_seen_and_ends_with_its_run() -> None:
    card = card_of(run_of(nested(1), nested(2, ends=False), finished=False))
    assert any("db · rows" in line and "page: 2" in line for line in lines(card))
    card.stop()
    assert [call.outcome for call in card.nested.kept()] == ["ok", "interrupted"]


@pytest.mark.parametrize("width", [20, 30, 80, 200])
def test_at_any_width(width: int) -> None:
    card = card_of(run_of(*[nested(number, text="long " * 50) for number in range(1, 9)]))
    for opened in (False, True):
        card.expanded = opened
        card.touch()
        assert all(row.cell_length == width for row in card.rows(width))
    assert card.height(width) == len(list(card.rows(width)))


def test_a_thousand_calls_are_bounded() -> None:
    card = card_of(run_of(*[nested(number) for number in range(1, 1001)]))
    card.expand()
    whole = "\n".join(lines(card))
    assert "1,000 calls by the code" in whole
    assert f"{1000 - FIRST - LAST} more calls" in whole
    assert len(lines(card)) < 600


def test_chinese_and_plain_signs() -> None:
    use("zh")
    try:
        assert any("代码调用了 2 次工具" in line for line in lines(card_of(run_of(nested(1), nested(2)))))
    finally:
        use("en")


def test_live_is_replay(tmp_path: Path) -> None:
    events = run_of(nested(1), nested(2, error=True), nested(3))
    journal = Journal.create(tmp_path, "s-1")
    started = ev.SessionStarted(at=NOON, session_id="s-1", model="m", sandbox="local", demo=False)
    prompt = ev.TurnStarted(at=NOON, turn_id="t1", prompt="go")
    numbered = [
        dataclasses.replace(event, seq=number) for number, event in enumerate([started, prompt, *events], 1)
    ]
    for event in numbered:
        journal.append(event)
    journal.close()
    back = list(read_events(tmp_path / "s-1"))
    assert list(map(to_json, back)) == list(map(to_json, numbered))
    live, replayed = card_of(events), card_of(back)
    for card in (live, replayed):
        card.expand()
    assert lines(live) == lines(replayed)


def test_events_as_json() -> None:
    for event in run_of(nested(1, error=True)):
        assert to_json(from_json(to_json(event))) == to_json(event)  # type: ignore[arg-type]
    out = io.StringIO()
    printer = JsonPrinter(out)
    for event in nested(1):
        printer.take(event)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["type"], first["name"], first["input"]["page"]) == ("nested_started", "mcp__db__rows", 1)
    assert (second["type"], second["is_error"], second["duration_ms"]) == ("nested_finished", False, 10)


def test_as_lines_of_text() -> None:
    many = run_of(*[nested(number, error=number == 40) for number in range(1, 51)])
    said: list[str] = []
    narrator = Narrator(said.append)
    for event in many:
        narrator.take(event)
    calls = [line for line in said if "db · rows" in line]
    assert len(calls) == NESTED_LINES + 1
    assert "failed" in calls[-1]
    assert any("50 calls by the code" in line for line in said)
    err = io.StringIO()
    printer = PlainPrinter(io.StringIO(), err)
    for event in many:
        printer.take(event)
    assert "db · rows  table: orders · page: 1  ok 0.01 s" in err.getvalue()
    assert "50 calls by the code, 1 failed" in err.getvalue()


def test_the_machine_takes_them_anywhere() -> None:
    machine = Machine()
    for event in run_of(nested(1)):
        machine.apply(event)
    odd = machine.odd
    for event in nested(2):
        machine.apply(event)
    assert machine.odd == odd


def saved(tmp_path: Path) -> Path:
    store = Saved(tmp_path)
    journal = Journal.create(store.root, "s-1")
    events: list[ev.Event] = [
        ev.SessionStarted(at=NOON, session_id="s-1", model="m", sandbox="local", demo=False),
        ev.TurnStarted(at=NOON, turn_id="t1", prompt="How many orders?"),
        *run_of(nested(1), nested(2, error=True, text="needle-in-a-result"), nested(3, ends=False)),
        ev.Text(at=NOON, text="Three."),
        ev.TurnFinished(
            at=NOON, turn_id="t1", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
            cost_usd=0.0, total_cost_usd=0.0,
        ),
    ]  # fmt: skip
    store._append(journal, events)
    journal.close()
    return store.root / "s-1"


@pytest.mark.parametrize("ending", ["md", "html", "ipynb", "json"])
def test_every_document_shows_them(ending: str, tmp_path: Path) -> None:
    folder = saved(tmp_path)
    to = tmp_path / f"out.{ending}"
    export(folder, to)
    text = to.read_text("utf-8")
    assert "needle-in-a-result" in text
    assert "db" in text
    if ending == "ipynb":
        cells = json.loads(text)["cells"]
        assert not any(
            cell["cell_type"] == "code" and "call_mcp_tool" in "".join(cell["source"]) for cell in cells
        )
        assert any("call_mcp_tool" in "".join(cell["source"]) for cell in cells)
    if ending == "html":
        assert "Calls by the code" in text


def test_they_are_found_by_search(tmp_path: Path) -> None:
    (turn,) = SessionText(saved(tmp_path) / "events.jsonl").turns()
    assert "needle-in-a-result" in turn.output
    assert "mcp__db__rows" in turn.code


def test_odd_orders() -> None:
    calls = NestedCalls()
    calls.finish(nested(1)[1])  # type: ignore[arg-type]
    calls.start(nested(2)[0])  # type: ignore[arg-type]
    calls.start(nested(2)[0])  # type: ignore[arg-type]
    assert calls.count == 1
    calls.stop()
    assert [call.outcome for call in calls.kept()] == ["interrupted"]
