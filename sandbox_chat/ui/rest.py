"""When the collector of garbage works: while the user rests, not while text streams or keys are pressed.

Python looks for garbage after so many new objects, and a transcript makes many that stay; each look at them stops
everything for tens of milliseconds. What goes by reference counts, which is nearly all, does not need it.
"""

from __future__ import annotations

import gc

YOUNG = 1_000_000
"""New objects after which is collected whatever goes on: a turn of hours must not keep its garbage."""
QUIET = 2.0
"""Seconds without anything going on after which is collected."""
WHOLE_EVERY = 64
"""Each so many times what was looked at before is looked at again."""


class Collector:
    """Decides when to collect. ``rest`` is called now and then on the terminal's loop."""

    def __init__(self) -> None:
        self.runs = 0
        self._stirred = float("-inf")
        self._due = True

    def begin(self) -> None:
        """Take the work over: what exists now stays, and nothing is collected by itself."""
        gc.freeze()
        gc.disable()

    def stir(self, now: float) -> None:
        """Something went on at ``now``, in seconds of a clock that only goes forward."""
        self._stirred = now
        self._due = True

    def rest(self, now: float) -> bool:
        """Collect if it is quiet and something went on before, or if it has to be. Returns whether it did."""
        if gc.get_count()[0] < YOUNG and not (self._due and now - self._stirred >= QUIET):
            return False
        self._due = False
        self.runs += 1
        if self.runs % WHOLE_EVERY == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        return True

    @staticmethod
    def end() -> None:
        """Leave it to Python again."""
        gc.unfreeze()
        gc.enable()
