"""Which rows of which blocks are on the screen. Pure: knows widths and heights, no widget.

Only what is seen, and the end of what just changed, is measured; the rest has estimated heights. The place is kept as
*block and row within it*, and a block that corrects its own estimates says where that row went (``Block.prepare``),
so what is read does not move.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .blocks import Block
from .heights import Heights

if TYPE_CHECKING:
    from textual.strip import Strip

EXACT_AT_ONCE = 32
"""Blocks that changed together and are measured at once; when more come (a replay), the unseen are estimated."""
EXACT_ROWS = 80
"""Rows at the end of a changed block that are measured although they are not seen, to count what is new."""
GUESSED_AT_ONCE = 400
"""Blocks whose heights are guessed anew in one slice after the width changed."""


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
        self._stale = 0  # blocks before this one still have the guesses of another width
        self._fresh: set[int] = set()  # those of them that were measured since
        self._recent: OrderedDict[int, int] = OrderedDict()  # rows of measured blocks, the latest last
        self._recent_rows = 0
        self._anchor = (0, 0)

    @property
    def total(self) -> int:
        """Number of all rows, as known now."""
        return self._heights.total

    @property
    def max_top(self) -> int:
        """The largest ``top``."""
        return max(0, self.total - self.height)

    @property
    def anchor(self) -> tuple[int, int]:
        """The block at the top of the view, and its row there."""
        return self._anchor

    def resize(self, width: int, height: int) -> None:
        """Take a new size. After a new width only what is seen is measured; ``guess`` corrects the rest in slices."""
        if width != self.width:
            kept = None if self.following or not self.width else self._content()
            self.width = width
            self._fresh.clear()
            self._stale = len(self._heights)
            if kept is not None:
                index, part, at = kept
                self._anchor = (index, locate(self.blocks[index], width, part, at))
        self.height = height
        self.settle()

    def guess(self, count: int = GUESSED_AT_ONCE) -> bool:
        """Guess the heights of the next ``count`` blocks anew, from the end. Returns true while some are left."""
        stop = max(0, self._stale - count)
        for index in range(self._stale - 1, stop - 1, -1):
            if index not in self._fresh:
                self._guess(index)
        self._stale = stop
        if not stop:
            self._fresh.clear()
        self.top = self._row_of(self._anchor) if not self.following else self.max_top
        return stop > 0

    def changed(self, indices: Iterable[int], *, counted: bool = True) -> None:
        """Blocks changed, or came at the end. Rows that come below the view are counted as unseen, if so wanted."""
        fresh = len(self._heights)
        self._take_new()
        marked = sorted(indices)
        few = len(marked) <= EXACT_AT_ONCE
        bottom = self._row_of(self._anchor) + self.height
        grown = 0
        for index in marked:
            below = index >= fresh or self._heights.offset(index) + self._heights[index] >= bottom
            growth = self._remeasure(index) if few else self._guess(index)
            if below:
                grown += growth
        if counted and not self.following:
            self.unseen = max(0, self.unseen + grown)
        self.settle()

    def _remeasure(self, index: int) -> int:
        """Measure the end of a block that changed. Returns by how much it grew."""
        at, row = self._anchor
        if self.following and index < at:
            return self._guess(index)
        block = self.blocks[index]
        if self.following or index != at:
            block.prepare_end(self.width, EXACT_ROWS)
        elif block.height(self.width) - row - self.height <= EXACT_ROWS:
            # Measured from the view on: what stands above it is left alone, or what is read would move.
            self._anchor = (at, block.prepare(self.width, row, self.height + 2 * EXACT_ROWS))
        return self._take_height(index)

    def _guess(self, index: int) -> int:
        return self._heights.set(index, self.blocks[index].estimate(self.width))

    def settle(self) -> None:
        """Measure what is seen, correct the heights, and find the top row."""
        self._take_new()
        if not self.blocks or self.height <= 0:
            self.top = 0
            return
        if self.following:
            self._settle_at_end()
        else:
            self._settle_at_anchor()

    def _settle_at_end(self) -> None:
        self._measure_end()
        self.top = self.max_top
        self.unseen = 0
        self._anchor = self._heights.find(self.top)

    def _measure_end(self) -> None:
        left = self.height
        index = len(self.blocks) - 1
        while index >= 0 and left > 0:
            self.blocks[index].prepare_end(self.width, left)
            self._take_height(index)
            left -= self._heights[index]
            index -= 1

    def _settle_at_anchor(self) -> None:
        index, row = self._anchor
        row = self._prepare(index, row, self.height)
        self._anchor = (index, row)
        left = self.height - (self._heights[index] - row)
        below = index + 1
        while below < len(self.blocks) and left > 0:
            self._prepare(below, 0, left)
            left -= self._heights[below]
            below += 1
        if left > 0:
            # Nothing stands below: the last rows fill the view.
            self._measure_end()
            self.top = self.max_top
            self._anchor = self._heights.find(self.top)
        else:
            self.top = self._heights.offset(index) + row

    def move(self, rows: int) -> None:
        """Move the view by exactly ``rows`` rows, down if positive. Reaching the end makes it follow."""
        if not self.blocks:
            return
        self._take_new()
        index, row = self._anchor
        if rows < 0:
            self._go(*self._up(index, row, -rows))
        else:
            self._go(*self._down(index, row, rows))

    def _up(self, index: int, row: int, rows: int) -> tuple[int, int]:
        """Return the place ``rows`` rows above, measuring what lies between."""
        row = self._prepare(index, row, 1) if row < self._heights[index] else self._heights[index]
        while rows:
            if row <= 0:
                if not index:
                    break
                index -= 1
                self.blocks[index].prepare_end(self.width, rows)
                self._take_height(index)
                row = self._heights[index]
                continue
            # What stands above is measured row by row: the rows below it keep their distance to the block's end.
            after = self._heights[index] - row
            self.blocks[index].prepare(self.width, row - 1, 1)
            self._take_height(index)
            row = max(self._heights[index] - after, 1) - 1
            rows -= 1
        return index, max(row, 0)

    def _down(self, index: int, row: int, rows: int) -> tuple[int, int]:
        """Return the place ``rows`` rows below, measuring what lies between."""
        row = self._prepare(index, row, rows + 1) + rows
        while row >= self._heights[index] and index + 1 < len(self.blocks):
            row -= self._heights[index]
            index += 1
            self._prepare(index, 0, row + 1)
        return index, row

    def go(self, top: int) -> None:
        """Make ``top`` the first visible row, as near as heights are known."""
        if self.blocks:
            self._take_new()
            self._go(*self._heights.find(max(0, top)))

    def go_to(self, index: int, row: int) -> None:
        """Make a row of a block the first visible one."""
        self._take_new()
        self._go(index, row)

    def go_end(self) -> None:
        """Go to the end and follow."""
        self.following = True
        self.settle()

    def show(self, index: int) -> None:
        """Bring a block into view with as little movement as possible."""
        self._take_new()
        self._prepare(index, 0, self.height)
        first = self._heights.offset(index)
        last = first + self._heights[index]
        if first >= self.top and last <= self.top + self.height:
            return
        if first < self.top or last - first >= self.height:
            self._go(index, 0)
        else:
            self._go(*self._up(index, self._heights[index], self.height))

    def show_row(self, index: int, row: int) -> None:
        """Bring a row of a block into view; one that is not in sight comes to the upper third."""
        self._take_new()
        row = self._prepare(index, row, 1)
        place = self._heights.offset(index) + row
        if not self.top <= place < self.top + self.height:
            self._go(*self._up(index, row, self.height // 3))

    def _go(self, index: int, row: int) -> None:
        self.following = False
        self._anchor = (index, row)
        self.settle()
        if self.top >= self.max_top:
            self.go_end()

    def prepend(self, heights: Heights, *, guessed: bool) -> None:
        """Blocks came before all others; ``heights`` are theirs, and belong to the layout from now on.

        What is seen stays where it is. ``guessed``: they were guessed at another width.
        """
        count = len(heights)
        for index in range(len(self._heights)):
            heights.append(self._heights[index])
        self._heights = heights
        self._anchor = (self._anchor[0] + count, self._anchor[1])
        self._fresh = {index + count for index in self._fresh}
        self._recent = OrderedDict((index + count, rows) for index, rows in self._recent.items())
        if guessed or self._stale:
            self._stale += count
        self.top = self._row_of(self._anchor) if not self.following else self.max_top

    def _take_new(self) -> None:
        """Give a place to blocks that came since: the list grows before ``changed`` tells of it, and keys come between."""
        for _ in range(len(self._heights), len(self.blocks)):
            self._heights.append(0)

    def _row_of(self, place: tuple[int, int]) -> int:
        return self._heights.offset(place[0]) + place[1] if self.blocks else 0

    def _prepare(self, index: int, row: int, count: int) -> int:
        row = self.blocks[index].prepare(self.width, row, count)
        self._take_height(index)
        return max(0, min(row, self._heights[index] - 1))

    def _take_height(self, index: int) -> int:
        if index < self._stale:
            self._fresh.add(index)
        height = self.blocks[index].height(self.width)
        self._recent_rows += height - self._recent.pop(index, 0)
        self._recent[index] = height
        return self._heights.set(index, height)

    def trim(self, rows: int) -> None:
        """Let blocks that were seen longest ago forget their rows, until at most ``rows`` are kept."""
        seen = self._anchor[0]
        while self._recent_rows > rows and len(self._recent) > 1:
            index = next(iter(self._recent))
            if index >= seen and self._heights.offset(index) < self.top + self.height:
                break  # in sight, so all that were measured later are needed too
            self._recent_rows -= self._recent.pop(index)
            self.blocks[index].forget()

    def _content(self) -> tuple[int, int, int] | None:
        """Return block, part and offset of the text at the top of the view."""
        index, row = self._anchor
        if index >= len(self.blocks):
            return None
        place = text_at(self.blocks[index], self.width, row)
        return None if place is None else (index, *place)

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
            stop = min(row + left, self._heights[index])
            if stop > row:
                for number, strip in enumerate(self.blocks[index].strips(self.width, row, stop), row):
                    yield index, number, strip
                left -= stop - row
            index += 1
            row = 0


def text_at(block: Block, width: int, row: int, stop: int = 0) -> tuple[int, int] | None:
    """Return part and offset of the first text in a row of a block, or in one of the rows after it, before ``stop``."""
    for number in range(row, stop or row + 4):
        if number >= block.height(width):
            break
        source = block.row_source(width, number)
        if source is not None:
            for run in source[1]:
                if run.at >= 0:
                    return source[0], run.at
    return None


def locate(block: Block, width: int, part: int, at: int) -> int:
    """Return the row of a block that shows the character ``at`` of a part of its text.

    Searches by halves, so of a large block only a few places are measured.
    """
    block.prepare(width, 0, 1)
    block.prepare_end(width, 1)
    low, high = 0, max(0, block.height(width) - 1)
    goal = (part, at)
    while low < high:
        # What is at ``low`` was measured and stays; what comes behind the middle keeps its distance to the end.
        before = block.height(width)
        middle = max(block.prepare(width, (low + high + 1) // 2, 1), low + 1)
        high += block.height(width) - before
        before = block.height(width)
        place = text_at(block, width, middle, high + 1)
        high = min(high + block.height(width) - before, block.height(width) - 1)
        if middle > high:
            break
        if place is None or place > goal:
            high = middle - 1
        else:
            low = middle
    return low
