"""What is laid over the rows of a transcript: the selection, what was searched for, the link that a key went to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .select import Selection, spans

if TYPE_CHECKING:
    from rich.style import Style

    from .blocks import Block
    from .palette import Palette

Span = tuple[int, int, "Style"]


class Hit(NamedTuple):
    """A place where the searched text stands: block, part of its plain text, first character, and the one behind it."""

    block: int
    part: int
    start: int
    end: int


class Link(NamedTuple):
    """A link in sight: its block and row, its cells there, and where it leads."""

    block: int
    row: int
    start: int
    end: int
    href: str


class Marks:
    """All marks of one transcript."""

    def __init__(self) -> None:
        self.selection: Selection | None = None
        self.link: Link | None = None
        self.now: Hit | None = None
        self._hits: Mapping[tuple[int, int], Sequence[Hit]] = {}

    @property
    def any(self) -> bool:
        """True when rows may have marks."""
        return self.selection is not None or self.link is not None or bool(self._hits)

    def find(self, hits: Sequence[Hit], now: Hit | None) -> None:
        """Mark ``hits``, which are in order, and ``now`` as the one that was gone to."""
        found: dict[tuple[int, int], list[Hit]] = {}
        for hit in hits:
            found.setdefault((hit.block, hit.part), []).append(hit)
        self._hits = found
        self.now = now

    def prepend(self, count: int) -> None:
        """So many blocks came before all others. What was searched for is to be found again."""
        if self.selection is not None:
            self.selection = self.selection.moved(count)
        if self.link is not None:
            self.link = self.link._replace(block=self.link.block + count)
        if self.now is not None:
            self.now = self.now._replace(block=self.now.block + count)
        self._hits = {
            (block + count, part): [hit._replace(block=hit.block + count) for hit in hits]
            for (block, part), hits in self._hits.items()
        }

    def layers(self, palette: Palette, index: int, block: Block, width: int, row: int) -> list[list[Span]]:
        """Return the marks of one row of a block, the uppermost last."""
        out: list[list[Span]] = []
        source = block.row_source(width, row)
        if source is not None:
            part, runs = source
            if hits := self._hits.get((index, part)):
                first = min((run.at for run in runs if run.at >= 0), default=0)
                last = max((run.at + len(run.text) for run in runs if run.at >= 0), default=0)
                place = bisect_left(hits, first + 1, key=lambda hit: hit.end)
                found: list[Span] = []
                while place < len(hits) and hits[place].start < last:
                    hit = hits[place]
                    style = palette.over("find-now" if hit == self.now else "find")
                    found += [(*cells, style) for cells in spans(runs, hit.start, hit.end)]
                    place += 1
                out.append(found)
            if self.selection is not None and (inside := self.selection.within(index, part)):
                style = palette.over("select")
                out.append([(*cells, style) for cells in spans(runs, *inside)])
        link = self.link
        if link is not None and (link.block, link.row) == (index, row):
            out.append([(link.start, link.end, palette.over("find-now"))])
        return [layer for layer in out if layer]
