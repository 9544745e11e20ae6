"""What a program writes to a terminal, as lines: colours kept as data, what was written over settled.

``Output`` reads the text of one stream in pieces, cut anywhere, and keeps the last lines as a terminal would. It
understands colours and weight (SGR), carriage return, backspace, the cursor's steps (``CSI A … G``), erasing to
and in lines and below (``CSI K``, ``CSI J``); it drops what only hides the cursor or makes links. Everything else that
could act on a terminal is shown as signs. A column is one character, whatever its width.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from sandbox_chat.sgr import PLAIN, Styles, after, words
from sandbox_chat.signs import clean

LINES = 64
"""Lines from the end that the cursor can go back to."""
LINE_LIMIT = 4096
"""Characters of a line after which nothing of it can be gone back to."""
HELD_LIMIT = 2048
"""Characters of a sequence that is not whole yet which are held back."""
SPANS = 4000
"""Changes of style in one piece that are kept; the rest of it is plain."""
LINE_SPANS = 512
"""The same of one line."""

_TOKEN = re.compile(
    r"([^\x00-\x08\x0b-\x1f\x7f-\x9f]+)"  # 1 text and newlines
    r"|(\r+|\x08+)"  # 2
    r"|(?:\x1b\[|\x9b)([0-9:;]{0,64})([A-GJKm])"  # 3 4 what is understood
    r"|(?:\x1b\[|\x9b)\?(?:7|12|25|2026)[hl]"  # the cursor's look, wrapping: nothing to see
    r"|(?:\x1b\]|\x9d)8;[^\x00-\x1f\x7f-\x9f]{0,2000}(?:\x07|\x1b\\|\x9c)"  # links: their text is what counts
    r"|([\x00-\x1f\x7f-\x9f])"  # 5 all else
)
_UNFINISHED = re.compile(
    r"(?:\x1b|(?:\x1b\[|\x9b)[0-?]{0,64}|(?:\x1b\]|\x9d)(?:8(?:;[^\x00-\x1f\x7f-\x9f]{0,2000}\x1b?)?)?)\Z"
)
_ACTS = re.compile(r"[\r\x08\x1b\x9b\x9d]")
_STEPS = re.compile(r"[\x08\x1b\x9b\x9d]")
_COLOUR = re.compile(r"(?:\x1b\[|\x9b)[0-9:;]*m")
_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9:;]{0,64})m")
_NO_SGR = re.compile(r"\r(?!\n)|[\x08\x9d]|\x1b(?!\[[0-9:;]{0,64}m)|\x9b(?![0-9:;]{0,64}m)")
"""What may do more than colour the text that follows the last."""
_start, _end = itemgetter(0), itemgetter(1)


class Piece(NamedTuple):
    """A piece of output: ``rewind`` characters of what was shown are withdrawn, then ``text`` is added."""

    text: str
    rewind: int = 0
    styles: Styles = ()


class _Line:
    """A line that may be written over."""

    __slots__ = ("spans", "text")

    def __init__(self) -> None:
        self.text = ""
        self.spans: list[tuple[int, int, str]] = []

    def put(self, column: int, text: str, style: str) -> None:
        end = column + len(text)
        old, spans = self.text, self.spans
        if column == len(old):
            self.text = old + text
            place = len(spans)
        else:
            if column > len(old):
                old = old.ljust(column)
            self.text = old[:column] + text + old[end:]
            first = bisect_right(spans, column, key=_end)
            last = bisect_left(spans, end, lo=first, key=_start)
            left = clip(spans[first:last], 0, column)
            spans[first:last] = left + clip(spans[first:last], end, len(self.text))
            place = first + len(left)
        if not style:
            return
        if place and spans[place - 1][1:] == (column, style):
            spans[place - 1] = (spans[place - 1][0], end, style)
        elif len(spans) < LINE_SPANS:
            spans.insert(place, (column, end, style))

    def cut(self, column: int) -> None:
        self.text = self.text[:column]
        self.spans = clip(self.spans, 0, column)


class Output:
    """The text of one stream of a program, in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._state = PLAIN
        self._style = ""
        self._ready = Piece("")
        self._begin()

    def _begin(self, *, long: bool = False) -> None:
        """What was shown can no longer be changed; a line begins here, or (``long``) one goes on that is too long to be."""
        self._long = long
        self._lines = [_Line()]
        self._shown: list[tuple[str, list[tuple[int, int, str]]]] = [("", [])]
        self._row = self._column = 0
        self._changed: tuple[int, int] | None = None

    def feed(self, text: str) -> None:
        """Take what the program wrote next."""
        if self._held:
            text, self._held = self._held + text, ""
        found = _UNFINISHED.search(text, max(0, len(text) - HELD_LIMIT))
        if found is not None:
            text, self._held = text[: found.start()], found[0]
        self._read(text)

    def finish(self) -> None:
        """Nothing more comes: what was held back of an unfinished sequence is shown as signs."""
        held, self._held = self._held, ""
        if held:
            self._write(clean(held))

    @property
    def rewinds(self) -> bool:
        """True when the next ``take`` withdraws something that was shown."""
        shown = (len(self._shown) - 1, len(self._shown[-1][0]))
        return self._ready.rewind > 0 or (self._changed is not None and self._changed < shown)

    def take(self) -> Piece:
        """Return what changed since the last time."""
        self._collect()
        piece, self._ready = self._ready, Piece("")
        return piece

    # -- reading ---------------------------------------------------------------------------------------

    def _read(self, text: str) -> None:
        if _ACTS.search(text) is None:  # the quick way for most
            if text:
                self._write(clean(text))
            return
        place = 0
        while place < len(text):
            found = _NO_SGR.search(text, place)
            stop = found.start() if found is not None else len(text)
            if stop - place > LINE_LIMIT and self._at_end and (cut := _reached(text, place, stop)) > place:
                self._write_coloured(text[place:cut])
                place = cut
            place = self._read_tokens(text, place, stop)

    def _read_tokens(self, text: str, place: int, stop: int) -> int:
        """Read from ``place`` to what begins at ``stop``, that included; returns where it ends."""
        for match in _TOKEN.finditer(text, place):
            place = match.end()
            if match[1] is not None:
                self._write(clean(match[1]))
            elif match[2] is not None:
                self._column = 0 if match[2][0] == "\r" else max(0, self._column - len(match[2]))
                self._stay_behind()
            elif match[4] == "m":
                self._state = after(self._state, match[3])
                self._style = words(*self._state)
            elif match[4] is not None:
                self._act(match[4], match[3])
            elif match[5] is not None:
                self._write(clean(match[5]))
            if place > stop:
                break
        return place

    def _act(self, what: str, given: str) -> None:
        number = int(given[:4]) if given[:4].isdecimal() else 0
        steps = max(1, number)
        match what:
            case "A" | "F":
                self._row = max(0, self._row - steps)
            case "B" | "E":
                self._row = min(len(self._lines) - 1, self._row + steps)
            case "C":
                self._column = min(self._column + steps, LINE_LIMIT)
            case "D":
                self._column = max(0, self._column - steps)
            case "G":
                self._column = min(steps - 1, LINE_LIMIT)
            case "K":
                self._erase(number)
            case "J" if number == 0:
                self._erase(0)
                if self._row + 1 < len(self._lines):
                    del self._lines[self._row + 1 :]
                    self._touch(self._row, len(self._lines[self._row].text))
            case _:
                self._write(clean(f"\x1b[{given}{what}"))
        if what in "EF":
            self._column = 0
        self._stay_behind()

    def _stay_behind(self) -> None:
        """Keep the cursor at the end of a line that is too long: nothing of it can be changed."""
        if self._long and self._row == 0:
            self._column = len(self._lines[0].text)

    def _erase(self, mode: int) -> None:
        if self._long and self._row == 0:
            return
        line = self._lines[self._row]
        if mode == 1:
            blank = min(self._column + 1, len(line.text))
            line.put(0, " " * blank, "")
            self._touch(self._row, 0)
        elif mode in (0, 2):
            column = 0 if mode == 2 else min(self._column, len(line.text))
            if column < len(line.text):
                line.cut(column)
                self._touch(self._row, column)

    def _touch(self, row: int, column: int) -> None:
        if self._changed is None or (row, column) < self._changed:
            self._changed = (row, column)

    @property
    def _at_end(self) -> bool:
        return self._row == len(self._lines) - 1 and self._column == len(self._lines[-1].text)

    def _write_coloured(self, text: str) -> None:
        """Write what no cursor reaches any more of a text in which only colours change."""
        parts = _SGR.split(text.replace("\r\n", "\n"))  # texts, and between them what colours the next
        plain = "".join(parts[::2])
        if not plain.isascii() or clean(plain) != plain:
            parts[::2] = map(clean, parts[::2])
            plain = "".join(parts[::2])
        state, size = self._state, len(parts[0])
        spans = [(0, size, self._style)] if self._style and size else []
        for given, part in zip(parts[1::2], parts[2::2], strict=True):
            state = after(state, given)
            if part:
                start, size = size, size + len(part)
                if (style := words(*state)) and len(spans) < SPANS:
                    if spans and spans[-1][1:] == (start, style):
                        start = spans.pop()[0]
                    spans.append((start, size, style))
        self._collect()
        self._ready = joined(self._ready, Piece(plain, 0, tuple(spans)))
        self._begin()
        self._state, self._style = state, words(*state)

    def _write(self, text: str) -> None:
        if self._at_end and len(text) > LINE_LIMIT:
            cut, long = _cut(text, LINE_LIMIT if self._long else self._column)
            self._collect()
            self._ready = joined(self._ready, Piece(text[:cut], 0, self._span(cut)))
            self._begin(long=long)
            text = text[cut:]
        first, *others = text.split("\n")
        self._put(first)
        for line in others:
            self._row += 1
            self._column = 0
            if self._row == len(self._lines):
                self._touch(self._row - 1, len(self._lines[-1].text))
                self._lines.append(_Line())
            self._put(line)
        if len(self._lines) > 4 * LINES:
            self._collect()

    def _put(self, text: str) -> None:
        if text:
            line = self._lines[self._row]
            self._touch(self._row, min(self._column, len(line.text)))
            line.put(self._column, text, self._style)
            self._column += len(text)
            if self._column > LINE_LIMIT and self._at_end:
                self._collect()
                self._begin(long=True)

    def _span(self, size: int) -> Styles:
        return ((0, size, self._style),) if self._style and size else ()

    # -- what changed ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Put what changed behind what is ready to be taken."""
        if self._changed is None:
            return
        row, column = self._changed
        self._changed = None
        shown, lines = self._shown, self._lines
        if row >= len(shown):
            row, column = len(shown) - 1, len(shown[-1][0])
        while row < min(len(shown), len(lines)) - 1 and shown[row] == (lines[row].text, lines[row].spans):
            row, column = row + 1, 0
        if len(shown) != len(lines) or shown[row] != (lines[row].text, lines[row].spans):
            column = min(column, len(shown[row][0]), len(lines[row].text))
            rewind = len(shown[row][0]) - column + sum(1 + len(text) for text, _ in shown[row + 1 :])
            parts = [lines[row].text[column:]]
            spans = clip(lines[row].spans, column, len(lines[row].text), -column)
            size = len(parts[0])
            for line in lines[row + 1 :]:
                parts.append(line.text)
                spans += [(start + size + 1, end + size + 1, style) for start, end, style in line.spans]
                size += 1 + len(line.text)
            self._ready = joined(self._ready, Piece("\n".join(parts), rewind, tuple(spans[:SPANS])))
            shown[row:] = [(line.text, list(line.spans)) for line in lines[row:]]
        if (over := len(lines) - LINES) > 0:
            del lines[:over], shown[:over]
            self._row = max(0, self._row - over)
            self._long = False


def settle(text: str) -> str:
    """Return the whole output of a program as it stands in the end, without colours."""
    if _ACTS.search(text) is None:
        return clean(text)
    text = _COLOUR.sub("", text).replace("\r\n", "\n")
    if _STEPS.search(text) is None:
        if "\r" in text:
            text = "\n".join(_settle_line(line) if "\r" in line else line for line in text.split("\n"))
        return clean(text)
    output = Output()
    output.feed(text)
    output.finish()
    return output.take().text


def _settle_line(line: str) -> str:
    """Return what a terminal shows of a line: from the last part backwards, each adds only what sticks out."""
    pieces: list[str] = []
    width = 0
    for part in reversed(line.split("\r")):
        if len(part) > width:
            pieces.append(part[width:])
            width = len(part)
    return "".join(pieces)


def joined(first: Piece, then: Piece) -> Piece:
    """Return two pieces that follow each other as one."""
    kept = max(0, len(first.text) - then.rewind)
    rewind = first.rewind + max(0, then.rewind - len(first.text))
    styles = first.styles if kept == len(first.text) else tuple(clip(first.styles, 0, kept))
    moved = then.styles if not kept else tuple((a + kept, b + kept, style) for a, b, style in then.styles)
    if not kept:
        return Piece(then.text, rewind, moved)
    if styles and moved and styles[-1][1:] == (kept, moved[0][2]) and moved[0][0] == kept:
        styles, moved = (*styles[:-1], (styles[-1][0], *moved[0][1:])), moved[1:]
    return Piece(first.text[:kept] + then.text, rewind, (*styles, *moved)[:SPANS])


def clip(
    spans: Iterable[tuple[int, int, str]], start: int, end: int, move: int = 0
) -> list[tuple[int, int, str]]:
    """Return what of ``spans`` lies in the characters from ``start`` to ``end``, moved by ``move`` characters."""
    return [
        (max(a, start) + move, min(b, end) + move, style) for a, b, style in spans if a < end and b > start
    ]


def _reached(text: str, start: int, stop: int) -> int:
    """Return where the last lines of a part of a text begin that the cursor can go back to; ``start`` if all can be."""
    for _ in range(LINES):
        stop = text.rfind("\n", start, stop)
        if stop < 0:
            return start
    return stop + 1


def _cut(text: str, column: int) -> tuple[int, bool]:
    """Return where the part of a long text ends that no cursor reaches any more, and whether a line goes on there.

    ``column`` is where it begins in its first line.
    """
    place = _reached(text, 0, len(text))
    stop = len(text)
    while stop >= place:
        start = text.rfind("\n", place, stop) + 1 or place
        size = stop - start + (column if not start else 0)
        if size > LINE_LIMIT:
            return stop, True
        if start <= place:
            break
        stop = start - 1
    return place, False
