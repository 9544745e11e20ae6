"""What came of one run: output, results and the error, each within its limit. All of it is untrusted."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from sandbox_chat.events import Stream
from sandbox_chat.sandbox.base import CodeError, Execution, OutputSink, RawSink, RichOutput, StopReason
from sandbox_chat.sandbox.collect import Collector

STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")
MAX_OUTPUTS = 200
"""Results and displays kept of one run."""
MAX_OUTPUT_BYTES = 96 << 20
"""Bytes of results and displays kept of one run."""
FLUSH_EVERY = 0.05
"""Seconds between two pieces of live output, so that a chatty loop does not flood the screen."""

_TEXT_MIMES = frozenset(
    ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml", "application/json")
)
_BYTE_MIMES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


class Run:
    """Gathers one run."""

    def __init__(
        self, number: int, sink: OutputSink | None, limit: int, on_raw: RawSink | None = None
    ) -> None:
        """``sink`` gets live output, up to ``limit`` characters of each stream; the same is kept. ``on_raw`` gets all."""
        self.number = number
        self.done = False
        self.error: CodeError | None = None
        self.flush_at = float("inf")
        """When queued live output is to be handed on (monotonic seconds)."""
        self._sink = sink
        self._on_raw = on_raw
        self._limit = limit
        self._collectors = {name: Collector(limit) for name in STREAMS}
        self._outputs: list[RichOutput] = []
        self._bytes = 0
        self._dropped = 0
        self._pending: dict[Stream, list[str]] = {}
        self._shown = dict.fromkeys(STREAMS, 0)

    def take(self, stream: Stream, data: bytes) -> None:
        """Take output from a pipe."""
        if self._on_raw is not None:
            self._on_raw(stream, data)
        self._show(stream, self._collectors[stream].feed(data))

    def accept(self, message: Mapping[str, Any], blob: bytes) -> bool:
        """Take a frame. False when it makes no sense. Frames of other runs (late or forged) are passed over."""
        if message.get("id") != self.number:
            return True
        match message.get("op"):
            case "done":
                self.done = True
                error = message.get("error")
                if isinstance(error, dict):
                    name, value, trace = (str(error.get(key, "")) for key in ("name", "value", "traceback"))
                    self.error = CodeError(name[:200], value[: self._limit], trace[-self._limit :])
            case "display":
                output = rich_output(message, blob)
                if output is None:
                    return False
                self._keep(output)
        return True

    def flush(self, *, force: bool = False) -> None:
        """Hand queued live output on, when it is time."""
        if self._sink is None or not (force or time.monotonic() >= self.flush_at):
            return
        pending, self._pending = self._pending, {}
        self.flush_at = float("inf")
        for stream, parts in pending.items():
            self._sink(stream, "".join(parts))

    def result(self, stopped: StopReason, duration_ms: int) -> Execution:
        """End the run: hand on what is queued and return all of it."""
        for name in STREAMS:
            self._show(name, self._collectors[name].feed(b"", final=True))
        if self._dropped:
            text = f"[{self._dropped} more results or displays were not kept]\n"
            self._show("stderr", self._collectors["stderr"].feed(text.encode()))
        self.flush(force=True)
        return Execution(
            stdout=self._collectors["stdout"].text(),
            stderr=self._collectors["stderr"].text(),
            outputs=tuple(self._outputs),
            error=self.error,
            stopped=stopped,
            duration_ms=duration_ms,
        )

    def _keep(self, output: RichOutput) -> None:
        size = sum(
            map(sys.getsizeof, output.data.values())
        )  # of text too: a character takes up to four bytes
        if len(self._outputs) >= MAX_OUTPUTS or self._bytes + size > MAX_OUTPUT_BYTES:
            self._dropped += 1
        elif output.data:
            self._outputs.append(output)
            self._bytes += size

    def _show(self, stream: Stream, text: str) -> None:
        room = self._limit - self._shown[stream]
        if self._sink is None or not text or room <= 0:
            return
        text = text[:room]
        self._shown[stream] += len(text)
        if not self._pending:
            self.flush_at = time.monotonic() + FLUSH_EVERY
        self._pending.setdefault(stream, []).append(text)


def rich_output(message: Mapping[str, Any], blob: bytes) -> RichOutput | None:
    """Build a result from a ``display`` frame; ``None`` when the frame makes no sense."""
    text, sizes = message.get("text"), message.get("sizes")
    if not isinstance(text, dict) or not isinstance(sizes, list):
        return None
    data: dict[str, str | bytes] = {}
    for mime, value in text.items():
        if mime in _TEXT_MIMES and isinstance(value, str):
            data[mime] = value.encode("utf-8", "replace").decode()
    start = 0
    for row in sizes:
        match row:
            case [str(mime), int(size)] if 0 <= size <= len(blob) - start:
                if mime in _BYTE_MIMES:
                    data[mime] = blob[start : start + size]
                elif mime == "text/html":  # too long for the frame's text
                    data[mime] = blob[start : start + size].decode("utf-8", "replace")
                start += size
            case _:
                return None
    return RichOutput(data, is_result=message.get("result") is True)
