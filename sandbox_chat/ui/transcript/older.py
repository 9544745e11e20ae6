"""Blocks of turns that come after later ones: made in a thread, and then put before them all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbox_chat.events import Event, TurnFinished

from .blocks import Block
from .feed import Feed
from .heights import Heights
from .scene import Scene

PREFIX = "past."
"""Begins the ids of older blocks."""
PICTURE_ROWS = 18
"""Rows that a picture is taken to have until it is looked at."""


@dataclass(frozen=True, slots=True)
class Older:
    """Blocks with their guessed heights at ``width`` cells, and the characters of text that they keep in memory."""

    feed: Feed
    heights: Heights
    width: int
    weights: Sequence[int]


class OlderBlocks:
    """Takes events in order and gives the blocks. Lives in one thread; texts go to the disk, nobody looks at them yet."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._feed = Feed(scene, prefix=PREFIX)
        self._done = 0

    def take(self, event: Event) -> None:
        """Take an event."""
        self._feed.apply(event)
        if isinstance(event, TurnFinished):
            self._put_away()

    def end(self, strays: Iterable[Event], width: int) -> Older:
        """Return the blocks. ``strays`` are events of later turns that belong to them."""
        feed = self._feed
        for event in strays:
            feed.apply(event)
        feed.end_older()
        self._put_away()
        heights = Heights(self._guess(block, width) for block in feed.blocks)
        return Older(feed, heights, width, [block.weight for block in feed.blocks])

    def _put_away(self) -> None:
        """Put the texts of the turns that have ended away."""
        blocks = self._feed.blocks
        for block in blocks[self._done :]:
            if block.weight:
                ticket = self._scene.spill.write(block.fetch())
                if ticket is not None:
                    block.put_away(ticket)
        self._done = len(blocks)

    def _guess(self, block: Block, width: int) -> int:
        if block.kind == "picture":  # its layout asks the gallery, which belongs to the loop
            return PICTURE_ROWS if self._scene.pictures is not None else 2
        return block.estimate(width)
