"""What the screen knows of one turn, one tool call and its output. ``state`` puts them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sandbox_chat import events as ev
from sandbox_chat.plain import tool_name

ToolStatus = Literal["writing", "running", "ok", "failed", "interrupted"]

OUTPUT_LIMIT = 200_000
"""Characters of live output kept of one call: half from its start, half from its end."""

LATE_LIMIT = 40_000
"""The same of its background output, which is bounded where it comes from."""


@dataclass
class OutputBuffer:
    """Output of one call, bounded: the start and the end are kept, what was cut is counted.

    ``head`` and ``tail`` hold ``(stream, text)``; ``cut`` counts the characters between them.
    """

    limit: int = OUTPUT_LIMIT
    head: list[tuple[ev.Stream, str]] = field(default_factory=list)
    tail: deque[tuple[ev.Stream, str]] = field(default_factory=deque)
    cut: int = 0
    _head_size: int = 0
    _tail_size: int = 0

    def add(self, stream: ev.Stream, text: str) -> None:
        """Append a piece of output."""
        if not text:
            return
        half = self.limit // 2
        room = half - self._head_size
        if room > 0 and not self.tail:
            piece, text = text[:room], text[room:]
            self._head_size += len(piece)
            _extend(self.head, stream, piece)
        if not text:
            return
        self._tail_size += len(text)
        self.tail.append((stream, text))
        while self._tail_size > half:
            first_stream, first = self.tail[0]
            over = self._tail_size - half
            if len(first) <= over:
                self.tail.popleft()
                self._tail_size -= len(first)
                self.cut += len(first)
            else:
                self.tail[0] = (first_stream, first[over:])
                self._tail_size -= over
                self.cut += over

    def __bool__(self) -> bool:
        return bool(self.head)

    def parts(self) -> list[tuple[str, str]]:
        """Return the output as ``(stream, text)``; a part of the stream ``note`` says what was cut."""
        note = [("note", f"\n[… {self.cut:,} characters cut …]\n")] if self.cut else []
        return [*self.head, *note, *self.tail]

    def text(self) -> str:
        """Return the output as one text."""
        return "".join(text for _, text in self.parts())


def _extend(parts: list[tuple[ev.Stream, str]], stream: ev.Stream, text: str) -> None:
    if parts and parts[-1][0] == stream:
        parts[-1] = (stream, parts[-1][1] + text)
    else:
        parts.append((stream, text))


@dataclass
class ToolCall:
    """One tool call, from the first character of its arguments to its result.

    ``draft`` is the partial JSON of the arguments while the model writes them. ``began`` is when the
    call was first heard of, ``started`` when it began to run; ``duration_ms`` is known at its end.
    """

    id: str
    name: str
    turn_id: str
    began: datetime
    input: Mapping[str, Any] = field(default_factory=dict)
    draft: str = ""
    status: ToolStatus = "writing"
    started: datetime | None = None
    duration_ms: int | None = None
    output: OutputBuffer = field(default_factory=OutputBuffer)
    late: OutputBuffer = field(default_factory=lambda: OutputBuffer(LATE_LIMIT))
    content: tuple[ev.Content, ...] = ()
    revision: int = 0
    """Grows with every change, so that a view knows when to draw again."""

    @property
    def short_name(self) -> str:
        """Name without the prefix of our own server: ``run_code``."""
        return tool_name(self.name)

    @property
    def open(self) -> bool:
        """True while the call has not ended."""
        return self.status in ("writing", "running")

    @property
    def images(self) -> list[ev.ImageContent]:
        """Pictures of the result."""
        return [part for part in self.content if isinstance(part, ev.ImageContent)]

    def elapsed_ms(self, now: datetime) -> float:
        """Milliseconds that the call took, or has been running for at ``now``."""
        if self.duration_ms is not None:
            return float(self.duration_ms)
        since = self.started or self.began
        return max(0.0, (now - since).total_seconds() * 1000)


@dataclass
class Turn:
    """One prompt and what came of it. ``answered`` is true as soon as the model said or did anything."""

    id: str
    prompt: str
    started: datetime
    answered: bool = False
    ended: bool = False
    is_error: bool = False
    interrupted: bool = False
    error: str = ""
    duration_ms: int = 0
    cost_usd: float | None = None
    usage: ev.Usage = field(default_factory=ev.Usage)

    @property
    def used_tokens(self) -> bool:
        """True when the model was reached at all."""
        return self.usage != ev.Usage()
