"""What stands of a program's output after its pieces came: what was written over is withdrawn."""

from __future__ import annotations

from sandbox_chat.ansi import Piece, clip, joined
from sandbox_chat.sgr import Styles


class Kept:
    """Pieces of several streams, in the order in which they came."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, Piece]] = []

    def __bool__(self) -> bool:
        return bool(self.parts)

    def add(self, stream: str, text: str, rewind: int = 0, styles: Styles = ()) -> None:
        """Take a piece, after the last ``rewind`` characters of its stream were withdrawn."""
        place = len(self.parts) - 1
        while rewind > 0 and place >= 0:
            name, part = self.parts[place]
            if name == stream:
                left = joined(part, Piece("", min(rewind, len(part.text))))
                rewind -= len(part.text) - len(left.text)
                if left.text:
                    self.parts[place] = (name, left)
                else:
                    del self.parts[place]
            place -= 1
        if not text:
            return
        piece = Piece(text, 0, styles)
        if self.parts and self.parts[-1][0] == stream:
            self.parts[-1] = (stream, joined(self.parts[-1][1], piece))
        else:
            self.parts.append((stream, piece))

    @property
    def text(self) -> str:
        """All of it, without colours."""
        return "".join(piece.text for _, piece in self.parts)

    def take_lines(self, *, all_of_it: bool = False) -> list[Piece]:
        """Return the lines that are whole, in order, and forget them; with ``all_of_it`` those that are not as well."""
        lines: list[Piece] = []
        left: list[tuple[str, Piece]] = []
        for name, piece in self.parts:
            place = 0
            for line in piece.text.split("\n")[:-1]:
                lines.append(_part(piece, place, place + len(line)))
                place += len(line) + 1
            if place < len(piece.text):
                rest = _part(piece, place, len(piece.text))
                if all_of_it:
                    lines.append(rest)
                else:
                    left.append((name, rest))
        self.parts = left
        return lines


def _part(piece: Piece, start: int, end: int) -> Piece:
    return Piece(piece.text[start:end], 0, tuple(clip(piece.styles, start, end, -start)))
