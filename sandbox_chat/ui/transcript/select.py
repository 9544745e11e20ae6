"""What is selected in a transcript: two places in the text, kept through reflow, scrolling and streaming.

A place is a block, a part of its plain text and a stretch of characters there, never a row or a column. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .blocks import Block
from .cells import Row, split_cells, width_of

_WORD = re.compile(r"\w+", re.UNICODE)
_FAR = 1 << 60


class Place(NamedTuple):
    """A stretch of characters: one that the mouse is on, a word, a line; empty behind the end of a row."""

    block: int
    part: int
    at: int
    until: int


@dataclass(slots=True)
class Selection:
    """From one place to another, whichever comes first."""

    anchor: Place
    head: Place

    @property
    def start(self) -> tuple[int, int, int]:
        """Block, part and offset of the first character."""
        first = min(self.anchor, self.head)
        return first.block, first.part, first.at

    @property
    def end(self) -> tuple[int, int, int]:
        """Block, part and offset behind the last character."""
        last = max((place.block, place.part, place.until) for place in (self.anchor, self.head))
        return last[0], last[1], last[2]

    def moved(self, count: int) -> Selection:
        """Return the same text after ``count`` blocks came before all others."""
        first, last = (place._replace(block=place.block + count) for place in (self.anchor, self.head))
        return Selection(first, last)

    def within(self, block: int, part: int) -> tuple[int, int] | None:
        """Return where the selection begins and ends in a part of a block; ``None`` when it does not touch it."""
        first, last = self.start, self.end
        if not first[:2] <= (block, part) <= last[:2]:
            return None
        begin = first[2] if first[:2] == (block, part) else 0
        end = last[2] if last[:2] == (block, part) else _FAR
        return (begin, end) if begin < end else None

    def text(self, blocks: Sequence[Block]) -> str:
        """Return the selected text: as it is read, without rows' ends, margins and marks."""
        first, last = self.start, self.end
        out: list[str] = []
        for number in range(first[0], min(last[0], len(blocks) - 1) + 1):
            block = blocks[number]
            if not block.visible:
                continue
            begin = first[1] if number == first[0] else 0
            end = last[1] if number == last[0] else block.parts - 1
            pieces: list[str] = []
            for part in range(begin, end + 1):
                inside = self.within(number, part)
                if inside is None:
                    continue
                if pieces:
                    pieces.append(block.separator(part - 1))
                pieces.append(block.source(part, *inside))
            if joined := "".join(pieces):
                out.append(joined)
        return "\n\n".join(out)


def place_in_row(row: Row, x: int) -> tuple[int, int] | None:
    """Return the character at cell ``x`` of a row as (start, end), empty behind its text; ``None`` without any text."""
    used = 0
    found: tuple[int, int] | None = None
    for run in row:
        size = width_of(run.text)
        if run.at >= 0:
            if x < used:
                return found or (run.at, run.at)
            if x < used + size:
                before = len(split_cells(run.text, x - used)[0])
                shown = split_cells(run.text[before:], 2)[0] if not run.text.isascii() else run.text[before]
                head = split_cells(shown, 1)[0] or shown
                return run.at + before, run.at + before + len(head)
            found = (run.at + len(run.text),) * 2
        used += size
    return found


def place_at(blocks: Sequence[Block], width: int, block: int, row: int, x: int) -> Place | None:
    """Return the place at a cell of a block's row, or the nearest one in the rows around it."""
    item = blocks[block]
    height = item.height(width)
    for number in (row, *range(row + 1, min(row + 3, height)), *range(row - 1, max(row - 3, -1), -1)):
        source = item.row_source(width, number) if 0 <= number < height else None
        if source is None:
            continue
        found = place_in_row(source[1], x if number == row else 0 if number > row else _FAR)
        if found is not None:
            return Place(block, source[0], *found)
    return None


def word_at(blocks: Sequence[Block], place: Place) -> Place:
    """Return the word at a place; a sign that is in no word stands for itself."""
    text = blocks[place.block].plain(place.part)
    begin = text.rfind("\n", 0, place.at) + 1
    for match in _WORD.finditer(text, begin, min(len(text), place.at + 400)):
        if match.start() <= place.at < match.end():
            return place._replace(at=match.start(), until=match.end())
        if match.start() > place.at:
            break
    return place._replace(until=min(len(text), max(place.until, place.at + 1)))


def line_at(blocks: Sequence[Block], place: Place) -> Place:
    """Return the line of the text at a place: a paragraph of prose, a line of code."""
    text = blocks[place.block].plain(place.part)
    end = text.find("\n", place.at)
    return place._replace(at=text.rfind("\n", 0, place.at) + 1, until=len(text) if end < 0 else end)


def spans(row: Row, begin: int, end: int) -> list[tuple[int, int]]:
    """Return the cells (start, end) of a row that show the characters from ``begin`` to ``end`` of its text."""
    out: list[tuple[int, int]] = []
    used = 0
    for run in row:
        size = width_of(run.text)
        if run.at >= 0 and run.at < end and run.at + len(run.text) > begin:
            left = used + width_of(run.text[: max(0, begin - run.at)])
            right = used + width_of(run.text[: end - run.at])
            if out and out[-1][1] == left:
                out[-1] = (out[-1][0], right)
            elif right > left:
                out.append((left, right))
        used += size
    return out
