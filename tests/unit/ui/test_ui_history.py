"""The prompts of a user: kept, walked through, private, and never in the way."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import time
from pathlib import Path

import pytest

from sandbox_chat.ui import history as module
from sandbox_chat.ui.history import ENTRY_LIMIT, KEEP, History


def test_back_and_forward_keep_the_draft() -> None:
    history = History()
    history.add("one")
    history.add("two\nlines")
    assert history.back("draft") == "two\nlines"
    assert history.back("two\nlines") == "one"
    assert history.back("one") is None
    assert history.forward() == "two\nlines"
    assert history.forward() == "draft"
    assert history.forward() is None


def test_doubles_and_blanks_are_not_kept() -> None:
    history = History()
    for text in ("a", "a", "", "  \n", "b", "a"):
        history.add(text)
    assert history.entries == ["a", "b", "a"]


def test_the_file_is_private_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history"
    history = History(path)
    history.add("plot\na sine")
    history.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = History(path)
    again.load()
    assert again.entries == ["plot\na sine"]


def test_broken_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"good"\n{"no": 1}\n"torn\n\x00\xff\n"also \\u001b[2J good"\n')
    history = History(path)
    history.load()
    assert history.entries == ["good", "also ␛[2J good"]


def test_a_history_that_cannot_be_written_lives_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    told: list[str] = []
    history = History(tmp_path / "file" / "history", told.append)
    history.load()
    for prompt in ("before", "kept"):
        history.add(prompt)
        history.close()
    assert history.back("") == "kept"
    assert "cannot be written" in history.problem
    assert len(told) == 2
    assert "cannot be read" in told[0]
    assert told[1] == history.problem


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    history = History(tmp_path / "history")
    history.load()
    assert "cannot be read" in history.problem


def test_a_long_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(json.dumps(f"p{n}") + "\n" for n in range(2 * KEEP + 1)))
    path.chmod(0o644)
    history = History(path)
    history.load()
    assert len(history.entries) == KEEP
    assert len(path.read_text().splitlines()) == KEEP
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_very_long_prompt_is_kept_while_the_program_runs(tmp_path: Path) -> None:
    """A draft is cleared into the history, so it must not vanish there, however much was pasted."""
    book = "word " * ENTRY_LIMIT
    history = History(tmp_path / "history")
    history.add("short")
    history.add(book)
    history.close()
    assert history.back("") == book.strip("\n")
    again = History(tmp_path / "history")
    again.load()
    assert again.entries == ["short"]


def test_search_finds_all_words_newest_first_and_each_once() -> None:
    history = History()
    for prompt in ("Plot a sine", "plot a cosine", "sum it", "Plot a sine", "你好 plot"):
        history.add(prompt)
    assert history.search("plot", 10) == ["你好 plot", "Plot a sine", "plot a cosine"]
    assert history.search("SINE plot", 10) == ["Plot a sine", "plot a cosine"]
    assert history.search("", 2) == ["你好 plot", "Plot a sine"]
    assert history.search("你好", 10) == ["你好 plot"]
    assert history.search("nothing", 10) == []


def test_the_draft_is_known_while_older_prompts_are_looked_at() -> None:
    history = History()
    history.add("older")
    assert not history.recalling
    history.back("draft")
    assert history.recalling
    assert history.draft == "draft"
    history.leave()
    assert not history.recalling


def test_a_line_that_a_full_disk_cut_spoils_none_after_it(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text('"whole"\n"cut o')
    history = History(path)
    history.add("next")
    history.close()
    again = History(path)
    again.load()
    assert again.entries == ["whole", "next"]


def test_it_says_what_the_next_run_will_not_find(tmp_path: Path) -> None:
    history = History(tmp_path / "no" / "history")
    (tmp_path / "no").write_text("")
    assert history.keeps("one")
    history.add("one")
    history.close()
    assert not history.keeps("one")
    assert history.keeps(" ")
    assert not History(tmp_path / "history").keeps("x" * (ENTRY_LIMIT + 1))


# -- a file that is shared ---------------------------------------------------------------------------------


def long_file(path: Path) -> bytes:
    path.write_text("".join(json.dumps(f"p{n}") + "\n" for n in range(2 * KEEP + 1)))
    return path.read_bytes()


def lines(path: Path) -> list[str]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_full_disk_leaves_a_long_file_as_it_was(tmp_path: Path) -> None:
    before = long_file(tmp_path / "history")
    told: list[str] = []
    history = History(tmp_path / "history", told.append)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        history.load()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "history").read_bytes() == before
    assert len(told) == 1 and "cannot be written" in told[0]
    assert len(history.entries) == KEEP
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_what_another_program_adds_between_reading_and_cutting_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history"
    long_file(path)
    history, other = History(path), History(path)
    cut = history._rewrite

    def late() -> None:
        other.add("of the other one")
        other.close()
        cut()

    monkeypatch.setattr(history, "_rewrite", late)
    history.load()
    assert lines(path)[-1] == "of the other one"
    assert len(lines(path)) == KEEP


def test_what_another_program_adds_while_it_is_cut_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history"
    long_file(path)
    history, other = History(path), History(path)
    real = module.write_whole

    def slowly(path: Path, data: bytes) -> None:
        other.add("of the other one")
        time.sleep(0.2)
        assert not other.close(timeout=0), "it waits"
        real(path, data)

    monkeypatch.setattr(module, "write_whole", slowly)
    history.load()
    assert other.close(timeout=10)
    assert lines(path)[-1] == "of the other one"
    assert len(lines(path)) == KEEP + 1


def test_a_file_that_is_being_written_is_cut_another_time(tmp_path: Path) -> None:
    path = tmp_path / "history"
    before = long_file(path)
    history = History(path)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        history.load()
        assert path.read_bytes() == before
    assert history.problem == ""
    History(path).load()
    assert len(lines(path)) == KEEP


def test_where_there_are_no_locks_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    long_file(tmp_path / "history")
    history = History(tmp_path / "history")
    history.load()
    history.add("next")
    history.close()
    assert history.problem == ""
    assert lines(tmp_path / "history")[-1] == "next"
