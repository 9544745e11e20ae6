"""How long a running turn has been silent, and whether the computer slept meanwhile. Pure but for its two clocks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sandbox_chat.settings import Settings

SILENCE_MARGIN = 60.0
"""Seconds on top of a request's own limit after which a CLI that says nothing is taken for dead."""
LONG_STEP = 2.0
"""Seconds between two looks that count as silence at most: for the rest this program itself did not run."""
SLEPT = 30.0
"""Seconds of sleep that are worth a word."""
MINUTE = 60.0


def wall_clock() -> float:
    """Seconds that go on while the computer sleeps; where there is such a clock, nobody sets it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.time()


@dataclass(frozen=True, slots=True)
class Look:
    """What is new: ``quiet`` that nothing has come for a while, ``slept`` seconds that the computer slept, ``dead``."""

    quiet: bool = False
    slept: float = 0.0
    dead: bool = False


class Watch:
    """Watches one turn after the other. ``look`` is to be called a few times a second while one runs.

    Sleep of the computer, and time in which this program was stopped, are not counted as silence.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = wall_clock,
    ) -> None:
        limit = settings.silence_timeout
        self._limit = settings.request_timeout + SILENCE_MARGIN if limit is None else limit
        self._notice = settings.silence_notice
        self._clock = clock
        self._wall = wall
        self.begin()

    def begin(self) -> None:
        """A prompt was sent."""
        self._last = self._clock()
        self._last_wall = self._wall()
        self._expected = 0.0
        self._told = False
        self._told_sleep = False
        self.silent = 0.0
        """Seconds of silence up to the last look."""

    def heard(self) -> bool:
        """Something came. Returns true if the silence before it had been told."""
        self.silent = self._expected = 0.0
        told, self._told = self._told, False
        return told

    def expect(self, seconds: float) -> None:
        """So many seconds of silence were announced: the CLI waits before it tries again."""
        self._expected = seconds

    def look(self, *, waiting: bool) -> Look:
        """Look at the clocks. ``waiting``: a tool of ours runs or the user is asked, so silence means nothing."""
        now, wall = self._clock(), self._wall()
        step, asleep = now - self._last, (wall - self._last_wall) - (now - self._last)
        self._last, self._last_wall = now, wall
        self.silent = 0.0 if waiting else self.silent + min(step, LONG_STEP)
        slept = 0.0
        if asleep > SLEPT and not self._told_sleep:
            self._told_sleep = True
            slept = asleep
        silence = self.silent - self._expected
        quiet = 0 < self._notice <= silence and not self._told
        self._told = self._told or quiet
        return Look(quiet, slept, 0 < self._limit <= silence)


class Losses:
    """Counts how often in a row a CLI ended by itself. After ``limit`` times within a minute it is too often.

    ``reason`` is why the last one ended.
    """

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._times: deque[float] = deque(maxlen=max(limit, 1))
        self.reason = ""

    def add(self, reason: str) -> None:
        """One more ended."""
        self._times.append(self._clock())
        self.reason = reason

    def over(self) -> None:
        """A turn was brought to its end: the row is broken."""
        self._times.clear()

    @property
    def count(self) -> int:
        """How many ended within the last minute, in a row."""
        return sum(self._clock() - each <= MINUTE for each in self._times)

    @property
    def too_many(self) -> bool:
        """True when it is not to be started again by itself."""
        return self.count >= self._limit
