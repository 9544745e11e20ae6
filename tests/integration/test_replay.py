"""A real demo session, as it was seen live and as its journal replays it: the same rows, the same totals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program import journals, run
from support.screen import shown

from sandbox_chat.event_json import from_json
from sandbox_chat.events import Event, ToolFinished
from sandbox_chat.journal import Journal


def live(home: Path, *words: str) -> list[Event]:
    """Run a prompt and return its events as they were printed while it ran."""
    ended = run("run", "--demo", "--json", *words, home=home)
    assert ended.code == 0, ended.stderr
    events = [from_json(json.dumps(event)) for event in ended.events]
    assert None not in events
    return [event for event in events if event is not None]


@pytest.mark.slow
def test_a_session_looks_the_same_live_and_replayed(tmp_path: Path) -> None:
    events = live(tmp_path, "plot a damped sine and tell me its half-life")
    events += live(tmp_path, "--resume", "--", "make a mistake and fix it")
    [folder] = {path.parent for path in journals(tmp_path)}
    journal = Journal.open(folder.parent, folder.name)
    try:
        past = list(journal.events())
    finally:
        journal.close()
    assert journal.skipped == 0
    assert [event.seq for event in past] == list(range(1, len(events) + 1))
    calls = [event for event in past if isinstance(event, ToolFinished)]
    assert any(call.is_error for call in calls)
    assert any(part for call in calls for part in call.content if not hasattr(part, "text"))
    assert past == events
    for expanded in (False, True):
        rows, state = shown(events, [1, 3, 7], expanded=expanded)
        again, replayed = shown(past, [len(past)], expanded=expanded)
        assert rows == again
        assert state == replayed
