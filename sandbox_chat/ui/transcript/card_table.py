"""A data frame as rows of the transcript: as many columns as fit, numbers to the right, what is left out said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr

from .cells import Row, Run, fit, fit_row, width_of

if TYPE_CHECKING:
    from sandbox_chat.events import TableContent

CELL_MOST, CELL_LEAST = 32, 8
"""Cells of the terminal that a column takes at most: a third of the width, within these."""
_SKIPPED = ("...", "…")
"""What pandas and polars put in place of rows and columns in the middle."""

_GAP = 3
_MORE = 2
_NUMBER = re.compile(
    r"[-+−]?(?:[\d,._ ]*\d[\d,._ ]*(?:[eE][-+]?\d+)?%?|inf|nan)|NaN|NaT|None|null|<NA>|\.\.\.|…"
)


def table_text(table: TableContent) -> str:
    """Return a table for the clipboard: cells joined by tabs, rows by newlines."""
    return "\n".join("\t".join(row) for row in (table.columns, *table.rows))


def table_rows(table: TableContent, width: int, most: int) -> list[Row]:
    """Return the rows of a table at ``width`` cells, its first ``most`` rows, and a line that says what there is.

    ``at`` of the cells counts in ``table_text``.
    """
    body = table.rows[:most]
    more = Run(f" {glyph('ellipsis')}", ("muted",))
    sizes, right = _columns(table.columns, body, max(CELL_LEAST, min(CELL_MOST, width // 3)))
    shown = _fitting(sizes, width)
    cut = shown < len(sizes)
    if shown == 1:
        sizes[0] = min(sizes[0], max(1, width - (_MORE if cut else 0)))
    out: list[Row] = []
    columns = list(zip(sizes, right, strict=True))[:shown]
    end = [more] if cut else []
    line = glyph("line")
    cross = f"{line}{glyph('cross')}{line}"
    at = 0
    for number, cells in enumerate((table.columns, *body)):
        out.append([*_row(cells, columns, at, ("table-head",) if number == 0 else ()), *end])
        at += sum(map(len, cells)) + len(cells)
        if number == 0:
            out.append([Run(cross.join(line * size for size in sizes[:shown]), ("rule",))])
    out.append([Run(fit(summary(table, most, shown), width), ("muted",))])
    return [fit_row(row, width) for row in out]


def summary(table: TableContent, most: int, columns: int) -> str:
    """Return in words how large a table is, and how much is not shown beside its first ``most`` rows and ``columns``."""
    index = len(table.columns) - table.column_count
    if index <= 0:  # columns are left out, or there is no index
        index = next((place for place, name in enumerate(table.columns) if name), 0)
    rows = sum(not row or row[-1] not in _SKIPPED for row in table.rows[:most])
    columns = max(0, sum(name not in _SKIPPED for name in table.columns[:columns]) - index)
    words = [tr("cards.table_size", rows=f"{table.row_count:,}", columns=f"{table.column_count:,}")]
    if (more := table.row_count - rows) > 0:
        words.append(tr("cards.more_rows", count=f"{more:,}"))
    if (more := table.column_count - columns) > 0:
        words.append(tr("cards.more_columns", count=f"{more:,}"))
    return f" {glyph('dot')} ".join(words)


def _columns(head: Sequence[str], body: Sequence[Sequence[str]], most: int) -> tuple[list[int], list[bool]]:
    """Return the width of each column, and whether its cells stand at the right."""
    sizes, right = [], []
    for place, name in enumerate(head):
        cells = [row[place] for row in body if place < len(row)]
        sizes.append(max(1, min(most, max(map(width_of, (name, *cells)), default=1))))
        filled = [cell for cell in cells if cell]
        right.append(bool(filled) and all(_NUMBER.fullmatch(cell) for cell in filled))
    return sizes, right


def _fitting(sizes: Sequence[int], width: int) -> int:
    """Return how many columns fit, one at least."""
    if sum(sizes) + _GAP * (len(sizes) - 1) <= width:
        return len(sizes)
    used = _MORE
    for place, size in enumerate(sizes):
        used += size + (_GAP if place else 0)
        if used > width:
            return max(1, place)
    return len(sizes)


def _row(
    cells: Sequence[str],
    columns: Sequence[tuple[int, bool]],
    at: int,
    names: tuple[str, ...] = (),
) -> list[Run]:
    """Lay out one row in ``columns``: their widths, and whether they stand at the right."""
    between = Run(f" {glyph('upright')} ", ("rule",))
    runs: list[Run] = []
    for place, (size, right) in enumerate(columns):
        text = cells[place] if place < len(cells) else ""
        shown = fit(text, size)
        spare = " " * (size - width_of(shown))
        if place:
            runs.append(between)
        if spare and right:
            runs.append(Run(spare))
        if shown == text:
            runs.append(Run(text, names, at=at))
        else:
            runs += [Run(shown[:-1], names, at=at), Run(shown[-1:], ("muted",))]
        if spare and not right:
            runs.append(Run(spare))
        at += len(text) + 1
    return [run for run in runs if run.text]
