"""Colours of programs: readable on every ground, in their place, and none that are not theirs."""

from __future__ import annotations

import pytest
from textual.color import Color

from sandbox_chat.sgr import NAMES
from sandbox_chat.ui.transcript.ansi import PREFIX, styled_runs
from sandbox_chat.ui.transcript.cells import Run
from sandbox_chat.ui.transcript.palette import Palette, _contrast

WORDS = (
    *NAMES,
    *(f"{colour} on-{ground}" for colour in NAMES for ground in NAMES),
    *(f"on-{ground}" for ground in NAMES),
    "#101010", "#fefefe", "#808080", "dim", "dim red", "bold reverse #202020", "dim blue on-#0000ff",
)  # fmt: skip


@pytest.mark.parametrize("dark", [True, False])
def test_what_programs_choose_can_be_read(dark: bool) -> None:
    palette = Palette(dark=dark)
    for words in WORDS:
        style = palette.style((PREFIX + words,))
        assert style.color is not None and style.bgcolor is not None
        colours = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
        assert _contrast(*colours) >= (4.4 if "dim" not in words else 4.0), words


def test_the_terminals_own_colours_and_none() -> None:
    own = Palette(kind="ansi").program("bold bright-red on-blue")
    assert own.color is not None and own.bgcolor is not None
    assert (own.color.number, own.bgcolor.number, own.bold) == (9, 4, True)
    assert Palette(kind="ansi").program("white").color is None
    none = Palette(kind="none").program("underline bright-red on-blue")
    assert (none.color, none.bgcolor, none.underline) == (None, None, True)


def test_runs_know_where_they_stand() -> None:
    runs = styled_runs("one two three", ((4, 7, "bold red"),))
    assert runs == [Run("one ", at=0), Run("two", (PREFIX + "bold red",), at=4), Run(" three", at=7)]
    assert styled_runs("", ()) == [Run("", at=0)]
    assert styled_runs("x", ((0, 9, "red"),)) == [Run("x", at=0)]
    assert "".join(run.text for run in styled_runs("ab", ((0, 2, "dim"),))) == "ab"
