"""The transcript as the user handles it by keys: moving, choosing and opening of items, copying, searching."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from sandbox_chat.ui.actions import bindings_of

from .blocks import Block
from .layout import locate, text_at
from .marks import Hit
from .older import Older
from .pointer import TranscriptPointer
from .search import nearest, search, snapshot

SEARCH_AGAIN = 0.5
"""Seconds after which a search goes over what came meanwhile."""


class TranscriptView(TranscriptPointer, can_focus=True):
    """The conversation. ``feed`` takes events; the view follows the end unless the user scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("transcript")]

    @dataclass
    class ToolSelected(Message):
        """The user chose a tool call."""

        tool_use_id: str

    @dataclass
    class PictureOpened(Message):
        """The user wants to see a picture large."""

        path: str

    @dataclass
    class LinkOpened(Message):
        """The user clicked a link. Its target is from outside: ask before it is opened."""

        href: str

    @dataclass
    class CommandAsked(Message):
        """The user wants something of an item: ``open``, ``save``, ``rerun``, ``edit`` or ``page``."""

        block: Block
        command: str

    @dataclass
    class Copied(Message):
        """Text was copied."""

        count: int

    class FindAsked(Message):
        """The user wants to search."""

    @dataclass
    class Found(Message):
        """A search was done or stepped through: ``number`` of ``count`` is shown, from 1; ``more``: there are more."""

        number: int
        count: int
        more: bool = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._query = ""
        self._hits: list[Hit] = []
        self._more_hits = False
        self._origin: tuple[int, int] | None = None
        self._search_number = 0
        self._awaited = -1  # number of the place that is gone to when its text is back from disk
        self._search_timer: Timer | None = None

    def select_tool(self, tool_use_id: str | None) -> None:
        """Mark a tool call and bring it into view; ``None`` marks nothing. Posts no message."""
        card = self.transcript.cards.get(tool_use_id or "")
        if card is None:
            self._select(-1)
            return
        self._flush()
        index = self.transcript.index(card)
        self._select(index)
        self._layout.show(index)
        self._moved()

    def join(self, older: Older) -> int:
        """Put older turns before all others; see ``JoiningSurface``. A search finds what is in them too."""
        count = super().join(older)
        self._hits = [hit._replace(block=hit.block + count) for hit in self._hits]
        if self._origin is not None and self._origin[0] >= 0:
            self._origin = (self._origin[0] + count, self._origin[1])
        if self._grip is not None:
            self._grip = self._grip._replace(block=self._grip.block + count)
        if self._query:
            self._start_search(jump=False)
        return count

    # -- moving ------------------------------------------------------------------------------------------

    def scroll_end(self, **options: Any) -> None:
        """Go to the end and follow, whatever Textual would do."""
        del options
        self.end()

    def scroll_home(self, **options: Any) -> None:
        """Go to the first row, whatever Textual would do."""
        del options
        self.action_scroll_start()

    def action_scroll_rows(self, rows: int) -> None:
        """Scroll by rows."""
        self._scroll(rows)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by screens, two rows overlapping."""
        self._scroll(pages * max(1, self.size.height - 2))

    def action_scroll_start(self) -> None:
        """Go to the first row."""
        self._catch_up()
        self._layout.go_to(0, 0)
        self._moved()

    def action_scroll_last(self) -> None:
        """Go to the end and follow."""
        self.end()

    def action_turn(self, step: int) -> None:
        """Go to the prompt before or after the one at the top."""
        self._flush()
        blocks = self.transcript.blocks
        index, row = self._layout.anchor
        if step < 0 and row > 1 and index < len(blocks) and blocks[index].kind == "prompt":
            index += 1  # its beginning is out of sight: go there first
        index += step
        while 0 <= index < len(blocks):
            if blocks[index].kind == "prompt" and blocks[index].visible:
                self._layout.go_to(index, 0 if blocks[index].first else 1)
                self._moved()
                return
            index += step
        if step > 0:
            self.end()
        else:
            self.action_scroll_start()

    def show_turn(self, number: int) -> bool:
        """Bring the prompt of a turn (from 1) to the top. Returns false when it is not there."""
        self._flush()
        prompts = [index for index, block in enumerate(self.transcript.blocks) if block.kind == "prompt"]
        if not 1 <= number <= len(prompts):
            return False
        index = prompts[number - 1]
        self._layout.go_to(index, 0 if self.transcript.blocks[index].first else 1)
        self._moved()
        return True

    # -- choosing and opening ----------------------------------------------------------------------------

    def action_cursor(self, step: int) -> None:
        """Go to the next or the previous item."""
        self._flush()
        blocks = self.transcript.blocks
        start = self._selected
        if start < 0:
            seen = [item[0] for item in self._layout.visible()]
            start = (seen[-1] + 1 if step < 0 else seen[0] - 1) if seen else -1
        index = start + step
        while 0 <= index < len(blocks):
            if blocks[index].selectable:
                self._choose(index)
                self._layout.show(index)
                self._moved()
                return
            index += step

    def _choose(self, index: int) -> None:
        self._select(index)
        if tool_use_id := self.transcript.blocks[index].tool_use_id:
            self.post_message(self.ToolSelected(tool_use_id))

    def action_open(self) -> None:
        """Open the link that a key went to, or open or close the item under the cursor."""
        if self._marks.link is not None:
            self._open_link(self._marks.link.href)
            return
        if self.selected is None:
            self.action_cursor(-1)
        if self.selected is not None:
            self._act(self._selected, 1)

    def action_expand_all(self) -> None:
        """Open all items that can be opened; close them when all are open."""
        blocks = [block for block in self.transcript.blocks if block.expandable and block.visible]
        open_all = any(not block.expanded for block in blocks)
        for block in blocks:
            if open_all:
                block.expand()
            else:
                block.collapse()
        self._layout.changed([self.transcript.index(block) for block in blocks], counted=False)
        self._moved()

    def _open_link(self, href: str) -> None:
        self.post_message(self.LinkOpened(href))

    def action_link(self, step: int) -> None:
        """Go to the next or the previous link in sight."""
        links = self._links()
        if not links:
            self._marks.link = None
            return
        now = self._marks.link
        place = links.index(now) + step if now in links else 0 if step > 0 else -1
        self._marks.link = links[place % len(links)]
        self._paint()

    @property
    def last_answer(self) -> Block | None:
        """The answer that came last."""
        return next((b for b in reversed(self.transcript.blocks) if b.kind == "answer" and b.visible), None)

    def action_copy(self) -> None:
        """Copy what is selected, else the item under the cursor, else the last answer."""
        text = self.selected_text
        block = self.selected
        if not text and block is None:
            block = self.last_answer
        text = text or (block.text if block is not None else "")
        if text:
            from sandbox_chat.ui.outside import copy_text

            copy_text(self.app, text)
            self.post_message(self.Copied(len(text)))

    def action_copy_selection(self) -> None:
        """Copy what is selected; the key means something else when nothing is."""
        if self._marks.selection is None:
            raise SkipAction
        self.action_copy()

    def action_command(self, name: str) -> None:
        """Ask for something to be done with the item under the cursor."""
        block = self.selected
        if block is not None and name in block.commands:
            self.post_message(self.CommandAsked(block, name))

    def action_clear(self) -> None:
        """Clear what was found, the selection, the link and the cursor; without any the key means something else."""
        if self._query:
            self.find_done(back=False)
        elif not self.clear_selection() and self._marks.link is None and self._selected < 0:
            raise SkipAction
        self._marks.link = None
        self._selected = -1
        self._paint()

    def _act(self, index: int, row: int) -> None:
        block = self.transcript.blocks[index]
        action = block.action(row)
        if action is None:
            return
        if action.kind == "picture":
            self.post_message(self.PictureOpened(action.path))
            return
        # A card that is opened grows downwards; the view stays where it is.
        was_following = self._layout.following
        block.toggle()
        top = self._layout.top
        self._layout.following = False
        self._layout.go(top)
        self._layout.changed([index], counted=False)
        if was_following and self._layout.max_top <= top:
            self._layout.go_end()
        self._layout.show(index)
        self._moved()

    # -- searching ---------------------------------------------------------------------------------------

    def action_find(self) -> None:
        """Ask for what to search."""
        self.post_message(self.FindAsked())

    def find(self, query: str) -> None:
        """Search for ``query`` from where the view is; ``Found`` tells the outcome. Empty marks nothing."""
        if self._origin is None:
            self._origin = (-1, 0) if self._layout.following else self._layout.anchor
        self._query = query
        self._start_search(jump=True)

    def find_done(self, *, back: bool) -> None:
        """End the search, and go back to where it began if so wanted."""
        origin, self._origin = self._origin, None
        self._query, self._hits = "", []
        self._search_number += 1
        self._marks.find((), None)
        if back and origin is not None:
            if origin[0] < 0:
                self._layout.go_end()
            else:
                self._layout.go_to(*origin)
        self._moved()

    def action_find_step(self, step: int) -> None:
        """Go to the next or the previous place that was found; the key means something else when none was."""
        if not self._hits:
            raise SkipAction
        self.find_step(step)

    def find_step(self, step: int) -> None:
        """Go to the next or the previous place that was found."""
        if not self._hits:
            return
        now = self._marks.now
        place = self._hits.index(now) + step if now in self._hits else 0
        self._go_to_hit(place % len(self._hits))

    def _start_search(self, *, jump: bool) -> None:
        self._search_number += 1
        number = self._search_number
        query = self._query
        if not query:
            self._hits = []
            self._marks.find((), None)
            self._paint()
            self.post_message(self.Found(0, 0))
            return
        texts = snapshot(self.transcript.blocks)

        def run() -> None:
            hits, more = search(texts, query, lambda: number != self._search_number)
            with contextlib.suppress(RuntimeError):  # the program has ended
                self.call_later(self._take_hits, number, hits, more, jump)

        threading.Thread(target=run, name="search", daemon=True).start()

    def _take_hits(self, number: int, hits: list[Hit], more: bool, jump: bool) -> None:
        if number != self._search_number:
            return
        self._hits, self._more_hits = hits, more
        if jump and hits:
            self._go_to_hit(nearest(hits, self._search_place()))
            return
        now = self._marks.now if self._marks.now in hits else None
        self._marks.find(hits, now)
        self._paint()
        self._tell_found()

    def _search_place(self) -> tuple[int, int, int]:
        """Return where the search began, as a place in the text."""
        index, row = self._layout.anchor if self._origin is None or self._origin[0] < 0 else self._origin
        if not 0 <= index < len(self.transcript.blocks):
            return (0, 0, 0)
        return (index, *(text_at(self.transcript.blocks[index], self._layout.width, row) or (0, 0)))

    def _go_to_hit(self, number: int) -> None:
        hit = self._hits[number]
        self._marks.find(self._hits, hit)
        layout = self._layout
        block = self.transcript.blocks[hit.block]
        self._awaited = number if block.absent else -1
        if block.absent:
            self._storage.want(block)
            return
        row = locate(block, layout.width, hit.part, hit.start)
        source = block.row_source(layout.width, row)
        if block.expandable and not block.expanded and (source is None or source[0] != hit.part):
            block.expand()
            layout.changed([hit.block], counted=False)
            row = locate(block, layout.width, hit.part, hit.start)
        layout.show_row(hit.block, row)
        self._moved()
        self._tell_found()

    def _texts_came(self, blocks: Sequence[Block]) -> None:
        # First there, then the rest: what is not in sight may be let go of at once.
        if 0 <= self._awaited < len(self._hits) and self._layout.width:
            self._go_to_hit(self._awaited)
        super()._texts_came(blocks)

    def _tell_found(self) -> None:
        now = self._marks.now
        number = self._hits.index(now) + 1 if now in self._hits else 0
        self.post_message(self.Found(number, len(self._hits), self._more_hits))

    def _flush(self) -> None:
        super()._flush()
        if self._query and self._search_timer is None:
            self._search_timer = self.set_timer(SEARCH_AGAIN, self._search_again)

    def _search_again(self) -> None:
        self._search_timer = None
        if self._query:
            self._start_search(jump=False)
