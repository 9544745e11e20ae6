"""A Markdown table as rows whose columns fit the width."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .cells import Row, Run, row_width, wrap
from .inline import inline_runs
from .markdown import Align

_BETWEEN = Run(" │ ", ("rule",))
_LEAST = 4
"""Narrowest column before the table is shown as one record after the other."""

Cell = tuple[Run, ...]


class Table:
    """The cells of a table. Rows that were laid out before at the same columns are kept (in a cache for all)."""

    def __init__(
        self, cells: list[list[str]], aligns: list[Align], references: Mapping[str, Any] | None = None
    ) -> None:
        """``cells`` are the rows of Markdown, the head first; ``aligns`` has one entry for each column."""
        count = len(aligns)
        self._texts = [(*row[:count], *[""] * (count - len(row))) for row in cells]
        self._aligns = tuple(aligns)
        self._references = references

    def rows(self, width: int) -> list[Row]:
        """Return the rows of at most ``width`` cells."""
        count = len(self._aligns)
        if not self._texts or not count:
            return []
        natural = [1] * count
        for index, texts in enumerate(self._texts):
            for column, text in enumerate(texts):
                natural[column] = max(natural[column], self._natural(text, index == 0))
        columns = _share(natural, width - len(_BETWEEN.text) * (count - 1))
        if columns is None:
            return self._records(width)
        fixed = tuple(columns)
        out: list[Row] = []
        for index, texts in enumerate(self._texts):
            if self._references:
                out.extend(_lay_out([self._cell(text, index == 0) for text in texts], fixed, self._aligns))
            else:
                out.extend(_cached_row(texts, index == 0, fixed, self._aligns))
            if index == 0:
                out.append([Run("─┼─".join("─" * size for size in columns), ("rule",))])
        return out

    def _cell(self, text: str, head: bool) -> Cell:
        return inline_runs(text, ("table-head",) if head else (), self._references)

    def _natural(self, text: str, head: bool) -> int:
        return _natural(self._cell(text, head)) if self._references else _cached_natural(text, head)

    def _records(self, width: int) -> list[Row]:
        """Show a table that is too wide for columns as ``head: value`` rows, one record after the other."""
        out: list[Row] = []
        head = [self._cell(text, True) for text in self._texts[0]]
        for index, texts in enumerate(self._texts[1:]):
            if index:
                out.append([Run("─" * min(width, 12), ("rule",))])
            for name, text in zip(head, texts, strict=True):
                out.extend(wrap([*name, Run(": ", ("muted",)), *self._cell(text, False)], width))
        if not out:
            out.extend(wrap([run for cell in head for run in (*cell, Run(" "))], width))
        return out


@lru_cache(maxsize=8192)
def _cached_natural(text: str, head: bool) -> int:
    return _natural(inline_runs(text, ("table-head",) if head else ()))


@lru_cache(maxsize=4096)
def _cached_row(
    texts: tuple[str, ...], head: bool, columns: tuple[int, ...], aligns: tuple[Align, ...]
) -> tuple[Row, ...]:
    names = ("table-head",) if head else ()
    return tuple(_lay_out([inline_runs(text, names) for text in texts], columns, aligns))


def _natural(cell: Cell) -> int:
    """Return the width of a cell that is not wrapped."""
    widest = used = 0
    for run in cell:
        if run.text == "\n":
            used = 0
        else:
            used += row_width((run,))
            widest = max(widest, used)
    return widest


def _share(natural: list[int], room: int) -> list[int] | None:
    """Give narrow columns what they want and share the rest among the wide ones; ``None``: no room."""
    if sum(natural) <= room:
        return natural
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
            return columns
        for column in narrow:
            columns[column] = natural[column]
            left -= natural[column]
            open_columns.remove(column)
    return columns


def _lay_out(row: list[Cell], columns: tuple[int, ...], aligns: tuple[Align, ...]) -> list[Row]:
    wrapped = [wrap(cell, size) for cell, size in zip(row, columns, strict=True)]
    out: list[Row] = []
    for line in range(max(len(lines) for lines in wrapped)):
        runs: list[Run] = []
        for column, lines in enumerate(wrapped):
            if column:
                runs.append(_BETWEEN)
            part = lines[line] if line < len(lines) else []
            spare = columns[column] - row_width(part)
            before = {"left": 0, "right": spare, "center": spare // 2}[aligns[column]]
            if before > 0:
                runs.append(Run(" " * before))
            runs.extend(part)
            if spare - before > 0:
                runs.append(Run(" " * (spare - before)))
        out.append(runs)
    return out
