"""What the model is to hear with its next run: background output of earlier calls, and what happened meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sandbox_chat.ansi import Piece
from sandbox_chat.events import Stream
from sandbox_chat.kept import Kept
from sandbox_chat.text import bound
from sandbox_chat.tools.live import LiveOutput

if TYPE_CHECKING:
    from sandbox_chat.tools.context import Private

LATE_LIMIT = 20_000
"""Characters of background output that are shown of one call."""
LATE_CALLS = 200
"""Calls that background output is taken of at most; the oldest are forgotten first."""
TOLD_LIMIT = 2_000
"""Characters of background output that the model gets with one answer."""
NOTES_LIMIT = 10
STOPPED = "\n[… further background output of this call is not shown …]\n"


class News:
    """Collects on any thread, shows on the session's loop, and tells the model once.

    ``emit(call_id, stream, piece)`` shows background output, clean, on the loop. ``private`` hides personal data in it.
    """

    def __init__(self, emit: Callable[[str, Stream, Piece], None], private: Private | None = None) -> None:
        self._private = private
        self._emit = emit
        self._lock = threading.Lock()
        self._calls: dict[str, LiveOutput] = {}
        self._late = Kept()
        self._late_cut = 0
        self._notes: deque[str] = deque(maxlen=NOTES_LIMIT)

    def late_sink(self, call_id: str) -> Callable[[Stream, str], None]:
        """Return what takes the background output of a call, for the worker's thread. Call it on the loop."""
        loop = asyncio.get_running_loop()

        def take(stream: Stream, text: str) -> None:
            with self._lock:
                live = self._calls.get(call_id)
                if live is None:
                    while len(self._calls) >= LATE_CALLS:
                        del self._calls[next(iter(self._calls))]
                    live = LiveOutput(
                        loop,
                        partial(self._take_late, call_id),
                        limit=LATE_LIMIT,
                        stopped=STOPPED,
                        private=self._private,
                    )
                    self._calls[call_id] = live
            live.feed(stream, text)

        return take

    def add(self, note: str) -> None:
        """Tell the model a sentence with its next run. On the loop."""
        self._notes.append(note)

    def take(self) -> list[str]:
        """Return the notes that the model has not heard, and forget them. On the loop."""
        with self._lock:
            calls = list(self._calls.values())
        for live in calls:
            live.flush()
        notes, late = list(self._notes), self._late.text
        cut = self._late_cut
        self._notes.clear()
        self._late, self._late_cut = Kept(), 0
        if late.strip():
            more = f"\n[… {cut:,} more characters …]" if cut else ""
            notes.append(
                "Background output of an earlier call: " + bound(late.strip("\n"), TOLD_LIMIT) + more
            )
        return notes

    def _take_late(self, call_id: str, stream: Stream, piece: Piece) -> None:
        lost = min(piece.rewind, self._late_cut)
        room = max(2 * TOLD_LIMIT - len(self._late.text), 0)
        self._late.add(f"{call_id} {stream}", piece.text[:room], piece.rewind - lost)
        self._late_cut += len(piece.text[room:]) - lost
        self._emit(call_id, stream, piece)
