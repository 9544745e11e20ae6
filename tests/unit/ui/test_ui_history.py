"""The prompts of a user: kept, walked through, private, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

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
