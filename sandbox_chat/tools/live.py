"""Live output of a running call: from the sandbox worker's thread to the session's loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from sandbox_chat.ansi import Output, Piece, clip
from sandbox_chat.events import Stream

if TYPE_CHECKING:
    from sandbox_chat.tools.context import Private

STREAMS: tuple[Stream, ...] = get_args(Stream)

FLUSH_SECONDS = 0.05
"""Output is handed on at most this often: twenty times a second look immediate and cost little."""
REWRITE_SECONDS = 0.2
"""What withdraws something shown (a progress line) is handed on at most this often, at first."""
REWRITE_DOUBLINGS = 7
"""How often that time is doubled at most: each time when so much was rewritten as may be shown in all."""
STOPPED = "\n[… further output is not shown live; its head and tail are in the result …]\n"


class LiveOutput:
    """Collects output on any thread and hands it to ``emit`` on ``loop``, clean and with its colours, in pieces.

    Lines that are written over are withdrawn, not repeated: how a piece is to be taken says ``ansi.Piece``. After
    ``limit`` characters the line ``stopped`` says that no more is shown. ``private`` hides personal data. ``loop`` must be the loop of the thread that
    calls ``close`` and ``flush``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        emit: Callable[[Stream, Piece], None],
        *,
        limit: int,
        stopped: str = STOPPED,
        private: Private | None = None,
    ) -> None:
        self._hide = {name: private.stream() for name in STREAMS} if private is not None else {}
        self._loop = loop
        self._emit = emit
        self._limit = limit
        self._stopped = stopped
        self._room = limit
        self._dropped = False
        self._lock = threading.Lock()
        self._parts: list[tuple[Stream, str]] = []
        self._size = 0
        self._armed = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._outputs: dict[Stream, Output] = {"stdout": Output(), "stderr": Output()}
        self._rewritten = 0
        self._rewrite_at = 0.0
        self._rewrite_timer: asyncio.TimerHandle | None = None

    def feed(self, stream: Stream, text: str) -> None:
        """Take a piece of output. Any thread; returns at once."""
        with self._lock:
            if self._closed or self._dropped:
                return
            if self._size > self._limit:  # it comes quicker than it can be shown
                self._dropped = True
                stream, text = "stdout", ""  # only the flush is wanted, which says it
            self._parts.append((stream, text))
            self._size += len(text)
            if self._armed:
                return
            self._armed = True
        try:
            self._loop.call_soon_threadsafe(self._arm)
        except RuntimeError:  # the loop was closed: nobody looks any more
            self._closed = True

    def close(self) -> None:
        """Hand on what is left. On the loop's thread; output that comes later is dropped."""
        self._take_parts()
        with self._lock:
            self._closed = True
        for stream, output in self._outputs.items():
            if self._hide:
                output.feed(self._hide[stream][1]())
            output.finish()
            self._send(stream, output.take())
        self._say_stopped()
        for timer in (self._timer, self._rewrite_timer):
            if timer is not None:
                timer.cancel()

    def _arm(self) -> None:
        if not self._closed:  # one timer at a time: ``_armed`` is cleared by the flush
            self._timer = self._loop.call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Hand on what came. On the loop's thread."""
        self._take_parts()
        for stream in self._outputs:
            self._show(stream)
        self._say_stopped()

    def _take_parts(self) -> None:
        with self._lock:
            parts, self._parts = self._parts, []
            self._armed = False
            self._size = 0
        merged: list[tuple[Stream, list[str]]] = []
        for stream, text in parts:
            if merged and merged[-1][0] == stream:
                merged[-1][1].append(text)
            else:
                merged.append((stream, [text]))
        for stream, texts in merged:
            text = "".join(texts)
            self._outputs[stream].feed(self._hide[stream][0](text) if self._hide else text)
            self._show(stream)

    def _show(self, stream: Stream) -> None:
        """Hand on what changed, unless it rewrites what was shown a moment ago: then a little later."""
        output = self._outputs[stream]
        if not output.rewinds:
            self._send(stream, output.take())
            return
        now = self._loop.time()
        if now < self._rewrite_at:
            if self._rewrite_timer is None:
                self._rewrite_timer = self._loop.call_at(self._rewrite_at, self._rewrite)
            return
        piece = output.take()
        self._rewritten += len(piece.text)
        doublings = min(self._rewritten // max(self._limit, 1), REWRITE_DOUBLINGS)
        self._rewrite_at = now + REWRITE_SECONDS * 2.0**doublings
        self._send(stream, piece)

    def _rewrite(self) -> None:
        self._rewrite_timer = None
        if not self._closed:
            self.flush()

    def _say_stopped(self) -> None:
        if self._dropped and self._room >= 0:
            self._room = -1
            self._emit("stdout", Piece(self._stopped))

    def _send(self, stream: Stream, piece: Piece) -> None:
        if self._room < 0 or not (piece.text or piece.rewind):
            return
        self._room += piece.rewind - len(piece.text)
        if self._room < 0:
            text = piece.text[: self._room]
            piece = Piece(text + self._stopped, piece.rewind, tuple(clip(piece.styles, 0, len(text))))
        self._emit(stream, piece)
