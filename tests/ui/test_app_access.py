"""Languages, signs, colours and keys of one's own, in the running interface."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from support.program import environment
from support.screen import (
    NARROW,
    START,
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
)
from support.terminal import terminal
from textual.widgets import Input

from sandbox_chat import events as ev
from sandbox_chat import words
from sandbox_chat.ui import actions, glyphs
from sandbox_chat.ui.screens.help import HelpScreen
from sandbox_chat.ui.themes import ORDER

Compare = Callable[..., bool]

ANSWER = "A **table** and `code`:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n\n> said\n"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    words.use("en")
    glyphs.use("unicode")
    actions.use_keys({})


async def idle(pilot: Any) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle")


def talk(made: list[PlayedEngine]) -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        await idle(pilot)
        pilot.app.chat.submit("draw it")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            ev.Text(text=ANSWER),
            tool_started(),
            tool_finished(),
            tool_started("u2", code="1/0"),
            tool_finished("u2", ev.TextContent("Traceback\nZeroDivisionError: no"), is_error=True),
        )
        made[0].finish()
        await idle(pilot)
        await pilot.pause(0.3)

    return before


# -- keys --------------------------------------------------------------------------------------------------


async def test_keys_of_ones_own_work_and_the_old_ones_do_not(tmp_path: Path) -> None:
    app = chat_app(tmp_path, keys={"chat.tools": ("ctrl+b",), "app.theme": ()})
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        plan = app.chat_screen.arrangement
        await pilot.press("f2")
        assert plan.tools
        await pilot.press("ctrl+b")
        assert not plan.tools
        theme = app.theme
        await pilot.press("f9")
        assert app.theme == theme
        assert "^B tools" in screen_text(app)


async def test_the_palette_has_a_key_of_ones_own_too(tmp_path: Path) -> None:
    app = chat_app(tmp_path, keys={"app.palette": ("f12",)})
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press("ctrl+p")
        assert app.screen is app.chat_screen
        await pilot.press("f12")
        await settled(pilot, lambda: app.screen is not app.chat_screen)


async def test_help_shows_the_keys_that_are_in_force(tmp_path: Path) -> None:
    app = chat_app(tmp_path, keys={"chat.tools": ("ctrl+b", "alt+t"), "chat.cost": ()})
    async with app.run_test(size=(120, 60)) as pilot:
        await idle(pilot)
        await pilot.press("f1")
        await settled(pilot, lambda: isinstance(app.screen, HelpScreen))
        text = screen_text(app)
        assert re.search(r"\^B, alt\+t +Show or hide the tools", text)
        assert "Show or hide the cost" not in text


async def test_a_key_given_to_another_action_means_only_that(tmp_path: Path) -> None:
    app = chat_app(tmp_path, keys={"chat.tools": ("f3",)})
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press("f3")
        plan = app.chat_screen.arrangement
        assert (plan.tools, plan.cost) == (False, True)


async def test_without_a_key_an_action_is_still_in_the_palette(tmp_path: Path) -> None:
    app = chat_app(tmp_path, keys={"chat.tools": ()})
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press("ctrl+p")
        await settled(pilot, lambda: app.screen is not app.chat_screen)
        app.screen.query_one(Input).value = "Show or hide the tools"
        await settled(pilot, lambda: app.screen.query_one("CommandList").option_count == 1)
        await pilot.pause(0.2)
        await pilot.press("enter")
        await settled(pilot, lambda: not app.chat_screen.arrangement.tools)


# -- colours -----------------------------------------------------------------------------------------------


async def test_the_themes_are_gone_through_while_text_streams(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        app.chat.submit("go")
        await settled(pilot, lambda: made[0].prompts)
        seen = []
        for number in range(len(ORDER)):
            made[0].emit(ev.TextDelta(text=f"part {number}\n\n"))
            await pilot.press("f9")
            await pilot.pause(0.1)
            seen.append(app.theme)
            text = screen_text(app)
            assert all(f"part {each}" in text for each in range(number + 1))
        assert sorted(seen) == sorted(ORDER)


COLOUR = re.compile(rb"\x1b\[(?:[\d;:]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:[;:\d]*)m")


def test_no_color_means_none_at_all(tmp_path: Path) -> None:
    env = environment(tmp_path, {"NO_COLOR": "", "SANDBOX_CHAT_SANDBOX": "off", "COLORTERM": "truecolor"})
    with terminal([sys.executable, "-m", "sandbox_chat", "--demo"], env=env) as shown:
        shown.shows("This is the demo.")
        shown.shows("idle")
        shown.type("help\r")
        shown.wait(lambda: "no cost (demo)" in shown.text() or "tokens" in shown.text())
        shown.shows("idle")
        shown.type("\x1bOP")
        shown.shows("Interrupt, or back to the prompt")
        shown.type("\x1b")
        shown.type("\x11")
        shown.ends()
        assert COLOUR.search(shown.written()) is None
        assert b"\x1b[1m" in shown.written() or b"\x1b[1;" in shown.written()


def test_the_search_for_colours_finds_them() -> None:
    for found in (b"\x1b[31m", b"\x1b[1;38;2;1;2;3m", b"\x1b[97;100m", b"\x1b[4;48;5;1m"):
        assert COLOUR.search(found), found
    for none in (b"\x1b[1m", b"\x1b[0m", b"\x1b[39;49m", b"\x1b[1;4;7m", b"\x1b[31;4H"):
        assert COLOUR.search(none) is None, none


# -- signs and languages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_with_ascii_signs_all_that_is_the_programs_own_is_ascii(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, glyphs="ascii", demo=False, model="m", reduced_motion=False)
    async with app.run_test(size=size) as pilot:
        await idle(pilot)
        assert screen_text(app).isascii(), set(re.findall(r"[^\x00-\x7f]", screen_text(app)))
        await talk(made)(pilot)
        assert screen_text(app).isascii(), set(re.findall(r"[^\x00-\x7f]", screen_text(app)))
        await pilot.press("f1")
        await pilot.pause(0.2)
        assert screen_text(app).isascii(), set(re.findall(r"[^\x00-\x7f]", screen_text(app)))


@pytest.mark.parametrize("width", [20, 33, 41, 60, 80, 101, 140])
async def test_chinese_is_never_cut_inside_a_character(tmp_path: Path, width: int) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language="zh", demo=False, model="claude-sonnet-5")
    async with app.run_test(size=(width, 24)) as pilot:
        await talk(made)(pilot)
        for line in screen_text(app).split("\n"):
            assert cell_len(line) <= width
        for strip in app.screen._compositor.render_strips():
            assert strip.cell_length == width


async def test_the_language_is_that_of_the_settings(tmp_path: Path) -> None:
    app = chat_app(tmp_path, language="zh")
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        text = screen_text(app).replace(" ", "")
        for shown in ("这是演示。", "演示，没有模型", "空闲", "费用", "发送"):
            assert shown in text, shown


def test_auto_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(os.environ, "LANG", "zh_CN.UTF-8")
    chat_app(tmp_path, language="auto")
    assert words.language() == "zh"
    monkeypatch.setitem(os.environ, "LANG", "en_GB.UTF-8")
    chat_app(tmp_path, language="auto")
    assert words.language() == "en"


# -- how it looks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["contrast", "terminal"])
def test_theme(tmp_path: Path, snap_compare: Compare, theme: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, theme=theme, demo=False, model="claude-sonnet-5")
    assert snap_compare(app, terminal_size=WIDE, run_before=talk(made))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_chinese(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language="zh", demo=False, model="claude-sonnet-5")
    assert snap_compare(app, terminal_size=size, run_before=talk(made))


@pytest.mark.parametrize("signs", ["unicode", "ascii"])
async def test_the_columns_of_the_help_are_in_line(tmp_path: Path, signs: str) -> None:
    """Keys written in words are wider than their signs."""
    app = chat_app(tmp_path, glyphs=signs)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press("f1")
        await settled(pilot, lambda: isinstance(app.screen, HelpScreen))
        rows = [line for line in app.screen.content().plain.splitlines() if line.startswith("  ")]
        ends = [row[2:].partition("  ")[2].lstrip() for row in rows]
        assert len({len(row) - len(end) for row, end in zip(rows, ends, strict=True) if end}) == 1


def test_chinese_help(tmp_path: Path, snap_compare: Compare) -> None:
    async def before(pilot: Any) -> None:
        await idle(pilot)
        await pilot.press("f1")
        await pilot.pause(0.3)

    assert snap_compare(chat_app(tmp_path, language="zh"), terminal_size=(100, 50), run_before=before)


def test_chinese_welcome(tmp_path: Path, snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", "/home/user/.config/sandbox-chat")

    async def before(pilot: Any) -> None:
        await settled(pilot, lambda: pilot.app.screen is not pilot.app.chat_screen)

    app = chat_app(tmp_path, ask=True, language="zh")
    assert snap_compare(app, terminal_size=NARROW, run_before=before)


def test_ascii_signs(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, glyphs="ascii")
    assert snap_compare(app, terminal_size=WIDE, run_before=talk(made))


async def test_no_cursor_blinks(tmp_path: Path) -> None:
    app = chat_app(tmp_path, reduced_motion=False)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        assert not app.chat_screen.composer.cursor_blink
        await pilot.press("ctrl+p")
        await settled(pilot, lambda: isinstance(app.focused, Input))
        assert not app.focused.cursor_blink


async def test_the_welcome_screen_is_ascii_too(tmp_path: Path) -> None:
    app = chat_app(tmp_path, ask=True, glyphs="ascii")
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.screen is not app.chat_screen)
        for key in ("2", "escape", "3", "escape", "4"):
            await pilot.press(key)
            await pilot.pause(0.1)
            assert screen_text(app).isascii(), set(re.findall(r"[^\x00-\x7f]", screen_text(app)))


def test_asking_in_the_terminals_own_colours(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []

    async def before(pilot: Any) -> None:
        await idle(pilot)
        pilot.app.chat.submit("save it")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            ev.ApprovalRequested(
                at=START,
                approval_id="a1",
                kind="overwrite",
                question="plot.png exists already. Replace it?",
                detail="/home/user/downloads/plot.png",
                choices=(ev.Choice("replace", "r", "replace it"), ev.Choice("no", "n", "do not save")),
                default="no",
            )
        )
        await settled(pilot, lambda: pilot.app.focused is pilot.app.chat_screen.query_one("#ask"))
        await pilot.pause(0.3)

    assert snap_compare(
        chat_app(tmp_path, made, theme="terminal"), terminal_size=(100, 24), run_before=before
    )
