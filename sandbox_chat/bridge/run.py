"""The rights of one run of code: they begin and end with it, and are counted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from sandbox_chat.settings import Settings


class OverLimit(Exception):
    """The run has made all the calls that it may; the message says so."""


class Run:
    """One run of code in the call ``call_id`` of the model. All on one loop but ``waited``."""

    def __init__(self, call_id: str, settings: Settings) -> None:
        self.call_id = call_id
        self.made = 0
        """Calls that it has made."""
        self.over = False
        self.tasks: set[asyncio.Task[Any]] = set()
        """What is done for it now."""
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.code_mode_parallel)
        self._allowance = max(1.0, settings.code_mode_rate)
        self._filled_at = time.monotonic()
        self._waiting = 0
        self._waited = 0.0
        self._since = 0.0

    def waited(self) -> float:
        """Seconds in which the host did something for it: the code's own time limit does not count them."""
        running = time.monotonic() - self._since if self._waiting else 0.0
        return self._waited + max(running, 0.0)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Something is done for it, as long as this lasts."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += time.monotonic() - self._since

    @contextlib.asynccontextmanager
    async def call(self) -> AsyncIterator[int]:
        """Let one call be made: counted, not too quick, not too many at a time. Raises ``OverLimit``."""
        limit = self._settings.code_mode_calls
        if self.made >= limit:
            raise OverLimit(
                f"One run may make {limit:,} calls (SANDBOX_CHAT_CODE_MODE_CALLS), and this one has. "
                "Ask for more in each call, or go on in another run."
            )
        self.made += 1
        number = self.made
        async with self._slots:
            await self._pace()
            yield number

    async def _pace(self) -> None:
        """Wait until there may be one more call in this second."""
        rate = self._settings.code_mode_rate
        now = time.monotonic()
        self._allowance = min(max(1.0, rate), self._allowance + (now - self._filled_at) * rate)
        self._filled_at = now
        self._allowance -= 1.0
        if self._allowance < 0:
            await asyncio.sleep(-self._allowance / rate)

    async def end(self) -> None:
        """Take its rights away, and stop what is done for it."""
        self.over = True
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=END_WAIT)


END_WAIT = 2.0
"""Seconds that calls may take to end with their run; then they are left to end by themselves, and told of no more."""
