"""The library's HTTP server as this program wants it: signals are ours, waiting connections are few, a client can be let go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import uvicorn

from sandbox_chat.gateway.connections import Patient

if TYPE_CHECKING:
    from sandbox_chat.serve.app import App


class Connection(Patient):
    """A connection whose end does not wait for a client that reads nothing."""

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing was asked for a while; what is still to be read is thrown away."""
        super().timeout_keep_alive_handler()
        self.transport.abort()


class Server(uvicorn.Server):
    """Serves an application until ``should_exit``."""

    def __init__(self, app: App) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=1,
            )
        )
        app.let_go = self.let_go

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the program."""
        yield

    def let_go(self, client: object) -> None:
        """Close the connection of a client at once; what waits for it is thrown away."""
        for each in list(self.server_state.connections):
            if isinstance(each, Connection) and each.client == client:
                each.let_go()
