"""The way of one engine's events to the screen, which can be shut for good."""

from __future__ import annotations

import threading

from sandbox_chat.events import Event, Sink


class Gate:
    """Lets events through to ``put`` and past ones to ``replay``, until it is shut: then nothing comes any more.

    An engine that is left goes on for a moment, on its own threads; what it says then belongs on no screen.
    """

    def __init__(self, put: Sink, replay: Sink) -> None:
        self._put = put
        self._replay = replay
        self._lock = threading.Lock()
        self._open = True
        self.live = False
        """True once an event of the present run has come: all that was replayed came before it."""

    def put(self, event: Event) -> None:
        """Take an event of the present run; any thread."""
        with self._lock:
            if self._open:
                self.live = True
                self._put(event)

    def replay(self, event: Event) -> None:
        """Take an event of an earlier run; any thread."""
        with self._lock:
            if self._open:
                self._replay(event)

    def shut(self) -> None:
        """Let nothing through from now on: whatever comes afterwards has not been seen by anybody."""
        with self._lock:
            self._open = False
