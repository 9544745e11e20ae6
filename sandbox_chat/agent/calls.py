"""The tool calls of a session: each started once and finished once, whoever tells of it first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_chat.events import Content, ToolFinished, ToolStarted
from sandbox_chat.text import from_arguments, from_name

KEPT = 1000
"""Calls that have ended and are still known, the latest ones: of older ones nothing is told any more."""


@dataclass(slots=True)
class _Call:
    start: float
    handled: bool = False  # our own handler runs it, so its end comes from there


class Calls:
    """Knows which calls are under way and drops what is told twice.

    A call is told of by the CLI's messages (``started``, ``result``) and by our handlers (``handler_started``,
    ``handler_finished``), in any order.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Call] = {}
        self._ended: dict[str, None] = {}  # oldest first

    @property
    def open(self) -> list[str]:
        """Ids of the calls that have started and not finished."""
        return list(self._open)

    @property
    def handling(self) -> list[str]:
        """Ids of the open calls that our handlers run."""
        return [call_id for call_id, call in self._open.items() if call.handled]

    def known(self, call_id: str) -> bool:
        """True when the call was told of with its whole arguments."""
        return call_id in self._open or call_id in self._ended

    def started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolStarted | None:
        """A call was announced; returns the event unless it was sent already."""
        if self.known(call_id):
            return None
        self._open[call_id] = _Call(time.monotonic())
        return ToolStarted(tool_use_id=call_id, name=from_name(name), input=from_arguments(arguments))

    def handler_started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolStarted | None:
        """Our handler took a call on."""
        event = self.started(call_id, name, arguments)
        if call_id in self._open:
            self._open[call_id].handled = True
        return event

    def handler_finished(
        self,
        call_id: str,
        content: tuple[Content, ...],
        *,
        is_error: bool,
        interrupted: bool,
        duration_ms: int,
    ) -> ToolFinished | None:
        """Our handler is done with a call."""
        return self._finish(call_id, content, is_error, interrupted, duration_ms)

    def result(self, call_id: str, content: tuple[Content, ...], *, is_error: bool) -> ToolFinished | None:
        """The CLI told of a call's result: that counts only when no handler of ours runs it."""
        call = self._open.get(call_id)
        if call is None or call.handled:
            return None
        return self._finish(call_id, content, is_error, False, int((time.monotonic() - call.start) * 1000))

    def abandon(self, content: tuple[Content, ...], *, interrupted: bool) -> list[ToolFinished]:
        """Finish every open call: nothing more will be told of it."""
        events = []
        for call_id in self.open:
            duration = int((time.monotonic() - self._open[call_id].start) * 1000)
            event = self._finish(call_id, content, True, interrupted, duration)
            if event is not None:
                events.append(event)
        return events

    def _finish(
        self, call_id: str, content: tuple[Content, ...], is_error: bool, interrupted: bool, duration_ms: int
    ) -> ToolFinished | None:
        if self._open.pop(call_id, None) is None:
            return None
        self._ended[call_id] = None
        if len(self._ended) > KEPT:
            del self._ended[next(iter(self._ended))]
        return ToolFinished(
            tool_use_id=call_id,
            is_error=is_error,
            content=content,
            duration_ms=duration_ms,
            interrupted=interrupted,
        )
