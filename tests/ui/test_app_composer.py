"""The composer: sending, newlines, pastes, history, growth."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled
from textual import events

from sandbox_chat.ui.widgets import key_paste


async def ready(pilot: Any, app: Any) -> Any:
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    return app.chat_screen.composer


def burst(app: Any, text: str) -> None:
    """Deliver ``text`` as keys that come at once: a paste in a terminal without bracketed paste."""
    for character in text:
        key = {"\r": "enter", "\n": "ctrl+j", " ": "space"}.get(character, character)
        event = events.Key(key, character)
        event.set_sender(app)
        app._driver.send_message(event)


@pytest.mark.parametrize("key", ["alt+enter", "shift+enter", "ctrl+j"])
async def test_newline_keys(tmp_path: Path, key: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("a", key, "b")
        assert composer.text == "a\nb"
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["a\nb"])


@pytest.mark.parametrize("newline", ["\r", "\n"])
@pytest.mark.parametrize("end", ["", "last"])
async def test_an_unbracketed_paste_never_sends(tmp_path: Path, newline: str, end: str) -> None:  # case T7
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        burst(app, newline.join(["one", "two", "three", end]))
        await pilot.pause(0.2)
        assert composer.text == "one\ntwo\nthree\n" + end
        assert made[0].prompts == []
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["\n".join(["one", "two", "three", end]).strip()])


@pytest.mark.parametrize("cut", ["first line\r|second", "first line|\rsecond", "a\rb|\rc"])
@pytest.mark.parametrize("pause", [0.03, 0.12])
async def test_a_busy_machine_may_deliver_such_a_paste_in_pieces(
    tmp_path: Path, cut: str, pause: float
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    pieces = [piece if number % 2 else "x" * 80 + piece for number, piece in enumerate(cut.split("|"))]
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        for piece in pieces:
            burst(app, piece)
            await pilot.pause(pause)
        await pilot.pause(0.5)
        assert composer.text == "".join(pieces).replace("\r", "\n")
        assert made[0].prompts == []
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)


async def test_a_short_paste_that_ends_a_line_and_then_goes_on_is_not_sent(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        burst(app, "one\r")
        await pilot.pause(0.1)
        burst(app, "two")
        await pilot.pause(0.5)
        assert composer.text == "one\ntwo"
        assert made[0].prompts == []


async def test_each_enter_of_such_a_paste_waits_its_whole_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_paste, "QUICK_SEND_DELAY", 1.5)  # so that a busy machine cannot be too late
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        for piece in ("one\r", "two\r", "three"):
            burst(app, piece)
            await asyncio.sleep(1.0)
        await pilot.pause(1.0)
        assert composer.text == "one\ntwo\nthree"
        assert made[0].prompts == []


async def test_a_bracketed_paste_never_sends_and_is_cleaned(tmp_path: Path) -> None:  # cases T4, T7
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.post_message(events.Paste("one\r\ntwo\rthree\x1b]52;c;eA==\x07\u202e"))
        await settled(pilot, lambda: composer.text)
        assert composer.text == "one\ntwo\nthree␛]52;c;eA==␇<U+202E>"
        await pilot.pause(0.1)
        assert made[0].prompts == []


async def test_one_line_and_enter_in_one_go_is_sent(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        burst(app, "hello\r")
        await settled(pilot, lambda: made[0].prompts == ["hello"])


async def test_a_paste_elsewhere_goes_into_the_composer(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.chat_screen.tool_pane.query_one("#tool-list").focus()
        await pilot.pause()
        app.screen.post_message(events.Paste("pasted"))
        await settled(pilot, lambda: composer.text == "pasted")
        assert app.focused is composer


async def test_history_by_up_and_down_keeps_the_draft(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
            await settled(pilot, lambda text=text: made[0].prompts[-1:] == [text])
            made[0].finish()
            await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"draft", "up")
        assert composer.text == "two"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("down", "down")
        assert composer.text == "draft"
        await pilot.press("down")
        assert composer.text == "draft"


async def test_up_in_a_long_text_moves_the_cursor(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.prompts.add("older")
        await pilot.press(*"a", "alt+enter", *"b", "up")
        assert composer.text == "a\nb"
        await pilot.press("up")
        assert composer.text == "older"


async def test_the_history_is_there_in_the_next_run(tmp_path: Path) -> None:
    for run in range(2):
        app = chat_app(tmp_path)
        async with app.run_test(size=WIDE) as pilot:
            composer = await ready(pilot, app)
            if run == 0:
                await pilot.press(*"first", "enter")
                await settled(pilot, lambda app=app: app.chat.state.turns)
            else:
                await settled(pilot, lambda app=app: app.prompts.entries)
                await pilot.press("up")
                assert composer.text == "first"
        app.prompts.close()


async def test_it_grows_to_eight_rows(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        assert composer.size.height == 1
        composer.insert_text("a\nb\nc")
        await settled(pilot, lambda: composer.size.height == 3)
        composer.insert_text("\n" * 15)
        await settled(pilot, lambda: composer.size.height == 8)


async def test_ctrl_c_clears_into_the_history_and_twice_quits(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press(*"draft", "ctrl+c")
        assert composer.text == ""
        assert app.prompts.entries == ["draft"]
        await pilot.press("ctrl+c")
        await settled(pilot, lambda: "^C once more quits" in screen_text(app))
        assert not made[0].closes
        await pilot.press("ctrl+c")
        await settled(pilot, lambda: made[0].closes == 1)
    assert app.return_code == 0


async def test_page_keys_scroll_the_transcript(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("pageup", "pagedown")
        assert app.focused is composer


async def test_wide_characters_and_long_paste(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        composer.insert_text("你好 한글 👩‍👩‍👧 " * 120)
        await pilot.pause()
        assert "你好 한글" in screen_text(app)
        assert composer.size.height == 8


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("你好　世界", "你好　世界"),
        ("10\xa0km x", "10\xa0km x"),
        ("👨‍👩‍👧!", "👨‍👩‍👧!"),
        ("❤️‍🔥", "❤️‍🔥"),
        ("می‌خواهم", "می‌خواهم"),
        ("x\u200db\u202ec\u200f", "x<U+200D>b<U+202E>c<U+200F>"),
        ("🫩", "🫩"),
    ],
    ids=["wide space", "spaces", "family", "heart", "joiner", "hidden", "newer than the tables"],
)
@pytest.mark.parametrize("focus", ["composer", "tool-list"])
async def test_what_is_typed_arrives_to_the_letter(  # cases T4, T17
    tmp_path: Path, typed: str, written: str, focus: str
) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        app.chat_screen.query_one(f"#{focus}").focus()
        await pilot.pause()
        for character in typed:
            event = events.Key(character, character)
            event.set_sender(app)
            app._driver.send_message(event)
            await pilot.pause(0.02)
        assert composer.text == written


async def test_keys_that_only_do_something_write_nothing(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        composer = await ready(pilot, app)
        await pilot.press("ctrl+g", "delete", "f12", "ctrl+at", "ctrl+underscore", "tab")
        assert composer.text == ""
