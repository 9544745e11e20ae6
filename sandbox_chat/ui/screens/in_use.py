"""Asks what to do with a session that another running program has open."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.words import tr

WAYS = ("fork", "look", "cancel")
"""What can be chosen: go on with a copy, look only, quit."""


class Way(Static):
    """One of the ways; a click takes it."""

    def __init__(self, way: str) -> None:
        key = key_of(f"elsewhere.{way}")
        super().__init__(
            Content.assemble(
                (f"{key:<7}", "$accent bold"),
                (tr(f"opening.{way}"), "bold"),
                ("  ", ""),
                (tr(f"opening.{way}_words"), "$muted"),
            ),
            id=f"in-use-{way}",
        )
        self._way = way

    def on_click(self, event: events.Click) -> None:
        """Take this way."""
        event.stop()
        self.screen.dismiss(self._way)


class InUseScreen(ModalScreen[str]):
    """Its result is one of ``WAYS``."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("elsewhere")]

    DEFAULT_CSS = """
    InUseScreen { align: center middle; }
    #in-use-box { width: 76; max-width: 94%; height: auto; padding: 1 2; background: $panel; }
    #in-use-box Static { width: 1fr; }
    #in-use-why { color: $muted; margin-bottom: 1; }
    Way:hover { background: $primary 20%; }
    """

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="in-use-box"):
            yield Static(Content.styled(tr("opening.in_use"), "bold"))
            yield Static(Content(tr("opening.in_use_why")), id="in-use-why")
            for way in WAYS:
                yield Way(way)

    def action_choose(self, way: str) -> None:
        """Take a way."""
        self.dismiss(way)
