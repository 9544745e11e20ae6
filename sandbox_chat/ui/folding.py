"""Lines of runs folded at a width. Only what is asked for is wrapped, so the length does not matter. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sandbox_chat.ui.transcript.cells import MIN_WIDTH, TAB, Row, Run, row_width, width_of, wrap_code

KEPT = 512
"""Folded lines that are kept."""


class FoldedRow(NamedTuple):
    """A row of the screen: the number of its line from 0, whether it is the first of it, and its runs."""

    line: int
    first: bool
    row: Row


class FoldedLines:
    """Lines that are added and replaced at their end, and where each stands at ``width`` cells."""

    def __init__(self, width: int = 80) -> None:
        self.width = max(width, MIN_WIDTH)
        self.lines: list[Row] = []
        self._ends: list[int] = []  # rows up to the end of each line
        self._rows: dict[int, Sequence[Row]] = {}

    @property
    def height(self) -> int:
        """Number of rows."""
        return self._ends[-1] if self._ends else 0

    def replace(self, first: int, lines: Iterable[Row]) -> None:
        """Put ``lines`` in place of all lines from number ``first`` on."""
        del self.lines[first:], self._ends[first:]
        for number in [number for number in self._rows if number >= first]:
            del self._rows[number]
        self.lines.extend(lines)
        self._measure()

    def resize(self, width: int) -> None:
        """Fold at another width."""
        width = max(width, MIN_WIDTH)
        if width != self.width:
            self.width = width
            self._ends, self._rows = [], {}
            self._measure()

    def _measure(self) -> None:
        end = self.height
        for number in range(len(self._ends), len(self.lines)):
            end += self._count(number)
            self._ends.append(end)

    def _count(self, number: int) -> int:
        line = self.lines[number]
        size = 0
        for run in line:
            if "\t" in run.text or not run.text.isascii():
                return len(self._fold(number))
            size += len(run.text)
        return max(1, -(-size // self.width))

    def _fold(self, number: int) -> Sequence[Row]:
        found = self._rows.get(number)
        if found is None:
            line = with_tabs(self.lines[number])
            found = [line] if row_width(line) <= self.width else wrap_code(line, self.width)
            if len(self._rows) >= KEPT:
                self._rows.clear()
            self._rows[number] = found
        return found

    def row(self, index: int) -> FoldedRow | None:
        """Return a row of the screen; ``None`` when there are fewer."""
        if not 0 <= index < self.height:
            return None
        line = bisect_right(self._ends, index)
        part = index - (self._ends[line - 1] if line else 0)
        return FoldedRow(line, part == 0, self._fold(line)[part])

    def text(self) -> str:
        """Return all lines as they came."""
        return "\n".join("".join(run.text for run in line) for line in self.lines)

    def text_between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return what stands between two places, each a row and a character in it; rows of one line are one line."""
        out: list[str] = []
        for index in range(max(0, start[0]), min(end[0], self.height - 1) + 1):
            found = self.row(index)
            assert found is not None
            text = "".join(run.text for run in found.row)
            low = start[1] if index == start[0] else 0
            high = end[1] if index == end[0] else len(text)
            if out and found.first:
                out.append("\n")
            out.append(text[low:high])
        return "".join(out)


def with_tabs(line: Row) -> Row:
    """Return a line with its tabs turned into spaces up to the next stop."""
    if not any("\t" in run.text for run in line):
        return line
    out: list[Run] = []
    column = 0
    for run in line:
        pieces: list[str] = []
        for number, piece in enumerate(run.text.split("\t")):
            if number:
                step = len(TAB) - column % len(TAB)
                pieces.append(" " * step)
                column += step
            pieces.append(piece)
            column += width_of(piece)
        out.append(run._replace(text="".join(pieces)))
    return out
