"""Colours of the transcript."""

from __future__ import annotations

import pytest
from textual.color import Color

from sandbox_chat.ui.themes import themes
from sandbox_chat.ui.transcript.cells import Run
from sandbox_chat.ui.transcript.palette import Palette, _contrast


@pytest.mark.parametrize(
    "theme", [theme for theme in themes() if not theme.ansi], ids=lambda theme: theme.name
)
def test_text_can_be_read_on_every_ground(theme) -> None:
    palette = Palette(theme.to_color_system().generate(), dark=theme.dark)
    ground = Color.from_rich_color(palette.style(("block",)).bgcolor)
    quiet = {"faint", "quote-bar", "rule", "bar", "thumb"}  # marks, not text
    for name, style in palette._partial.items():
        if style.color is not None and name not in quiet:
            under = Color.from_rich_color(style.bgcolor) if style.bgcolor is not None else ground
            assert _contrast(Color.from_rich_color(style.color), under) >= 4.5, name


def test_odd_colours_fall_back() -> None:
    palette = Palette({"primary": "nonsense", "foreground": ""})
    assert palette.base.color is not None


def test_rows_are_filled_to_the_width() -> None:
    palette = Palette()
    assert palette.strip([Run("你好")], 6).cell_length == 6
    assert palette.strip([Run("你好世界")], 5).cell_length == 5
    assert palette.blank(0).cell_length == 0


def test_versions_differ() -> None:
    assert Palette().version != Palette().version
