"""What the list above the composer offers: commands after ``/``, files after ``@``, prompts of the history.

``Completion`` belongs to one composer, which tells it of every edit and asks it first about the keys while the
list is open.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from textual.widgets.text_area import Selection

from sandbox_chat.plain import size_text
from sandbox_chat.ui.actions import keys_of
from sandbox_chat.ui.glyphs import own
from sandbox_chat.ui.mentions import FoundFile, Tree, fitting, walk
from sandbox_chat.ui.slash import SlashCommand, offered
from sandbox_chat.ui.widgets.pick_list import Pick, PickList
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.settings import Settings
    from sandbox_chat.ui.widgets.composer import Composer

Mode = Literal["", "command", "file", "history"]

FRESH = 10.0
"""Seconds for which the files that were found are believed."""

SHOWN = 50
"""Choices that the list holds at most."""

BEFORE_AT = frozenset(" \t([{\"'")
"""What may stand before the ``@`` of a file; after anything else it is part of a word, as in an address."""


class Completion:
    """Fills the list and acts on its choice. ``mode`` says what it offers; empty while it is closed."""

    def __init__(self, composer: Composer, picks: PickList, settings: Settings) -> None:
        self.composer = composer
        self.picks = picks
        self.settings = settings
        self.mode: Mode = ""
        self._commands: list[SlashCommand] = []
        self._prompts: list[str] = []
        self._stash: tuple[str, Selection] | None = None
        self._at: tuple[int, int] | None = None
        self._tree: Tree | None = None
        self._walked = float("-inf")
        self._files: list[FoundFile] = []
        self._query: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def searching(self) -> bool:
        """True while the composer holds the words of a search and not the draft."""
        return self._stash is not None

    @property
    def stashed(self) -> str:
        """The document of the draft that a search put aside."""
        return self._stash[0] if self._stash else ""

    # -- edits and keys ----------------------------------------------------------------------------------

    def typed(self, character: str) -> None:
        """A character was typed at the cursor: an ``@`` may begin the name of a file."""
        if character == "@" and not self.searching:
            row, column = self.composer.cursor_location
            before = self.composer.document[row][: max(0, column - 1)]
            if not before or before[-1] in BEFORE_AT:
                self._at = (row, column - 1)
                self._walk()

    def update(self) -> None:
        """The draft or the cursor changed: offer what fits now."""
        if self.searching:
            self._search()
        elif (word := self.composer.command_word) is not None:
            self._offer_commands(word)
        elif (query := self._file_query()) is not None:
            self._ask_files(query)
        else:
            self._at = None
            self.close()

    def key(self, key: str) -> bool:
        """Act on a key while the list is open, or while the history is searched. Returns false for one that means nothing here."""
        if not self.mode:
            return False
        match key:
            case "up":
                self.picks.move(-1)
            case "down":
                self.picks.move(1)
            case "pageup":
                self.picks.move(-8)
            case "pagedown":
                self.picks.move(8)
            case "tab":
                self.take(complete=True)
            case "escape":
                self.cancel()
            case _ if key in keys_of("composer.send"):
                self.take()
            case _ if self.searching and key in keys_of("composer.search"):
                self.picks.move(1)
            case _ if self.searching and key in keys_of("composer.clear"):
                self.cancel()
            case _:
                return self.searching and key in keys_of("composer.newline")
        if self.mode == "history":
            self._name_place()
        return True

    def close(self) -> None:
        """Close the list; the draft stays as it is."""
        if self.mode:
            self.mode = ""
            self.picks.hide()

    def cancel(self) -> None:
        """Close the list, and bring the draft back that a search put aside."""
        self._at = None
        self._query = None
        if self._stash is not None:
            self._end_search(*self._stash)
        self.close()

    def take(self, *, complete: bool = False) -> None:
        """Take the choice. A command that needs nothing more is run, unless it is only to be completed."""
        number = self.picks.chosen
        match self.mode:
            case "command":
                self._take_command(self._commands[number], complete)
            case "file":
                self._take_file(self._files[number])
            case "history" if self._prompts:
                assert self._stash is not None
                prompt = self._prompts[number]
                self._end_search(*self._stash)
                self.composer.to_history()  # what is replaced is not lost
                self.composer.text = prompt
            case _:
                self.cancel()
        self.close()

    # -- commands ----------------------------------------------------------------------------------------

    def _offer_commands(self, word: str) -> None:
        self._commands = offered(word)
        if not self._commands:
            self.close()
            return
        self.mode = "command"
        picks = [Pick(f"/{item.word} {item.argument}".rstrip(), item.title) for item in self._commands]
        self.picks.show(own(tr("composer.commands_title")), picks)

    def _take_command(self, command: SlashCommand, complete: bool) -> None:
        needs_more = command.argument and not command.argument.startswith("[")
        run = not (complete or needs_more)
        self.composer.write_command(f"/{command.word}{' ' if command.argument and not run else ''}")
        if run:
            self.composer.send_now()

    # -- files -------------------------------------------------------------------------------------------

    def _file_query(self) -> str | None:
        """Return what was typed after the ``@``, while the cursor still stands in it."""
        if self._at is None or not self.composer.selection.is_empty:
            return None
        row, column = self.composer.cursor_location
        start_row, start = self._at
        line = self.composer.document[row]
        if row != start_row or column <= start or line[start : start + 1] != "@":
            return None
        query = line[start + 1 : column]
        return None if any(character.isspace() for character in query) or len(query) > 200 else query

    def _walk(self) -> None:
        if time.monotonic() - self._walked > FRESH:
            self._walked = time.monotonic()
            self._tree = None

    def _ask_files(self, query: str) -> None:
        self._query = query
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._find_files())

    async def _find_files(self) -> None:
        """Answer the newest question on a thread, until none is left."""
        asked = None
        while self._query is not None and (asked != self._query or self._tree is None):
            asked = self._query
            if self._tree is None:
                limits = self.settings
                self._tree = await asyncio.to_thread(
                    walk,
                    os.getcwd(),  # noqa: PTH109 - a name may be no text
                    entries=limits.files_listed,
                    depth=limits.files_depth,
                    seconds=limits.files_seconds,
                )
            found = await asyncio.to_thread(
                fitting, asked, self._tree.files, SHOWN, partial(self._is_old, asked)
            )
            if asked == self._query and self._file_query() == asked:
                self._offer_files(found)

    def _is_old(self, query: str) -> bool:
        return query != self._query

    def _offer_files(self, found: Sequence[FoundFile]) -> None:
        self._files = list(found)
        if not self._files:
            self.close()
            return
        self.mode = "file"
        assert self._tree is not None
        key = "composer.files_title" if self._tree.whole else "composer.files_more"
        title = own(tr(key, count=f"{len(self._tree.files):,}"))
        self.picks.show(title, [Pick(file.shown, size_text(file.size)) for file in self._files])

    def _take_file(self, file: FoundFile) -> None:
        assert self._tree is not None
        at, self._at, self._query = self._at, None, None
        if at is not None:
            path = os.path.join(self._tree.root, file.path)  # noqa: PTH118 - a name may be no text
            token = self.composer.tokens.mention(path, file.path, file.size)
            end = self.composer.cursor_location
            self.composer.selection = Selection(at, end)
            self.composer.put(token + " ")

    # -- history -----------------------------------------------------------------------------------------

    def search(self) -> None:
        """Put the draft aside and search the prompts of the history for what is typed now."""
        if self.searching:
            return
        self._at = self._query = None
        composer = self.composer
        composer.keep_now()
        self._stash = (composer.document_text, composer.selection)
        composer.show_search(searching=True)
        composer.load_document("")
        self._search()

    def _search(self) -> None:
        self._prompts = self.composer.prompts.search(self.composer.document_text, SHOWN)
        self.mode = "history"
        self.picks.show("", [Pick(" ".join(prompt[:500].split())) for prompt in self._prompts])
        self._name_place()

    def _name_place(self) -> None:
        if self._prompts:
            place = self.picks.chosen + 1
            title = tr("composer.search_title", place=place, count=len(self._prompts))
        else:
            title = tr("composer.search_none" if self.composer.document_text else "composer.search_empty")
        self.picks.retitle(own(title))

    def _end_search(self, document: str | None = None, selection: Selection | None = None) -> None:
        self._stash = None
        self.close()
        self.composer.show_search(searching=False)
        if document is not None:
            self.composer.load_document(document)
        if selection is not None:
            self.composer.selection = selection
