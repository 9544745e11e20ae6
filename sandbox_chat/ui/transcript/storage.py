"""Moves texts of a long transcript to disk and back, and reads long ones, in threads; decisions and changes are made on the loop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .blocks import Block
from .keeper import Keeper
from .spill import Spill, Ticket


class Storage:
    """``later`` calls a function on the loop, from any thread; ``arrived`` is called with blocks that are readable again."""

    def __init__(
        self,
        spill: Spill,
        limit: int,
        *,
        later: Callable[..., Any],
        arrived: Callable[[Sequence[Block]], None],
    ) -> None:
        """``limit``: characters that stay in memory."""
        self.keeper = Keeper(limit)
        self._spill = spill
        self._later = later
        self._arrived = arrived
        self._wanted: dict[str, Block] = {}
        self._writing = False
        self._reading = False
        self._failed = False
        self._moved = 0  # by so much the numbers of blocks have grown since the beginning

    def prepend(self, weights: Sequence[int]) -> None:
        """Blocks came before all others; these are their weights."""
        self.keeper.prepend(weights)
        self._moved += len(weights)

    def note(self, blocks: Sequence[Block], indices: Iterable[int], needed: Callable[[int], bool]) -> None:
        """Blocks came or changed; when they hold too much, those that are not ``needed`` go to disk."""
        self.keeper.note(blocks, indices)
        if self._writing or self._failed:
            return
        chosen = self.keeper.surplus(blocks, needed)
        if not chosen:
            return
        self._writing = True
        moved = self._moved
        texts = [(index, blocks[index], blocks[index].revision, blocks[index].fetch()) for index in chosen]

        def write() -> None:
            done = [
                (index, block, revision, self._spill.write(text)) for index, block, revision, text in texts
            ]
            with contextlib.suppress(RuntimeError):  # the program has ended
                self._later(self._written, blocks, done, needed, moved)

        threading.Thread(target=write, name="transcript-out", daemon=True).start()

    def _written(
        self,
        blocks: Sequence[Block],
        done: Sequence[tuple[int, Block, int, Ticket | None]],
        needed: Callable[[int], bool],
        moved: int,
    ) -> None:
        self._writing = False
        by = self._moved - moved
        for index, block, revision, ticket in done:
            if ticket is None:
                self._failed = True  # there is no place for them: they stay in memory
            elif block.revision == revision and not needed(index + by):
                block.put_away(ticket)
        self.note(blocks, [index + by for index, _, _, _ in done], needed)

    def want(self, block: Block) -> None:
        """A block is to be seen: get its text."""
        if block.absent:
            self._wanted[block.id] = block
            self._read()

    def _read(self) -> None:
        if self._reading or not self._wanted:
            return
        self._reading = True
        wanted, self._wanted = list(self._wanted.values()), {}

        def read() -> None:
            loaded = [(block, block.load()) for block in wanted]
            with contextlib.suppress(RuntimeError):  # the program has ended
                self._later(self._back, loaded)

        threading.Thread(target=read, name="transcript-in", daemon=True).start()

    def _back(self, done: Sequence[tuple[Block, Callable[[], None]]]) -> None:
        self._reading = False
        for _, take in done:
            take()
        self._arrived([block for block, _ in done])
        self._read()
