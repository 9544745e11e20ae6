"""Which panes are seen, and how wide they are: a pure model of the screen's arrangement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pane = Literal["chat", "tools", "cost"]

SIDE_MIN = 28
"""Columns that the tools and cost panes need to be of use."""
CHAT_MIN = 40
"""Columns that are left to the transcript at least."""
SIDE_SHARE = 0.38
SIDE_MAX = 72
"""Widest side that is chosen by itself; a person may drag it wider."""
STEP = 4


@dataclass
class Layout:
    """The arrangement. ``tab`` is the pane seen when narrow; ``maximised`` the only one seen when wide."""

    width: int = 120
    tabs_below: int = 100
    tools: bool = True
    cost: bool = True
    maximised: Pane | None = None
    tab: Pane = "chat"
    wanted: int | None = None
    """Width of the side that a person chose, in columns."""

    @property
    def narrow(self) -> bool:
        """True when panes are tabs."""
        return self.width < self.tabs_below

    @property
    def visible(self) -> tuple[Pane, ...]:
        """The panes that are seen."""
        if self.narrow:
            return (self.tab,)
        if self.maximised:
            return (self.maximised,)
        shown: list[Pane] = ["chat"]
        if self.tools:
            shown.append("tools")
        if self.cost:
            shown.append("cost")
        return tuple(shown)

    @property
    def side_width(self) -> int:
        """Columns of the side with the tools and cost panes."""
        wanted = self.wanted
        if wanted is None:
            wanted = min(SIDE_MAX, int(self.width * SIDE_SHARE))
        return max(SIDE_MIN, min(wanted, self.width - CHAT_MIN))

    def toggle(self, pane: Literal["tools", "cost"]) -> None:
        """Hide or show a pane; when narrow, go to its tab or back to the chat."""
        if self.narrow:
            self.tab = "chat" if self.tab == pane else pane
        elif self.maximised:
            self.maximised = None if self.maximised == pane else pane
        elif pane == "tools":
            self.tools = not self.tools
        else:
            self.cost = not self.cost

    def maximise(self, pane: Pane) -> None:
        """Let ``pane`` fill the screen, or bring the others back where they were."""
        if self.narrow:
            self.tab = pane
        else:
            self.maximised = None if self.maximised else pane

    def show(self, pane: Pane) -> None:
        """Make sure that ``pane`` is seen."""
        if self.narrow:
            self.tab = pane
        elif self.maximised:
            self.maximised = pane
        elif pane == "tools":
            self.tools = True
        elif pane == "cost":
            self.cost = True

    def resize_side(self, columns: int) -> None:
        """Make the side ``columns`` wide, within what leaves both sides of use."""
        self.wanted = max(SIDE_MIN, min(columns, max(SIDE_MIN, self.width - CHAT_MIN)))
