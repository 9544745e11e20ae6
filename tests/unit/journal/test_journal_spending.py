"""What a session spent, read from the few lines of its journal that tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.event_json import to_json
from sandbox_chat.journal import spending
from sandbox_chat.journal.spending import read_spending

ONE = ev.Usage(100, 10, 5, 1)
TWO = ev.Usage(300, 30, 15, 3)


def session(folder: Path, *events: ev.Event) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.jsonl").write_bytes(b"".join(to_json(event).encode() + b"\n" for event in events))
    return folder


def started(*, demo: bool = False) -> ev.SessionStarted:
    return ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=demo)


def end(usage: ev.Usage, cost: float | None, *models: ev.ModelUse, **changes: Any) -> ev.TurnFinished:
    return turn_finished("t", at=START, usage=usage, cost_usd=cost, models=models, **changes)


def test_each_turn_by_its_own_figures(tmp_path: Path) -> None:
    folder = session(
        tmp_path,
        started(),
        ev.TurnStarted(turn_id="t", prompt='{"type":"turn_finished","cost_usd":9}'),
        ev.Text(text='\n{"type":"turn_finished"}\n'),
        end(ONE, 0.5, ev.ModelUse("a", ONE, 0.5)),
        end(ONE, 0.25, ev.ModelUse("a", ev.Usage(200, 20, 10, 2), 0.75)),
    )
    found = read_spending(folder)
    assert [(spent.model, spent.usage, spent.cost, spent.first) for spent in found] == [
        ("a", ONE, 0.5, True),
        ("a", ONE, 0.25, True),
    ]


def test_a_turn_of_several_models_is_divided_by_the_totals(tmp_path: Path) -> None:
    folder = session(
        tmp_path,
        started(),
        end(ONE, 0.5, ev.ModelUse("a", ONE, 0.5)),
        end(ev.Usage(500, 50, 25, 5), 1.5, ev.ModelUse("a", TWO, 1.0), ev.ModelUse("b", TWO, 1.0)),
    )
    assert [(spent.model, spent.usage, spent.cost, spent.first) for spent in read_spending(folder)[1:]] == [
        ("a", ev.Usage(200, 20, 10, 2), 0.5, True),
        ("b", TWO, 1.0, False),
    ]


def test_what_is_not_known_stays_so(tmp_path: Path) -> None:
    folder = session(
        tmp_path,
        started(),
        end(ONE, None, ev.ModelUse("own", ONE, None, complete=False)),
        end(ev.Usage(), None),  # the program was lost before anything was told
        end(ev.Usage(), 0.0),  # never sent
    )
    assert [(spent.model, spent.cost) for spent in read_spending(folder)] == [("own", None), ("", None)]


def test_a_fork_has_spent_what_came_after(tmp_path: Path) -> None:
    folder = session(
        tmp_path,
        started(),
        end(ONE, 0.5, ev.ModelUse("a", ONE, 0.5)),
        ev.SessionForked(origin="s0", turn_id="t"),
        started(),
        end(ONE, 0.5, ev.ModelUse("a", ev.Usage(200, 20, 10, 2), 1.0)),
    )
    [spent] = read_spending(folder)
    assert (spent.usage, spent.cost) == (ONE, 0.5)


def test_a_fork_has_not_spent_what_a_stopped_turn_turned_out_to_cost(tmp_path: Path) -> None:
    whole = (ev.ModelUse("a", TWO, 3.0), ev.ModelUse("b", TWO, 2.0))
    later = ev.Usage(400, 40, 20, 4)
    folder = session(
        tmp_path,
        started(),
        end(ONE, None),
        ev.SessionForked(origin="s0", turn_id="t"),
        ev.TurnSettled(at=START, turn_id="t", usage=TWO, cost_usd=5.0, total_cost_usd=5.0, models=whole),
        started(),
        end(ONE, 0.5, ev.ModelUse("a", later, 3.5), whole[1]),
    )
    [spent] = read_spending(folder)
    assert (spent.model, spent.usage, spent.cost) == ("a", ONE, 0.5)


def test_the_runs_of_the_demo_are_marked(tmp_path: Path) -> None:
    folder = session(tmp_path, started(demo=True), end(ONE, None), started(), end(ONE, 0.5))
    assert [spent.demo for spent in read_spending(folder)] == [True, False]


@pytest.mark.parametrize("block", [1, 50, 333, 1 << 24])
def test_damage_is_passed_over_and_a_torn_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(spending, "BLOCK", block)
    folder = session(tmp_path, started(), end(ONE, 0.5), end(ONE, 0.25))
    path = folder / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    bad = b'{"type":"turn_finished","cost_usd":"x"}\n\0\0\0\n{"type":"turn_finished\n\xff\xfe\n'
    path.write_bytes(lines[0] + bad + lines[1] + bad + lines[2].rstrip(b"\n"))
    assert [spent.cost for spent in read_spending(folder)] == [0.5, 0.25]
    path.write_bytes(lines[0] + lines[1] + lines[2][:-20])
    assert [spent.cost for spent in read_spending(folder)] == [0.5]
    path.write_bytes(b"")
    assert read_spending(folder) == []


def test_totals_that_began_anew_are_not_differences(tmp_path: Path) -> None:
    both = (ev.ModelUse("a", ONE, 0.5), ev.ModelUse("b", ONE, 0.25))
    folder = session(
        tmp_path,
        started(),
        end(ONE, 5.0, ev.ModelUse("a", TWO, 5.0)),
        end(ev.Usage(200, 20, 10, 2), 0.75, *both),
    )
    assert [(spent.model, spent.usage, spent.cost) for spent in read_spending(folder)[1:]] == [
        ("a", ONE, 0.5),
        ("b", ONE, 0.25),
    ]
