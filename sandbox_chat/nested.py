"""The calls that code of one run made, as every face and every document tells of them: the first and the last, and how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox_chat.events import Content, NestedFinished, NestedStarted, TextContent
from sandbox_chat.plain import arguments_line, duration_text, tool_name
from sandbox_chat.text import clean_line

FIRST, LAST = 50, 10
"""Calls that are kept of one run: so many of the first and of the last."""
ARGUMENTS = 300
"""Characters of a call's arguments on its line."""


@dataclass(slots=True)
class NestedCall:
    """A call that code made. ``outcome`` is ``running``, ``ok``, ``failed`` or ``interrupted``."""

    call_id: str
    name: str
    input: Mapping[str, Any]
    outcome: str = "running"
    duration_ms: int = 0
    content: tuple[Content, ...] = ()

    @property
    def text(self) -> str:
        """The start of its result."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextContent))

    @property
    def arguments(self) -> str:
        """Its arguments on one line."""
        return clean_line(arguments_line(self.input), ARGUMENTS)

    def line(self) -> str:
        """Return it on one line: tool, arguments, outcome, duration."""
        how = (
            self.outcome if self.outcome == "running" else f"{self.outcome} {duration_text(self.duration_ms)}"
        )
        return "  ".join(part for part in (clean_line(self.name), self.arguments, how) if part)


@dataclass(slots=True)
class NestedCalls:
    """The calls of one run, in the order in which they began."""

    count: int = 0
    failed: int = 0
    _first: dict[str, NestedCall] = field(default_factory=dict)
    _last: dict[str, NestedCall] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.count > 0

    def start(self, event: NestedStarted) -> None:
        """A call began."""
        if event.call_id in self._first or event.call_id in self._last:
            return
        self.count += 1
        call = NestedCall(event.call_id, tool_name(event.name), event.input)
        if len(self._first) < FIRST:
            self._first[event.call_id] = call
            return
        self._last[event.call_id] = call
        while len(self._last) > LAST:
            del self._last[next(iter(self._last))]

    def finish(self, event: NestedFinished) -> NestedCall | None:
        """A call ended; returns it if it is kept."""
        outcome = "interrupted" if event.interrupted else "failed" if event.is_error else "ok"
        self.failed += outcome == "failed"
        call = self._first.get(event.call_id) or self._last.get(event.call_id)
        if call is not None:
            call.outcome, call.duration_ms, call.content = outcome, event.duration_ms, event.content
        return call

    def stop(self) -> None:
        """The run is over: what has no end by now was stopped with it."""
        for call in self.kept():
            if call.outcome == "running":
                call.outcome = "interrupted"

    def kept(self) -> Iterator[NestedCall]:
        """Yield those that are kept."""
        yield from self._first.values()
        yield from self._last.values()

    @property
    def left_out(self) -> int:
        """How many there were between the first and the last."""
        return self.count - len(self._first) - len(self._last)

    def entries(self) -> Iterator[NestedCall | int]:
        """Yield those that are kept, with the number of those that are left out in their place."""
        yield from self._first.values()
        if self.left_out:
            yield self.left_out
        yield from self._last.values()

    def lines(self, *, results: int = 0) -> Iterator[str]:
        """Yield them as lines, each with at most ``results`` lines of its result."""
        for entry in self.entries():
            if isinstance(entry, int):
                yield f"… {entry:,} more calls …"
                continue
            yield entry.line()
            found = entry.text.splitlines()
            yield from (f"    {line}" for line in found[:results])
            if len(found) > results > 0:
                yield f"    … {len(found) - results:,} more lines"
