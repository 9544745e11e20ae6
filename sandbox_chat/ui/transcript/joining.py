"""Older turns come into the transcript while it is read: what is in sight holds still."""

from __future__ import annotations

from .older import Older
from .surface import GUESS_AFTER, TranscriptSurface


class JoiningSurface(TranscriptSurface):
    """A transcript that may begin with its last turns."""

    def await_older(self, words: str) -> None:
        """Older turns will come by ``join``; until then ``words`` stand at the top. Only before the first event."""
        self.transcript.await_older(words)

    @property
    def layout_width(self) -> int:
        """Cells of a row of a block; 0 before it is laid out."""
        return self._layout.width

    def older_lost(self, words: str) -> None:
        """Older turns do not come; ``words`` say why."""
        self.transcript.older_lost(words)
        self._flush()

    def join(self, older: Older) -> int:
        """Put older turns before all others; return how many blocks they are."""
        self._flush()
        layout, blocks = self._layout, self.transcript.blocks
        index, row = layout.anchor
        # Where the words at the top are in sight, rows of older turns come into their place.
        shown = blocks[0].height(layout.width) - row if blocks and not index and not layout.following else 0
        count = self.transcript.prepend(older.feed)
        layout.prepend(older.heights, guessed=older.width != layout.width)
        self._storage.prepend(older.weights)
        self._marks.prepend(count)
        if self._selected >= 0:
            self._selected += count
        if not layout.width:
            return count
        changed = self.transcript.take_changed()
        layout.changed(changed, counted=False)
        if shown > 0:
            layout.move(-shown)
        self._moved()
        self._storage.note(blocks, changed, self._near)
        if self._guess_timer is None:
            self._guess_timer = self.set_timer(GUESS_AFTER, self._guess)
        return count
