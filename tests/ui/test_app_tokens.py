"""Long pastes and large drafts in the composer: tokens act as one character, and the keys stay quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled
from textual import events
from textual.geometry import Offset

LONG = "\n".join(f"line {number}" for number in range(312))
LABEL = "[pasted text #1 · 312 lines]"


async def ready(pilot: Any, app: Any) -> Any:
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    return app.chat_screen.composer


async def test_a_long_paste_is_one_token_and_is_sent_whole(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press(*"look ")
        composer.post_message(events.Paste(LONG))
        await settled(pilot, lambda: LABEL in screen_text(app))
        assert composer.size.height == 1
        await pilot.press(*" ok", "enter")
        await settled(pilot, lambda: made[0].prompts == [f"look {LONG} ok"])
        assert app.prompts.entries == [f"look {LONG} ok"]
        assert len(composer.tokens) == 0


async def test_a_token_acts_as_one_character(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("a")
        composer.insert_text(LONG)
        await pilot.press("b", "left", "left", "x")
        assert composer.text == f"ax{LONG}b"
        await pilot.press("right", "y")
        assert composer.text == f"ax{LONG}yb"
        await pilot.press("backspace", "backspace")
        assert composer.text == "axb"
        await pilot.press("ctrl+z")
        assert composer.text == f"ax{LONG}yb"
        for keys in (("end", "left", "ctrl+left"), ("home", "ctrl+right")):
            await pilot.press(*keys, "shift+right")
            assert composer.selected_text in (LONG, "y", "x", "ax")
        await pilot.press("home", "right", "right", "delete")
        assert composer.text == "axyb"


async def test_no_way_of_moving_or_deleting_breaks_a_token(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=(40, 24)) as pilot:
        composer = await ready(pilot, app)
        moves = [
            "left",
            "right",
            "up",
            "down",
            "home",
            "end",
            "ctrl+left",
            "ctrl+right",
            "shift+left",
            "shift+up",
        ]
        cuts = ["backspace", "delete", "ctrl+w", "alt+delete", "ctrl+u", "ctrl+k", "ctrl+x"]
        for number, cut in enumerate(cuts * 3):
            composer.load_parts([])
            composer.insert_text("several words before it, ")
            composer.insert_text(LONG)
            composer.insert_text(" between ")
            composer.insert_text("y\n" * 40)
            await pilot.press(*(moves[(number + step * 3) % len(moves)] for step in range(9)), cut)
            document = composer.document_text
            assert document.count("\ufdd0") == document.count("\ufdd1") <= 2
            assert composer.text.count("line 7\n") in (0, 1)
            assert "pasted text" not in composer.text


async def test_copying_and_cutting_gives_the_text_and_not_the_token(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text(LONG)
        await pilot.press("shift+left", "ctrl+c")
        assert app.clipboard == LONG
        await pilot.press("ctrl+x")
        assert composer.text == ""
        await pilot.press("ctrl+v")
        assert composer.text == LONG
        assert LABEL.replace("#1", "#2") in screen_text(app)


@pytest.mark.parametrize("way", ["tab", "click"])
async def test_a_key_or_a_click_writes_it_out_in_its_place(tmp_path: Path, way: str) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("a")
        composer.insert_text("x\n" * 30)
        await settled(pilot, lambda: "writes the pasted text out" in screen_text(app))
        if way == "tab":
            await pilot.press("tab")
        else:
            await pilot.click(composer, offset=Offset(5, 0))
        await settled(pilot, lambda: composer.size.height == 8)
        assert composer.document_text == composer.text == "a" + "x\n" * 30
        await pilot.press("ctrl+z")
        assert composer.text == "a" + "x\n" * 30
        assert composer.document_text != composer.text


async def test_tab_elsewhere_goes_on_to_the_next_pane(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("a", "tab")
        assert app.focused is not composer


async def test_what_would_make_the_keys_slow_is_never_written_out(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text("word " * 20_000)
        await pilot.press("tab")
        await settled(pilot, lambda: "too long to be edited here: ^S" in screen_text(app))
        assert composer.text == "word " * 20_000
        assert len(composer.document_text) < 100


@pytest.mark.parametrize(
    "given",
    ["x" * 1_000_000, "word " * 20_000, "l\n" * 5_000, "y" * 5_000],
    ids=["huge", "words", "lines", "line"],
)
async def test_large_texts_come_from_everywhere_as_a_token(tmp_path: Path, given: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, paste_fold_lines=0, paste_fold_chars=0)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text(given)
        assert len(composer.document_text) < 100
        assert composer.text == given
        composer.text = ""
        assert composer.offer(given)
        assert len(composer.document_text) < 100
        composer.text = ""
        app.prompts.add(given)
        await pilot.press("up")
        assert len(composer.document_text) < 100
        await pilot.press("a")
        assert composer.text == given.strip("\n") + "a"


async def test_many_short_pastes_do_not_add_up_to_a_slow_draft(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        for _ in range(40):
            composer.insert_text("z" * 1_900)
        assert len(composer.text) == 40 * 1_900
        assert len(composer.document_text) < 6_000


@pytest.mark.parametrize("text", [LONG, "x" * 3_000], ids=["lines", "characters"])
async def test_a_long_paste_without_brackets_is_a_token_too(tmp_path: Path, text: str) -> None:  # case T7
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("a")
        await pilot.pause(0.05)
        for character in text:
            event = events.Key({"\n": "ctrl+j", " ": "space"}.get(character, character), character)
            event.set_sender(app)
            app._driver.send_message(event)
        await settled(pilot, lambda: len(composer.draft) == len(text) + 1 and not composer._held)
        assert composer.text == "a" + text
        assert len(composer.document_text) < len(text) // 2
        await pilot.press("b")
        assert composer.text == "a" + text + "b"
        assert made[0].prompts == []


async def test_a_typed_token_is_text(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text(LONG)
        composer.insert_text(LABEL + "\ufdd0x\ufdd1")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == [f"{LONG}{LABEL}<U+FDD0>x<U+FDD1>"])


async def test_an_older_prompt_does_not_cost_the_draft_its_tokens(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.prompts.add("older")
        composer.insert_text(LONG)
        await pilot.press("up")
        assert composer.text == "older"
        await pilot.press("down")
        assert composer.text == LONG
        assert LABEL in screen_text(app)
        await pilot.press("up", "x")
        assert composer.text == "olderx"
        assert app.prompts.entries == ["older", LONG]


async def test_the_mouse_places_the_caret_and_selects(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text("你好 one two")
        await pilot.click(composer, offset=Offset(4, 0))
        assert composer.cursor_location == (0, 2)
        await pilot.mouse_down(composer, offset=Offset(5, 0))
        await pilot.hover(composer, offset=Offset(8, 0))
        await pilot.mouse_up(composer, offset=Offset(8, 0))
        assert composer.selected_text == "one"
