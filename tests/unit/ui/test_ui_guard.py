"""The last look at each row: takes out what acts, keeps the width, leaves good rows alone."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from support.hostile import TEXTS
from support.written import faults
from textual.app import App, ComposeResult
from textual.color import Color
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static, TextArea

from sandbox_chat.ui.guard import Guard, GuardedApp
from sandbox_chat.ui.pictures.paint import GraphicStrip

BLACK = Color(0, 0, 0)


def test_a_good_row_is_not_touched() -> None:
    guard = Guard()
    segments = [Segment("good 世界 ", Style(bold=True)), Segment("❤️ ␛[2J")]
    assert guard.apply(segments, BLACK) is segments
    assert guard.stopped == 0


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_in_a_row_acts_and_its_width_stays(text: str) -> None:
    segments = [Segment("left "), Segment(text, Style(bold=True)), Segment(" right")]
    safe = Guard().apply(segments, BLACK)
    assert faults("".join(segment.text for segment in safe).encode(), hidden=False) == []
    assert Segment.get_line_length(safe) == Segment.get_line_length(segments)


def test_no_link_is_given_to_the_terminal() -> None:
    guard = Guard()
    [safe] = guard.apply([Segment("link", Style(link="http://e\x1b\\\x1b[2J", bold=True))], BLACK)
    assert safe.style is not None
    assert safe.style.link is None
    assert safe.style.bold
    assert guard.stopped == 1


def test_a_picture_stays_one() -> None:
    row = GraphicStrip([Segment("  ")], 2, "\x1bP0;1;0q\x1b\\", 0)
    assert row.apply_filter(Guard(), BLACK) is row


class Raw(GuardedApp):
    """Widgets that show what they are given."""

    def compose(self) -> ComposeResult:
        yield Static("a\x1b[77;77Hb\x9b2J\u202e", markup=False)
        yield TextArea("c\x1b]0;hostile\x07d")
        yield Input("e\x1b[77;77Hf")
        yield OptionList("g\x1bch")


@pytest.mark.parametrize("guarded", [True, False])
async def test_every_kind_of_widget_draws_through_it(guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not guarded:
        monkeypatch.setattr(GuardedApp, "get_line_filters", App.get_line_filters)
    app = Raw()
    async with app.run_test(size=(40, 20)):
        rows: list[Strip] = app.screen._compositor.render_strips(app.size)
        text = "".join(row.text for row in rows)
    assert (faults(text.encode(), hidden=False) == []) is guarded
    assert (app.guard.stopped > 3) is guarded
