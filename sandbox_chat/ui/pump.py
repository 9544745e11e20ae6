"""Carries events from the engine's threads to the terminal's loop, few times a second.

A stream brings hundreds of pieces a second; drawing each would cost more than reading it. The first
event after a pause goes through at once, the ones that follow are gathered.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from sandbox_chat.events import Event

INTERVAL = 0.04
"""Seconds between two flushes at least: twenty-five a second read as smooth and leave the loop free for keys."""

BURST = 250
"""Events delivered in one flush at most, so that the replay of a long session does not stop the keys."""


class Pump:
    """Takes events from any thread, hands them in order to ``deliver`` on the loop.

    ``wake`` is called from the thread of ``put``, once per flush: it must make the loop call
    ``flush``. ``later(seconds)`` is called on the loop and must make it call ``flush`` after that time.
    """

    def __init__(
        self,
        deliver: Callable[[list[Event]], None],
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deliver = deliver
        self._interval = interval
        self._clock = clock
        self._events: deque[Event] = deque()
        self._lock = threading.Lock()
        self._armed = False
        self._last = float("-inf")
        self._wake: Callable[[], None] | None = None
        self._later: Callable[[float], None] | None = None
        self.wakes = 0

    def attach(self, wake: Callable[[], None], later: Callable[[float], None]) -> None:
        """Connect the pump to a running loop; what came before is flushed."""
        self._later = later
        with self._lock:
            self._wake = wake
            pending = bool(self._events)
            self._armed = pending
        if pending:
            self.wakes += 1
            wake()

    def detach(self) -> None:
        """Disconnect from the loop; events that come later are only kept."""
        with self._lock:
            self._wake = None
            self._armed = True

    def put(self, event: Event) -> None:
        """Take an event; any thread, never blocks, never raises: this is the engine's sink."""
        self._events.append(event)
        with self._lock:
            if self._armed or self._wake is None:
                return
            self._armed = True
            wake = self._wake
        self.wakes += 1
        wake()

    @property
    def empty(self) -> bool:
        """True when all that came has been delivered."""
        return not self._events

    def clear(self) -> None:
        """Forget what is there. Called on the loop, when nobody puts any more of it."""
        self._events.clear()

    def flush(self) -> None:
        """Deliver what is there, or put it off until the interval is over. Called on the loop."""
        wait = self._last + self._interval - self._clock()
        if wait > 0 and self._later is not None:
            self._later(wait)
            return
        self.drain()

    def drain(self) -> None:
        """Deliver what is there now. Called on the loop."""
        with self._lock:
            self._armed = False
            batch = [self._events.popleft() for _ in range(min(BURST, len(self._events)))]
            more = bool(self._events)
            self._armed = more
        if batch:
            self._deliver(batch)
            self._last = self._clock()
        if more and self._later is not None:
            self._later(0.0)
