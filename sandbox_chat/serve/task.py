"""One task: what was asked, how far it is, what came of it; and the events on their way to a client that follows it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from pathlib import PurePath
from typing import Any, Literal

from sandbox_chat.event_json import to_dict, to_json
from sandbox_chat.events import (
    Event,
    FileContent,
    ImageContent,
    Retry,
    Text,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from sandbox_chat.serve.asking import Ask
from sandbox_chat.serve.errors import Refused

Outcome = Literal["ok", "failed", "left", "timeout", "drained", "removed", "unavailable"]
"""How a task ended: well; by itself, but not well; its client left; its time was over; the server ended; its session was
removed; or its session could not be started."""
Stop = Literal["left", "timeout", "drained", "removed"]
ANSWER_LIMIT = 1_000_000
"""Characters of an answer in a result; the rest is left out, and that is said."""
TOOLS_LIMIT = 1000
"""Calls in a result, and files; the first ones are left out."""
FEED_LIMIT = 8_000_000
"""Bytes of events that wait for a client; one that does not read them is let go."""


class Feed:
    """Events that wait for a client, as they are sent. Bounded: beyond the limit all are dropped and it is ``over``."""

    def __init__(self, limit: int = FEED_LIMIT) -> None:
        self._limit = limit
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self.closed = False
        self.over = False

    def put(self, part: bytes) -> None:
        """Add something to send."""
        if self.closed or self.over:
            return
        self._size += len(part)
        if self._size > self._limit:
            self.over = True
            self._parts.clear()
        else:
            self._parts.append(part)
        self._news.set()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._news.set()

    async def take(self, patience: float) -> bytes:
        """Wait for what there is to send; empty when nothing came for ``patience`` seconds, or nothing will come any more."""
        try:
            async with asyncio.timeout(patience):
                while not self._parts and not self.closed and not self.over:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return b""
        found = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return found


def message(event: Event) -> bytes:
    """Return an event as one of a stream: its number, its type, its JSON."""
    number = f"id: {event.seq}\n" if event.seq else ""
    return f"{number}event: {event.type}\ndata: {to_json(event)}\n\n".encode()


def _now() -> float:
    return time.monotonic()


class Task:
    """One task of a user's. ``feed`` is there when its client follows the events."""

    def __init__(self, ask: Ask, *, stream: bool = False) -> None:
        self.id = uuid.uuid4().hex
        self.ask = ask
        self.feed = Feed() if stream else None
        self.accepted = _now()
        self.started = 0.0
        self.session_id = ask.session
        self.turn_id = ""
        self.outcome: Outcome | None = None
        self.problem: Refused | None = None
        """Why there is no result."""
        self.finished: TurnFinished | None = None
        self.turn_over = asyncio.Event()
        self.stopped = asyncio.Event()
        self.stop_reason: Stop | None = None
        self.done = asyncio.Event()
        self._texts: list[str] = []
        self._open: list[str] = []  # pieces of a block that is being written
        self._size = 0
        self._cut = False
        self._began = False
        self._tools: deque[dict[str, Any]] = deque(maxlen=TOOLS_LIMIT)
        self._tools_seen = 0
        self._files: deque[dict[str, str]] = deque(maxlen=TOOLS_LIMIT)
        self._names: dict[str, str] = {}

    # -- what happens ----------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take one event of the session while this task runs."""
        if self.turn_over.is_set():
            return
        if self.feed is not None:
            self.feed.put(message(event))
            if self.feed.over:
                self.stop("left")
        match event:
            case TurnStarted(turn_id=turn_id):
                self._began = turn_id == self.turn_id
            case TurnFinished(turn_id=turn_id) if turn_id == self.turn_id:
                self._add("".join(self._open))
                self.finished = event
                self.turn_over.set()
            case _ if self._began:
                self._collect(event)

    def _collect(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                if self._size < ANSWER_LIMIT:
                    self._open.append(text)
                    self._size += len(text)
            case Text(text=text):
                self._withdraw()
                self._add(text)
            case Retry():
                self._withdraw()
            case ToolStarted():
                self._add("".join(self._open))
                self._names[event.tool_use_id] = event.name
            case ToolFinished():
                self._tools_seen += 1
                self._tools.append(
                    {
                        "name": self._names.pop(event.tool_use_id, ""),
                        "is_error": event.is_error,
                        "interrupted": event.interrupted,
                        "duration_ms": event.duration_ms,
                    }
                )
                for part in event.content:
                    if isinstance(part, ImageContent | FileContent):
                        title = part.title if isinstance(part, FileContent) else ""
                        self._files.append(
                            {"name": PurePath(part.path).name, "mime": part.mime, "title": title}
                        )

    def _withdraw(self) -> None:
        self._size -= sum(map(len, self._open))
        self._open.clear()

    def _add(self, text: str) -> None:
        """Take a whole block of the answer, in place of the one that is being written."""
        self._withdraw()
        room = ANSWER_LIMIT - self._size
        self._cut = self._cut or len(text) > room
        if kept := text[: max(0, room)]:
            self._texts.append(kept)
            self._size += len(kept)

    def lost(self) -> None:
        """The session has ended under it."""
        self.turn_over.set()

    def stop(self, reason: Stop) -> None:
        """Ask for its end; the first reason counts."""
        if self.stop_reason is None and self.outcome is None:
            self.stop_reason = reason
            self.stopped.set()

    def end(self, outcome: Outcome, problem: Refused | None = None) -> None:
        """It is over: whoever waits for it goes on."""
        self.outcome, self.problem = outcome, problem
        if self.feed is not None:
            if problem is not None:
                self.feed.put(error_message(problem))
            self.feed.close()
        self.done.set()

    # -- what came of it -------------------------------------------------------------------------------

    def result(self) -> dict[str, Any]:
        """Return the result of a task that ran."""
        turn = self.finished
        about = {} if turn is None else to_dict(turn)
        usage = Usage()
        return {
            "task": self.id,
            "session": self.session_id,
            "turn": self.turn_id,
            "outcome": self.outcome,
            "answer": "\n\n".join(self._texts),
            "answer_cut": self._cut,
            "subtype": about.get("subtype", "error_during_execution"),
            "is_error": about.get("is_error", True),
            "interrupted": about.get("interrupted", False),
            "error": about.get("error", "The session ended before the task did. Send it again."),
            "duration_ms": about.get("duration_ms", 0),
            "cost_usd": about.get("cost_usd"),
            "usage": about.get("usage", {name: getattr(usage, name) for name in Usage.__slots__}),
            "tools": list(self._tools),
            "files": list(self._files),
            "tools_left_out": self._tools_seen - len(self._tools),
        }

    @property
    def waited(self) -> float:
        """Seconds before it ran, or up to now."""
        return (self.started or _now()) - self.accepted

    @property
    def ran(self) -> float:
        """Seconds since it began to run."""
        return _now() - self.started if self.started else 0.0


def error_message(problem: Refused) -> bytes:
    """Return what ends a stream whose task has no result."""
    import json

    return f"event: error\ndata: {json.dumps(problem.body, ensure_ascii=True)}\n\n".encode()
