"""The two rows above the list of sessions: what it is and how many there are, and what is searched for."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.ui.widgets.line import Line, Part
from sandbox_chat.words import tr


class SessionBar(Line):
    """The first row: what this is, and how many there are."""

    DEFAULT_CSS = """
    SessionBar { padding: 0 1; background: $surface; color: $foreground; }
    """

    count = ""

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the parts of the row."""
        left = [
            Part("sandbox-chat", "bold $primary", drop=2),
            Part(f" {glyph('dot')} {tr('sessions.title')}", "bold"),
        ]
        return left, [Part(self.count, "$muted", drop=1, shrink=12)]


class SearchLine(Horizontal):
    """Where it is typed what is searched for."""

    DEFAULT_CSS = """
    SearchLine { height: 1; width: 1fr; padding: 0 1; background: $surface; }
    SearchLine > #sessions-label { width: auto; color: $muted; }
    SearchLine > Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; }
    SearchLine > Input:focus { border: none; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("lookup")]

    class Left(Message):
        """The rows are to take the keys."""

    def compose(self) -> ComposeResult:
        """Lay out the row."""
        yield Static(Content(f"{tr('sessions.search')} "), id="sessions-label")
        yield Entry(compact=True, id="sessions-input", placeholder=tr("sessions.placeholder"))

    def action_leave(self) -> None:
        """Clear the search; when it is empty, leave it."""
        field = self.query_one(Input)
        if field.value:
            field.value = ""
        else:
            self.post_message(self.Left())
