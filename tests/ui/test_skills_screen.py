"""The skills on the screen: what there is, what a draft changes, and what becomes of it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.hostile import TEXTS
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled
from support.skills import DOUBLE, promoted, some_skills

from sandbox_chat.skills import Store
from sandbox_chat.skills.skill import Look
from sandbox_chat.ui.screens.confirm import ConfirmScreen
from sandbox_chat.ui.screens.skills import SkillsScreen


def told(app: Any) -> str:
    """All notifications that were shown."""
    return "\n".join(note.message for note in app._notifications)


async def opened(pilot: Any) -> SkillsScreen:
    """The dialog, opened by its command."""
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    app.chat_screen.composer.write_command("/skills")
    await pilot.press("escape", "enter")
    await settled(pilot, lambda: isinstance(app.screen, SkillsScreen))
    screen: SkillsScreen = app.screen
    await settled(pilot, lambda: screen.detail.entry is not None or "There are no skills" in screen_text(app))
    return screen


async def at(pilot: Any, name: str, *, draft: bool = False) -> SkillsScreen:
    """The dialog with this one chosen and read."""
    screen: SkillsScreen = pilot.app.screen
    for _ in screen.skills.items:
        await pilot.press("up")
    while screen.skills.chosen is None or (screen.skills.chosen.name, screen.skills.chosen.draft) != (
        name,
        draft,
    ):
        before = screen.skills.place
        await pilot.press("down")
        assert screen.skills.place != before, "it is not in the list"
    await settled(pilot, lambda: screen.detail.entry is screen.skills.chosen)
    return screen


async def answered(pilot: Any, key: str) -> None:
    """The question that is open, answered."""
    await settled(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
    await pilot.press(key)
    await settled(pilot, lambda: isinstance(pilot.app.screen, SkillsScreen))


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_each_is_told_with_state_and_first_line_drafts_first(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        text = screen_text(app)
        listed = [f"{each.name} {each.state}" for each in screen.skills.items]
        assert listed == [
            "double draft", "fetch draft", "rows changed", "notes new", "broken damaged", "double ready",
        ]  # fmt: skip
        for words in ("? double", "! rows", "○ notes", "✗ broken", "● double", "changed", "Fetches a page."):
            assert words in text
        assert "Code mode is off" not in text
        detail = screen.detail.text
        assert "from session-7 call-3" in detail and "hash " in detail
        assert "-    return 2 * x" in detail and "+    return x + x" in detail
        await at(pilot, "fetch", draft=True)
        assert "look at: fetch.py imports urllib." in screen.detail.text
        assert "+import urllib.request" in screen.detail.text
        await at(pilot, "broken")
        assert screen.detail.text.startswith("broken.py of the skill broken cannot be read")
        await at(pilot, "double")
        assert "def double(x):" in screen.detail.text and "x + x" not in screen.detail.text
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)


async def test_a_draft_is_promoted_once_the_user_is_sure(tmp_path: Path) -> None:
    store = some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await at(pilot, "fetch", draft=True)
        await pilot.press("p")
        await settled(pilot, lambda: "Promote fetch?" in screen_text(app))
        assert store.draft("fetch").digest[:12] in screen_text(app)
        await answered(pilot, "n")
        assert [each.name for each in store.drafts()] == ["double", "fetch"]
        await pilot.press("p")
        await answered(pilot, "y")
        await settled(pilot, lambda: "fetch is promoted, version 1." in told(app))
        screen = app.screen
        await settled(pilot, lambda: [each.name for each in screen.skills.items if each.draft] == ["double"])
        assert screen.skills.chosen.name == "fetch" and screen.skills.chosen.state == "ready"
        assert store.source("fetch").startswith("import urllib.request")
        await pilot.press("p")
        await settled(pilot, lambda: "fetch is promoted as it is." in told(app))


async def test_a_draft_is_thrown_away_and_a_skill_taken_out(tmp_path: Path) -> None:
    store = some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("d")
        await settled(pilot, lambda: "Delete the draft of double?" in screen_text(app))
        await answered(pilot, "n")
        assert len(store.drafts()) == 2
        await pilot.press("d")
        await answered(pilot, "y")
        await settled(pilot, lambda: "The draft of double is deleted." in told(app))
        await settled(pilot, lambda: [each.name for each in screen.skills.items if each.draft] == ["fetch"])
        assert store.source("double") == DOUBLE
        assert screen.skills.chosen is not None and screen.skills.chosen.name == "double"
        await settled(pilot, lambda: screen.detail.entry is screen.skills.chosen)
        await pilot.press("d")
        await answered(pilot, "y")
        await settled(pilot, lambda: "double is taken out" in told(app))
        await settled(pilot, lambda: "double" not in [each.name for each in screen.skills.items])
        assert (tmp_path / "skills" / ".versions" / "double" / "1" / "double.py").read_text() == DOUBLE


async def test_what_was_replaced_meanwhile_is_not_promoted(tmp_path: Path) -> None:
    store = some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await at(pilot, "fetch", draft=True)
        await pilot.press("p")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        store.save_draft("fetch", "import os\n", "Fetches a page.", origin="session-8")
        await answered(pilot, "y")
        await settled(pilot, lambda: "was changed while it was looked at" in told(app))
        assert "fetch" not in [each.name for each in store.skills()]
        await settled(pilot, lambda: "+import os" in screen.detail.text)  # it shows what is there now


async def test_a_skill_with_a_draft_of_its_name_waits_for_that(tmp_path: Path) -> None:
    store = some_skills(tmp_path / "skills")
    (tmp_path / "skills" / "double" / "double.py").write_text("import os\n")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await at(pilot, "double")
        assert screen.skills.chosen is not None and screen.skills.chosen.state == "changed"
        assert "+import os" in screen.detail.text
        assert "p promote" not in screen_text(app)
        await pilot.press("p")
        await settled(pilot, lambda: "There is a draft of the same name" in told(app))
        assert app.screen is screen
        assert store.draft("double").origin == "session-7 call-3"


async def test_it_follows_what_comes_while_it_is_open(tmp_path: Path) -> None:
    app = chat_app(tmp_path, [], code_mode="on")
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(pilot)
        assert "sandbox-chat skills init" in screen_text(app)
        await pilot.press("p", "d", "o", "y", "down", "pagedown")  # there is nothing to do anything with
        assert app.screen is screen
        store = Store(tmp_path / "data" / "skills")
        store.save_draft("double", DOUBLE, "Doubles a number.", origin="session-1")
        await settled(pilot, lambda: "? double" in screen_text(app) and "+def double" in screen.detail.text)
        store.save_draft("double", DOUBLE.replace("2", "3"), "Triples a number.", origin="session-1")
        await settled(pilot, lambda: "+    return 3 * x" in screen.detail.text)


async def test_what_is_still_being_read_is_not_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_skills(tmp_path / "skills")
    go, look = threading.Event(), Store.look

    def slow(self: Store, name: str, *, draft: bool | None = None) -> Look:
        if name == "fetch":
            go.wait(30)
        return look(self, name, draft=draft)

    monkeypatch.setattr(Store, "look", slow)
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("down")
        assert screen.skills.chosen is not None and screen.skills.chosen.name == "fetch"
        await pilot.press("p")
        await settled(pilot, lambda: "fetch is still being read." in told(app))
        assert app.screen is screen and screen.detail.text == ""
        await pilot.press("up")  # the loop goes on meanwhile
        await settled(pilot, lambda: "+    return x + x" in screen.detail.text)
        go.set()
        await pilot.press("down")
        await settled(pilot, lambda: "+import urllib.request" in screen.detail.text)


async def test_a_folder_that_cannot_be_changed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_skills(tmp_path / "skills")

    def refuse(self: Store, name: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Store, "discard", refuse)
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        await pilot.press("d")
        await answered(pilot, "y")
        await settled(pilot, lambda: "cannot be read or changed (Permission denied)" in told(app))


async def test_it_is_copied_and_paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []

    async def page(app: Any, text: str) -> None:
        del app
        paged.append(text)

    monkeypatch.setattr("sandbox_chat.ui.outside.open_in_pager", page)
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("y", "o")
        await settled(pilot, lambda: paged)
        assert paged == [app.clipboard]
        assert (
            "\n-    return 2 * x\n+    return x + x" in app.clipboard
            and "from session-7 call-3" in app.clipboard
        )


async def test_many_and_long_ones_are_all_reached_in_a_small_window(tmp_path: Path) -> None:
    store = Store(tmp_path / "data" / "skills")
    body = "".join(f"x{number} = {number}\n" for number in range(600))
    for number in range(40):
        store.save_draft(f"skill_{number:02d}", body, "Does something " * 8, origin="session-1")
    app = chat_app(tmp_path, [], code_mode="on")
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(pilot)
        await at(pilot, "skill_39", draft=True)
        assert "skill_39" in screen_text(app)
        for _ in range(3):
            await pilot.press("pagedown")
        assert screen.detail.scroll_offset.y >= 3 * (screen.detail.size.height - 2)
        screen.detail.scroll_end(animate=False)
        await settled(pilot, lambda: "+x599 = 599" in screen_text(app))
        await pilot.resize_terminal(24, 10)
        await pilot.pause()
        assert "skill_39" in screen_text(app)


async def test_by_mouse(tmp_path: Path) -> None:
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)

        async def click(words: str) -> None:
            rows = screen_text(app).splitlines()
            y = next(number for number, row in enumerate(rows) if words in row)
            await pilot.click(offset=(rows[y].index(words), y))

        await click("? fetch")
        await settled(pilot, lambda: "+import urllib.request" in screen.detail.text)
        await click("d delete the draft")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await answered(pilot, "n")
        await click("p promote")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))


async def test_it_says_that_code_mode_is_off_and_speaks_chinese(tmp_path: Path) -> None:
    some_skills(tmp_path / "skills")
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, skills_dir=tmp_path / "skills", language="zh")
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        text = screen_text(app)
        for words in ("技能", "未启用代码模式", "草稿", "已被改动", "p 采用", "d 删除草稿"):
            assert words in text


async def test_hostile_files_are_shown_harmless(tmp_path: Path) -> None:
    store = Store(tmp_path / "data" / "skills")
    promoted(store, "calm", DOUBLE, "Doubles.")
    for number, text in enumerate(TEXTS):
        data = text.encode("utf-8", "replace")
        front = b"---\nname: x\ndescription: " + data.replace(b"\n", b" ") + b"\n---\n"
        store.add(f"odd_{number:03d}", {"SKILL.md": front, "more.txt": data})
    app = chat_app(tmp_path, [], code_mode="on")
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(pilot)
        count = len(screen.skills.items)
        assert count == len(TEXTS) + 1
        for place in range(0, count, 7):
            screen.skills.choose(place)
            await settled(pilot, lambda: screen.detail.entry is screen.skills.chosen)
            seen = screen_text(app) + screen.detail.text
            assert not any(sign in seen for sign in "\x1b\x07\x9b\u202e\u2066")
