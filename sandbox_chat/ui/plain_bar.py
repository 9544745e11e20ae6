"""The bar of what scrolls, where only ASCII signs are drawn: whole cells, without finer ends."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender

from sandbox_chat.ui.glyphs import is_ascii


class PlainBar(ScrollBarRender):
    """A bar of blanks in two colours, or of blanks and reversed ones."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def choose_bars() -> None:
    """Draw all bars with the signs that are in use."""
    ScrollBar.renderer = PlainBar if is_ascii() else ScrollBarRender
