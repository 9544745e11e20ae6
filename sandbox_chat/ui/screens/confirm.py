"""Asks before something that cannot be taken back."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.words import tr


class ConfirmScreen(ModalScreen[bool]):
    """Shows a question, what it is about, and the word for yes. True only for a clear yes."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("confirm")]

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; background: $background 60%; }
    #confirm-box { width: 66; max-width: 94%; height: auto; max-height: 90%; padding: 1 2; background: $panel; }
    #confirm-box Static { width: 1fr; }
    #confirm-detail { margin: 1 0; }
    """

    def __init__(self, question: str, detail: str, yes: str) -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._yes = yes

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        yes = f"{key_of('confirm.yes')} {self._yes}"
        no = tr("sessions.no", key=key_of("confirm.no"))
        with Vertical(id="confirm-box"):
            yield Static(Content.styled(self._question, "bold"))
            yield Static(Content(self._detail), id="confirm-detail")
            yield KeyLine([(yes, "screen.yes"), (no, "screen.no")])

    def action_yes(self) -> None:
        """Do it."""
        self.dismiss(True)

    def action_no(self) -> None:
        """Leave it."""
        self.dismiss(False)
