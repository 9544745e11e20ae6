"""Wrapping of runs by terminal cells, which goes on where the text grew.

Where a row ends depends on the text alone, not on its styles.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from .cells import MIN_WIDTH, Row, Run, split_cells, width_of

# Scripts that are written without spaces may be broken after each character, but a closing mark stays
# with what it closes and an opening one with what it opens.
_CJK = "\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_CLOSING = "、。，．！？；：）」』】〉》〕…‥々ー,.!?;:)\\]"
_OPENING = "（「『【〈《〔"
_PIECES = re.compile(rf"( +)|([{_OPENING}]{{0,8}}[{_CJK}][{_CLOSING}]{{0,8}})|[^ {_CJK}]+")
# Lines of characters of one cell each, that join with nothing, are broken by their length alone.
_NARROWS = (
    " -~\u00a1-\u00a8\u00aa-\u00ac\u00af-\u02ff\u0370-\u0377\u0391-\u03a1\u03a3-\u03ff\u0400-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u203b\u203d-\u2048\u20a0-\u20bf\u2200-\u22ff\u2500-\u257f"
)
_WIDES = "\u2f00-\u2fd5\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60"
_FIRST_WIDE = "\u2e80"
_JOINER = "\u200d"
_FEW_RUNS = 8
_NARROW = re.compile(rf"[{_NARROWS}]*\Z")
_MEASURED = re.compile(rf"[{_NARROWS}{_WIDES}]*\Z")
_LONELY = re.compile(rf"[{_NARROWS}{_WIDES}]")  # joins with nothing before it
_CJK_START = re.compile(rf"[{_OPENING}]{{0,8}}[{_CJK}]")


class Wrapped:
    """Rows of one width. What was laid out stays when the text grows: only its last rows are laid out again."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[Row] = []
        self._starts: list[int] = []  # where each row begins in the text
        self._torn: set[int] = set()  # rows that begin inside of what is never broken, but for want of room

    def update(self, runs: Sequence[Run], same: int = 0) -> int:
        """Lay out ``runs``, whose texts stand one after the other at their ``at``.

        ``same``: so many characters are as at the last call, in the same styles. Returns how many leading rows
        are the same as before.
        """
        first = 0
        if not self.rows and (row := _one_row(runs, self.width)) is not None:
            self.rows.append(row)
            self._starts.append(0)
            return 0
        if same > 0 and self.rows:
            # A word that grows can move to the row before its own and away from there, not further.
            first = max(bisect_right(self._starts, same - 1) - 2, 0)
            while first in self._torn:
                first -= 1
        old = self.rows[first:]
        start = self._starts[first] if first else 0
        index = max(bisect_right(runs, start, key=_at) - 1, 0)
        pieces = (
            [runs[index]._replace(text=runs[index].text[start - runs[index].at :], at=start)] if runs else []
        )
        layout = _Layout(self.width, start)
        layout.run((*pieces, *runs[index + 1 :]))
        del self.rows[first:], self._starts[first:]
        self._torn = {row for row in self._torn if row < first}
        self._torn.update(first + row for row in layout.torn)
        self.rows.extend(layout.rows)
        self._starts.extend(layout.starts)
        for before, now in zip(old, layout.rows, strict=False):
            if before != now:
                break
            first += 1
        return first


def _at(run: Run) -> int:
    return run.at


def _one_row(runs: Sequence[Run], width: int) -> Row | None:
    """Return the row of a text that plainly fits into one, as most items of lists do; ``None`` for any other."""
    if not 0 < len(runs) <= _FEW_RUNS:
        return None
    text = "".join([run.text for run in runs])
    if (
        len(text) > width
        or not text
        or text[0] == " "
        or text[-1] == " "
        or "\n" in text
        or not _NARROW.match(text)
    ):
        return None
    row: list[Run] = []
    for run in runs:
        if run.text:
            _put(row, *run)
    return row


def wrap(runs: Iterable[Run], width: int) -> list[list[Run]]:
    """Break ``runs`` into rows of at most ``width`` cells: at spaces, between CJK characters, else anywhere.

    Newlines in the text break a row too. Returns at least one row, which may be empty.
    """
    layout = _Layout(width, 0)
    layout.run(runs)
    return layout.rows


_Piece = tuple[int, int, int]
"""Run of the line, start and end in its text; an empty piece stands for a character that has no room."""


class _Layout:
    """Breaks lines into rows, from a position that begins a row."""

    def __init__(self, width: int, start: int) -> None:
        self.width = max(width, MIN_WIDTH)
        self.rows: list[list[Run]] = []
        self.starts: list[int] = []
        self.torn: list[int] = []
        self._line_at = start
        self._line: list[Run] = []  # the runs of the line in hand
        self._offsets: list[int] = []  # where each begins in the line
        self._row: list[_Piece] = []
        self._used = 0

    def run(self, runs: Iterable[Run]) -> None:
        size = 0
        for run in runs:
            text, names, href, at = run
            if "\n" in text:
                first, *others = text.split("\n")
                if first:
                    self._line.append(Run(first, names, href, at))
                    self._offsets.append(size)
                    size += len(first)
                offset = len(first) + 1
                for part in others:
                    self._end_line(size)
                    size = 0
                    if part:
                        self._line.append(Run(part, names, href, at + offset if at >= 0 else -1))
                        self._offsets.append(0)
                        size = len(part)
                    offset += len(part) + 1
            elif text:
                self._line.append(run)
                self._offsets.append(size)
                size += len(text)
        self._end_line(size)

    def _end_line(self, size: int) -> None:
        line = self._line
        text = line[0].text if len(line) == 1 else "".join([run.text for run in line])
        if _NARROW.match(text):
            self._narrow(text)
        elif _MEASURED.match(text):
            self._measured(text)
        else:
            self._wide(text)
        self._line_at += size + 1
        self._line, self._offsets = [], []

    # -- characters of one cell ------------------------------------------------------------------------

    def _narrow(self, text: str) -> None:
        width = self.width
        end = len(text)
        at = 0
        while at < end and text[at] == " ":
            at += 1
        while end - at > width:
            limit = at + width
            space = text.rfind(" ", at, limit + 1)
            if space < 0:  # a word wider than the row
                self._emit(at, limit)
                at = limit
                continue
            stop = space
            while text[stop - 1] == " ":
                stop -= 1
            word = space + 1
            while word < end and text[word] == " ":
                word += 1
            if word - at <= width:
                after = text.find(" ", word)
                size = (end if after < 0 else after) - word
                # A word wider than the row starts where it stands if at least a third of the row is free.
                if size > width and (limit - word) * 3 >= width:
                    self._emit(at, limit)
                    at = limit
                    continue
            self._emit(at, stop)
            at = word
        while end > at and text[end - 1] == " ":
            end -= 1
        self._emit(at, end, len(text))

    def _emit(self, start: int, end: int, empty_at: int = 0) -> None:
        """End a row that holds the line's characters from ``start`` to ``end``."""
        row: list[Run] = []
        if end > start:
            line, offsets = self._line, self._offsets
            index = bisect_right(offsets, start) - 1 if len(line) > 1 else 0
            while index < len(line) and offsets[index] < end:
                text, names, href, at = line[index]
                low = max(start - offsets[index], 0)
                high = end - offsets[index]
                _put(
                    row,
                    text[low:high] if low or high < len(text) else text,
                    names,
                    href,
                    at + low if at >= 0 else -1,
                )
                index += 1
        self.starts.append(self._line_at + (start if row else empty_at))
        self.rows.append(row)

    # -- anything else ---------------------------------------------------------------------------------

    def _measured(self, text: str) -> None:
        """Break a line whose characters join with nothing: CJK ones take two cells, the others one."""
        width = self.width
        end = len(text)
        cells = [0, *accumulate([2 if char >= _FIRST_WIDE else 1 for char in text])]
        pieces = [match.start() for match in _PIECES.finditer(text)]
        pieces.append(end)
        at = pieces[1] if text[0] == " " else 0
        while cells[end] - cells[at] > width:
            limit = bisect_right(cells, cells[at] + width, at) - 1
            index = bisect_right(pieces, limit) - 1
            piece, after = pieces[index], pieces[index + 1]
            if text[piece] == " ":
                self._emit(at, piece)
                at = after
                continue
            if piece > at:
                too_long = cells[after] - cells[piece] > width
                if not too_long or (width - cells[piece] + cells[at]) * 3 < width:
                    stop = piece
                    while text[stop - 1] == " ":
                        stop -= 1
                    self._emit(at, stop)
                    at = piece
                    continue
            self._emit(at, limit)
            at = limit
            if limit > piece and _CJK_START.match(text, piece):
                self.torn.append(len(self.rows))
        size = end
        while end > at and text[end - 1] == " ":
            end -= 1
        self._emit(at, end, size)

    def _wide(self, line: str) -> None:
        width = self.width
        spaces: list[_Piece] = []
        spaces_width = 0
        for match in _PIECES.finditer(line):
            start, end = match.span()
            pieces = self._split(start, end)
            if match.lastindex == 1:
                if self._row:
                    for piece in pieces:
                        spaces.append(piece)
                        spaces_width += piece[2] - piece[1]
                    if self._used + spaces_width > width:
                        spaces, spaces_width = [], 0
                        self._end_row()
                continue
            size = sum([width_of(self._line[index].text[low:high]) for index, low, high in pieces])
            self._put_word(spaces, spaces_width, pieces, size, whole=match.lastindex == 2)
            spaces, spaces_width = [], 0
        self._end_row(always=True)

    def _split(self, start: int, end: int) -> list[_Piece]:
        """Return the parts of the line's runs that stand from ``start`` to ``end``."""
        offsets = self._offsets
        index = bisect_right(offsets, start) - 1
        out: list[_Piece] = []
        while index < len(offsets) and offsets[index] < end:
            low = max(start - offsets[index], 0)
            out.append((index, low, min(end - offsets[index], len(self._line[index].text))))
            index += 1
        return out

    def _put_word(
        self, spaces: list[_Piece], spaces_width: int, word: list[_Piece], size: int, *, whole: bool = False
    ) -> None:
        if self._used + spaces_width + size <= self.width:
            self._row += spaces
            self._row += word
            self._used += spaces_width + size
        elif size <= self.width:
            self._end_row()
            self._row += word
            self._used = size
        else:
            self._put_long_word(spaces, spaces_width, word, whole)

    def _put_long_word(
        self, spaces: list[_Piece], spaces_width: int, word: list[_Piece], whole: bool
    ) -> None:
        # A word wider than the row starts where it stands if at least a third of the row is free.
        if self._row and (self.width - self._used - spaces_width) * 3 >= self.width:
            self._row += spaces
            self._used += spaces_width
        else:
            self._end_row()
        for index, start, end in word:
            text = self._line[index].text[start:end]
            at = start
            while text:
                head, tail = split_cells(text, self.width - self._used)
                if head:
                    self._row.append((index, at, at + len(head)))
                    self._used += width_of(head)
                elif not self._row:  # a character wider than the whole row
                    self._row.append((index, at, at))
                    self._used += 1
                    tail = text[1:]
                at += len(text) - len(tail)
                text = tail
                if text:
                    self._end_row()
                    if whole:
                        self.torn.append(len(self.rows))

    def _end_row(self, *, always: bool = False) -> None:
        if not self._row and not always:
            return
        row: list[Run] = []
        pieces = self._row
        number = 0
        while number < len(pieces):
            index, start, end = pieces[number]
            text, names, href, at = self._line[index]
            number += 1
            while (
                start < end
                and number < len(pieces)
                and pieces[number][:2] == (index, end)
                and pieces[number][2] > end
                and _JOINER not in text[end - 1 : end + 1]
            ):
                end = pieces[number][2]
                number += 1
            part = text[start:end] if end > start else "?"
            _put(row, part, names, href, at + start if at >= 0 else -1)
        if self._row:
            index, start, _end = self._row[0]
            self.starts.append(self._line_at + self._offsets[index] + start)
        else:
            last = len(self._line) - 1
            size = self._offsets[last] + len(self._line[last].text) if self._line else 0
            self.starts.append(self._line_at + size)
        self.rows.append(row)
        self._row, self._used = [], 0


def _put(row: list[Run], text: str, names: tuple[str, ...], href: str, at: int) -> None:
    """Add text to a row, to its last run where that is the same style and goes on."""
    if row:
        last = row[-1]
        if (
            last.names == names
            and last.href == href
            and (at == -1 == last.at if at < 0 else last.at >= 0 and last.at + len(last.text) == at)
            and _apart(last.text[-1], text[0])
        ):
            row[-1] = Run(last.text + text, names, href, last.at)
            return
    row.append(Run(text, names, href, at))


def _apart(before: str, after: str) -> bool:
    """Tell whether two characters surely take the same cells side by side as each alone."""
    if _LONELY.match(before):
        return _LONELY.match(after) is not None or width_of(after) > 0
    return before != _JOINER and _LONELY.match(after) is not None
