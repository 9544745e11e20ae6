"""The host's end of the way that code in a sandbox has to its tools: sockets, one for each connection made inside.

The code may forge all that comes: so the carrier checks every frame, and whoever takes a connection checks what it says.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from sandbox_chat.gateway.channels import Breach, Carrier

NO_WAY = "The code could not reach the MCP tools of this computer: {reason}."
_MAX_WORD = 1 << 10


class BridgeLink:
    """The way from one sandbox. All from any thread but ``serve``, which is called on a thread of its own."""

    def __init__(
        self,
        reader: int,
        writer: int,
        serve: Callable[[socket.socket], None],
        *,
        on_close: Callable[[], None] = lambda: None,
        first: bytes = b"",
    ) -> None:
        """Takes over the stream's descriptors. ``serve`` gets each connection and returns at once.

        ``on_close`` is called once at the end, on a thread of its own. ``first`` is sent before everything else.
        """
        self._ends = {reader, writer}
        self._on_close = on_close
        self._changed = threading.Condition()
        self._open = self._over = False
        self.why = ""
        """Why it is over, if that is known."""
        self._carrier = Carrier(
            reader, writer, on_word=self._on_word, take=serve, longest_word=_MAX_WORD, first=first
        )
        self._thread = threading.Thread(target=self._carry, name="sandbox-bridge", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True when the other end is gone, or was given up."""
        return self._over

    def ready(self, timeout: float) -> bool:
        """Wait until the other end listens, at most ``timeout`` seconds; False when it does not."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._changed.wait_for(lambda: self._open or self._over, deadline - time.monotonic())
            return self._open and not self._over

    def close(self) -> None:
        """End the way. Returns at once; any number of times."""
        self._carrier.stop()

    def gone(self, timeout: float) -> bool:
        """Wait until everything of it is closed; False when that took longer than ``timeout`` seconds."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _carry(self) -> None:
        why = ""
        try:
            why = self._carrier.run()
        finally:
            for fd in self._ends:
                os.close(fd)
            try:
                self._on_close()
            finally:
                with self._changed:
                    self._over, self.why = True, why
                    self._changed.notify_all()

    def _on_word(self, word: dict[str, Any]) -> None:
        with self._changed:
            if self._open or word != {"op": "open"}:
                raise Breach("The other side said what it must not say.")
            self._open = True
            self._changed.notify_all()
