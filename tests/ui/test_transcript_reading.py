"""Selecting, copying, links, searching and getting about in the transcript of a running app."""

from __future__ import annotations

import pytest
from support.screen import settled
from support.view_app import ViewApp, rows_shown
from textual import events

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript import TranscriptView


def lit(view: TranscriptView) -> list[str]:
    """Return the pieces of rows that are laid over with a mark."""
    palette = view.scene.palette
    grounds = {palette.over(name).bgcolor for name in ("select", "find", "find-now")}
    out = []
    for y in range(view.size.height):
        piece = "".join(s.text for s in view.render_line(y) if s.style and s.style.bgcolor in grounds)
        if piece:
            out.append(piece)
    return out


def prompts(*texts: str) -> list[ev.Event]:
    return [ev.TurnStarted(turn_id=str(n), prompt=text) for n, text in enumerate(texts)]


async def drag(pilot, start: tuple[int, int], end: tuple[int, int], *, shift: bool = False) -> None:
    await pilot._post_mouse_events([events.MouseDown], TranscriptView, offset=start, button=1, shift=shift)
    await pilot._post_mouse_events([events.MouseMove], TranscriptView, offset=end, button=1)
    await pilot._post_mouse_events([events.MouseUp], TranscriptView, offset=end, button=1)
    await pilot.pause()


async def test_dragging_selects_and_y_copies_without_ends_of_rows() -> None:
    app = ViewApp()
    async with app.run_test(size=(24, 20)) as pilot:
        view = app.view
        view.feed(prompts("the quick brown fox jumps over the lazy dog", "and another one"))
        await pilot.pause()
        await drag(pilot, (8, 0), (11, 2))
        assert view.selected_text.startswith("quick brown fox jumps ")
        assert "\n" not in view.selected_text
        assert "".join(lit(view)).replace(" ", "") == view.selected_text.replace(" ", "")
        view.focus()
        await pilot.press("y")
        assert app.clipboard == view.selected_text
        await pilot.press("escape")
        assert view.selected_text == ""
        assert lit(view) == []


async def test_a_selection_survives_reflow_streaming_and_scrolling() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        view.feed(prompts("alpha beta gamma delta epsilon zeta eta theta", "second"))
        await pilot.pause()
        await drag(pilot, (10, 0), (19, 0))
        chosen = view.selected_text
        assert chosen == "beta gamma"
        await pilot.resize_terminal(16, 12)
        await pilot.pause()
        assert view.selected_text == chosen
        assert "".join(lit(view)).replace(" ", "") == "betagamma"
        for number in range(40):
            view.feed([ev.TextDelta(text=f"new line {number}\n\n")])
        await pilot.pause(0.1)
        assert view.selected_text == chosen
        view.focus()
        await pilot.press("home")
        assert "".join(lit(view)).replace(" ", "") == "betagamma"


async def test_a_drag_goes_over_blocks_and_shift_click_extends() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 20)) as pilot:
        view = app.view
        view.feed(prompts("first prompt", "second prompt", "third prompt"))
        await pilot.pause()
        await drag(pilot, (10, 0), (9, 2))
        assert view.selected_text == "prompt\n\nsecond"
        await drag(pilot, (8, 4), (8, 4), shift=True)
        assert view.selected_text == "prompt\n\nsecond prompt\n\nthird"
        await pilot.click(TranscriptView, offset=(5, 18))
        assert view.selected_text == ""


async def test_holding_the_mouse_beyond_the_edge_scrolls() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.view
        view.feed(prompts(*(f"prompt {number}" for number in range(40))))
        await settled(pilot, lambda: "› prompt 39" in rows_shown(view))
        await pilot._post_mouse_events([events.MouseDown], TranscriptView, offset=(6, 5), button=1)
        beyond = events.MouseMove(view, 6, -4, 0, 0, 1, False, False, False, screen_x=6, screen_y=-4)
        view.post_message(beyond)
        await settled(pilot, lambda: "› prompt 20" in rows_shown(view))
        await pilot._post_mouse_events([events.MouseUp], TranscriptView, offset=(6, 0), button=1)
        await pilot.pause()
        top = rows_shown(view)
        await pilot.pause(0.2)
        assert rows_shown(view) == top
        assert "prompt 30\n\n" in view.selected_text


async def test_two_clicks_select_a_word_and_three_a_line() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.view
        view.feed(prompts("one two_three four\nnext line"))
        await pilot.pause()
        await pilot.click(TranscriptView, offset=(10, 0), times=2)
        await pilot.pause()
        assert view.selected_text == "two_three"
        await pilot.pause(0.6)
        await pilot.click(TranscriptView, offset=(10, 0), times=3)
        await pilot.pause()
        assert view.selected_text == "one two_three four"


async def test_keys_go_through_links_and_enter_opens_one() -> None:
    app = ViewApp()
    async with app.run_test(size=(50, 10)) as pilot:
        view = app.view
        view.feed([ev.Text(text="see [one](https://a.example/) and [two](https://b.example/x)")])
        await pilot.pause()
        view.focus()
        await pilot.press("l", "l")
        assert lit(view) == ["two"]
        await pilot.press("enter")
        await pilot.press("L", "enter")
        await pilot.pause()
        assert app.messages == [("link", "https://b.example/x"), ("link", "https://a.example/")]
        await pilot.press("escape")
        assert lit(view) == []


async def test_brackets_go_from_turn_to_turn() -> None:
    app = ViewApp()
    async with app.run_test(size=(50, 10)) as pilot:
        view = app.view
        for number in range(6):
            view.feed(
                [
                    ev.TurnStarted(turn_id=str(number), prompt=f"question {number}"),
                    ev.Text(text="\n\n".join(f"line {n}" for n in range(12))),
                ]
            )
        await settled(pilot, lambda: "line 11" in rows_shown(view)[-1])
        view.focus()
        await pilot.press("left_square_bracket")
        assert rows_shown(view)[0] == "› question 5"
        await pilot.press("[")
        assert rows_shown(view)[0] == "› question 4"
        await pilot.press("down", "down", "alt+up")
        assert rows_shown(view)[0] == "› question 4"
        await pilot.press("alt+down")
        assert rows_shown(view)[0] == "› question 5"
        await pilot.press("]")
        assert view.following


async def test_commands_are_asked_only_where_they_are_offered() -> None:
    app = ViewApp()
    async with app.run_test(size=(50, 10)) as pilot:
        view = app.view
        view.feed([*prompts("do it"), ev.Notice(level="info", text="note")])
        await pilot.pause()
        view.focus()
        await pilot.press("r")
        await pilot.press("k", "r", "s")
        await pilot.press("k", "r", "s")
        await pilot.pause()
        assert app.messages == [("rerun", "do it")]


async def test_a_search_goes_to_the_nearest_and_steps_and_returns() -> None:
    app = ViewApp()
    async with app.run_test(size=(50, 12)) as pilot:
        view = app.view
        view.feed(prompts(*(f"Needle {n}" if n in (3, 50) else f"hay {n}" for n in range(100))))
        await settled(pilot, lambda: "› hay 99" in rows_shown(view))
        view.focus()
        view.action_scroll_rows(-60)
        before = rows_shown(view)
        view.find("needle")
        await settled(pilot, lambda: app.found[1] == 2)
        assert lit(view) == ["Needle"]
        first = app.found[0]
        await pilot.press("n")
        assert lit(view) == ["Needle"]
        await pilot.pause()
        assert app.found[0] != first
        view.find("Needles")
        await settled(pilot, lambda: app.found == (0, 0))
        view.find("nEEDLE")
        await settled(pilot, lambda: app.found == (0, 0))
        view.find("hay 7")
        await settled(pilot, lambda: app.found[1] == 11)
        view.find_done(back=True)
        assert rows_shown(view) == before
        assert lit(view) == []


async def test_a_search_opens_what_is_folded() -> None:
    app = ViewApp()
    async with app.run_test(size=(50, 12)) as pilot:
        view = app.view
        view.feed([ev.ThinkingDelta(text="so " * 400 + "\n\nthe treasure is here"), ev.Text(text="done")])
        view.feed(prompts(*(f"hay {n}" for n in range(30))))
        await settled(pilot, lambda: "› hay 29" in rows_shown(view))
        view.find("treasure")
        await settled(pilot, lambda: app.found == (1, 1))
        assert lit(view) == ["treasure"]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7])
async def test_the_narrowest_views_do_not_fail(width: int) -> None:
    app = ViewApp()
    async with app.run_test(size=(width, 5)) as pilot:
        view = app.view
        view.feed([*prompts("你好 one two"), ev.Text(text="**bold** [a](https://a.example)\n\n- x")])
        await pilot.pause()
        await drag(pilot, (0, 0), (width - 1, 4))
        view.focus()
        await pilot.press("l", "k", "y", "E", "[", "]", "home", "end", "pageup")
        view.find("bold")
        await pilot.pause(0.05)
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert app.is_running
