"""Shows where a link leads, and opens or copies it when the user says so."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.desktop import open_link
from sandbox_chat.ui.outside import copy_text
from sandbox_chat.words import tr

SHOWN = 1000
"""Characters of an address that are shown."""


class LinkScreen(ModalScreen[None]):
    """Asks before an address from the transcript is opened: the words of a link need not be its target."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("link")]

    def __init__(self, href: str) -> None:
        super().__init__()
        self.href = href

    def compose(self) -> ComposeResult:
        """Lay out the address."""
        with Vertical(id="link-box"):
            yield Static(Content.styled(tr("dialogs.link"), "bold"))
            yield Static(Content(clean_line(self.href, SHOWN)), id="link-href")
            yield Static(Content.styled(tr("dialogs.link_keys"), "$muted"))

    def action_open(self) -> None:
        """Open the address in the browser."""
        self.dismiss(None)
        open_link(self.app, self.href)

    def action_copy(self) -> None:
        """Copy the address."""
        copy_text(self.app, self.href)
        self.dismiss(None)

    def action_back(self) -> None:
        """Do nothing with it."""
        self.dismiss(None)
