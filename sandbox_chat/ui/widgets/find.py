"""The line in which one searches the transcript. It stands above the composer, never over the transcript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from sandbox_chat.ui.actions import bindings_of, key_name
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.words import tr


class FindBar(Horizontal):
    """One row: what is searched for, and which of how many places is shown. Hidden while nobody searches."""

    DEFAULT_CSS = """
    FindBar { height: 1; width: 1fr; padding: 0 1; display: none; background: $surface; }
    FindBar > #find-label { width: auto; color: $muted; }
    FindBar > Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; }
    FindBar > Input:focus { border: none; background: $surface; }
    FindBar > #find-count { width: auto; color: $muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("find")]

    @dataclass
    class Changed(Message):
        """Something else is searched for."""

        query: str

    @dataclass
    class Stepped(Message):
        """The user wants the next (1) or the previous (-1) place."""

        step: int

    @dataclass
    class Left(Message):
        """The user is done. ``back``: go back to where the search began."""

        back: bool

    def compose(self) -> ComposeResult:
        """Lay out the row."""
        yield Static(Content(f"{tr('transcript.find')} "), id="find-label")
        yield Entry(compact=True, id="find-input")
        yield Static(Content(""), id="find-count")

    def open(self) -> None:
        """Show the row and take the keys; what was searched for last is selected."""
        self.display = True
        field = self.query_one(Input)
        field.focus()
        field.select_all()
        if field.value:
            self.post_message(self.Changed(field.value))
        else:
            self.show(0, 0, more=False)

    def close(self) -> None:
        """Hide the row."""
        self.display = False

    def show(self, number: int, count: int, *, more: bool) -> None:
        """Say which of how many places is shown."""
        if not self.query_one(Input).value:
            keys = {"next": key_name("enter"), "before": key_name("shift+enter"), "back": key_name("escape")}
            text = tr("transcript.find_keys", **keys)
        elif not count:
            text = tr("transcript.find_none")
        else:
            name = "transcript.find_count_more" if more else "transcript.find_count"
            text = tr(name, number=number, count=count)
        self.query_one("#find-count", Static).update(Content(f" {text}"))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while it is typed."""
        event.stop()
        if self.display:
            self.post_message(self.Changed(event.value))

    def action_step(self, step: int) -> None:
        """Go to another place."""
        self.post_message(self.Stepped(step))

    def action_leave(self) -> None:
        """Go back to where the search began."""
        self.post_message(self.Left(back=True))

    def action_stay(self) -> None:
        """Stay at the place that was found."""
        self.post_message(self.Left(back=False))
