"""Where each block begins: heights of blocks with quick sums (a Fenwick tree)."""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """Heights by index. Sum of a prefix, change of one and search by row all take logarithmic time."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        self._values: list[int] = []
        self._tree: list[int] = [0]
        self.total = 0
        for value in values:
            self.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    def append(self, value: int) -> None:
        """Add a block at the end."""
        self._values.append(value)
        self.total += value
        place = len(self._values)
        # A node of the tree holds the sum of as many values before it as its lowest bit says.
        total, step = value, 1
        while place & step == 0:
            total += self._tree[place - step]
            step <<= 1
        self._tree.append(total)

    def pop(self) -> None:
        """Remove the block at the end."""
        self.total -= self._values.pop()
        self._tree.pop()

    def set(self, index: int, value: int) -> int:
        """Change the height of a block. Returns by how much it grew."""
        growth = value - self._values[index]
        if growth:
            self._values[index] = value
            self.total += growth
            place = index + 1
            while place < len(self._tree):
                self._tree[place] += growth
                place += place & -place
        return growth

    def offset(self, index: int) -> int:
        """Return the first row of a block: the sum of all heights before it."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index -= index & -index
        return total

    def find(self, row: int) -> tuple[int, int]:
        """Return the block that holds ``row`` and the row within it. Rows outside give the nearest block."""
        if not self._values:
            return 0, 0
        row = max(0, min(row, self.total - 1))
        place, left = 0, row
        step = 1 << (len(self._values).bit_length() - 1)
        while step:
            at = place + step
            if at < len(self._tree) and self._tree[at] <= left:
                place = at
                left -= self._tree[at]
            step >>= 1
        if place >= len(self._values):
            place = len(self._values) - 1
            left = max(self._values[place] - 1, 0)
        return place, left
