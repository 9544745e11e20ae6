"""The transcript widget in a running app: following, keys, mouse, themes, sizes."""

from __future__ import annotations

import asyncio

from support.screen import settled
from support.view_app import ViewApp, rows_shown
from textual import events
from textual.widgets import Input

from sandbox_chat import events as ev
from sandbox_chat.ui.themes import themes
from sandbox_chat.ui.transcript import TranscriptView

NAME = "mcp__sandbox__run_code"


def call(number: str = "a", code: str = "x = 1\ny = 2") -> list[ev.Event]:
    return [
        ev.ToolStarted(tool_use_id=number, name=NAME, input={"code": code}),
        ev.ToolFinished(
            tool_use_id=number, is_error=False, content=(ev.TextContent("[result]\n1"),), duration_ms=5
        ),
    ]


LONG = [ev.Text(text=f"paragraph {number}") for number in range(60)]


async def test_nothing_is_shown_at_first_and_then_the_text() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        assert set(rows_shown(app.view)) == {""}
        app.view.feed([ev.TurnStarted(turn_id="1", prompt="hello")])
        await settled(pilot, lambda: rows_shown(app.view)[0] == "› hello")


async def test_events_that_come_before_the_widget_is_there_are_rows_shown() -> None:
    app = ViewApp(other=True)
    view = TranscriptView(id="early")
    view.feed([ev.Text(text="early")])
    async with app.run_test(size=(60, 20)) as pilot:
        await app.mount(view)
        await settled(pilot, lambda: "early" in rows_shown(view))


async def test_scrolled_up_it_holds_still_and_end_follows_again() -> None:
    """Case T9."""
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        view.feed(LONG)
        await settled(pilot, lambda: "paragraph 59" in rows_shown(view))
        view.focus()
        await pilot.press(*["up"] * 20)
        await pilot.pause()
        before = rows_shown(view)
        assert not view.following
        for number in range(30):
            view.feed([ev.TextDelta(text=f"new {number}\n\n")])
            await pilot.pause(0.01)
        await settled(pilot, lambda: view.unseen_lines == 60)
        assert rows_shown(view) == before
        await pilot.press("end")
        await pilot.pause()
        assert view.following
        assert view.unseen_lines == 0
        assert "new 29" in rows_shown(view)


async def test_the_wheel_and_the_keys_scroll() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        view.feed(LONG)
        await settled(pilot, lambda: "paragraph 59" in rows_shown(view))
        view.focus()
        await pilot.press("home")
        assert rows_shown(view)[0] == "paragraph 0"
        await pilot.press("pagedown")
        first = rows_shown(view)
        await pilot.press("pageup")
        assert rows_shown(view)[0] == "paragraph 0"
        await pilot.press("pagedown")
        assert rows_shown(view) == first
        await pilot._post_mouse_events([events.MouseScrollUp], TranscriptView, offset=(5, 5))
        assert rows_shown(view) != first
        view.scroll_end(animate=False)
        await settled(pilot, lambda: view.following)


async def test_a_theme_change_while_a_fence_streams_keeps_the_coloured_text() -> None:
    """Case T2."""
    app = ViewApp(other=True)
    code = "".join(f"value_{n} = {n}  # note\n" for n in range(20))
    text = f"```python\n{code}```\n"
    async with app.run_test(size=(60, 30)) as pilot:
        for at in range(0, len(text), 5):
            app.view.feed([ev.TextDelta(text=text[at : at + 5])])
            if at == 150:
                app.theme = themes()[1].name
            if at == 250:
                app.query_one(Input).focus()
            await pilot.pause(0.001)
        app.view.feed([ev.Text(text=text)])
        await settled(pilot, lambda: " value_19 = 19  # note" in rows_shown(app.view))
        lines = rows_shown(app.view)
        assert [line.strip() for line in lines if line.strip()] == [
            line.strip() for line in code.splitlines()
        ]
        colours = {
            segment.style.color.name
            for segment in app.view.render_line(3)
            if segment.style and segment.style.color
        }
        assert len(colours) > 2
        ground = app.view.scene.palette.background
        assert ground.hex6.lower() == themes()[1].background
        assert app.view.render_line(29)._segments[0].style.bgcolor.name == ground.hex6.lower()


async def test_resizing_while_streaming_ends_like_a_fresh_rendering() -> None:
    """Case T8."""
    app = ViewApp(other=True)
    text = "Some **words** that wrap, 你好世界 and `code`.\n\n- item with a long text that wraps too\n- b\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n"
    async with app.run_test(size=(120, 30)) as pilot:
        for number in range(12):
            app.view.feed([ev.TextDelta(text=text[:40]), ev.TextDelta(text=text[40:])])
            await pilot.resize_terminal(60 if number % 2 == 0 else 120, 30)
            await pilot.pause(0.02)
        app.view.feed([ev.Text(text=text * 12)])
        await pilot.pause(0.6)
        streamed = rows_shown(app.view)
    fresh = ViewApp(other=True)
    async with fresh.run_test(size=(120, 30)) as pilot:
        fresh.view.feed([ev.Text(text=text * 12)])
        await pilot.pause(0.6)
        assert rows_shown(fresh.view) == streamed


async def test_cards_are_chosen_and_opened_by_keys() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 30)) as pilot:
        view = app.view
        view.feed([*call("a"), ev.Text(text="between"), *call("b")])
        await pilot.pause()
        view.focus()
        await pilot.press("k")
        assert view.selected is not None
        assert view.selected.tool_use_id == "b"
        await pilot.press("k")
        assert view.selected.kind == "answer"
        await pilot.press("k")
        await pilot.pause()
        assert app.messages == [("tool", "b"), ("tool", "a")]
        await pilot.press("enter")
        await pilot.pause()
        assert any("y = 2" in line for line in rows_shown(view))
        assert "│ 1" in "\n".join(rows_shown(view))
        await pilot.press("enter")
        await pilot.pause()
        assert not any("y = 2" in line for line in rows_shown(view))


async def test_cards_are_chosen_and_opened_by_mouse() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 30)) as pilot:
        view = app.view
        view.feed([ev.TurnStarted(turn_id="1", prompt="go"), *call("a")])
        await pilot.pause()
        await pilot.click(TranscriptView, offset=(5, 2))
        await pilot.pause()
        assert app.messages == [("tool", "a")]
        assert any("y = 2" in line for line in rows_shown(view))
        assert view.render_line(2).text.startswith("▌")


async def test_select_tool_marks_and_shows_without_a_message() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        view.feed([*call("a"), *LONG])
        await pilot.pause()
        view.select_tool("a")
        await pilot.pause()
        assert any("run_code" in line for line in rows_shown(view))
        assert not view.following
        view.select_tool(None)
        view.select_tool("unknown")
        assert view.selected is None
        assert app.messages == []
        view.end()
        assert view.following


async def test_a_click_on_a_link_tells_its_target() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        app.view.feed([ev.Text(text="see [this](https://example.org/a) [@click=app.quit]x[/]")])
        await pilot.pause()
        await pilot.click(TranscriptView, offset=(7, 0))
        await pilot.click(TranscriptView, offset=(30, 0))
        await pilot.pause()
        assert app.messages == [("link", "https://example.org/a")]
        assert app.is_running
        assert rows_shown(app.view)[0] == "see this [@click=app.quit]x[/]"


async def test_a_running_card_moves_and_a_finished_one_does_not() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        view.feed([ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"})])
        await pilot.pause()
        first = rows_shown(view)[0]
        await settled(pilot, lambda: rows_shown(view)[0] != first)
        view.feed(call("a")[1:])
        await settled(pilot, lambda: rows_shown(view)[0].startswith("✓"))
        tick = view.scene.tick
        await pilot.pause(0.4)
        assert view.scene.tick <= tick + 1


async def test_many_earlier_messages_cost_nothing_to_load() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(80, 30)) as pilot:
        view = app.view
        history: list[ev.Event] = []
        for number in range(1200):
            history += [
                ev.TurnStarted(turn_id=str(number), prompt=f"question {number}"),
                ev.Text(text=f"answer **{number}**\n\n- a\n- b"),
            ]
        view.feed(history)
        await settled(pilot, lambda: "answer 1199" in rows_shown(view))
        drawn = sum(1 for block in view.blocks if block._key is not None)
        assert drawn < 60
        view.focus()
        await pilot.press("home")
        assert rows_shown(view)[0] == "› question 0"


async def test_copy() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        view.feed([ev.Text(text="the **answer**")])
        await pilot.pause()
        view.focus()
        await pilot.press("y")
        assert app.clipboard == "the **answer**"


async def test_streaming_is_drawn_at_most_so_often() -> None:
    app = ViewApp(other=True)
    async with app.run_test(size=(80, 30)) as pilot:
        view = app.view
        count = 0
        real = view._flush

        def counted() -> None:
            nonlocal count
            count += 1
            real()

        view._flush = counted  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for _ in range(400):
            view.feed([ev.TextDelta(text="word ")])
            await asyncio.sleep(0.001)
        await pilot.pause(0.1)
        assert count <= (loop.time() - begun) / 0.05 + 3
