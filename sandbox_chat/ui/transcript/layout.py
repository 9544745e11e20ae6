"""Which rows of which blocks are on the screen. Pure: knows widths and heights, no widget.

Only blocks that are seen, and those that just changed, are drawn; the others have estimated heights.
The place is kept as *block and row within it*, so it does not move when an estimate above is corrected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .blocks import Block
from .heights import Heights

if TYPE_CHECKING:
    from textual.strip import Strip

EXACT_AT_ONCE = 32
"""Blocks that changed together and are drawn at once; when more come (a replay), the unseen are estimated."""


class Layout:
    """The place in a list of blocks at one width and height.

    ``top`` is the first visible row, counted with the heights as known now. While ``following`` the last
    row stays at the bottom.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.width = 0
        self.height = 0
        self.following = True
        self.unseen = 0
        self.top = 0
        self._heights = Heights()
        self._exact: set[int] = set()
        self._anchor = (0, 0)

    @property
    def total(self) -> int:
        """Number of all rows."""
        return self._heights.total

    @property
    def max_top(self) -> int:
        """The largest ``top``."""
        return max(0, self.total - self.height)

    def resize(self, width: int, height: int) -> None:
        """Take a new size. A new width makes all heights estimates again."""
        if width != self.width:
            self.width = width
            self._heights = Heights(block.estimate(width) for block in self.blocks)
            self._exact.clear()
        self.height = height
        self.settle()

    def changed(self, indices: Iterable[int]) -> None:
        """Blocks changed, or came at the end. Rows that come below the view are counted as unseen."""
        fresh = len(self._heights)
        self._take_new()
        marked = sorted(indices)
        few = len(marked) <= EXACT_AT_ONCE
        bottom = self._anchor_row() + self.height
        grown = 0
        for index in marked:
            self._exact.discard(index)
            below = index >= fresh or self._heights.offset(index) + self._heights[index] >= bottom
            if few:
                growth = self._measure(index)
            else:
                growth = self._heights.set(index, self.blocks[index].estimate(self.width))
            if below:
                grown += growth
        if not self.following:
            self.unseen = max(0, self.unseen + grown)
        self.settle()

    def settle(self) -> None:
        """Draw what is seen, correct the heights, and find the top row."""
        self._take_new()
        if not self.blocks or self.height <= 0:
            self.top = 0
            return
        if self.following:
            self._settle_at_end()
        else:
            self._settle_at_anchor()

    def _settle_at_end(self) -> None:
        left = self.height
        index = len(self.blocks) - 1
        while index >= 0 and left > 0:
            self._measure(index)
            left -= self._heights[index]
            index -= 1
        self.top = self.max_top
        self.unseen = 0
        self._anchor = self._heights.find(self.top)

    def _settle_at_anchor(self) -> None:
        index, row = self._anchor
        self._measure(index)
        row = max(0, min(row, self._heights[index] - 1))
        self._anchor = (index, row)
        left = self.height + row
        below = index
        while below < len(self.blocks) and left > 0:
            self._measure(below)
            left -= self._heights[below]
            below += 1
        self.top = self._heights.offset(index) + row
        if self.top > self.max_top:
            # Nothing stands below: the last rows fill the view.
            above = index
            need = self.top - self.max_top
            while above > 0 and need > 0:
                above -= 1
                self._measure(above)
                need -= self._heights[above]
            self.top = self.max_top
            self._anchor = self._heights.find(self.top)

    def move(self, rows: int) -> None:
        """Move the view by exactly ``rows`` rows, down if positive. Reaching the end makes it follow."""
        if not self.blocks:
            return
        self._take_new()
        index, row = self._anchor
        row += rows
        while row < 0 and index > 0:
            index -= 1
            self._measure(index)
            row += self._heights[index]
        row = max(row, 0)
        while index + 1 < len(self.blocks):
            self._measure(index)
            if row < self._heights[index]:
                break
            row -= self._heights[index]
            index += 1
        self._go(index, row)

    def go(self, top: int) -> None:
        """Make ``top`` the first visible row, as near as heights are known."""
        if self.blocks:
            self._go(*self._heights.find(max(0, top)))

    def go_end(self) -> None:
        """Go to the end and follow."""
        self.following = True
        self.settle()

    def show(self, index: int) -> None:
        """Bring a block into view with as little movement as possible."""
        self._take_new()
        self._measure(index)
        first = self._heights.offset(index)
        last = first + self._heights[index]
        if first >= self.top and last <= self.top + self.height:
            return
        if first < self.top or last - first >= self.height:
            self._go(index, 0)
        else:
            self.move(last - self.top - self.height)

    def _go(self, index: int, row: int) -> None:
        self.following = False
        self._anchor = (index, row)
        self.settle()
        if self.top >= self.max_top:
            self.go_end()

    def _take_new(self) -> None:
        """Give a place to blocks that came since: the list grows before ``changed`` tells of it, and keys come between."""
        for _ in range(len(self._heights), len(self.blocks)):
            self._heights.append(0)

    def _anchor_row(self) -> int:
        index, row = self._anchor
        return self._heights.offset(index) + row if self.blocks else 0

    def _measure(self, index: int) -> int:
        if index in self._exact:
            return 0
        self._exact.add(index)
        return self._heights.set(index, self.blocks[index].height(self.width))

    def find(self, y: int) -> tuple[int, int] | None:
        """Return the block and its row at ``y`` rows below the top; ``None`` below the last row."""
        row = self.top + y
        if not 0 <= row < self.total:
            return None
        return self._heights.find(row)

    def visible(self) -> Iterator[tuple[int, int, Strip]]:
        """Yield block, row of the block and strip for each visible row."""
        if not self.blocks or not self.total:
            return
        index, row = self._heights.find(self.top)
        left = min(self.height, self.total - self.top)
        while left > 0 and index < len(self.blocks):
            rows = self.blocks[index].rows(self.width)
            for number in range(row, len(rows)):
                if left <= 0:
                    return
                yield index, number, rows[number]
                left -= 1
            index += 1
            row = 0
