"""A Markdown table as rows whose columns fit the width; a new row lays out only itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.cells import Row, Run, row_width
from sandbox_chat.ui.transcript.lazy import Lazy
from sandbox_chat.ui.transcript.wrap import wrap

from .inline import inline_runs
from .tree import Align, Leaf

_BETWEEN = 3
"""Cells between two columns."""

_LEAST = 4
"""Narrowest column before the table is shown as one record after the other."""

_SHORT_RULE = 12

Cell = tuple[Run, ...]


class _Line(NamedTuple):
    """One row of the table: its cells, their widths without wrapping, its place and size in the plain text."""

    cells: tuple[Cell, ...]
    natural: tuple[int, ...]
    start: int
    size: int


class TableRows:
    """The rows of a table that may grow by whole rows.

    While it grows its columns are a little wider than they need to be, so that a wider cell seldom moves all rows; a
    closed table has the columns that its cells ask for.
    """

    fill: tuple[str, ...] = ()

    def __init__(self, leaf: Leaf, references: Mapping[str, Any] | None = None) -> None:
        self.stable = 0
        self._references = references
        self._aligns: tuple[Align, ...] = ()
        self._sources: list[tuple[str, ...]] = []
        self._lines: list[_Line] = []
        self._natural: list[int] = []
        self._closed = False
        self._changed = 0  # first row of the table that changed since the last layout
        self._layout: _Layout | None = None
        self.update(leaf)

    @property
    def plain(self) -> str:
        """Cells joined by tabs, rows by newlines."""
        return "\n".join(
            "\t".join("".join(run.text for run in cell) for cell in line.cells) for line in self._lines
        )

    def update(self, leaf: Leaf) -> None:
        """Take the table as it is now."""
        cells, aligns = leaf.cells, leaf.aligns
        if aligns != self._aligns or (cells and self._sources and cells[0] != self._sources[0]):
            self._aligns, self._sources, self._lines, self._changed = aligns, [], [], 0
            self._natural = [1] * len(aligns)
            self._layout = None
        same = min(len(self._sources), len(cells))
        if leaf.closed and cells[:same] != self._sources[:same]:
            same = 0
        # While a table grows only the row that is being written may have changed.
        while same and cells[same - 1] != self._sources[same - 1]:
            same -= 1
        if same < len(self._sources):
            del self._sources[same:], self._lines[same:]
            self._natural = [1] * len(aligns)
            for line in self._lines:
                self._natural = list(map(max, self._natural, line.natural))
        self._changed = min(self._changed, same)
        for index in range(same, len(cells)):
            self._add(cells[index], index == 0)
        if leaf.closed != self._closed:
            self._closed = leaf.closed
            self._changed = min(self._changed, len(self._lines))

    def _add(self, texts: tuple[str, ...], head: bool) -> None:
        self._sources.append(texts)
        count = len(self._aligns)
        texts = (*texts[:count], *[""] * (count - len(texts)))
        start = self._lines[-1].start + self._lines[-1].size + 1 if self._lines else 0
        cells: list[Cell] = []
        at = start
        for text in texts:
            runs = inline_runs(text, ("table-head",) if head else (), self._references)
            cells.append(
                tuple(run._replace(text=run.text.replace("\n", " "), at=run.at + at) for run in runs)
            )
            at += sum([len(run.text) for run in runs]) + 1
        natural = tuple([row_width(cell) for cell in cells])
        self._lines.append(_Line(tuple(cells), natural, start, at - 1 - start))
        self._natural = list(map(max, self._natural, natural))

    def rows(self, width: int) -> Sequence[Row]:
        """Return the rows of at most ``width`` cells; each is made when it is taken."""
        if not self._lines or not self._aligns:
            self.stable = 0
            return ()
        layout = self._layout
        if (
            layout is not None
            and layout.width == width
            and layout.closed == self._closed
            and self._changed >= len(self._lines)
        ):
            self.stable = len(layout)
            return layout
        columns = self._columns(width, layout)
        if layout is None or layout.width != width or layout.columns != columns:
            layout = self._layout = _Layout(width, columns, self._aligns, self._lines)
            self._changed = 0
        layout.closed = self._closed
        fits = columns is not None and all(map(int.__ge__, columns, self._natural))
        if layout.fits and not fits:
            self._changed = 0
        layout.fits = fits
        self.stable = layout.update(self._changed)
        self._changed = len(self._lines)
        return layout

    def _columns(self, width: int, layout: _Layout | None) -> tuple[int, ...] | None:
        """Return the widths of the columns; ``None``: no room for columns."""
        room = width - _BETWEEN * (len(self._aligns) - 1)
        natural = self._natural
        if self._closed:
            return _share(natural, room)
        old = layout.columns if layout is not None and layout.width == width else None
        if sum(natural) > room:
            return _share([_stepped(size) for size in natural], room)
        if old is not None and all(map(int.__ge__, old, natural)):
            return old
        spare = room - sum(natural)
        columns = []
        for size in natural:
            more = min(max(size // 4, 3), spare)
            columns.append(size + more)
            spare -= more
        return tuple(columns)


class _Layout(Lazy[Row]):
    """The rows of a table at one width. The rows of a line of the table are made when they are taken."""

    def __init__(
        self, width: int, columns: tuple[int, ...] | None, aligns: tuple[Align, ...], lines: list[_Line]
    ) -> None:
        self.width = width
        self.columns = columns
        self.closed = False
        self.fits = False
        """No cell is wider than its column."""
        self._aligns = aligns
        self._lines = lines
        self._ends: list[int] = []  # number of rows up to the end of each line of the table
        self._made: dict[int, list[Row]] = {}

    def update(self, changed: int) -> int:
        """Lay out anew from line ``changed`` on. Returns the number of rows before it."""
        changed = min(changed, len(self._ends))
        if self.columns is None and changed <= 1:
            changed = 0  # the head is shown only when nothing else is
        del self._ends[changed:]
        for line in [line for line in self._made if line >= changed]:
            del self._made[line]
        stable = self._ends[-1] if self._ends else 0
        if self.fits and self.columns is not None:
            counts = [1] * (len(self._lines) - changed)
            if counts and not changed:
                counts[0] = 2
        else:
            counts = [self._count(line) for line in range(changed, len(self._lines))]
        self._ends.extend(list(accumulate(counts, initial=stable))[1:])
        return stable

    def _count(self, index: int) -> int:
        if self.columns is None:
            return len(self._rows(index))
        line = self._lines[index]
        count = 1
        for cell, size, column in zip(line.cells, line.natural, self.columns, strict=True):
            if size > column:
                count = max(count, len(wrap(cell, column)))
        return count + (index == 0)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _item(self, index: int) -> Row:
        line = bisect_right(self._ends, index)
        return self._rows(line)[index - (self._ends[line - 1] if line else 0)]

    def _rows(self, index: int) -> list[Row]:
        rows = self._made.get(index)
        if rows is None:
            if len(self._made) > 400:
                self._made.clear()
            rows = self._made[index] = self._record(index) if self.columns is None else self._line(index)
        return rows

    def _line(self, index: int) -> list[Row]:
        columns = self.columns
        assert columns is not None
        table_line = self._lines[index]
        wrapped: list[Sequence[Row]] = [
            (cell,) if natural <= size else wrap(cell, size)
            for cell, natural, size in zip(table_line.cells, table_line.natural, columns, strict=True)
        ]
        between = Run(f" {glyph('upright')} ", ("rule",))
        out: list[Row] = []
        for number in range(max(map(len, wrapped))):
            runs: list[Run] = []
            for column, rows in enumerate(wrapped):
                if column:
                    runs.append(between)
                part = rows[number] if number < len(rows) else ()
                spare = columns[column] - row_width(part)
                before = {"left": 0, "right": spare, "center": spare // 2}[self._aligns[column]]
                if before > 0:
                    runs.append(Run(" " * before))
                runs.extend(part)
                if spare - before > 0:
                    runs.append(Run(" " * (spare - before)))
            out.append(runs)
        if index == 0:
            line, cross = glyph("line"), glyph("cross")
            out.append([Run(f"{line}{cross}{line}".join(line * size for size in columns), ("rule",))])
        return out

    def _record(self, index: int) -> list[Row]:
        """Show a line of a table that is too wide for columns as ``head: value`` rows."""
        head = [[run._replace(at=-1) for run in cell] for cell in self._lines[0].cells]
        if index == 0:
            if len(self._lines) > 1:
                return []
            return list(wrap([run for cell in self._lines[0].cells for run in (*cell, Run(" "))], self.width))
        out: list[Row] = []
        if index > 1:
            out.append([Run(glyph("line") * min(self.width, _SHORT_RULE), ("rule",))])
        for name, cell in zip(head, self._lines[index].cells, strict=True):
            out.extend(wrap([*name, Run(": ", ("muted",)), *cell], self.width))
        return out


def _stepped(size: int) -> int:
    """Return a size that changes seldom while ``size`` grows, at least as large."""
    step = 4
    while step < size:
        step += max(step // 2, 4)
    return step


def _share(natural: list[int], room: int) -> tuple[int, ...] | None:
    """Give narrow columns what they want and share the rest among the wide ones; ``None``: no room."""
    if sum(natural) <= room:
        return tuple(natural)
    columns = [0] * len(natural)
    left, open_columns = room, list(range(len(natural)))
    while open_columns:
        fair = left // len(open_columns)
        narrow = [column for column in open_columns if natural[column] <= fair]
        if not narrow:
            if fair < _LEAST:
                return None
            # Wide columns share by the root of what they want: long text gets more, but not all.
            weights = [natural[column] ** 0.5 for column in open_columns]
            spare = left - _LEAST * len(open_columns)
            for column, weight in zip(open_columns, weights, strict=True):
                columns[column] = _LEAST + int(spare * weight / sum(weights))
            columns[open_columns[-1]] += left - sum(columns[column] for column in open_columns)
            return tuple(columns)
        for column in narrow:
            columns[column] = natural[column]
            left -= natural[column]
            open_columns.remove(column)
    return tuple(columns)
