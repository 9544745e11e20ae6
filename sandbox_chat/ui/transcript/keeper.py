"""Keeps the memory of a long transcript bounded: decides which texts go to disk. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .blocks import Block

AT_ONCE = 200
"""Blocks that are put away in one go at most."""
LOW = 0.8
"""Part of the limit that is kept when there was too much."""


class Keeper:
    """Adds up what the blocks hold, and names those that were not seen for longest."""

    def __init__(self, limit: int) -> None:
        """``limit`` is in characters."""
        self.limit = limit
        self.held = 0
        self._weights: dict[int, int] = {}
        self._next = 0

    def note(self, blocks: Sequence[Block], indices: Iterable[int]) -> None:
        """These blocks came or changed."""
        for index in indices:
            weight = blocks[index].weight
            self.held += weight - self._weights.get(index, 0)
            if weight:
                self._weights[index] = weight
            else:
                self._weights.pop(index, None)

    def prepend(self, weights: Sequence[int]) -> None:
        """Blocks came before all others; these are their weights."""
        count = len(weights)
        self._weights = {index + count: weight for index, weight in self._weights.items()}
        self._weights.update((index, weight) for index, weight in enumerate(weights) if weight)
        self.held += sum(weights)
        self._next += count

    def surplus(self, blocks: Sequence[Block], needed: Callable[[int], bool]) -> list[int]:
        """Return which blocks to put away, the oldest first; none of those that are ``needed`` soon."""
        over = self.held - self.limit * LOW if self.held > self.limit else 0
        out: list[int] = []
        for _ in range(len(blocks)):
            if over <= 0 or len(out) >= AT_ONCE:
                break
            index, self._next = self._next % len(blocks), self._next + 1
            weight = self._weights.get(index, 0)
            if weight and not needed(index):
                out.append(index)
                over -= weight
        return out
