"""A branch of a session, with the real CLI: it remembers what it came from, and the original is not touched."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from support.engines import engine
from support.scripted import text

from sandbox_chat.engine_branch import branch
from sandbox_chat.events import Notice, SessionForked, TurnFinished
from sandbox_chat.journal import Journal, SessionInUse, list_sessions
from sandbox_chat.settings import Settings


def said(body: dict[str, Any]) -> str:
    """All texts of a request's conversation."""
    return repr(body["messages"])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
def test_a_branch_remembers_and_the_original_is_untouched(tmp_path: Path) -> None:
    with engine(
        tmp_path, text("first answer"), text("second answer"), text("third answer"), sandbox="off"
    ) as e:
        first = e.ask("prompt one")
        second = e.ask("prompt two")
        session = e.engine.session_id
    assert first.anchor and second.anchor and first.anchor != second.anchor
    record = next((tmp_path / "data" / "claude").glob(f"**/{session}.jsonl"))
    events = tmp_path / "data" / "sessions" / session / "events.jsonl"
    before = digest(record), digest(events)

    with engine(tmp_path, text("in the branch"), resume=session, sandbox="off", fork=True) as e:
        assert e.engine.session_id != session
        finished = e.ask("prompt three")
        assert not finished.is_error
        assert not [event for event in e.of(Notice) if event.level != "info"]
        sent = said(e.server.requests[-1].body)
        branched = e.engine.session_id
    for words in ("prompt one", "first answer", "prompt two", "second answer", "prompt three"):
        assert words in sent
    assert (digest(record), digest(events)) == before
    assert next((tmp_path / "data" / "claude").glob(f"**/{branched}.jsonl"))
    ends = [
        event
        for event in Journal.open(tmp_path / "data" / "sessions", branched, read_only=True).events()
        if isinstance(event, TurnFinished)
    ]
    assert [end.turn_id for end in ends][:2] == [first.turn_id, second.turn_id]
    assert len(ends) == 3
    assert {summary.id for summary in list_sessions(tmp_path / "data" / "sessions")} == {session, branched}

    # The original goes on as if nothing had been.
    with engine(tmp_path, text("goes on"), resume=session, sandbox="off") as e:
        e.ask("prompt four")
        sent = said(e.server.requests[-1].body)
    assert "second answer" in sent
    assert "in the branch" not in sent


@pytest.mark.slow
def test_a_branch_after_an_earlier_turn_knows_nothing_of_later_ones(tmp_path: Path) -> None:
    with engine(tmp_path, text("first answer"), text("second answer"), sandbox="off") as e:
        first = e.ask("prompt one")
        e.ask("prompt two")
        session = e.engine.session_id
    settings = Settings(data_dir=tmp_path / "data")
    branched = branch(settings, session, after_turn=first.turn_id)
    past = list(Journal.open(tmp_path / "data" / "sessions", branched, read_only=True).events())
    forked = past[-1]
    assert isinstance(forked, SessionForked)
    assert (forked.origin, forked.turn_id) == (session, first.turn_id)
    with engine(tmp_path, text("another"), resume=branched, sandbox="off") as e:
        finished = e.ask("prompt other")
        sent = said(e.server.requests[-1].body)
        assert not [event for event in e.of(Notice) if event.level != "info"]
    assert not finished.is_error
    assert "first answer" in sent
    assert "prompt two" not in sent and "second answer" not in sent


@pytest.mark.slow
def test_a_session_that_is_open_is_branched_while_it_runs(tmp_path: Path) -> None:
    with engine(tmp_path, text("first answer"), text("second answer"), sandbox="off") as e:
        e.ask("prompt one")
        session = e.engine.session_id
        with (
            pytest.raises(SessionInUse, match=r"--fork .* --read-only"),
            engine(tmp_path, resume=session, sandbox="off"),
        ):
            pass
        with engine(tmp_path, text("in the branch"), resume=session, sandbox="off", fork=True) as other:
            other.ask("prompt b")
            assert "first answer" in said(other.server.requests[-1].body)
        e.ask("prompt two")
        assert "in the branch" not in said(e.server.requests[-1].body)


@pytest.mark.slow
def test_a_branch_whose_agents_record_is_gone_says_so(tmp_path: Path) -> None:
    with engine(tmp_path, text("first answer"), sandbox="off") as e:
        e.ask("prompt one")
        session = e.engine.session_id
    for path in (tmp_path / "data" / "claude").glob(f"**/{session}.jsonl"):
        path.unlink()
    with engine(tmp_path, text("what?"), resume=session, sandbox="off", fork=True) as e:
        e.ask("go on")
        assert any("does not know what was said before" in event.text for event in e.of(Notice))
