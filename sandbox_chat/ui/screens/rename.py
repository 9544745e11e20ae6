"""Asks for another title of a session."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.words import tr

TITLE_LIMIT = 80


class RenameScreen(ModalScreen[str | None]):
    """Takes a title; ``None`` means that nothing is changed, an empty one the title of the first prompt."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("rename")]

    DEFAULT_CSS = """
    RenameScreen { align: center middle; background: $background 60%; }
    #rename-box { width: 66; max-width: 94%; height: auto; padding: 1 2; background: $panel; }
    #rename-box Input { margin: 1 0; width: 1fr; }
    """

    def __init__(self, present: str) -> None:
        super().__init__()
        self._present = present

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="rename-box"):
            yield Static(Content.styled(tr("sessions.rename"), "bold"))
            title = Entry(value=self._present, max_length=TITLE_LIMIT, id="rename-title", compact=True)
            title.cursor_blink = False
            yield title
            yield Static(Content.styled(tr("sessions.rename_keys"), "$muted"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Use the title."""
        event.stop()
        title = " ".join(event.value.split())
        self.dismiss(title if title != self._present else None)

    def action_cancel(self) -> None:
        """Change nothing."""
        self.dismiss(None)
