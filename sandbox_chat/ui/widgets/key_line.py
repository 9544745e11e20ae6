"""A row of keys with what they do, each to be clicked too."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_chat.ui.glyphs import own
from sandbox_chat.ui.widgets.line import Line, Part


class KeyLine(Line):
    """Shows ``(words, action)`` side by side; those at the end go first where there is no room."""

    DEFAULT_CSS = """
    KeyLine { color: $muted; }
    """

    def __init__(self, keys: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = keys

    def show(self, keys: Sequence[tuple[str, str]]) -> None:
        """Show other ones."""
        self._keys = keys
        self.changed()

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the keys, all at the left."""
        left: list[Part] = []
        for number, (words, action) in enumerate(self._keys):
            text = own(f"{'   ' if number else ''}{words}")
            left.append(Part(text, "", action, drop=number, shrink=0))
        return left, []
