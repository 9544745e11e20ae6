"""Signals of a face without a screen: the first Ctrl+C interrupts, all else leaves by the one way out."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130
"""Exit code of what a person stopped."""


class Leave(BaseException):
    """Raised by a signal: leave now, with this exit code. The way out still closes everything."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Signals:
    """Signals while a turn runs.

    The first SIGINT calls ``on_interrupt``; a second, and SIGTERM and SIGHUP at once, raise
    ``Leave`` in the main thread, but never while ``held``. Signals that the parent told us to
    ignore (``nohup``, a background job) stay ignored.
    """

    def __init__(self, on_interrupt: Callable[[], None]) -> None:
        self._on_interrupt = on_interrupt
        self._before: dict[int, Any] = {}
        self.interrupted_at = 0.0
        self.held = False

    def __enter__(self) -> Signals:
        handlers = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._leave}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = self._leave
        for number, handler in handlers.items():
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.interrupted_at:
            self._raise(INTERRUPTED)
            return
        self.interrupted_at = time.monotonic()
        self._on_interrupt()

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        self._raise(128 + number)

    def _raise(self, code: int) -> None:
        if not self.held:
            raise Leave(code)
