"""Data frames out of the HTML that pandas and polars make of them. What comes is untrusted: everything is bounded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple

from sandbox_chat.text import clean

LONGEST = 500_000
"""Characters of HTML that are looked at: longer than any data frame that is shown whole."""
_SLICE = 16_384
_HEAD_ROWS = 6
"""Rows of a head at most: levels of columns, and the names of the index."""
_TAIL = 300
_DEEP = 50
"""Rows that a cell may reach down, and columns to the right, at most."""
_OTHER = re.compile(
    r"<(?:script|iframe|svg|object|embed|img|canvas|video|audio|form|input|link|meta)\b", re.I
)
"""What a data frame has none of: a table with such things in it is a page."""
_PANDAS = re.compile(r"([\d,]{1,15}) rows × ([\d,]{1,15}) columns")
_POLARS = re.compile(r"shape: \(([\d_]{1,15}), ([\d_]{1,15})\)")


class Frame(NamedTuple):
    """A data frame as text. ``styled``: its HTML shows more than the text, so it is worth a look itself."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int
    column_count: int
    styled: bool


def read_frame(html: str, *, rows: int, columns: int, cell: int) -> Frame | None:
    """Return the only table in ``html``, its first ``rows``, ``columns`` and ``cell`` characters; ``None``: there is none.

    Whatever the HTML is, this ends soon; it takes up to a tenth of a second.
    """
    if len(html) > LONGEST or "<!" in html or "<?" in html:
        return None
    if len(re.findall(r"<table\b", html, re.I)) != 1 or _OTHER.search(html):
        return None
    reader = _Reader(rows, columns, cell)
    for start in range(0, len(html), _SLICE):
        reader.feed(html[start : start + _SLICE])  # never closed: what is not whole is no cell
        if reader.full:
            break
    names = _names(reader.head)
    if not reader.rows and not any(names):
        return None
    width = max(len(names), *(len(row) for row in reader.rows), 0) if reader.rows else len(names)
    body = tuple((*row, *[""] * (width - len(row))) for row in reader.rows)
    index = reader.index if reader.rows else int(not names[0])
    found_rows, found_columns = len(body), max(width - index, 0)
    said = _POLARS.search(html[: _TAIL * 4]) or _PANDAS.search(html[-_TAIL:])
    if said is not None:
        found_rows, found_columns = (int(re.sub(r"[,_]", "", part)) for part in said.groups())
    elif reader.full:
        found_rows = max(found_rows, len(re.findall(r"<tr\b", html, re.I)) - len(reader.head))
    styled = 'class="dataframe"' not in html
    return Frame((*names, *[""] * (width - len(names))), body, found_rows, found_columns, styled)


def _names(head: list[list[str]]) -> tuple[str, ...]:
    """Join the rows of a head: the levels of a column's name, one below the other."""
    width = max((len(row) for row in head), default=0)
    return tuple(
        " · ".join(dict.fromkeys(row[place] for row in head if place < len(row) and row[place]))
        for place in range(width)
    )


class _Reader(HTMLParser):
    """Gathers the cells of a table. Cells that reach over rows or columns stand once, and leave the others empty; in the head they name all."""

    def __init__(self, rows: int, columns: int, cell: int) -> None:
        super().__init__(convert_charrefs=True)
        self.head: list[list[str]] = []
        self.rows: list[list[str]] = []
        self.index = 0
        """Columns of the index, which are not columns of the data frame."""
        self.full = False
        self._limits = (rows, columns, cell)
        self._in_head = False
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._size = 0
        self._span = (1, 1)
        self._is_head_cell = False
        self._down: dict[int, int] = {}  # column: rows that a cell above still reaches over
        self._leading = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a part of the table."""
        if tag == "thead":
            self._in_head, self._down = True, {}
        elif tag == "tbody":
            self._in_head, self._down = False, {}
        elif tag == "tr":
            self._end_row()
            self._row = None if self.full else []
            self._leading = 0
        elif tag in ("th", "td") and self._row is not None:
            self._end_cell()
            given = dict(attrs)
            self._span = (_count(given.get("rowspan")), _count(given.get("colspan")))
            self._cell, self._size, self._is_head_cell = [], 0, tag == "th"
        elif tag == "br" and self._cell is not None:
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        """End a part of the table."""
        if tag in ("th", "td"):
            self._end_cell()
        elif tag in ("tr", "thead", "tbody", "table"):
            self._end_row()
            if tag == "thead":
                self._in_head = False
            elif tag == "table":
                self.full = True

    def handle_data(self, data: str) -> None:
        """Take text of a cell."""
        if self._cell is not None and self._size <= self._limits[2] * 4:
            self._cell.append(data[: self._limits[2] * 4])
            self._size += len(data)

    def _end_cell(self) -> None:
        if self._cell is None or self._row is None:
            return
        text, self._cell = " ".join(clean("".join(self._cell)).split()), None
        limit = self._limits[2]
        text = text if len(text) <= limit else text[: limit - 1] + "…"
        self._skip_covered()
        if self._is_head_cell and not self._in_head and len(self._row) == self._leading:
            self._leading += self._span[1]
        down, right = self._span
        for step in range(right):
            if len(self._row) >= self._limits[1]:
                return
            if down > 1:
                self._down[len(self._row)] = down - 1
            self._row.append(text if not step or self._in_head else "")

    def _skip_covered(self) -> None:
        assert self._row is not None
        while self._down.get(len(self._row), 0) > 0 and len(self._row) < self._limits[1]:
            self._down[len(self._row)] -= 1
            if len(self._row) == self._leading:
                self._leading += 1
            self._row.append("")

    def _end_row(self) -> None:
        self._end_cell()
        if self._row is None:
            return
        self._skip_covered()
        row, self._row = self._row, None
        if not row:
            return
        if self._in_head:
            if len(self.head) < _HEAD_ROWS:
                self.head.append(row)
            return
        self.index = max(self.index, min(self._leading, len(row)))
        self.rows.append(row)
        self.full = len(self.rows) >= self._limits[0]


def _count(value: str | None) -> int:
    return (
        min(max(int(value), 1), _DEEP)
        if value and value.isascii() and value.isdigit() and len(value) < 6
        else 1
    )
