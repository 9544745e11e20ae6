"""Rows written with few escape sequences show the same as when each piece is written for itself."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from sandbox_chat.ui.compact import compact

COLOURS = ["default", "red", "bright_black", "color(100)", "#102030", "#a0b0c0"]
STYLES = st.one_of(
    st.none(),
    st.builds(
        Style,
        color=st.one_of(st.none(), st.sampled_from(COLOURS)),
        bgcolor=st.one_of(st.none(), st.sampled_from(COLOURS)),
        bold=st.booleans(),
        italic=st.booleans(),
        underline=st.booleans(),
        reverse=st.booleans(),
        strike=st.booleans(),
    ),
)
SEGMENTS = st.lists(st.builds(Segment, st.text("ab c", max_size=4), STYLES, st.none()), max_size=8)


def shown(data: str) -> list[object]:
    """The cells of a terminal that got ``data``, and the one that is written next."""
    screen = pyte.Screen(40, 2)
    pyte.Stream(screen).feed(data + "\r\nx")
    return [screen.buffer[0][x] for x in range(40)] + [screen.buffer[1][0]]


@given(SEGMENTS, st.sampled_from([ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD]))
def test_any_row_shows_the_same(segments: list[Segment], system: ColorSystem) -> None:
    each = "".join(
        text if style is None else Strip.render_style(style, text, system) for text, style, _ in segments
    )
    assert shown(compact(segments, system)) == shown(each)


@pytest.mark.parametrize("count", [2, 20])
def test_pieces_of_another_colour_write_that_colour_alone(count: int) -> None:
    styles = [Style(color=f"#{number:02x}2030", bgcolor="#000000", bold=True) for number in range(count)]
    data = compact([Segment("x", style) for style in styles], ColorSystem.TRUECOLOR)
    assert data.count("48;2;0;0;0") == 1
    assert data.count("\x1b[0m") == 1
    assert data.count("\x1b[") == count + 1


def test_what_is_for_the_terminal_itself_is_left_alone() -> None:
    graphic = Segment("\x1bPq#\x1b\\", None, [(1,)])  # type: ignore[list-item]
    assert (
        compact([Segment("a", Style(color="red")), graphic], ColorSystem.STANDARD)
        == "\x1b[31ma\x1bPq#\x1b\\\x1b[0m"
    )
