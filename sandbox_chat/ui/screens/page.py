"""Asks before a page that code made is opened in the browser: its scripts leave the sandbox with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from sandbox_chat.events import FileContent
from sandbox_chat.plain import size_text
from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.glyphs import own
from sandbox_chat.words import tr

SHOWN = 500
"""Characters of a path that are shown."""


class PageScreen(ModalScreen[None]):
    """Says what a page is and where, and opens it without or with the network, or saves it.

    ``hosts`` finds where a page loads parts from; it is called in a thread. ``chosen`` is called with the file and
    ``open``, ``online`` or ``save``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("page")]

    DEFAULT_CSS = """
    PageScreen { align: center middle; }
    #page-box { width: 76; max-width: 94%; height: auto; padding: 1 2; background: $panel; }
    #page-box Static { width: 1fr; }
    #page-path { margin: 1 0; }
    #page-keys { margin-top: 1; }
    """

    def __init__(
        self,
        files: Sequence[FileContent],
        *,
        hosts: Callable[[Path], list[str]],
        chosen: Callable[[FileContent, str], None],
    ) -> None:
        super().__init__()
        self.files = files
        self.number = 0
        self._hosts = hosts
        self._chosen = chosen

    @property
    def file(self) -> FileContent:
        """The page that is asked about."""
        return self.files[self.number]

    def compose(self) -> ComposeResult:
        """Lay out what is said."""
        with Vertical(id="page-box"):
            yield Static(Content.styled(tr("cards.page_title"), "bold"))
            yield Static(id="page-path")
            yield Static(Content(tr("cards.page_safe")))
            yield Static(id="page-hosts")
            yield Static(Content.styled(own(tr("cards.page_keys")), "$muted"), id="page-keys")

    def on_mount(self) -> None:
        """Show the first page."""
        self.action_turn(0)

    def action_turn(self, by: int) -> None:
        """Ask about another page of the same call, round and round."""
        self.number = (self.number + by) % len(self.files)
        count = f" ({self.number + 1}/{len(self.files)})" if len(self.files) > 1 else ""
        what = f"{self.file.title} · {size_text(self.file.size)}{count}"
        path = clean_line(self.file.path, SHOWN)
        self.query_one("#page-path", Static).update(
            Content.assemble((own(what), "bold"), "\n", (path, "$muted"))
        )
        self.query_one("#page-hosts").display = False
        self.run_worker(self._look(self.file), exclusive=True)

    async def _look(self, file: FileContent) -> None:
        hosts = await asyncio.to_thread(self._hosts, Path(file.path))
        if hosts and file is self.file:
            needs = tr("cards.page_needs", hosts=", ".join(hosts))
            line = self.query_one("#page-hosts", Static)
            line.display = True
            line.update(Content.assemble((needs, "$warning"), " ", tr("cards.page_online")))

    def action_choose(self, what: str) -> None:
        """Do it and close."""
        file = self.file
        self.dismiss(None)
        self._chosen(file, what)

    def action_back(self) -> None:
        """Do nothing with it."""
        self.dismiss(None)
