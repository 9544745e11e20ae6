"""Runs of styled text and their wrapping by terminal cells.

A ``Run`` is text with the names of its styles; colours come later, from the ``Palette``. So what was
parsed outlives a change of the theme or of the width. A ``Row`` is one screen row of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes

MIN_WIDTH = 2
"""Narrowest width that wrapping works with: one wide character."""

TAB = "    "
"""What a tab in prose becomes; code has tab stops of the same size."""


class Run(NamedTuple):
    """Text in one style. ``names`` are styles of the palette, laid over each other; ``href`` a link's target."""

    text: str
    names: tuple[str, ...] = ()
    href: str = ""


Row = Sequence[Run]

# Scripts that are written without spaces may be broken after each character, but a closing mark stays
# with what it closes and an opening one with what it opens.
_CJK = "\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_CLOSING = "、。，．！？；：）」』】〉》〕…‥々ー,.!?;:)\\]"
_OPENING = "（「『【〈《〔"
_PIECES = re.compile(rf"\n| +|[{_OPENING}]*[{_CJK}][{_CLOSING}]*|[^ \n{_CJK}]+")


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
    return head, text[len(head) :]


def fit(text: str, cells: int) -> str:
    """Return ``text`` cut to ``cells`` cells, the cut shown by an ellipsis."""
    if cells <= 0:
        return ""
    if width_of(text) <= cells:
        return text
    return split_cells(text, cells - 1)[0] + "…"


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
            out.append(run._replace(text=head + "…"))
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


class _Wrapper:
    """The state of wrapping one paragraph."""

    def __init__(self, width: int) -> None:
        self.width = max(width, MIN_WIDTH)
        self.rows: list[list[Run]] = []
        self.row: list[Run] = []
        self.used = 0
        self.spaces: list[Run] = []
        self.spaces_width = 0
        self.word: list[Run] = []
        self.word_width = 0

    def end_word(self) -> None:
        if not self.word:
            return
        if self.used + self.spaces_width + self.word_width <= self.width:
            if self.spaces:
                self._put_spaces()
            self.row.extend(self.word)
            self.used += self.word_width
        elif self.word_width <= self.width:
            self._new_row()
            self.row.extend(self.word)
            self.used = self.word_width
        else:
            self._put_long_word()
        self.spaces, self.spaces_width = [], 0
        self.word, self.word_width = [], 0

    def _put_spaces(self) -> None:
        self.row.extend(self.spaces)
        self.used += self.spaces_width

    def _new_row(self) -> None:
        if self.row:
            self.rows.append(self.row)
        self.row, self.used = [], 0

    def _put_long_word(self) -> None:
        # A word wider than the row starts where it stands if at least a third of the row is free.
        room = self.width - self.used - self.spaces_width
        if self.row and room * 3 >= self.width:
            self._put_spaces()
        else:
            self._new_row()
        for run in self.word:
            text = run.text
            while text:
                head, tail = split_cells(text, self.width - self.used)
                if not head and not self.row:
                    head, tail = "?", text[1:]  # a character wider than the whole row
                if head:
                    self.row.append(run._replace(text=head))
                    self.used += width_of(head)
                text = tail
                if text:
                    self._new_row()

    def end_line(self) -> None:
        self.end_word()
        self.rows.append(self.row)
        self.row, self.used = [], 0
        self.spaces, self.spaces_width = [], 0


def wrap(runs: Iterable[Run], width: int) -> list[list[Run]]:
    """Break ``runs`` into rows of at most ``width`` cells: at spaces, between CJK characters, else anywhere.

    Newlines in the text break a row too. Returns at least one row, which may be empty.
    """
    state = _Wrapper(width)
    for run in runs:
        for piece in _PIECES.findall(run.text):
            if piece == "\n":
                state.end_line()
            elif piece[0] == " ":
                state.end_word()
                if state.row:
                    state.spaces.append(run._replace(text=piece))
                    state.spaces_width += len(piece)
                    if state.used + state.spaces_width > state.width:
                        state.spaces, state.spaces_width = [], 0
                        state._new_row()
            elif piece.isascii():
                state.word.append(run._replace(text=piece))
                state.word_width += len(piece)
            else:
                if _is_cjk(piece):
                    state.end_word()
                state.word.append(run._replace(text=piece))
                state.word_width += cell_len(piece)
                if _is_cjk(piece):
                    state.end_word()
    state.end_line()
    return state.rows


_CJK_START = re.compile(rf"[{_OPENING}]*[{_CJK}]")


def _is_cjk(piece: str) -> bool:
    return _CJK_START.match(piece) is not None


def wrap_code(runs: Iterable[Run], width: int) -> list[list[Run]]:
    """Break one line of code into rows of at most ``width`` cells, anywhere and keeping all spaces."""
    width = max(width, MIN_WIDTH)
    rows: list[list[Run]] = []
    row: list[Run] = []
    used = 0
    for run in runs:
        text = run.text
        size = width_of(text)
        if used + size <= width:
            if text:
                row.append(run)
                used += size
            continue
        while text:
            head, text = split_cells(text, width - used)
            if head:
                row.append(run._replace(text=head))
                used += width_of(head)
            elif not row:
                row.append(run._replace(text="?"))
                text = text[1:]
            if text:
                rows.append(row)
                row, used = [], 0
    rows.append(row)
    return rows
