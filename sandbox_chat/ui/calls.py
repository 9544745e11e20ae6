"""What the screen knows of one turn, one tool call and its output. ``state`` puts them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sandbox_chat import events as ev
from sandbox_chat.ansi import Piece, clip, joined
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import tool_parts
from sandbox_chat.sgr import Styles
from sandbox_chat.ui.arguments import PartialArguments
from sandbox_chat.ui.formats import tool_title
from sandbox_chat.words import tr

ToolStatus = Literal["writing", "running", "ok", "failed", "interrupted"]

OUTPUT_LIMIT = 200_000
"""Characters of live output kept of one call: half from its start, half from its end."""

LATE_LIMIT = 40_000
"""The same of its background output, which is bounded where it comes from."""


TOTAL_LIMIT = 8_000_000
"""Characters of live output kept of all calls together; beyond, the oldest calls keep little."""

OLD_LIMIT = 4_000
"""Characters kept of such a call. Its answer, and what the session's record has, stay whole."""


class Part(NamedTuple):
    """Output of one stream, or a ``note`` of ours; ``styles`` are those of ``text`` (see ``events.ToolOutput``)."""

    stream: str
    text: str
    styles: Styles = ()

    def cut(self, start: int, end: int) -> Part:
        """Return the characters from ``start`` to ``end``."""
        return Part(self.stream, self.text[start:end], tuple(clip(self.styles, start, end, -start)))


@dataclass
class OutputBuffer:
    """Output of one call, bounded: the start and the end are kept, what was cut is counted.

    ``head`` and ``tail`` hold the parts; ``cut`` counts the characters between them.
    """

    limit: int = OUTPUT_LIMIT
    head: list[Part] = field(default_factory=list)
    tail: deque[Part] = field(default_factory=deque)
    cut: int = 0
    _head_size: int = 0
    _tail_size: int = 0

    def add(self, stream: ev.Stream, text: str, styles: Styles = (), rewind: int = 0) -> None:
        """Append a piece of output, after the last ``rewind`` characters of its stream were withdrawn."""
        if rewind:
            self._withdraw(stream, rewind)
        if not text:
            return
        part = Part(stream, text, styles)
        half = self.limit // 2
        room = half - self._head_size
        if room > 0 and not self.tail and not self.cut:
            piece = part if len(text) <= room else part.cut(0, room)
            part = Part(stream, "") if len(text) <= room else part.cut(room, len(text))
            self._head_size += len(piece.text)
            _extend(self.head, piece)
        if not part.text:
            return
        self._tail_size += len(part.text)
        self.tail.append(part)
        while self._tail_size > half:
            first = self.tail[0]
            over = min(self._tail_size - half, len(first.text))
            self._tail_size -= over
            self.cut += over
            if over == len(first.text):
                self.tail.popleft()
            else:
                self.tail[0] = first.cut(over, len(first.text))

    @property
    def size(self) -> int:
        """Characters that are kept."""
        return self._head_size + self._tail_size

    def shrink(self, limit: int) -> None:
        """Keep at most ``limit`` characters from now on."""
        self.limit = limit
        if self.size <= limit:
            return
        before, half = self.size, limit // 2
        first = self.head if self.cut else [*self.head, *self.tail]
        last = list(self.tail) if self.cut else first
        self.head, self._head_size = _ends(first, half, at_end=False)
        kept, self._tail_size = _ends(last, half, at_end=True)
        self.tail = deque(kept)
        self.cut += before - self.size

    def _withdraw(self, stream: ev.Stream, count: int) -> None:
        count, size = _shorten(self.tail, stream, count)
        self._tail_size -= size
        lost = min(self.cut, count)
        self.cut -= lost
        if not self.cut:
            _, size = _shorten(self.head, stream, count - lost)
            self._head_size -= size

    def __bool__(self) -> bool:
        return bool(self.head or self.tail)

    def parts(self) -> list[Part]:
        """Return the output; a part of the stream ``note`` says what was cut."""
        if not self.cut:
            return [*self.head, *self.tail]
        said = tr("cards.cut", count=f"{self.cut:,}")
        return [*self.head, Part("note", f"\n{said}\n"), *self.tail]

    def text(self) -> str:
        """Return the output as one text."""
        return "".join(part.text for part in self.parts())


def _ends(parts: Sequence[Part], limit: int, *, at_end: bool) -> tuple[list[Part], int]:
    """Return the first or the last ``limit`` characters of parts, and how many those are."""
    out: list[Part] = []
    size = 0
    for part in reversed(parts) if at_end else parts:
        room = min(limit - size, len(part.text))
        if room <= 0:
            break
        out.append(part.cut(len(part.text) - room, len(part.text)) if at_end else part.cut(0, room))
        size += room
    return (out[::-1] if at_end else out), size


def _extend(parts: list[Part], part: Part) -> None:
    if parts and parts[-1].stream == part.stream:
        piece = joined(Piece(parts[-1].text, 0, parts[-1].styles), Piece(part.text, 0, part.styles))
        parts[-1] = Part(part.stream, piece.text, piece.styles)
    else:
        parts.append(part)


def _shorten(parts: list[Part] | deque[Part], stream: str, count: int) -> tuple[int, int]:
    """Take the last ``count`` characters of a stream away; return how many are left to take, and how many were taken."""
    taken = 0
    place = len(parts) - 1
    while place >= 0 and taken < count:
        part = parts[place]
        if part.stream == stream:
            left = max(0, len(part.text) - (count - taken))
            taken += len(part.text) - left
            if left:
                parts[place] = part.cut(0, left)
            else:
                del parts[place]
        place -= 1
    return count - taken, taken


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
    partial: PartialArguments = field(default_factory=PartialArguments, compare=False, repr=False)
    """What is known of the arguments while they are written."""
    status: ToolStatus = "writing"
    started: datetime | None = None
    duration_ms: int | None = None
    output: OutputBuffer = field(default_factory=OutputBuffer)
    late: OutputBuffer = field(default_factory=lambda: OutputBuffer(LATE_LIMIT))
    content: tuple[ev.Content, ...] = ()
    nested: NestedCalls = field(default_factory=NestedCalls)
    """Calls of other servers' tools that its code made."""
    revision: int = 0
    """Grows with every change, so that a view knows when to draw again."""

    @property
    def short_name(self) -> str:
        """Name for people: ``run_code``, or ``git · git_log`` for a tool of another server."""
        return tool_title(self.name)

    @property
    def server(self) -> str:
        """The MCP server of its tool; empty for the program's own tools."""
        return tool_parts(self.name)[0]

    @property
    def open(self) -> bool:
        """True while the call has not ended."""
        return self.status in ("writing", "running")

    @property
    def images(self) -> list[ev.ImageContent]:
        """Pictures of the result."""
        return [part for part in self.content if isinstance(part, ev.ImageContent)]

    @property
    def tables(self) -> list[ev.TableContent]:
        """Data frames of the result."""
        return [part for part in self.content if isinstance(part, ev.TableContent)]

    @property
    def files(self) -> list[ev.FileContent]:
        """What of the result another program shows."""
        return [part for part in self.content if isinstance(part, ev.FileContent)]

    def elapsed_ms(self, now: datetime) -> float:
        """Milliseconds that the call took, or has been running for at ``now``."""
        if self.duration_ms is not None:
            return float(self.duration_ms)
        since = self.started or self.began
        return max(0.0, (now - since).total_seconds() * 1000)


@dataclass
class Turn:
    """One prompt and what came of it. ``answered`` is true once the answer has a block or a call that nothing withdraws."""

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
