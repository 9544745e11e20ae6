"""Branches of a session: what they begin with, and that the original is only read."""

from __future__ import annotations

import dataclasses
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox_chat import events as ev
from sandbox_chat.engine import OUTPUT
from sandbox_chat.events import Event, ImageContent, SessionForked, ToolFinished
from sandbox_chat.journal import Journal, SessionError, SessionNotFound, files, fork, list_sessions
from sandbox_chat.journal.fork import Branch
from sandbox_chat.journal.index import TITLE_LIMIT, summarise, write_meta
from sandbox_chat.journal.keeping import rename
from sandbox_chat.journal.search_text import agent_ids
from sandbox_chat.ui.state import ChatState

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def turn(seq: int, name: str, *, done: bool = True, anchor: str = "") -> list[Event]:
    out: list[Event] = [
        ev.TurnStarted(at=NOON, seq=seq, turn_id=name, prompt=f"prompt {name}"),
        ev.Text(at=NOON, seq=seq + 1, text="answer"),
    ]
    if done:
        out.append(
            ev.TurnFinished(
                at=NOON, seq=seq + 2, turn_id=name, subtype="success", is_error=False, interrupted=False, num_turns=1,
                duration_ms=1, cost_usd=0.25, total_cost_usd=0.25 * seq, anchor=anchor,
            )
        )  # fmt: skip
    return out


def session(root: Path, *rest: Event) -> Journal:
    journal = Journal.create(root, "origin")
    for event in (*turn(1, "a", anchor="m-a"), *turn(4, "b", anchor="m-b"), *rest):
        journal.append(event)
    return journal


def past(root: Path, session_id: str) -> list[Event]:
    return list(files.read_events(root / session_id))


def test_a_branch_has_the_events_up_to_the_last_whole_turn(tmp_path: Path) -> None:
    journal = session(tmp_path, *turn(7, "c", done=False))  # open, and in the middle of a turn
    before = (tmp_path / "origin" / files.EVENTS).read_bytes()
    assert fork.fork(tmp_path, "origin", "branch") == Branch("branch", "b", "origin", "m-b")
    found = past(tmp_path, "branch")
    assert found[:-1] == past(tmp_path, "origin")[:6]
    last = found[-1]
    assert isinstance(last, SessionForked)
    assert (last.seq, last.origin, last.turn_id, last.agent_id) == (7, "origin", "b", "")
    assert (tmp_path / "origin" / files.EVENTS).read_bytes() == before
    journal.close()
    branch = Journal.open(tmp_path, "branch")
    assert branch.last_seq == 7
    branch.append(ev.TurnStarted(at=NOON, seq=8, turn_id="d", prompt="other"))
    branch.close()
    assert branch.problem == ""
    assert (tmp_path / "origin" / files.EVENTS).read_bytes() == before


def test_a_branch_after_an_earlier_turn(tmp_path: Path) -> None:
    session(tmp_path).close()
    assert fork.fork(tmp_path, "origin", "branch", after_turn="a") == Branch("branch", "a", "origin", "m-a")
    assert [event.seq for event in past(tmp_path, "branch")] == [1, 2, 3, 4]
    summaries = {summary.id: summary for summary in list_sessions(tmp_path)}
    assert (summaries["branch"].turns, summaries["branch"].total_cost_usd) == (1, 0.25)
    assert (summaries["branch"].title, summaries["origin"].title) == ("prompt a (fork)", "prompt a")


def test_a_branch_keeps_the_title_and_the_budget_that_were_given_last(tmp_path: Path) -> None:
    said = (
        ev.SessionRenamed(at=NOON, seq=7, title="Mine"),
        ev.BudgetChanged(at=NOON, seq=8, limit_usd=9.0),
        ev.BudgetChanged(at=NOON, seq=9, limit_usd=0.5),
    )
    session(tmp_path, *said).close()
    for name, after, first, mine in (("end", None, 7, "Mine (fork)"), ("earlier", "a", 4, "Mine (fork 2)")):
        fork.fork(tmp_path, "origin", name, after_turn=after)
        forked, title, budget = past(tmp_path, name)[-3:]
        assert isinstance(forked, SessionForked)
        assert isinstance(title, ev.SessionRenamed)
        assert isinstance(budget, ev.BudgetChanged)
        assert (title.title, budget.limit_usd) == (mine, 0.5)
        assert [forked.seq, title.seq, budget.seq] == [first, first + 1, first + 2]
    assert {summary.title for summary in list_sessions(tmp_path)} == {"Mine", "Mine (fork)", "Mine (fork 2)"}


def title(root: Path, session_id: str) -> tuple[str, bool]:
    """The title in the list, the same with and without ``meta.json``, and whether it was given by hand."""
    found = summarise(root / session_id)
    (root / session_id / files.META).unlink()
    again = summarise(root / session_id)
    assert found is not None and again is not None
    assert (found.title, found.made_title, found.renamed) == (again.title, again.made_title, again.renamed)
    write_meta(root / session_id, found)
    state = ChatState()
    state.apply_all(past(root, session_id))
    assert state.title == found.title, "the chat shows the same"
    return found.title, found.renamed


def test_every_branch_has_a_title_of_its_own(tmp_path: Path) -> None:
    session(tmp_path).close()
    for name, origin, expected in (
        ("one", "origin", "prompt a (fork)"),
        ("two", "origin", "prompt a (fork 2)"),
        ("three", "one", "prompt a (fork 3)"),
    ):
        fork.fork(tmp_path, origin, name)
        assert title(tmp_path, name) == (expected, False), (
            "no title by hand: it may be deleted when it is old"
        )
    rename(tmp_path, "one", "Another")
    fork.fork(tmp_path, "two", "four")
    assert title(tmp_path, "four") == ("prompt a (fork)", False), "that name is free again"
    fork.fork(tmp_path, "one", "five", after_turn="a")
    assert title(tmp_path, "five") == ("Another (fork)", True)
    rename(tmp_path, "one", "")
    assert title(tmp_path, "one")[1] is False
    fork.fork(tmp_path, "one", "six")
    found = [each.title for each in list_sessions(tmp_path)]
    assert len(found) == len(set(found)) + 1  # the title that "one" got back was taken meanwhile


def test_a_long_title_of_a_branch_is_cut_before_its_mark(tmp_path: Path) -> None:
    long = "x" * 79 + "…"
    assert fork.branch_title(long, ()) == "x" * 72 + "… (fork)"
    second = fork.branch_title(long, {"x" * 72 + "… (fork)"})
    assert second == "x" * 70 + "… (fork 2)"
    assert len(second) == TITLE_LIMIT
    assert fork.branch_title("", ()) == ""
    assert fork.branch_title("(fork)", ()) == "(fork) (fork)"


def test_a_branch_of_an_earlier_version_has_the_title_of_its_prompt(tmp_path: Path) -> None:
    session(tmp_path, ev.SessionForked(at=NOON, seq=7, origin="x", turn_id="b")).close()
    assert title(tmp_path, "origin") == ("prompt a", False)


def test_a_branch_of_a_branch(tmp_path: Path) -> None:
    session(tmp_path).close()
    fork.fork(tmp_path, "origin", "one")
    journal = Journal.open(tmp_path, "one")
    for event in turn(8, "c", anchor="m-c"):
        journal.append(event)
    journal.close()
    assert fork.fork(tmp_path, "one", "two") == Branch("two", "c", "one", "m-c")
    assert fork.fork(tmp_path, "one", "three", after_turn="a").agent_id == "one"
    assert [event.type for event in past(tmp_path, "two")].count("session_forked") == 2


def test_what_the_agent_was_told_to_forget_it_forgets_in_a_branch_too(tmp_path: Path) -> None:
    cleared = ev.Cleared(at=NOON, seq=7, agent_id="other")
    session(
        tmp_path, cleared, *turn(8, "c", anchor="m-c"), ev.Cleared(at=NOON, seq=11, agent_id="third")
    ).close()
    for name, after in (("end", None), ("before the third turn", "b")):
        made = fork.fork(tmp_path, "origin", name.replace(" ", "-"), after_turn=after)
        assert made.forgotten, name
        forked, last = past(tmp_path, made.session_id)[-2:]
        assert isinstance(forked, SessionForked)
        assert isinstance(last, ev.Cleared)
        assert last.agent_id not in ("origin", "other", "third", made.session_id)
        assert last.seq == forked.seq + 1
    assert not fork.fork(tmp_path, "origin", "early", after_turn="a").forgotten, "it was told so later"
    made = fork.fork(tmp_path, "origin", "undone", after_turn="c", remember=True)
    assert (made.forgotten, made.agent_id, made.anchor) == (False, "other", "m-c")


def test_what_the_agent_calls_the_conversation_is_found(tmp_path: Path) -> None:
    session(tmp_path, ev.Cleared(at=NOON, seq=7, agent_id="other"), *turn(8, "c", anchor="m-c")).close()
    assert fork.fork(tmp_path, "origin", "one").agent_id == "other"
    assert fork.fork(tmp_path, "origin", "two", after_turn="b").agent_id == "origin"
    assert fork.fork(tmp_path, "one", "three").agent_id == "one"  # what was copied has the id of the branch


def agent_id(root: Path, origin: str, after: str) -> str:
    """What is copied for a branch after a turn that shall remember it all."""
    made = fork.fork(root, origin, f"{origin}-after-{after}", after_turn=after, remember=True)
    return made.agent_id


def test_what_was_forgotten_before_a_branch_is_found_where_it_came_from(tmp_path: Path) -> None:
    cleared = ev.Cleared(at=NOON, seq=7, agent_id="other")
    session(tmp_path, cleared, *turn(8, "c"), *turn(11, "d")).close()
    fork.fork(tmp_path, "origin", "one", after_turn="d")
    fork.fork(tmp_path, "one", "two")
    for name in ("one", "two"):  # their copies begin with the turn "c"
        assert [agent_id(tmp_path, name, after) for after in ("a", "b", "c")] == ["origin", "origin", name]
    assert fork.fork(tmp_path, "origin", "empty", after_turn="b").forgotten
    assert agent_id(tmp_path, "empty", "b") == "origin", "nothing was copied for it"
    (tmp_path / "origin" / files.EVENTS).unlink()
    fork.fork(tmp_path, "two", "three")
    assert agent_id(tmp_path, "three", "a") == "one", "the last of them that is still there"


def test_a_branch_that_says_it_comes_from_itself(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "../one", "/", "gone")):
        root = tmp_path / str(number)
        journal = Journal.create(root, "one")
        for event in (
            *turn(1, "a"),
            ev.Cleared(at=NOON, seq=4, agent_id="x"),
            SessionForked(at=NOON, seq=5, origin=name, turn_id="a"),
            *turn(6, "b"),
        ):
            journal.append(event)
        journal.close()
        assert agent_id(root, "one", "a") == "one"


def test_the_whole_output_of_a_run_is_in_the_folder_of_the_branch_too(tmp_path: Path) -> None:
    journal = session(tmp_path)
    kept = journal.folder / OUTPUT / "u.txt"
    kept.parent.mkdir()
    kept.write_text("all of it")
    started, _, finished = turn(7, "c")
    content = (ev.FileContent(str(kept), "text/plain", 9, "whole output"),)
    for event in (
        started,
        ev.ToolStarted(at=NOON, seq=8, tool_use_id="v", name="x", input={"path": "output/.."}),
        ev.ToolFinished(at=NOON, seq=9, tool_use_id="u", is_error=False, content=content, duration_ms=1),
        dataclasses.replace(finished, seq=10),
    ):
        journal.append(event)
    journal.close()
    fork.fork(tmp_path, "origin", "branch")
    shutil.rmtree(tmp_path / "origin")
    [call] = [event for event in past(tmp_path, "branch") if isinstance(event, ToolFinished)]
    [part] = call.content
    assert isinstance(part, ev.FileContent)
    assert Path(part.path) == tmp_path / "branch" / OUTPUT / "u.txt"
    assert Path(part.path).read_text() == "all of it"


def test_pictures_of_the_branch_are_in_its_folder(tmp_path: Path) -> None:
    journal = session(tmp_path)
    kept = journal.save_picture(PNG, "image/png", 3, 2)
    page = journal.save_file(b"<b>", "text/html", "a page")
    later = journal.save_picture(PNG + b"x", "image/png", 3, 2)
    calls = [
        ToolFinished(at=NOON, seq=number, tool_use_id="u", is_error=False, content=content, duration_ms=1)
        for number, content in ((8, (kept, page)), (11, (later,)))
    ]
    started, _, finished = turn(7, "c")
    for event in (
        started,
        calls[0],
        ev.TurnFinished(**{**{n: getattr(finished, n) for n in finished.__slots__}, "at": NOON, "seq": 9}),
    ):
        journal.append(event)
    for event in (*turn(10, "d", done=False)[:1], calls[1]):
        journal.append(event)
    journal.close()
    fork.fork(tmp_path, "origin", "branch")
    names = sorted(path.name for path in (tmp_path / "branch" / files.PICTURES).iterdir())
    assert names == sorted(Path(part.path).name for part in (kept, page))
    copied = tmp_path / "branch" / files.PICTURES / Path(kept.path).name
    assert copied.read_bytes() == PNG
    assert copied.samefile(kept.path)  # a link: no second copy on the disk
    (call,) = [event for event in past(tmp_path, "branch") if isinstance(event, ToolFinished)]
    assert isinstance(call.content[0], ImageContent)
    assert call.content[0].path == str(copied)


def test_pictures_are_copied_where_they_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise OSError(1, "Operation not permitted")

    journal = session(tmp_path)
    kept = journal.save_picture(PNG, "image/png", 3, 2)
    started, text, finished = turn(7, "c")
    journal.append(started)
    journal.append(
        ToolFinished(at=NOON, seq=8, tool_use_id="u", is_error=False, content=(kept,), duration_ms=1)
    )
    journal.append(finished)
    journal.close()
    del text
    monkeypatch.setattr(os, "link", refuse)
    fork.fork(tmp_path, "origin", "branch")
    copied = tmp_path / "branch" / files.PICTURES / Path(kept.path).name
    assert copied.read_bytes() == PNG
    assert copied.stat().st_mode & 0o777 == 0o600
    Path(kept.path).unlink()
    fork.fork(tmp_path, "origin", "another")  # a lost picture stays lost, and stops nothing


@pytest.mark.parametrize("torn", [b"", b'{"type":"turn_started","seq":7', b"\0" * 500])
def test_a_torn_end_is_left_behind(tmp_path: Path, torn: bytes) -> None:
    session(tmp_path).close()
    with (tmp_path / "origin" / files.EVENTS).open("ab") as file:
        file.write(torn)
    fork.fork(tmp_path, "origin", "branch")
    journal = Journal.open(tmp_path, "branch")
    assert [event.seq for event in journal.events()] == [1, 2, 3, 4, 5, 6, 7]
    assert journal.skipped == 0
    journal.close()


def test_the_end_of_a_turn_is_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(tmp_path, *turn(7, "c", done=False)).close()
    expected = {}
    for name in ("a", "b"):
        fork.fork(tmp_path, "origin", f"whole-{name}", after_turn=name)
        expected[name] = past(tmp_path, f"whole-{name}")[:-1]
    for block in (24, 25, 40, 100, 333):
        monkeypatch.setattr(fork, "_COPY", block)
        for name in ("a", "b"):
            fork.fork(tmp_path, "origin", f"{name}-{block}", after_turn=name)
            assert past(tmp_path, f"{name}-{block}")[:-1] == expected[name]


def test_what_cannot_be_branched_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SessionNotFound, match="There is no session"):
        fork.fork(tmp_path, "none", "branch")
    journal = Journal.create(tmp_path, "origin")
    journal.append(ev.TurnStarted(at=NOON, seq=1, turn_id="a", prompt="p"))
    journal.close()
    with pytest.raises(SessionNotFound, match="no turn that has ended"):
        fork.fork(tmp_path, "origin", "branch")
    with pytest.raises(SessionNotFound, match="no turn 'x'"):
        fork.fork(tmp_path, "origin", "branch", after_turn="x")
    assert not (tmp_path / "branch").exists()
    session(tmp_path / "b").close()

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SessionError, match=r"cannot be copied \(No space left on device\)"):
        fork.fork(tmp_path / "b", "origin", "branch")
    assert not (tmp_path / "b" / "branch").exists()
    monkeypatch.undo()
    fork.fork(tmp_path / "b", "origin", "branch")
    with pytest.raises(SessionError, match="already"):
        fork.fork(tmp_path / "b", "origin", "branch")


def test_a_session_is_looked_at_while_another_program_writes_to_it(tmp_path: Path) -> None:
    writer = session(tmp_path)
    looking = Journal.open(tmp_path, "origin", read_only=True)
    assert len(looking.tail().events) == 6
    looking.append(ev.TurnStarted(at=NOON, seq=7, turn_id="x", prompt="p"))
    looking.close()
    writer.append(ev.TurnStarted(at=NOON, seq=7, turn_id="c", prompt="p"))
    assert writer.problem == ""
    writer.close()
    assert [event.seq for event in past(tmp_path, "origin")] == [1, 2, 3, 4, 5, 6, 7]


def test_the_end_of_a_branch_is_not_that_of_what_it_came_from(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    other = "0f8b9a52-1111-4000-8000-000000000001"
    session(root, ev.Cleared(at=NOON, seq=7, agent_id=other), *turn(8, "c")).close()
    fork.fork(root, "origin", "branch")
    assert agent_ids(root / "branch" / files.EVENTS) == set()
    assert agent_ids(root / "origin" / files.EVENTS) == {other}
