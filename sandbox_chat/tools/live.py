"""Live output of a running call: from the sandbox worker's thread to the session's loop."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable

from sandbox_chat.events import Stream
from sandbox_chat.text import clean_output

FLUSH_SECONDS = 0.05
"""Output is handed on at most this often: twenty times a second look immediate and cost little."""
HELD_LIMIT = 65_536
"""Characters of an unfinished line that are held back at most."""
STOPPED = "\n[… further output is not shown live; its head and tail are in the result …]\n"

# The beginning of an escape sequence whose rest has not come yet.
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")


class LiveOutput:
    """Collects output on any thread and hands it to ``emit`` on ``loop``, cleaned, in pieces.

    An unfinished line that holds a carriage return (a progress bar) is held back until the line or the
    call ends, so that only its last state is shown, unless ``settle`` is false. After ``limit`` characters the
    line ``stopped`` says that no more is shown. ``loop`` must be the loop of the thread that calls ``close`` and ``flush``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        emit: Callable[[Stream, str], None],
        *,
        limit: int,
        stopped: str = STOPPED,
        settle: bool = True,
    ) -> None:
        self._loop = loop
        self._emit = emit
        self._limit = limit
        self._stopped = stopped
        self._settle = settle
        self._room = limit
        self._dropped = False
        self._lock = threading.Lock()
        self._parts: list[tuple[Stream, str]] = []
        self._size = 0
        self._armed = False
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._held: dict[Stream, str] = {"stdout": "", "stderr": ""}
        self._line_open: dict[Stream, bool] = {"stdout": False, "stderr": False}

    def feed(self, stream: Stream, text: str) -> None:
        """Take a piece of output. Any thread; returns at once."""
        with self._lock:
            if self._closed:
                return
            if self._size > self._limit:
                if self._dropped:
                    return
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
        if self._timer is not None:
            self._timer.cancel()
        self.flush()
        with self._lock:
            self._closed = True
        for stream in self._held:
            rest, self._held[stream] = self._held[stream], ""
            self._send(stream, rest)
        self._say_stopped()

    def _arm(self) -> None:
        if not self._closed:  # one timer at a time: ``_armed`` is cleared by the flush
            self._timer = self._loop.call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Hand on what is whole. On the loop's thread."""
        with self._lock:
            parts, self._parts = self._parts, []
            self._armed = False
        merged: list[tuple[Stream, list[str]]] = []
        for stream, text in parts:
            if merged and merged[-1][0] == stream:
                merged[-1][1].append(text)
            else:
                merged.append((stream, [text]))
        for stream, texts in merged:
            self._take(stream, "".join(texts))
        if not self._settle:
            self._say_stopped()

    def _say_stopped(self) -> None:
        if self._dropped and self._room >= 0:
            self._room = -1
            self._emit("stdout", self._stopped)

    def _take(self, stream: Stream, text: str) -> None:
        text = self._held[stream] + text
        end = text.rfind("\n") + 1
        lines, rest = text[:end], text[end:]
        held = ""
        if self._settle and "\r" in rest and len(rest) <= HELD_LIMIT:
            rest, held = "", rest
        elif (match := _UNFINISHED.search(rest)) is not None:
            rest, held = rest[: match.start()], rest[match.start() :]
        self._held[stream] = held
        self._send(stream, lines + rest)

    def _send(self, stream: Stream, text: str) -> None:
        if not text or self._room < 0:
            return
        first, _, _ = text.partition("\n")
        if self._line_open[stream] and "\r" in first.rstrip("\r"):
            text = "\n" + text  # that line has been shown already and cannot be taken back
        shown = clean_output(text)
        self._line_open[stream] = not shown.endswith("\n")
        self._room -= len(shown)
        if self._room < 0:
            shown = shown[: self._room] + self._stopped
        if shown:
            self._emit(stream, shown)
