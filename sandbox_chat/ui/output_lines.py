"""Output of a call as lines that change at their end only: each piece is split and styled once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_chat.ui.calls import Part
from sandbox_chat.ui.transcript.card_live import Piece, lines_of, raw_runs
from sandbox_chat.ui.transcript.cells import Row

_NAMES: dict[str, tuple[str, ...]] = {"stderr": ("error",), "note": ("faint",)}


class OutputLines:
    """Takes the parts of an output again and again and makes lines of what is new."""

    def __init__(self) -> None:
        self.lines: list[Row] = []
        self._parts: list[Part] = []
        self._starts: list[tuple[int, int]] = []  # of each part: line, and runs of that line before it

    def update(self, parts: Sequence[Part]) -> int:
        """Take the parts as they are now. Returns the number of the first line that is not as it was."""
        same = 0
        for old, new in zip(self._parts, parts, strict=False):
            if old is not new and old != new:
                break
            same += 1
        if same == len(self._parts) == len(parts):
            return len(self.lines)
        first = len(self.lines) - 1
        if same == len(self._parts) - 1 and same < len(parts) and _grown(self._parts[same], parts[same]):
            self._add(_rest(self._parts[same], parts[same]))
            self._parts[same] = parts[same]
            same += 1
        elif same < len(self._parts):
            line, runs = self._starts[same]
            del self.lines[line + 1 :], self._parts[same:], self._starts[same:]
            self.lines[line] = self.lines[line][:runs]
            first = line
        for part in parts[same:]:
            self._starts.append((max(0, len(self.lines) - 1), len(self.lines[-1]) if self.lines else 0))
            self._parts.append(part)
            self._add(part)
        return max(0, first)

    def _add(self, part: Part) -> None:
        stream, text, styles = part
        head, *rest = lines_of(raw_runs(Piece(stream, text, styles), _NAMES.get(stream, ())))
        if self.lines:
            self.lines[-1] = [*self.lines[-1], *head]
        else:
            self.lines.append(head)
        self.lines.extend(rest)


def _grown(old: Part, new: Part) -> bool:
    same = old.stream == new.stream and new.text.startswith(old.text)
    return same and (not old.styles or new.cut(0, len(old.text)).styles == old.styles)


def _rest(old: Part, new: Part) -> Part:
    return new.cut(len(old.text), len(new.text))
