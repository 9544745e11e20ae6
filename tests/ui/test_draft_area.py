"""The rows of a draft are drawn as Textual's text area draws them; the texts are those that are hard to measure."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from sandbox_chat.ui import outside
from sandbox_chat.ui.screens.link import LinkScreen
from sandbox_chat.ui.widgets.draft_area import DraftArea
from sandbox_chat.ui.widgets.pick_list import Pick, PickList

TEXTS = {
    "plain": "one two three four five six seven eight nine ten",
    "lines": "a\n\nb\n\n\nc",
    "wide": "你好世界 한글 テスト " * 5,
    "emoji": "👩‍👩‍👧 ❤️ 🇩🇪 👍🏽 x" * 4,
    "combining": "e\u0301a\u0308o\u0302 " * 12,
    "tabs": "a\tb\tcc\t\tdone and\tmore to wrap\tit\n\tx",
    "long word": "x" * 95,
    "blanks": "   a   " * 9 + "\n    ",
    "markup": "[/ [bold] [@click=app.quit]x[/] \\[",
}


class Shown(App[None]):
    CSS = "DraftArea, TextArea { height: 12; width: 30; border: none; padding: 0; }"

    def compose(self) -> ComposeResult:
        yield DraftArea()
        yield PickList()


def cells(strip: Any) -> list[tuple[str, str]]:
    """Each character with what its style says."""
    return [(character, str(segment.style)) for segment in strip for character in segment.text]


@pytest.mark.parametrize("name", TEXTS)
async def test_rows_are_those_of_a_text_area(name: str) -> None:
    text = TEXTS[name]
    app = Shown()
    async with app.run_test(size=(40, 20)) as pilot:
        area = app.query_one(DraftArea)
        area.focus()
        area.text = text
        await pilot.pause()
        end = area.document.end
        middle = (end[0] // 2, len(area.document[end[0] // 2]) // 2)
        for selection in (
            Selection.cursor(end),
            Selection.cursor((0, 0)),
            Selection.cursor(middle),
            Selection((0, 1), end),
            Selection(end, middle),
        ):
            area.selection = selection
            await pilot.pause()
            for y in range(12):
                ours, theirs = area.render_line(y), TextArea.render_line(area, y)
                assert ours.cell_length == theirs.cell_length
                if selection.is_empty or "▌" not in theirs.text:
                    assert ours.text == theirs.text
                    assert cells(ours) == cells(theirs)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 5), (9, 3), (200, 60)])
async def test_no_size_is_too_small(size: tuple[int, int]) -> None:
    app = Shown()
    async with app.run_test(size=(40, 20)) as pilot:
        area, picks = app.query_one(DraftArea), app.query_one(PickList)
        area.focus()
        area.insert_text("你好 x\ty\n" * 10)
        area.insert_text("z\n" * 300)
        picks.show("title 你好", [Pick("你好 [bold]" * 9, "1.2 kB")] * 20)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        await pilot.press("a", "left", "backspace", "up", "up", "shift+down", "home", "b", "ctrl+z")
        picks.move(15)
        picks.show("t", [])
        picks.move(1)
        await pilot.pause()
        assert "pasted text" not in area.text


async def test_a_theme_and_the_focus_change_the_colours() -> None:
    app = Shown()
    async with app.run_test(size=(40, 20)) as pilot:
        area = app.query_one(DraftArea)
        area.focus()
        area.insert_text("x\n" * 300 + "y")
        await pilot.pause()
        seen = {str(list(area.render_line(0)))}
        for theme in ("textual-light", "dracula"):
            app.theme = theme
            await pilot.pause()
            seen.add(str(list(area.render_line(0))))
        app.screen.set_focus(None)
        await pilot.pause()
        seen.add(str(list(area.render_line(0))))
        assert len(seen) == 4


async def test_what_is_copied_goes_to_the_desktop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many terminals do not take a program's copies."""
    given: list[str] = []
    monkeypatch.setattr(outside, "clipboard_command", lambda _: ["clip"])
    monkeypatch.setattr(outside, "_feed", lambda _, text: given.append(text))
    app = Shown()
    async with app.run_test() as pilot:
        area = app.query_one(DraftArea)
        area.focus()
        area.text = "one two"
        area.selection = Selection((0, 0), (0, 3))
        area.action_copy()
        assert app.clipboard == "one"
        area.action_cut()
        assert area.text == " two"
        app.push_screen(LinkScreen("https://x.org/a"))
        await pilot.pause()
        app.screen.action_copy()  # type: ignore[attr-defined]
        await pilot.pause(0.1)
    assert given == ["one", "one", "https://x.org/a"]
