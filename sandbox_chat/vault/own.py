"""Finds what patterns of the user's describe, in bounded time whatever the pattern.

A pattern is applied to pieces of a line of 4,096 characters that overlap by 256. Where it takes longer than its share of
time on a piece, the piece is hidden whole: it could hold a value. After some of those, its share is smaller.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sandbox_chat.personal import GROUP, Pattern, compiled
from sandbox_chat.vault import checks

log = logging.getLogger(__name__)

PIECE = 4096
OVERLAP = 256
FIRST_SHARE = 0.05
"""Seconds of the processor that a pattern may take on a piece."""
LATER_SHARE = 0.005
"""The same once it took too long some times."""
PATIENCE = 3
_LINE = re.compile(r"[^\n]+")


class Own:
    """One pattern of the user's."""

    def __init__(self, pattern: Pattern) -> None:
        self.kind = pattern.name
        self._validator = pattern.validator
        self._regex = compiled(pattern.regex)
        self._group: str | int = GROUP if GROUP in self._regex.groupindex else 0
        self._slow = 0

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places of values in ``text``, none over another."""
        end = 0
        for line in _LINE.finditer(text):
            for start in range(line.start(), line.end(), PIECE - OVERLAP):
                for found in self._piece(text, start, min(start + PIECE, line.end())):
                    if found[0] >= end:
                        end = found[1]
                        yield found
                if start + PIECE >= line.end():
                    break

    def _piece(self, text: str, start: int, stop: int) -> list[tuple[int, int]]:
        piece = text[start:stop]
        share = FIRST_SHARE if self._slow < PATIENCE else LATER_SHARE
        found: list[tuple[int, int]] = []
        try:
            for match in self._regex.finditer(piece, timeout=share):
                begin, end = match.span(self._group)
                if begin < end and self._is_value(match, begin, end):
                    found.append((start + begin, start + end))
        except TimeoutError:
            self._note()
            return [(start, stop)] if "\0" not in piece else _between(piece, start)
        return found

    def _is_value(self, match: Any, begin: int, end: int) -> bool:
        value = match.string[begin:end]
        return "\0" not in value and bool(value.strip()) and checks.check(self._validator, value)

    def _note(self) -> None:
        self._slow += 1
        if self._slow == PATIENCE:
            log.warning("the pattern %s takes too long: what it is slow on is hidden whole", self.kind)


def _between(piece: str, start: int) -> list[tuple[int, int]]:
    """Return the places of a piece that are not spoken for."""
    return [
        (start + part.start(), start + part.end()) for part in re.finditer(r"[^\0]+", piece) if part[0].strip()
    ]


def make(patterns: Sequence[Pattern]) -> list[Own]:
    """Return the patterns ready for use."""
    return [Own(each) for each in patterns]
