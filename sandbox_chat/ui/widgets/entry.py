"""A line to type into."""

from __future__ import annotations

from textual.widgets import Input

from sandbox_chat.text import from_paste

_SPACES = str.maketrans("\n\t", "  ")


class Entry(Input):
    """An input of one line. What is put into it is clean: it is seen to the letter, and what is seen is what is used."""

    def replace(self, text: str, start: int, end: int) -> None:
        """Put ``text`` where what lies between two places was."""
        super().replace(from_paste(text).translate(_SPACES), start, end)
