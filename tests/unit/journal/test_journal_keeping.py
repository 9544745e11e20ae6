"""Renaming, deleting, and the end of old sessions."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.saved import NOON, Saved, turn

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, Notice, SessionRenamed
from sandbox_chat.journal import Journal, SessionError, SessionInUse, SessionNotFound
from sandbox_chat.journal.files import read_events
from sandbox_chat.journal.index import list_sessions, summarise
from sandbox_chat.journal.keeping import delete, expire, is_open, rename
from sandbox_chat.settings import Settings
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.waiting_file import Left, WaitingFile

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def age(saved: Saved, session_id: str, days: float) -> None:
    then = (NOW - timedelta(days=days)).timestamp()
    os.utime(saved.path(session_id), (then, then))


def test_a_title_is_an_event_and_stands_in_the_summary(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    assert rename(saved.root, "a", "  My \n title ") == "My title"
    last = list(read_events(saved.root / "a"))[-1]
    assert isinstance(last, SessionRenamed)
    assert (last.title, last.seq) == ("My title", 7)
    for again in (False, True):
        found = summarise(saved.root / "a")
        assert found is not None
        assert (found.title, found.made_title, found.renamed) == ("My title", "first", True)
        if not again:
            (saved.root / "a" / "meta.json").unlink()  # then it comes from the events
    saved.more("a", [("second", "y")])
    assert [(each.title, each.last_prompt) for each in list_sessions(saved.root)] == [("My title", "second")]
    assert rename(saved.root, "a", "") == "first"
    found = summarise(saved.root / "a")
    assert found is not None
    assert not found.renamed


def test_another_title_is_no_use_of_a_session(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for name, days in (("a", 9), ("b", 1)):
        saved.session(name, [("first", "x")])
        age(saved, name, days)
    before = [(each.id, each.updated) for each in list_sessions(saved.root)]
    rename(saved.root, "a", "Mine")
    assert [(each.id, each.updated) for each in list_sessions(saved.root)] == before
    assert [name for name, _ in before] == ["b", "a"]


def test_a_title_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    write = os.write

    def fail(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(SessionError, match=r"^Session a cannot be renamed \(No space left on device\)\.$"):
        rename(saved.root, "a", "x")
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(SessionNotFound):
        rename(saved.root, "none", "x")


def test_a_title_given_before_the_first_prompt(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    journal = Journal.create(saved.root, "a")
    journal.append(SessionRenamed(seq=1, title="Mine"))
    assert list_sessions(saved.root) == []  # nothing was said yet
    for number, event in enumerate(turn(1, "first", "x"), 2):
        journal.append(dataclasses.replace(event, seq=number))
    journal.close()
    [found] = list_sessions(saved.root)
    assert (found.title, found.made_title, found.renamed) == ("Mine", "first", True)


def test_which_session_is_open(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    assert not is_open(saved.root, "a")
    assert not is_open(saved.root, "none")
    journal = Journal.open(saved.root, "a")
    assert is_open(saved.root, "a")
    journal.close()
    assert not is_open(saved.root, "a")


@pytest.mark.parametrize("name", ["none", "../a", "", "a/../a"])
def test_only_sessions_are_deleted(tmp_path: Path, name: str) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    (tmp_path / "a").mkdir()
    with pytest.raises(SessionNotFound):
        delete(tmp_path, name)
    assert (tmp_path / "a").exists()
    assert saved.path("a").exists()


def test_a_folder_that_cannot_be_removed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])

    def fail(self: Path, target: Path) -> Path:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(SessionError, match="Read-only"):
        delete(tmp_path, "a")
    assert saved.path("a").exists()


def test_what_stays_of_a_folder_is_removed_with_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Saved(tmp_path)
    record = tmp_path / "claude" / "config" / "projects" / "-w" / "a.jsonl"
    record.parent.mkdir(parents=True)
    record.write_text("what was said")
    for name in ("a", "b"):
        saved.session(name, [("first", "x")])
    remove = shutil.rmtree

    def fail(path: Path, **options: bool) -> None:
        if not options:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "rmtree", fail)
    with pytest.raises(SessionError, match="Input/output"):
        delete(tmp_path, "a")
    assert not record.exists()  # whatever else stays
    monkeypatch.setattr(shutil, "rmtree", remove)
    delete(tmp_path, "b")
    assert list(saved.root.iterdir()) == []


def test_a_session_that_is_a_link_is_not_said_to_be_deleted(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    (saved.root / "a").rename(tmp_path / "elsewhere")
    (saved.root / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionError, match="a link"):
        delete(tmp_path, "a")
    assert sorted(path.name for path in saved.root.iterdir()) == ["a"]
    assert (tmp_path / "elsewhere" / "events.jsonl").exists()


def test_the_record_of_a_login_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = Saved(tmp_path / "data")
    kept = []
    for number, (name, config) in enumerate((("CLAUDE_CONFIG_DIR", "own"), ("HOME", ".claude"))):
        saved.session(f"a{number}", [("first", "x")])
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        monkeypatch.setenv(name, str(tmp_path / config if name != "HOME" else tmp_path))
        folder = tmp_path / config / "projects" / "-w"
        folder.mkdir(parents=True)
        (folder / f"a{number}.jsonl").write_text("what was said")
        kept.append(folder / "mine.jsonl")
        kept[-1].write_text("no session of ours")
        delete(tmp_path / "data", f"a{number}")
        assert list(folder.iterdir()) == kept[-1:]


def test_only_records_of_the_agent_go_with_a_session(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    own = "0f8b9a52-1111-4000-8000-000000000001"
    for name in (own, "memory", "notes", own.upper()):
        saved.lines("a", {"type": "cleared", "agent_id": name})
    folder = tmp_path / "claude" / "config" / "projects" / "-w"
    for name in ("memory", own):
        (folder / name).mkdir(parents=True)
        (folder / name / "MEMORY.md").write_text("what the agent knows")
    for name in ("notes.jsonl", f"{own}.jsonl"):
        (folder / name).write_text("what was said")
    delete(tmp_path, "a")
    assert sorted(path.name for path in folder.iterdir()) == ["memory", "notes.jsonl"]
    assert (folder / "memory" / "MEMORY.md").is_file()


def test_prompts_that_wait_for_a_session_go_with_it(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    folder = tmp_path / "waiting"
    for name in ("old", "gone", "stays"):
        saved.session(name, [("first", "x")])
    for name in ("old", "gone", "gone", "stays", "never-had-a-turn"):
        waits(folder, name).close(keep=True)
    running = waits(folder, "gone")
    (folder / "x.json").write_text("{")  # damaged, and one that cannot be opened: neither stops anything
    (folder / "x.lock").touch()
    (folder / "y.lock").symlink_to(tmp_path / "nothing")
    delete(tmp_path, "gone")
    assert waiting(folder) == ["gone", "never-had-a-turn", "old", "stays"], (
        "a program that runs has one of these"
    )
    running.close(keep=True)
    age(saved, "old", 31)
    age(saved, "stays", 1)
    assert expire(tmp_path, 30, now=NOW) == 1
    assert waiting(folder) == ["gone", "never-had-a-turn", "stays"]
    assert len(list(folder.glob("*.lock"))) == 5  # none of those that are gone


def waits(folder: Path, session_id: str) -> WaitingFile:
    """The file of a program in which a prompt waits."""
    file = WaitingFile(folder)
    file.save(Left(session_id, (Prompt("later"),)))
    assert file.settle()
    return file


def waiting(folder: Path) -> list[str]:
    """The sessions for which prompts wait, as the files say."""
    bodies = [path.read_text() for path in folder.glob("*.json") if path.name != "x.json"]
    return sorted(json.loads(body)["session"] for body in bodies)


def test_a_session_that_is_open_is_not_renamed(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    saved.session("a", [("first", "x")])
    journal = Journal.open(saved.root, "a")
    try:
        with pytest.raises(
            SessionInUse, match=r"^Session a is open in a running .* there, with /rename, or close it"
        ):
            rename(saved.root, "a", "Mine")
        journal.append(SessionRenamed(seq=journal.last_seq + 1, title="Theirs"))
    finally:
        journal.close()
    assert [each.title for each in list_sessions(saved.root)] == ["Theirs"]
    assert rename(saved.root, "a", "Mine") == "Mine"


def test_old_sessions_are_deleted(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for name in ("old", "young", "mine", "busy"):
        saved.session(name, [("first", "x")])
    rename(saved.root, "mine", "Keep this")
    for name in ("old", "mine", "busy"):
        age(saved, name, 31)
    age(saved, "young", 29)
    (saved.root / ".deleted-left").mkdir()
    journal = Journal.open(saved.root, "busy")
    try:
        assert NOW - timedelta(days=30) > NOON
        assert expire(tmp_path, 0, now=NOW) == 0
        assert expire(tmp_path, 30, now=NOW) == 1
    finally:
        journal.close()
    assert sorted(path.name for path in saved.root.iterdir()) == ["busy", "mine", "young"]
    assert expire(tmp_path, 30, now=NOW) == 1
    assert expire(tmp_path, 30, now=NOW) == 0
    assert expire(tmp_path / "none", 30, now=NOW) == 0


def test_an_engine_says_once_what_it_deleted(tmp_path: Path) -> None:
    saved = Saved(tmp_path)
    for name in ("a", "b"):
        saved.session(name, [("first", "x")])
        then = (datetime.now(UTC) - timedelta(days=9)).timestamp()
        os.utime(saved.path(name), (then, then))
        meta = saved.root / name / "meta.json"
        meta.write_text(meta.read_text().replace("2026-", "2020-"))
    said: list[Event] = []
    settings = Settings(data_dir=tmp_path, demo=True, sandbox="off", keep_days=7)
    engine = Engine(settings, said.append)
    try:
        engine._expire()
        engine._expire()
    finally:
        engine.close()
    assert [event.text for event in said if isinstance(event, Notice)] == [
        "2 sessions that were not used for 7 days were deleted, as keep_days is set."
    ]
    assert list_sessions(saved.root) == []
