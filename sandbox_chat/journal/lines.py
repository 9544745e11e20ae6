"""The lines of a journal's file, each with its place; damaged places are noted, and copied aside.

Knows bytes only. A line is bounded: of a longer one only so much is ever in memory that it can be passed over.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

LONGEST = 64 << 20
"""Bytes of the longest line that can be a record. None of ours comes near it; a longer one is damage."""
_BLOCK = 1 << 20
ASIDE_MOST = 1 << 20
"""Bytes of one damaged place that are copied aside; all of it stays in the journal's file too."""
DAMAGED = "events.damaged"
"""File in the session's folder with what could not be read."""


class Line(NamedTuple):
    """A line of a file: where it begins, its bytes without the newline, and how many they are.

    ``raw`` is empty for a line that is longer than any record.
    """

    start: int
    raw: bytes
    size: int


def read_lines(file: BinaryIO, start: int = 0, stop: int | None = None) -> Iterator[Line]:
    """Yield the lines from byte ``start``, which begins one, up to ``stop`` (the end of the file)."""
    for place, lines, skipped in _blocks(file, start, stop):
        at = place
        for raw in lines:
            yield Line(at, raw, len(raw))
            at += len(raw) + 1
        if skipped:
            yield Line(at, b"", skipped)


def lines_that_begin(
    file: BinaryIO, begins: tuple[bytes, ...], start: int = 0, stop: int | None = None
) -> Iterator[bytes]:
    """Yield the lines that begin so. The others cost next to nothing, which matters where most are others."""
    for _, lines, _ in _blocks(file, start, stop):
        yield from [raw for raw in lines if raw.startswith(begins)]


def _blocks(file: BinaryIO, start: int, stop: int | None) -> Iterator[tuple[int, list[bytes], int]]:
    """Yield some lines at a time: where the first begins, the lines, and the size of one behind them that is too long."""
    file.seek(start)
    place, begun, held = (
        start,
        b"",
        0,
    )  # a line that goes on in the next block; ``held`` if only its size is known
    left = stop - start if stop is not None else -1
    while left and (block := file.read(_BLOCK if left < 0 else min(_BLOCK, left))):
        left -= len(block) if left > 0 else 0
        if held or (len(begun) + len(block) > LONGEST and b"\n" not in block):
            end = block.find(b"\n")
            held += len(begun) + (len(block) if end < 0 else end)
            begun = b""
            if end < 0:
                continue
            yield place, [], held
            place, held, block = place + held + 1, 0, block[end + 1 :]
        lines = (begun + block).split(b"\n")
        begun = lines.pop()
        yield place, lines, 0
        place += sum(map(len, lines)) + len(lines)
    if held or begun:
        yield place, [begun] if begun else [], held


class Span(NamedTuple):
    """A damaged place: first byte, and how many."""

    start: int
    size: int


@dataclass
class Damage:
    """The places of a journal that could not be read. Damaged lines that follow each other are one place."""

    spans: list[Span] = field(default_factory=list)

    @property
    def skipped(self) -> int:
        """How many places were passed over."""
        return len(self.spans)

    def add(self, line: Line, *, joined: bool) -> None:
        """Note a damaged line; ``joined``: it belongs to the place noted last."""
        start, stop = line.start, line.start + line.size
        if joined and self.spans:
            start = self.spans.pop().start
        self.spans.append(Span(start, stop - start))


class Numbers:
    """Which numbers of events were there already. Kept as ranges: those of a whole journal are one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # the number behind the last of each range

    def add(self, number: int) -> bool:
        """Note a number; return false if it was there already."""
        place = bisect_right(self._starts, number) - 1
        if place >= 0 and number < self._ends[place]:
            return False
        joins = place >= 0 and number == self._ends[place]
        before_next = place + 1 < len(self._starts) and number + 1 == self._starts[place + 1]
        if joins and before_next:
            self._ends[place] = self._ends.pop(place + 1)
            del self._starts[place + 1]
        elif joins:
            self._ends[place] = number + 1
        elif before_next:
            self._starts[place + 1] = number
        else:
            self._starts.insert(place + 1, number)
            self._ends.insert(place + 1, number + 1)
        return True


def missing_aside(events: Path, spans: Sequence[Span]) -> list[Span]:
    """Return those damaged places of the file ``events`` that are not in ``events.damaged`` yet. Raises ``OSError``."""
    if not spans:
        return []
    try:
        with events.with_name(DAMAGED).open("rb") as file:
            known = {line.raw for line in read_lines(file) if line.raw.startswith(b"### ")}
    except FileNotFoundError:
        return list(spans)
    return [span for span in spans if _heading(span) not in known]


def set_aside(events: Path, spans: Sequence[Span]) -> None:
    """Copy damaged places of the file ``events`` into ``events.damaged`` beside it. Raises ``OSError``.

    Each is copied once, under a line that says where it stood.
    """
    new = missing_aside(events, spans)
    if not new:
        return
    fd = os.open(events.with_name(DAMAGED), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with events.open("rb") as source, os.fdopen(fd, "ab") as out:
        for span in new:
            source.seek(span.start)
            data = source.read(min(span.size, ASIDE_MOST))
            out.write(_heading(span) + b"\n" + data.rstrip(b"\n") + b"\n")
        out.flush()
        os.fsync(out.fileno())


def _heading(span: Span) -> bytes:
    shown = min(span.size, ASIDE_MOST)
    rest = "" if shown == span.size else f", the first {shown} of them"
    return f"### {span.size} bytes at byte {span.start} of events.jsonl{rest}".encode()
