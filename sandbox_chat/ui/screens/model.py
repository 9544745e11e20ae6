"""Asks for the name of another model."""

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

NAME_LIMIT = 200


class ModelScreen(ModalScreen[str]):
    """Takes a model's name; an empty result means that nothing is changed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("model")]

    def __init__(self, present: str) -> None:
        super().__init__()
        self._present = present

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="model-box"):
            yield Static(Content.styled(tr("dialogs.model"), "bold"))
            name = Entry(value=self._present, max_length=NAME_LIMIT, id="model-name", compact=True)
            name.cursor_blink = False
            yield name
            yield Static(Content.styled(tr("dialogs.model_keys"), "$muted"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Use the name."""
        event.stop()
        name = "".join(event.value.split())
        self.dismiss(name if name != self._present else "")

    def action_cancel(self) -> None:
        """Change nothing."""
        self.dismiss("")
