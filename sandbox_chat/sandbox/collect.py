"""Bounded keeping of a run's output: its head and its tail, however much came."""

from __future__ import annotations

import codecs
from collections import deque


class Collector:
    """Takes the bytes of one output stream and keeps at most ``limit`` characters of its text.

    Bytes that are not UTF-8 become U+FFFD. The first two thirds of the limit are the head, the rest
    is the tail; what was between them is counted.
    """

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_limit = limit * 2 // 3
        self._tail_limit = limit - self._head_limit
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self.total = 0
        """Characters that came in all."""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Add ``data``; return its text (a character that is not whole yet comes with the next piece)."""
        text = self._decoder.decode(data, final)
        self.total += len(text)
        rest = text
        if self._head_size < self._head_limit:
            part = text[: self._head_limit - self._head_size]
            self._head.append(part)
            self._head_size += len(part)
            rest = text[len(part) :]
        if rest:
            self._tail.append(rest[-self._tail_limit :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= self._tail_limit:
                self._tail_size -= len(self._tail.popleft())
        return text

    def text(self) -> str:
        """Return what was kept, around a line that says what was cut."""
        head = "".join(self._head)
        tail = "".join(self._tail)[-self._tail_limit :]
        cut = self.total - len(head) - len(tail)
        if not cut:
            return head + tail
        return f"{head}\n[… {cut:,} characters cut out of {self.total:,} …]\n{tail}"
