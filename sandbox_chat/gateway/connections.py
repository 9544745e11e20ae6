"""Connections of the HTTP servers: one that only waits is let go, so that nobody without the token keeps others out."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 200
"""Connections at a time on which no request has come yet; of more the oldest is closed."""
STRANGERS = 32
"""As many may go on to wait after ``GRACE``."""
GRACE = 2.0
"""Seconds after which a connection without a request is closed where there are more than ``STRANGERS``."""
PATIENCE = 20.0
"""Seconds after which it is closed in any case."""


class Patient(H11Protocol):
    """The library's protocol for HTTP/1.1, whose new connections are few and short until they ask something.

    An answer to somebody without the token must end its connection (``Connection: close``): one that has asked counts no more.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in its base
        """Take a connection."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._looks = [
            self.loop.call_later(GRACE, self._look, STRANGERS),
            self.loop.call_later(PATIENCE, self._look, 0),
        ]
        strangers = self._strangers()
        if len(strangers) > MOST:
            min(strangers, key=lambda each: each.since).let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        for look in self._looks:
            look.cancel()
        super().connection_lost(exc)

    def let_go(self) -> None:
        """Close the connection at once."""
        self.transport.abort()
        self.connections.discard(self)

    def _strangers(self) -> list[Patient]:
        return [each for each in self.connections if isinstance(each, Patient) and each.asked_nothing]

    @property
    def asked_nothing(self) -> bool:
        """True until the head of a request has come."""
        cycle: Any = self.cycle
        return cycle is None

    def _look(self, most: int) -> None:
        if self.asked_nothing and len(self._strangers()) > most:
            self.let_go()
