"""The list above the composer: commands after a stroke, files after an at sign, prompts of the history."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled
from textual import events
from textual.geometry import Offset

from sandbox_chat.ui.screens.help import HelpScreen
from sandbox_chat.ui.slash import commands
from sandbox_chat.ui.widgets.pick_list import PickList


async def ready(pilot: Any, app: Any) -> Any:
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    return app.chat_screen.composer


def listed(app: Any) -> list[str]:
    """What the list offers; empty while it is closed."""
    picks = app.chat_screen.query_one(PickList)
    return [pick.text for pick in picks.picks] if picks.display else []


async def slowly(pilot: Any, keys: str) -> None:
    """Type as a person does."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause(0.015)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few files."""
    folder = tmp_path / "work"
    for path in ("data/sales.csv", "data/my notes.md", "main.py", ".secret", "deep/er/mail.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x" * 1234)
    monkeypatch.chdir(folder)
    return folder


# -- commands ------------------------------------------------------------------------------------------------


async def test_a_stroke_lists_commands_and_enter_runs_the_chosen_one(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "/")
        assert {"/help", "/model [NAME]", "/attach FILE [PATH]"} <= set(listed(app))
        assert "Attach a file" in screen_text(app)
        await slowly(pilot, "he")
        assert listed(app) == ["/help"]
        await pilot.press("enter")
        await settled(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert composer.text == ""
        assert made[0].prompts == app.prompts.entries == []


@pytest.mark.parametrize("word", [item.word for item in commands() if item.word not in ("attach", "steer")])
async def test_every_command_does_something_and_fails_nowhere(tmp_path: Path, word: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.write_command(f"/{word}")
        await pilot.press("escape", "enter")
        await pilot.pause(0.2)
        assert made[0].prompts == []
        assert composer.text == ""
        assert app.failure is None


async def test_tab_completes_and_escape_closes_only_the_list(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, model="m")
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "/mo")
        await pilot.press("escape")
        assert listed(app) == []
        assert composer.text == "/mo"
        assert made[0].interrupts == 0
        await slowly(pilot, "d")
        await pilot.press("tab")
        assert composer.text == "/model "
        assert app.focused is composer
        await slowly(pilot, "other")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].chosen_models == ["other"])


async def test_arrows_go_round_and_a_click_takes(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "/")
        words = listed(app)
        picks = app.chat_screen.query_one(PickList)
        await pilot.press("up")
        assert picks.chosen == len(words) - 1
        await pilot.press("down", "down")
        assert picks.chosen == 1
        await pilot.press("pagedown")
        assert picks.chosen == 9
        assert composer.text == "/"
        await pilot.press("pageup", "pageup")
        await settled(pilot, lambda: picks.size.height == 9)
        await pilot.click(picks, offset=Offset(3, 2))
        await settled(pilot, lambda: composer.text == "/attach ")
        assert app.focused is composer


async def test_a_typed_command_runs_without_the_list(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await slowly(pilot, "/theme ")
        assert listed(app) == []
        before = app.theme
        await pilot.press("enter")
        await settled(pilot, lambda: app.theme != before)


@pytest.mark.parametrize("text", ["/clear", "/help", "/quit", "/model x", "//help", "@/etc/passwd", "!ls"])
async def test_a6_pasted_commands_are_sent_to_the_letter(tmp_path: Path, text: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.post_message(events.Paste(text))
        await settled(pilot, lambda: composer.text == text)
        assert listed(app) == []
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == [text])
        assert made[0].attached == []


@pytest.mark.parametrize("text", ["/help", "/quit"])
async def test_a_command_pasted_without_brackets_is_a_prompt_too(tmp_path: Path, text: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        for character in text + "\r":
            event = events.Key({"\r": "enter", "/": "slash"}.get(character, character), character)
            event.set_sender(app)
            app._driver.send_message(event)
        await settled(pilot, lambda: made[0].prompts == [text])


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("/nonsense", "/nonsense"),
        ("//help", "/help"),
        ("//nonsense", "//nonsense"),
        ("/help me", "/help me"),
        (" /help", "/help"),
        ("@/etc/passwd", "@/etc/passwd"),
    ],
)
async def test_what_is_no_command_is_a_prompt(tmp_path: Path, typed: str, sent: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, typed)
        await pilot.press("escape", "enter")
        await settled(pilot, lambda: made[0].prompts == [sent])
        assert made[0].attached == []
        assert composer.text == ""


async def test_a_recalled_prompt_is_no_command(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        app.prompts.add("/quit")
        await pilot.press("up", "enter")
        await settled(pilot, lambda: made[0].prompts == ["/quit"])


AWAY_AND_BACK = [("up", "down"), ("ctrl+r", "escape"), ("ctrl+u", "ctrl+z"), ("home", "delete", "slash")]


@pytest.mark.parametrize("keys", AWAY_AND_BACK)
async def test_a_typed_command_that_comes_back_is_still_one(tmp_path: Path, keys: tuple[str, ...]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.prompts.add("earlier")
        await slowly(pilot, "/rename mine")
        for key in keys:
            await slowly(pilot, [key])
        await settled(pilot, lambda: composer.text == "/rename mine")
        await slowly(pilot, ["enter"])
        await settled(pilot, lambda: composer.text == "")
        assert made[0].prompts == []
        assert made[0].titles == ["mine"]


@pytest.mark.parametrize("keys", AWAY_AND_BACK)
async def test_a_pasted_one_that_comes_back_is_none(tmp_path: Path, keys: tuple[str, ...]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.prompts.add("earlier")
        composer.insert_text("/quit")
        for key in keys:
            await slowly(pilot, [key])
        await settled(pilot, lambda: composer.text == "/quit")
        await slowly(pilot, ["enter"])
        await settled(pilot, lambda: made[0].prompts == ["/quit"])


async def test_a_stroke_before_what_was_typed_makes_a_command(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "rename mine")
        await slowly(pilot, ["home", "slash", "enter"])
        await settled(pilot, lambda: composer.text == "")
        assert (made[0].prompts, made[0].titles) == ([], ["mine"])


async def test_the_path_of_attach_may_be_pasted(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "/attach ")
        composer.insert_text("'/x/my file'")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].attached == [("/x/my file", "")])
        assert made[0].prompts == []


# -- files ---------------------------------------------------------------------------------------------------


async def test_a_chosen_file_is_a_token_and_goes_before_the_prompt(tmp_path: Path, tree: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "sum @")
        await settled(pilot, lambda: listed(app))
        assert listed(app) == ["main.py", "data/my notes.md", "data/sales.csv", "deep/er/mail.py"]
        await slowly(pilot, "sal")
        await settled(pilot, lambda: listed(app) == ["data/sales.csv"])
        await pilot.press("enter")
        await settled(pilot, lambda: "@data/sales.csv (1.2 kB)" in screen_text(app))
        assert made[0].prompts == []
        await slowly(pilot, "now")
        assert composer.text == "sum @data/sales.csv now"
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["sum @data/sales.csv now"])
        assert made[0].attached == [(str(tree / "data/sales.csv"), "")]
        assert app.prompts.entries == ["sum @data/sales.csv now"]


async def test_backspace_takes_a_mention_away_whole(tmp_path: Path, tree: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "a @notes")
        await settled(pilot, lambda: listed(app) == ["data/my notes.md"])
        await pilot.press("tab")
        assert composer.text == 'a @"data/my notes.md" '
        await pilot.press("backspace", "backspace")
        assert composer.text == "a "
        await slowly(pilot, "b")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["a b"])
        assert made[0].attached == []


@pytest.mark.parametrize("typed", ["mail me@main.py", "@main.py is", "a @nothing-like-it"])
async def test_what_was_not_chosen_is_text(tmp_path: Path, tree: Path, typed: str) -> None:  # case A6
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await slowly(pilot, typed)
        await pilot.pause(0.2)
        assert listed(app) == []
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == [typed])
        assert made[0].attached == []


async def test_a_pasted_at_sign_opens_no_list(tmp_path: Path, tree: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text("@mai")
        await slowly(pilot, "n")
        await pilot.pause(0.2)
        assert listed(app) == []


async def test_moving_away_closes_the_list(tmp_path: Path, tree: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await slowly(pilot, "x @ma")
        await settled(pilot, lambda: listed(app))
        await pilot.press("home")
        assert listed(app) == []
        assert composer.text == "x @ma"


async def test_hostile_names_in_the_list(tmp_path: Path, tree: Path) -> None:  # cases T3, T4
    names = ["[bold]x", "a\x1b[2J", "b\u202e", "[@click=app.quit]x[", "你好.csv"]
    for name in names:
        (tree / name).write_text("")
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff")).write_text("")
    app = chat_app(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await ready(pilot, app)
        await slowly(pilot, "@")
        await settled(pilot, lambda: "[bold]x" in screen_text(app))
        text = screen_text(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "a␛[2J" in text
        assert "[@click=app.quit]x[" in text


# -- history -------------------------------------------------------------------------------------------------


async def test_search_takes_a_prompt_and_escape_brings_the_draft_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        for prompt in ("plot a sine", "sum it up", "plot\na cosine"):
            app.prompts.add(prompt)
        await pilot.press(*"draft", "left", "ctrl+r")
        assert listed(app) == ["plot a cosine", "sum it up", "plot a sine"]
        assert composer.draft == "draft"
        await pilot.press(*"plot")
        assert listed(app) == ["plot a cosine", "plot a sine"]
        await settled(pilot, lambda: "history · 1 of 2" in screen_text(app))
        await pilot.press("ctrl+r")
        await settled(pilot, lambda: "history · 2 of 2" in screen_text(app))
        await pilot.press("escape")
        assert composer.text == composer.draft == "draft"
        assert composer.cursor_location == (0, 4)
        assert listed(app) == []
        await pilot.press("ctrl+r", *"cosine", "enter")
        assert composer.text == "plot\na cosine"
        assert made[0].prompts == []
        assert made[0].interrupts == 0


async def test_search_keeps_tokens_and_shows_when_nothing_fits(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text("x\n" * 100)
        await pilot.press("ctrl+r", "z")
        await settled(pilot, lambda: "no prompt holds these words" in screen_text(app))
        composer.insert_text("a\nb")
        assert composer.document_text == "za b"
        await pilot.press("enter")
        assert composer.text == "x\n" * 100
        assert "[pasted text #1 · 101 lines]" in screen_text(app)
        await pilot.press("ctrl+r", "ctrl+c")
        assert composer.text == "x\n" * 100


async def test_leaving_the_composer_ends_the_search_with_the_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press(*"draft", "ctrl+r", "x")
        app.chat_screen.tool_pane.query_one("#tool-list").focus()
        await settled(pilot, lambda: composer.text == "draft")
        assert listed(app) == []


async def test_quitting_while_searching_keeps_the_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"draft", "ctrl+r", "x", "ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    assert app.prompts.entries == ["draft"]
