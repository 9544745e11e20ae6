"""Runs of styled text and their wrapping by terminal cells.

A ``Run`` is text with the names of its styles; colours come later, from the ``Palette``. So what was
parsed outlives a change of the theme or of the width. A ``Row`` is one screen row of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes

from sandbox_chat.ui.glyphs import glyph

MIN_WIDTH = 2
"""Narrowest width that wrapping works with: one wide character."""

TAB = "    "
"""What a tab in prose becomes; code has tab stops of the same size."""


class Run(NamedTuple):
    """Text in one style. ``names`` are styles of the palette, laid over each other; ``href`` a link's target.

    ``at`` is where its first character stands in the plain text that the row was made of; -1 is decoration, which is
    never copied.
    """

    text: str
    names: tuple[str, ...] = ()
    href: str = ""
    at: int = -1


Row = Sequence[Run]


def width_of(text: str) -> int:
    """Return the number of cells that ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def row_width(row: Iterable[Run]) -> int:
    """Return the number of cells of a row."""
    return sum(width_of(run.text) for run in row)


def split_cells(text: str, cells: int) -> tuple[str, str]:
    """Split ``text`` after at most ``cells`` cells, never inside a character.

    The head may be narrower by one cell; it is empty when not even the first character fits.
    """
    if text.isascii():
        return text[:cells], text[cells:]
    # Only as much is measured as can fit, so that cutting a long text into rows stays linear.
    size = max(cells, 0) * 4 + 64
    while True:
        head = _head(text[:size], cells)
        if len(head) < size // 2 or size >= len(text):
            return head, text[len(head) :]
        size *= 4


def _head(text: str, cells: int) -> str:
    if width_of(text) <= cells:
        return text  # also where the parts by themselves count for more: a joiner with nothing before it
    spans, total = split_graphemes(text)
    head = text
    if total > cells:
        used = 0
        for start, _end, size in spans:
            if used + size > cells:
                head = text[:start]
                break
            used += size
    while head and width_of(head) > cells:  # joiners without anything to join are measured in two ways
        head = head[:-1]
    return head


def fit(text: str, cells: int) -> str:
    """Return ``text`` cut to ``cells`` cells, the cut shown by an ellipsis."""
    if cells <= 0:
        return ""
    if width_of(text) <= cells:
        return text
    return split_cells(text, cells - 1)[0] + glyph("ellipsis")


def fit_row(row: Iterable[Run], cells: int) -> list[Run]:
    """Return a row cut to ``cells`` cells, the cut shown by an ellipsis."""
    runs = list(row)
    if row_width(runs) <= cells:
        return runs
    left = cells - 1
    out: list[Run] = []
    for run in runs:
        size = width_of(run.text)
        if size > left:
            head = split_cells(run.text, left)[0]
            if run.at < 0:
                out.append(run._replace(text=head + glyph("ellipsis")))
            else:
                out += [run._replace(text=head), run._replace(text=glyph("ellipsis"), at=-1)]
            break
        out.append(run)
        left -= size
    return out if cells > 0 else []


def expand_tabs(text: str) -> str:
    """Return ``text`` with its tabs turned into spaces up to the next stop of four columns."""
    if "\t" not in text:
        return text
    if text.isascii():
        return text.expandtabs(len(TAB))
    out: list[str] = []
    column = 0
    for part in re.split(r"([\t\n])", text):
        if part == "\t":
            step = len(TAB) - column % len(TAB)
            out.append(" " * step)
            column += step
        elif part == "\n":
            out.append(part)
            column = 0
        else:
            out.append(part)
            column += width_of(part)
    return "".join(out)


def wrap_code(runs: Iterable[Run], width: int) -> list[list[Run]]:
    """Break one line of code into rows of at most ``width`` cells, anywhere and keeping all spaces."""
    width = max(width, MIN_WIDTH)
    rows: list[list[Run]] = []
    row: list[Run] = []
    used = 0
    for run in runs:
        text, names, href, at = run
        size = width_of(text)
        if used + size <= width:
            if text:
                row.append(run)
                used += size
            continue
        while text:
            head, rest = split_cells(text, width - used)
            if head:
                row.append(Run(head, names, href, at))
                used += width_of(head)
            elif not row:
                row.append(Run("?", names, href, at))  # a character wider than the whole row
                rest = text[1:]
            if at >= 0:
                at += len(text) - len(rest)
            text = rest
            if text:
                rows.append(row)
                row, used = [], 0
    rows.append(row)
    return rows
