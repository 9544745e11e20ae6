"""The application as a person uses it: prompts, keys, panes, tools; the engine is played."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screen import (
    HOSTILE,
    NARROW,
    START,
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
    turn_finished,
)
from textual.geometry import Offset

from sandbox_chat import events as ev
from sandbox_chat.ui.widgets.splitter import Splitter
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.ui.widgets.tool_list import ToolList


async def idle(pilot: object, app: object) -> None:
    await settled(pilot, lambda: app.chat.state.phase == "idle")  # type: ignore[attr-defined]


async def test_a_prompt_is_sent_and_its_answer_shown(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        assert "demo, no model" in screen_text(app)
        await pilot.press(*"plot it", "enter")
        await settled(pilot, lambda: made[0].prompts == ["plot it"])
        assert app.chat_screen.composer.text == ""
        made[0].emit(ev.Text(text="Here is the **sine**."))
        made[0].finish()
        await idle(pilot, app)
        await settled(pilot, lambda: "Here is the sine." in screen_text(app))
        assert "› plot it" in screen_text(app)


async def test_the_engine_starts_after_the_first_frame(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    assert not made
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: made and made[0].started)
        assert made[0].prestarts == 0
        await pilot.press("a", "b")
        await pilot.pause()
        assert made[0].prestarts == 1


async def test_prompts_typed_while_connecting_and_busy_are_not_lost(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=lambda engine: setattr(engine, "ready", False))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "connecting")
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts == ["one"])
        await settled(pilot, lambda: "connecting, the prompt waits" in screen_text(app))
        await pilot.press(*"two", "enter")
        await settled(pilot, lambda: "⋯ 1 two" in screen_text(app))
        made[0].emit(ev.Status(component="agent", state="ready"))
        made[0].finish()
        await settled(pilot, lambda: made[0].prompts == ["one", "two"])
        await settled(pilot, lambda: "⋯ 1 two" not in screen_text(app))


async def test_a_prompt_without_an_answer_comes_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].finish(is_error=True, error="The endpoint refused the token. Check it.")
        await settled(pilot, lambda: app.chat_screen.composer.text == "one")
        await settled(pilot, lambda: "The endpoint refused the token." in screen_text(app))


async def test_a_new_draft_is_not_overwritten_by_one_that_comes_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        await pilot.press(*"next")
        made[0].finish(is_error=True)
        await idle(pilot, app)
        assert app.chat_screen.composer.text == "next"


async def test_escape_interrupts_then_returns_to_the_prompt(tmp_path: Path) -> None:  # case T10
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(tool_started())
        await settled(pilot, lambda: app.chat.state.phase == "tool")
        await pilot.press("escape")
        await settled(pilot, lambda: made[0].interrupts == 1)
        await settled(pilot, lambda: "stopping" in screen_text(app))
        made[0].emit(tool_finished("u1", interrupted=True))
        made[0].finish(interrupted=True)
        await idle(pilot, app)
        assert "⊘" in screen_text(app)
        app.chat_screen.transcript.focus()
        await pilot.press("escape")
        await settled(pilot, lambda: app.focused is app.chat_screen.composer)
        assert made[0].interrupts == 1
        await pilot.press(*"two", "enter")
        await settled(pilot, lambda: made[0].prompts == ["one", "two"])


async def test_held_prompts_go_on_by_key(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        for text in ("one", "two", "three"):
            await pilot.press(*text, "enter")
            await pilot.pause(0.05)
        await settled(pilot, lambda: app.chat.waiting == ["two", "three"])
        made[0].finish(interrupted=True)
        await settled(pilot, lambda: "held after the interruption" in screen_text(app))
        await pilot.press("ctrl+g")
        await settled(pilot, lambda: made[0].prompts == ["one", "two"])


async def test_panes_hide_resize_and_maximise(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        screen = app.chat_screen
        side = screen.query_one("#side")
        assert side.display
        await pilot.press("f2")
        assert not screen.tool_pane.display
        await pilot.press("f3")
        assert not side.display
        await pilot.press("f2", "f3")
        assert side.display
        width = side.size.width
        await pilot.press("f8")
        await settled(pilot, lambda: side.size.width == width + 4)
        await pilot.press("f7")
        await settled(pilot, lambda: side.size.width == width)
        screen.tool_pane.query_one(ToolList).focus()
        await pilot.press("f4")
        await settled(pilot, lambda: side.size.width == WIDE[0])
        assert not screen.query_one("#chat").display
        await pilot.press("f4")
        await settled(pilot, lambda: side.size.width == width)


async def test_the_side_is_resized_by_mouse(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        splitter = app.chat_screen.query_one(Splitter)
        side = app.chat_screen.query_one("#side")
        before = side.size.width
        await pilot.mouse_down(splitter)
        await pilot.hover(splitter, offset=Offset(-10, 3))
        await pilot.mouse_up(splitter)
        await settled(pilot, lambda: side.size.width == before + 10)


async def test_narrow_tabs_by_key_and_mouse(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(tool_started(), tool_finished())
        await settled(pilot, lambda: "Chat │ Tools 1 │ Cost" in screen_text(app))
        await pilot.press("f2")
        assert app.chat_screen.arrangement.tab == "tools"
        await settled(pilot, lambda: "import numpy as np" in screen_text(app))
        tabs = app.chat_screen.query_one("#tabs", TabRow)
        await pilot.click(tabs, offset=(19, 0))
        await settled(pilot, lambda: app.chat_screen.arrangement.tab == "cost")
        assert "session" in screen_text(app)
        await pilot.click(tabs, offset=(2, 0))
        await settled(pilot, lambda: app.chat_screen.arrangement.tab == "chat")
        made[0].finish()
        await idle(pilot, app)


async def test_resizing_between_narrow_and_wide_keeps_all(tmp_path: Path) -> None:  # case T8
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=(120, 40)) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        for number in range(6):
            made[0].emit(ev.TextDelta(text=f"word{number} " * 20))
            await pilot.resize_terminal(60 if number % 2 == 0 else 120, 40)
            await pilot.pause()
        made[0].finish()
        await idle(pilot, app)
        after = screen_text(app)
        await pilot.resize_terminal(121, 40)
        await pilot.resize_terminal(120, 40)
        await settled(pilot, lambda: screen_text(app) == after)
        assert app.chat_screen.query_one("#side").display


async def test_choosing_a_call_here_chooses_it_there(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        for name in ("a", "b", "c"):
            made[0].emit(
                tool_started(name, code=f"print('{name}')"), tool_finished(name, ev.TextContent(name))
            )
        made[0].finish()
        await idle(pilot, app)
        pane = app.chat_screen.tool_pane
        assert pane.selected == "c", "the newest is followed"
        await pilot.press("ctrl+up")
        await settled(pilot, lambda: pane.selected == "b")
        selected = app.chat_screen.transcript.selected
        assert selected is not None
        assert selected.id == "b" or "b" in selected.text
        await settled(pilot, lambda: "print('b')" in pane.query_one(TextView).text)
        app.chat_screen.post_message(app.chat_screen.transcript.ToolSelected("a"))
        await settled(pilot, lambda: pane.selected == "a")
        await pilot.press("ctrl+down")
        await settled(pilot, lambda: pane.selected == "b")
        await pilot.click(pane.query_one(ToolList), offset=(5, 2))
        await settled(pilot, lambda: pane.selected == "c")


async def test_the_views_of_a_call(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            tool_started(code="print(1)\n1/0"),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text="1\n"),
            ev.ToolOutput(tool_use_id="u1", stream="stderr", text="oh\n"),
            tool_finished("u1", ev.TextContent("ZeroDivisionError"), is_error=True),
        )
        made[0].finish()
        await idle(pilot, app)
        pane = app.chat_screen.tool_pane
        text = pane.query_one(TextView)
        assert text.text == "print(1)\n1/0"
        views = pane.query_one("#tool-views", TabRow)
        views.focus()
        for wanted in ("1\noh", "ZeroDivisionError", "No picture."):
            await pilot.press("right")
            await settled(pilot, lambda wanted=wanted: text.text == wanted)
        await pilot.press("right")
        await settled(pilot, lambda: '"status": "failed"' in text.text)


async def test_a_call_that_looked_at_a_picture_shows_it(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        broken = tmp_path / "no [picture].png"
        broken.write_bytes(b"not a picture")
        made[0].emit(
            tool_started("u1", "mcp__sandbox__read_image", path="/tmp/a.png"),
            tool_finished("u1", ev.ImageContent(str(broken), "image/png", 60, 40)),
        )
        await settled(pilot, lambda: app.chat_screen.tool_pane.view == "image")
        await pilot.pause(0.3)
        made[0].finish()
        await idle(pilot, app)


async def test_unseen_lines_are_told(tmp_path: Path) -> None:  # case T9
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(ev.TextDelta(text="".join(f"line {n}\n\n" for n in range(60))))
        await settled(pilot, lambda: "line 59" in screen_text(app))
        await pilot.press("pageup")
        await settled(pilot, lambda: not app.chat_screen.transcript.following)
        held = screen_text(app).splitlines()[3]
        made[0].emit(ev.TextDelta(text="".join(f"more {n}\n\n" for n in range(20))))
        await settled(pilot, lambda: "new line" in screen_text(app))
        assert screen_text(app).splitlines()[3] == held
        await pilot.press("ctrl+end")
        await settled(pilot, lambda: "more 19" in screen_text(app))
        assert "new line" not in screen_text(app)
        made[0].finish()
        await idle(pilot, app)


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hostile_text_everywhere(tmp_path: Path, hostile: str) -> None:  # case T3
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, model=hostile)
    async with app.run_test(size=(160, 40)) as pilot:
        await idle(pilot, app)
        app.chat_screen.composer.insert_text(hostile)
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == [hostile])
        app.chat.submit(hostile)
        made[0].emit(
            ev.Status(component="sandbox", state="lost", text=hostile),
            tool_started("u1", hostile, code=hostile),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text=hostile),
            tool_finished("u1", ev.TextContent(hostile)),
            ev.Retry(at=START, reason=hostile, attempt=1, delay_ms=10),
            ev.Notice(level="error", text=hostile),
        )
        await settled(pilot, lambda: app.chat.state.phase == "retrying")
        for view in ("output", "result", "raw", "code"):
            app.chat_screen.tool_pane.show_view(view)
            await pilot.pause()
        text = screen_text(app)
        assert text.count(hostile) >= 5
        app.notify(hostile, markup=False)
        await pilot.pause()
        for prompt in app.chat.queue:
            app.chat.remove(prompt.id)
        made[0].emit(turn_finished("t1", models=(ev.ModelUse(hostile, ev.Usage(1, 1), None),)))
        await idle(pilot, app)
        assert app.is_running


async def test_a_resumed_session_shows_its_past(tmp_path: Path) -> None:
    past = [
        ev.SessionStarted(at=START, session_id="old", model="m", sandbox="local", demo=False),
        ev.TurnStarted(at=START, turn_id="a", prompt="earlier"),
        ev.Text(text="An earlier answer."),
        turn_finished("a", is_error=True),
    ]
    app = chat_app(tmp_path, resume="old", set_up=lambda engine: setattr(engine, "past", past))
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await settled(pilot, lambda: "An earlier answer." in screen_text(app))
        assert "› earlier" in screen_text(app)
        assert app.chat_screen.composer.text == "", "an old failure gives nothing back"


@pytest.mark.parametrize(
    ("typed", "draft", "sent"),
    [
        ("hello", "hello", []),
        ("hel\x1b[Alo\x1bOB", "hello", []),
        ("one line\r", "", ["one line"]),
        ("two\rlines\r", "two\nlines", []),
        ("\r\r", "", []),
    ],
)
async def test_keys_typed_before_the_screen_was_there(
    tmp_path: Path, typed: str, draft: str, sent: list[str]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, typed=typed)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: made and made[0].started)
        await settled(pilot, lambda: made[0].prompts == sent)
        assert app.chat_screen.composer.text == draft
        assert made[0].prestarts == int(bool(draft or sent))


async def test_a_prompt_that_the_engine_has_not_taken_yet_is_seen(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []

    def slow(engine: PlayedEngine) -> None:
        engine.ready = False
        engine.send = lambda prompt: "later"  # type: ignore[method-assign]

    app = chat_app(tmp_path, made, set_up=slow)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "connecting")
        await pilot.press(*"early", "enter")
        await settled(pilot, lambda: "goes out when connected: early" in screen_text(app))
        made[0].emit(
            ev.Status(component="agent", state="ready"), ev.TurnStarted(turn_id="later", prompt="early")
        )
        await settled(pilot, lambda: "› early" in screen_text(app))
        assert "goes out when connected" not in screen_text(app)


async def test_theme_and_help_and_palette(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=(140, 60)) as pilot:
        await idle(pilot, app)
        await pilot.press("f9")
        assert app.theme == "sandbox-light"
        await pilot.press("f1")
        await settled(pilot, lambda: "Send the prompt" in screen_text(app))
        text = screen_text(app)
        for words in ("Prompt", "Chat", "Everywhere", "Show or hide the tools", "F2", "^Q", "esc"):
            assert words in text
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)
        await pilot.press("ctrl+p")
        await pilot.pause(0.2)
        await pilot.press(*"hide the cost")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await settled(pilot, lambda: not app.chat_screen.query_one("#cost-pane").display)


async def test_the_model_is_changed(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, model="m1")
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press("f5")
        await pilot.pause()
        await pilot.press(*"m2", "enter")
        await settled(pilot, lambda: made[0].chosen_models == ["m2"])
        await settled(pilot, lambda: "m2 ▾" in screen_text(app))


async def test_a_picture_is_shown_large(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "sine[red].png"
    Image.new("RGB", (60, 40), "white").save(path)
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, downloads_dir=tmp_path / "down")
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press("ctrl+o")
        await settled(pilot, lambda: "There is no picture yet." in screen_text(app))
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(tool_started(), tool_finished("u1", ev.ImageContent(str(path), "image/png", 60, 40)))
        made[0].finish()
        await idle(pilot, app)
        app.chat_screen.tool_pane.show_view("image")
        await pilot.pause(0.2)
        await pilot.press("ctrl+o")
        await settled(pilot, lambda: "sine[red].png" in screen_text(app))
        await pilot.press("s")
        await settled(pilot, lambda: (tmp_path / "down" / path.name).exists())
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)


async def test_a_link_is_shown_before_it_is_opened(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        app.chat_screen.post_message(app.chat_screen.transcript.LinkOpened("https://example.com/[bold]"))
        await settled(pilot, lambda: "https://example.com/[bold]" in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)
