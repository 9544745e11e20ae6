"""What the screen knows and says of skills and drafts."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from support.hostile import TEXTS
from support.skills import DOUBLE, some_skills

from sandbox_chat.skills import Store
from sandbox_chat.skills.skill import Look, digest_of
from sandbox_chat.ui.skill_views import Entry, entries, rows, stamp, text_of
from sandbox_chat.ui.transcript.cells import row_width

DRAFT = Entry("double", "draft", 1, "Doubles a number.", "0" * 64, "session-1")


def look(difference: str = "", *, cut: bool = False, **files: bytes) -> Look:
    return Look("double", "a" * 64, "session-1 call-2", difference, (), files, cut)


def styles(difference: str) -> list[tuple[str, ...]]:
    """The styles of a difference's lines."""
    found = rows(DRAFT, look(difference), 80)
    return [row[0].names if row else () for row in found[-len(difference.split("\n")) :]]


def test_drafts_come_first_and_a_skill_knows_of_its_draft(tmp_path: Path) -> None:
    found = entries(some_skills(tmp_path))
    assert [(each.name, each.state, each.version, each.shadowed) for each in found] == [
        ("double", "draft", 1, False),
        ("fetch", "draft", 0, False),
        ("rows", "changed", 1, False),
        ("notes", "new", 0, False),
        ("broken", "damaged", 0, False),
        ("double", "ready", 1, True),
    ]
    assert [each.about for each in found[:4]] == [
        "Doubles a number by adding it.",
        "Fetches a page.",
        "Reads rows of a file of JSON.",
        "How notes are written here.",
    ]
    assert found[4].about.startswith("broken.py of the skill broken cannot be read")
    assert found[0].origin == "session-7 call-3"
    assert entries(Store(tmp_path / "nowhere")) == []


def test_the_stamp_tells_what_has_changed_and_stays_where_nothing_has(tmp_path: Path) -> None:
    store = some_skills(tmp_path)
    seen = [stamp(tmp_path)]

    def differs() -> bool:
        seen.append(stamp(tmp_path))
        return seen[-1] not in seen[:-1]

    assert not differs()
    (tmp_path / "double" / "double.py").write_text(DOUBLE + "# more\n")
    assert differs()
    store.save_draft("third", DOUBLE, "Third.", origin="")
    assert differs()
    store.promote("third", expected=store.draft("third").digest)
    assert differs()
    store.discard("fetch")
    assert differs()
    store.remove("double")
    assert differs()
    (tmp_path / ".promoted.json").write_text("{}")
    assert differs()
    assert not differs()
    assert stamp(tmp_path / "nowhere") == stamp(tmp_path / "nowhere")


def test_the_stamp_opens_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert stamp(tmp_path) == stamp(tmp_path)


def test_a_line_of_code_cannot_pass_for_the_head_of_a_file() -> None:
    head = "--- promoted/x.py\n+++ draft/x.py\n@@ -1,2 +1,2 @@"
    assert styles(f"{head}\n--- promoted/y.py\n+++ draft/y.py\n same") == [
        ("strong",),
        ("strong",),
        ("muted",),
        ("tok-deleted",),
        ("tok-inserted",),
        (),
    ]


def test_all_that_is_known_of_a_draft() -> None:
    text = text_of(DRAFT, look("--- promoted/x\n+++ draft/x\n@@ -0,0 +1 @@\n+\tx = 1"))
    assert text == (
        "Doubles a number.\n"
        "Handed in by the agent, to take the place of version 1.\n"
        "from session-1 call-2  hash aaaaaaaaaaaa\n"
        "Nothing that is known to be dangerous was found; that says little. Read the code.\n"
        "\n"
        "--- promoted/x\n+++ draft/x\n@@ -0,0 +1 @@\n+   x = 1"
    )
    first = dataclasses.replace(DRAFT, version=0)
    assert "Its code gets it once you have promoted it." in text_of(first, look("+x"))
    assert "too long to be shown whole" in text_of(DRAFT, look("+x", cut=True))
    assert "nothing that differs" in text_of(DRAFT, look())


def test_a_skill_that_is_promoted_shows_its_files() -> None:
    ready = Entry("double", "ready", 2, "Doubles.", "a" * 64, "", shadowed=True)
    changed = dataclasses.replace(ready, state="changed")
    shown = text_of(ready, look(**{"double.py": DOUBLE.encode(), "SKILL.md": b"---\n"}))
    assert "There is a draft" not in shown
    assert "There is a draft of the same name" in text_of(changed, look())
    assert shown.index("\nSKILL.md\n---") < shown.index('\ndouble.py\n"""Doubles numbers')
    huge = text_of(ready, look(**{f"{name}.txt": b"x" * 90_000 for name in "abc"}))
    assert len(huge) < 110_000
    assert "cut out of 90,000" in huge


def test_a_damaged_one_says_what_is_wrong() -> None:
    assert text_of(Entry("x", "damaged", 0, "It holds a link.", "", ""), None) == "It holds a link."


@pytest.mark.parametrize("width", [2, 20, 59, 200])
def test_sentences_fit_their_width(width: int) -> None:
    about = Entry("x", "draft", 0, "你好 " * 40, "", "")
    assert all(row_width(row) <= max(width, 2) for row in rows(about, look(), width))


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_files_are_made_harmless(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    data = text.encode("utf-8", "replace")
    store.add("odd", {"SKILL.md": b"---\nname: odd\n---\n", "more.txt": data})
    (new,) = entries(store)
    seen = text_of(new, store.look("odd", draft=False))
    promoted = store.promote("odd", expected=store.look("odd").digest)
    assert promoted.digest == digest_of({"SKILL.md": b"---\nname: odd\n---\n", "more.txt": data})
    (ready,) = entries(store)
    seen += text_of(ready, store.look("odd", draft=False))
    assert not any(sign in seen for sign in "\x1b\x07\x9b\u202e\u2066")
