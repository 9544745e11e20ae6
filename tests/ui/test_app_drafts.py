"""A draft is never lost: on disk while it is written, offered again after a crash, whole through an editor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.chat_program import chat_program
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat.ui.drafts import Drafts
from sandbox_chat.ui.tokens import Part

LONG = "\n".join(f"line {number}" for number in range(312))


def kept(folder: Path) -> list[Any]:
    """What is on disk of drafts."""
    return [json.loads(path.read_text()) for path in (folder / "data/drafts").glob("*.json")]


async def ready(pilot: Any, app: Any) -> Any:
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    return app.chat_screen.composer


async def test_it_is_kept_while_it_is_written_and_not_when_it_was_sent(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press(*"one")
        await settled(pilot, lambda: kept(tmp_path) == [[["text", "one", "", 0]]])
        composer.insert_text(LONG)
        await settled(pilot, lambda: kept(tmp_path) == [[["text", "one", "", 0], ["paste", LONG, "", 0]]])
        app.prompts.add("older")
        await pilot.press("ctrl+r", "x")
        await pilot.pause(0.2)
        assert kept(tmp_path)[0][0][1] == "one"
        await pilot.press("escape", "up")
        assert composer.text == "older"
        await pilot.pause(0.2)
        assert kept(tmp_path)[0][0][1] == "one"
        await pilot.press("down", "enter")
        await settled(pilot, lambda: made[0].prompts)
        await settled(pilot, lambda: kept(tmp_path) == [])
    app.drafts.close()


async def test_a_folder_that_takes_no_draft_and_no_history_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "drafts").write_text("a file")
    (tmp_path / "data" / "history").mkdir()
    app = chat_app(tmp_path, draft_delay=0.05)
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await ready(pilot, app)
        await settled(pilot, lambda: "The history of your prompts" in screen_text(app))
        await pilot.press(*"one")
        await settled(pilot, lambda: "What you type is not kept" in screen_text(app))
    app.drafts.close()


async def test_clearing_and_quitting_leave_it_in_the_history_only(tmp_path: Path) -> None:
    app = chat_app(tmp_path, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"first", "ctrl+c")
        await pilot.press(*"second")
        await settled(pilot, lambda: kept(tmp_path))
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.drafts.close()
    assert app.prompts.entries == ["first", "second"]
    assert list((tmp_path / "data/drafts").iterdir()) == []


def test_after_kill_it_is_offered_again_with_its_tokens(tmp_path: Path) -> None:
    with chat_program(tmp_path) as at:
        at.type("look ")
        at.type(b"\x1b[200~" + LONG.encode() + b"\x1b[201~")
        at.shows("[pasted text #1 · 312 lines]")
        at.type("now")
        at.wait(lambda: [part[-1][1] for part in kept(tmp_path)] == ["now"])
        at.process.kill()
        at.process.wait()
    with chat_program(tmp_path) as at:
        at.shows("look [pasted text #1 · 312 lines]now")
        at.shows("The prompt that was not sent in the last run is back.")
        at.type("\r")
        at.shows("line 311now")
        at.wait(lambda: kept(tmp_path) == [])
        at.type("\x11")
        assert at.ends() == 0
    assert list((tmp_path / "data/drafts").iterdir()) == []


async def test_two_drafts_of_killed_runs_are_both_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data/drafts"
    for text in ("older", "newer"):
        left = Drafts(folder)
        left.save([Part("text", text)])
        assert left.settle()
        left.close(keep=True)
        [path] = [path for path in folder.glob("*.json") if text in path.read_text()]
        when = path.stat().st_mtime + (100 if text == "newer" else 0)
        os.utime(path, (when, when))
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await settled(pilot, lambda: composer.text == "newer")
        assert app.prompts.entries == ["older"]
    app.drafts.close()


async def test_what_is_being_written_is_not_overwritten(tmp_path: Path) -> None:
    left = Drafts(tmp_path / "data/drafts")
    left.save([Part("text", "of the last run")])
    assert left.settle()
    left.close(keep=True)
    app = chat_app(tmp_path, typed="early")
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await settled(pilot, lambda: app.prompts.entries == ["of the last run"])
        assert composer.text == "early"
    app.drafts.close()


async def test_escape_and_a_failed_turn_eat_no_draft(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        await pilot.press(*"two", "escape", "escape")
        assert composer.text == "two"
        made[0].finish(is_error=True, subtype="error")
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        assert composer.text == "two"
        await pilot.press("ctrl+c")
        await pilot.press("up", "up")
        assert composer.text == "one"


async def test_the_editor_gets_the_whole_and_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, str]] = []

    async def edited(app: Any, text: str, suffix: str) -> str | None:
        given.append((text, suffix))
        return f"{text}\nand @f.csv twice" if len(given) == 1 else None

    monkeypatch.setattr("sandbox_chat.ui.outside.open_in_editor", edited)
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.put(composer.tokens.mention("/w/f.csv", "f.csv", 3))
        composer.insert_text(" " + LONG)
        await pilot.press("ctrl+s")
        await settled(pilot, lambda: composer.text.endswith("twice"))
        assert given == [(f"@f.csv {LONG}", ".md")]
        assert [part.text for part in composer.parts if part.kind == "file"] == ["/w/f.csv"] * 2
        before = composer.text
        await pilot.press("alt+e")
        await settled(pilot, lambda: len(given) == 2)
        assert composer.text == before
        assert app.focused is composer
        assert "twice" in screen_text(app)


def test_the_real_editor_at_a_terminal(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    editor.chmod(0o755)
    with chat_program(tmp_path, VISUAL=str(editor)) as at:
        at.type("draft")
        at.shows("› draft")
        at.type("\x13")
        at.shows("› draft and more")
        at.type("!")
        at.shows("› draft and more!")


async def looking_back(pilot: Any, app: Any) -> Any:
    """A draft that was put aside while an older prompt is looked at."""
    composer = await ready(pilot, app)
    app.prompts.add("older")
    await pilot.press(*"draft", "up")
    assert composer.text == "older"
    return composer


@pytest.mark.parametrize("key", ["backspace", "ctrl+w", "alt+enter"])
async def test_an_older_prompt_that_is_edited_by_any_key_is_a_draft(tmp_path: Path, key: str) -> None:
    app = chat_app(tmp_path, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        composer = await looking_back(pilot, app)
        await pilot.press(key)
        edited = composer.text
        assert app.prompts.entries == ["older", "draft"]
        if edited:
            await settled(pilot, lambda: kept(tmp_path) == [[["text", edited, "", 0]]])
        await pilot.press("down")
        assert composer.text == edited
    app.drafts.close()


async def test_an_older_prompt_from_the_editor_is_a_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def edited(app: Any, text: str, suffix: str) -> str | None:
        return f"{text} and more"

    monkeypatch.setattr("sandbox_chat.ui.outside.open_in_editor", edited)
    app = chat_app(tmp_path, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        composer = await looking_back(pilot, app)
        await pilot.press("ctrl+s")
        await settled(pilot, lambda: kept(tmp_path) == [[["text", "older and more", "", 0]]])
        await pilot.press("down")
        assert composer.text == "older and more"
        assert app.prompts.entries == ["older", "draft"]
    app.drafts.close()


async def test_a_search_that_begins_at_an_older_prompt_loses_no_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await looking_back(pilot, app)
        await pilot.press("ctrl+r", "o", "backspace", "escape")
        assert composer.text == "older"
        await pilot.press("down")
        assert composer.text == "draft"
        await pilot.press("up", "ctrl+r", *"old", "enter")
        assert composer.text == "older"
        assert app.prompts.entries == ["older", "draft"]
    app.drafts.close()


async def test_a_search_at_once_after_typing_keeps_the_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path, draft_delay=60.0)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"draft", "ctrl+r", "x")
        await settled(pilot, lambda: kept(tmp_path) == [[["text", "draft", "", 0]]])
    app.drafts.close()


async def test_quitting_while_an_older_prompt_is_looked_at_loses_no_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await looking_back(pilot, app)
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.drafts.close()
    assert app.prompts.entries == ["older", "draft"]


@pytest.mark.parametrize("why", ["too long", "unwritable"])
def test_what_the_history_cannot_keep_is_offered_again_after_quitting(tmp_path: Path, why: str) -> None:
    text = "word " * 30_000 if why == "too long" else "word"
    if why == "unwritable":
        (tmp_path / "data/history").mkdir(parents=True)
    with chat_program(tmp_path) as at:
        keys = f"\x1b[200~{text}\x1b[201~"
        for place in range(0, len(keys), 3000):  # a terminal's buffer holds no more
            at.type(keys[place : place + 3000])
        at.shows("word" if why == "unwritable" else "pasted text")
        at.wait(lambda: kept(tmp_path) and "".join(part[1] for part in kept(tmp_path)[0]) == text)
        at.type("\x11")
        assert at.ends() == 0
    with chat_program(tmp_path) as at:
        at.shows("The prompt that was not sent in the last run is back.")
