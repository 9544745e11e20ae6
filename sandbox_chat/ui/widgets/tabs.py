"""A row of tabs: a word each, the chosen one marked by weight and colour; by mouse and by keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.message import Message

from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.widgets.line import Line, Part


class TabRow(Line, can_focus=True):
    """Tabs with an id and a label. Posts ``Chosen`` when another one is chosen by the user."""

    DEFAULT_CSS = """
    TabRow { background: $background; color: $muted; padding: 0 1; }
    TabRow:focus { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("tabs")]

    class Chosen(Message):
        """The user chose the tab ``tab``."""

        def __init__(self, row: TabRow, tab: str) -> None:
            super().__init__()
            self.row = row
            self.tab = tab

        @property
        def control(self) -> TabRow:
            """The row of tabs."""
            return self.row

    def __init__(self, tabs: Sequence[tuple[str, str]], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tabs = list(tabs)
        self.chosen = self.tabs[0][0] if self.tabs else ""
        self.dim: frozenset[str] = frozenset()

    def show(self, chosen: str, tabs: Sequence[tuple[str, str]] | None = None) -> None:
        """Mark ``chosen``, and take other labels if given. Posts nothing."""
        if tabs is not None:
            self.tabs = list(tabs)
        self.chosen = chosen
        self.changed()

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the tabs; where there is little room they stand closer."""
        width = sum(cell_len(label) for _, label in self.tabs)
        roomy = width + 3 * (len(self.tabs) - 1) <= self.content_size.width
        parts: list[Part] = []
        for tab, label in self.tabs:
            if parts:
                parts.append(Part(f" {glyph('upright')} " if roomy else " ", "$border"))
            style = "bold $primary" if tab == self.chosen else "$faint" if tab in self.dim else ""
            parts.append(Part(label, style, f"choose('{tab}')"))
        return parts, []

    def action_choose(self, tab: str) -> None:
        """Choose a tab by its id."""
        if tab != self.chosen:
            self.show(tab)
            self.post_message(self.Chosen(self, tab))

    def action_step(self, by: int) -> None:
        """Choose the next tab, or the one before."""
        ids = [tab for tab, _ in self.tabs]
        if ids:
            place = ids.index(self.chosen) if self.chosen in ids else 0
            self.action_choose(ids[(place + by) % len(ids)])
