"""Output of a call while it comes: bounded, with its colours, and with lines that were written over taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .cells import TAB, Row, Run, wrap_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Styles = tuple[tuple[int, int, str], ...]

_MERGED = 4_000
"""Characters up to which pieces of one stream are put together."""


@dataclass(slots=True)
class Piece:
    """Output of one stream: ``styles`` are start, end and words of style within ``text``."""

    stream: str
    text: str
    styles: Styles = ()


class LiveText:
    """The last ``limit`` characters of output. ``dropped`` counts those before."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self.pieces: list[Piece] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self.pieces)

    @property
    def styled(self) -> bool:
        """True when some of it has colours."""
        return any(piece.styles for piece in self.pieces)

    def add(self, stream: str, text: str, styles: Styles = (), rewind: int = 0) -> None:
        """Take a piece, after the last ``rewind`` characters of its stream were withdrawn."""
        if rewind > 0:
            self._withdraw(stream, rewind)
        if not text:
            return
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.stream == stream and len(last.text) + len(text) <= _MERGED:
            at = len(last.text)
            last.styles += tuple((start + at, end + at, words) for start, end, words in styles)
            last.text += text
        else:
            self.pieces.append(Piece(stream, text, styles))
        self._size += len(text)
        self._trim()

    def _withdraw(self, stream: str, count: int) -> None:
        place = len(self.pieces) - 1
        while place >= 0 and count > 0:
            piece = self.pieces[place]
            if piece.stream == stream:
                cut = min(count, len(piece.text))
                count -= cut
                self._size -= cut
                left = len(piece.text) - cut
                piece.text = piece.text[:left]
                piece.styles = tuple((a, min(b, left), words) for a, b, words in piece.styles if a < left)
                if not piece.text:
                    del self.pieces[place]
            place -= 1

    def _trim(self) -> None:
        over = self._size - self.limit
        if over <= 0:
            return
        self.dropped += over
        self._size -= over
        while over > 0:
            first = self.pieces[0]
            if len(first.text) <= over:
                over -= len(first.text)
                del self.pieces[0]
                continue
            first.text = first.text[over:]
            first.styles = tuple(
                (max(0, a - over), b - over, words) for a, b, words in first.styles if b > over
            )
            over = 0

    def text(self, stream: str | None = None) -> str:
        """Return what is kept, of one stream or of both."""
        return "".join(piece.text for piece in self.pieces if stream in (None, piece.stream))

    def tail(self, lines: int) -> list[Piece]:
        """Return the pieces from the start of the last ``lines`` lines on, empty ones at the end not counted."""
        left = lines
        pieces: list[Piece] = []
        ending = True
        for piece in reversed(self.pieces):
            text = piece.text.rstrip("\n") if ending else piece.text
            ending = ending and not text
            at = len(text)
            while left > 0 and at > 0:
                at = text.rfind("\n", 0, at)
                if at < 0:
                    break
                left -= 1
            if left <= 0:
                start = at + 1
                styles = tuple(
                    (max(0, a - start), b - start, words) for a, b, words in piece.styles if b > start
                )
                pieces.append(Piece(piece.stream, piece.text[start:], styles))
                break
            pieces.append(piece)
        return pieces[::-1]


def runs_of(pieces: Iterable[Piece], names: Mapping[str, tuple[str, ...]]) -> list[Run]:
    """Return pieces as runs; ``names`` are the styles of each stream. ``at`` counts in the text as it is shown."""
    runs: list[Run] = []
    at = 0
    for piece in pieces:
        for run in raw_runs(piece, names.get(piece.stream, ())):
            text = run.text.replace("\t", TAB)
            runs.append(run._replace(text=text, at=at))
            at += len(text)
    return runs


def raw_runs(piece: Piece, names: tuple[str, ...]) -> list[Run]:
    """Return a piece as runs in the styles ``names`` and those of its own."""
    if not piece.styles:
        return [Run(piece.text, names)]
    from .ansi import styled_runs

    return [run._replace(names=(*names, *run.names)) for run in styled_runs(piece.text, piece.styles)]


def lines_of(runs: Iterable[Run]) -> list[Row]:
    """Return runs cut at their newlines."""
    lines: list[list[Run]] = [[]]
    for run in runs:
        at = run.at
        for number, part in enumerate(run.text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(run._replace(text=part, at=at))
            if at >= 0:
                at += len(part) + 1
    return list(lines)


def wrap_output(runs: Iterable[Run], width: int) -> list[Row]:
    """Break what a program wrote into rows of at most ``width`` cells, as a terminal does: all spaces stay."""
    return [row for line in lines_of(runs) for row in wrap_code(line, width)]
