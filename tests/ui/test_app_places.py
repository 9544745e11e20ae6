"""Where the view stands and where keys go: following through changes of size, typing while a pane is in use."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screen import (
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
)
from textual.app import App, ComposeResult

from sandbox_chat import events as ev
from sandbox_chat.ui.themes import themes
from sandbox_chat.ui.widgets.hint import DEMO_EXAMPLES
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.tool_list import ToolList

LONG = ev.Text(text="\n\n".join(f"paragraph {number}" for number in range(100)))


async def test_sending_a_prompt_of_several_lines_keeps_following(tmp_path: Path) -> None:
    """The composer shrinks, the transcript grows: Textual moves the view then, and it is no wish of the user."""
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        view = app.chat_screen.transcript
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(LONG)
        await settled(pilot, lambda: view.virtual_size.height > 100)
        await pilot.press(*"a", "alt+enter", *"b", "alt+enter", *"c", "enter")
        await settled(pilot, lambda: app.chat.waiting)
        assert view.following
        made[0].finish()  # the waiting row goes
        await settled(pilot, lambda: len(made[0].prompts) == 2)
        made[0].emit(LONG)
        await settled(pilot, lambda: view.virtual_size.height > 300)
        assert view.following
        assert not view.unseen_lines


async def test_a_scrolled_view_holds_still_when_it_grows(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        view = app.chat_screen.transcript
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(LONG)
        await settled(pilot, lambda: view.virtual_size.height > 100)
        await pilot.press("pageup")
        before = view.render_line(0).text
        assert not view.following
        await pilot.resize_terminal(WIDE[0], WIDE[1] + 5)
        await settled(pilot, lambda: view.size.height > WIDE[1])
        assert view.render_line(0).text == before
        assert not view.following


@pytest.mark.parametrize("presses", [1, 2, 3])
async def test_what_is_typed_in_a_pane_goes_into_the_prompt(tmp_path: Path, presses: int) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(tool_started(), tool_finished())
        made[0].finish()
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*["f6"] * presses)
        assert app.focused is not app.chat_screen.composer
        await pilot.press(*"What", "space", "é", "enter")
        await settled(pilot, lambda: len(made[0].prompts) == 2)
        assert made[0].prompts[1] == "What é"


async def test_the_arrows_choose_the_view_of_a_call(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        pane = app.chat_screen.tool_pane
        pane.query_one(ToolList).focus()
        await pilot.press("right")  # no call yet: nothing happens
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(tool_started(), tool_finished())
        await settled(pilot, lambda: pane.call is not None)
        pane.query_one(ToolList).focus()
        await pilot.press("right")
        assert pane.view == "output"
        await pilot.press("left", "left")
        assert pane.view == "raw"


async def test_an_example_that_is_clicked_comes_into_the_prompt(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        rows = screen_text(app).split("\n")
        row = next(y for y, text in enumerate(rows) if DEMO_EXAMPLES[1] in text)
        await pilot.click(offset=(rows[row].index(DEMO_EXAMPLES[1]) + 3, row))
        await settled(pilot, lambda: app.chat_screen.composer.text)
        assert app.chat_screen.composer.text == DEMO_EXAMPLES[1]
        assert not made[0].prompts  # it is the user who sends


async def test_dragging_the_line_between_the_panes_selects_no_text(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        splitter = app.chat_screen.query_one("#splitter")
        x, y = splitter.region.x, splitter.region.y + 5
        await pilot.mouse_down(offset=(x, y))
        await pilot.hover(offset=(x - 20, y + 3))
        await pilot.mouse_up(offset=(x - 20, y + 3))
        await settled(pilot, lambda: splitter.region.x < x)
        assert not app.screen.selections


@pytest.mark.parametrize("width", [28, 31, 60])
async def test_all_tabs_are_seen_also_where_there_is_little_room(width: int) -> None:
    class TabApp(App[None]):
        def __init__(self) -> None:
            super().__init__()
            for theme in themes():
                self.register_theme(theme)
            self.theme = themes()[0].name

        def compose(self) -> ComposeResult:
            yield TabRow([("code", "code"), ("output", "output"), ("image", "images 5"), ("raw", "raw")])

    async with TabApp().run_test(size=(width, 5)) as pilot:
        await pilot.pause()
        words = pilot.app.query_one(TabRow).render().plain.split()
        assert [word for word in words if word != "│"] == ["code", "output", "images", "5", "raw"]
        assert ("│" in words) == (width > 32)


async def test_two_ctrl_c_with_something_between_do_not_leave(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        for between in (["x", "enter"], ["escape"], ["f6", "escape"]):
            await pilot.press("ctrl+c")
            await settled(pilot, lambda: "^C once more quits" in screen_text(app))
            await pilot.press(*between)
            await settled(pilot, lambda: not app.chat_screen.composer.text)
        await pilot.press("ctrl+c")
        await pilot.pause(0.1)
        assert not made[0].closes
        await pilot.press("ctrl+c")
        await settled(pilot, lambda: made[0].closes == 1)


async def test_the_state_is_said_in_full_before_keys_are(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=lambda engine: setattr(engine, "ready", False))
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "connecting")
        await pilot.press(*"early", "enter")
        await settled(pilot, lambda: made[0].prompts)
        await settled(pilot, lambda: "connecting, the prompt waits" in screen_text(app))


async def test_no_size_of_the_terminal_ends_the_program(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(LONG, tool_started(), tool_finished())
        for over in ((), ("f1",), ("ctrl+p",), ("f4",)):
            await pilot.press(*over)
            for size in ((1, 1), (2, 2), (5, 3), (400, 2), (3, 60), (300, 100), (80, 24)):
                await pilot.resize_terminal(*size)
            await pilot.press("escape")
        await pilot.resize_terminal(*WIDE)
        await settled(pilot, lambda: "paragraph" in screen_text(app))
        assert app.is_running
