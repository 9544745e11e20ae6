"""The host's end of the way to a gateway in a sandbox without network: an address on loopback whose connections
go through one stream to the gateway's keeper inside (``gateway/relay``).

The gateway shares the sandbox with the code, which may forge all that comes: so the carrier checks every frame, and
here each answer must be one that was asked for. What comes through a connection is for an HTTP client to judge.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from sandbox_chat.gateway import relay
from sandbox_chat.gateway.channels import CHANNELS, Breach, Carrier
from sandbox_chat.sandbox.base import GatewayFailed, GatewayGone
from sandbox_chat.text import clean

_MAX_ANSWER = 1 << 17
_LAST_WAIT = 5.0  # seconds beyond the keeper's own, after which its answer is not waited for
_SHARE = 55 / 60  # of the time, for the servers; the rest is the gateway's own
_NOT_INSTALLED = "is not installed"  # the gateway's words
INSTALL = (
    "The sandbox lacks {missing}, which its gateway for MCP servers needs. Install into it: "
    "pip install mcp uvicorn starlette, and the servers."
)


class GatewayLink:
    """The way to one keeper. ``ready`` and ``close`` from any thread."""

    def __init__(
        self,
        reader: int,
        writer: int,
        *,
        on_close: Callable[[], None] = lambda: None,
        explain: Callable[[], str] = lambda: "",
        advice: str = INSTALL,
        hint: str = "",
        first: bytes = b"",
    ) -> None:
        """Takes over the stream's descriptors. ``on_close`` is called once at the end, on a thread of its own.

        ``explain`` returns why the other end is gone, if that can be told; ``advice`` is what is said when packages are
        missing inside, with ``{missing}`` in it; ``hint`` when a server's own are. ``first`` is sent before everything else.
        """
        self._ends = {reader, writer}
        self._on_close, self._explain = on_close, explain
        self._advice, self._hint = advice, hint
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=CHANNELS)
        self.port: int = self._listener.getsockname()[1]
        """Where the gateway is reached on this machine's loopback."""
        self._asking = threading.Lock()
        self._changed = threading.Condition()
        self._number = 0
        self._waiting = False
        self._answer: dict[str, Any] | None = None
        self._over = False
        self._why = ""
        self._carrier = Carrier(
            reader,
            writer,
            on_word=self._on_word,
            listener=self._listener,
            longest_word=_MAX_ANSWER,
            first=first,
        )
        self._thread = threading.Thread(target=self._carry, name="sandbox-gateway", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """True when the keeper is gone, or was given up."""
        return self._over

    def ready(self, servers: Mapping[str, Mapping[str, Any]], token: str, timeout: float) -> None:
        """Wait until the gateway serves ``servers``, starting it if it is not there.

        Raises ``GatewayFailed``; ``GatewayGone`` when its keeper has ended.

        ``timeout``: seconds that it may take.
        """
        with self._asking:
            with self._changed:
                self._number += 1
                self._answer, self._waiting = None, True
            word = {
                "op": "start",
                "id": self._number,
                "config": {name: dict(properties) for name, properties in servers.items()},
                "token": token,
                "timeout": timeout * _SHARE,
            }
            try:
                self._carrier.say(word)
            except (TypeError, ValueError) as problem:
                raise GatewayFailed(
                    f"The configuration of the servers cannot be handed over: {problem}."
                ) from None
            deadline = time.monotonic() + timeout + relay.GRACE + _LAST_WAIT
            with self._changed:
                self._changed.wait_for(
                    lambda: self._answer is not None or self._over, deadline - time.monotonic()
                )
                answer: dict[str, Any] | None = self._answer
                self._answer, self._waiting = None, False
                over = self._over
        if answer is None:
            self.close()
            if over:
                raise GatewayGone(self._explain() or self._why or "It was ended.")
            raise GatewayFailed("The sandbox gave no answer in time.")
        if answer["op"] == "ready":
            return
        listed = answer.get("missing")
        if isinstance(listed, list) and (missing := [name for name in relay.NEEDED if name in listed]):
            raise GatewayFailed(self._advice.format(missing=", ".join(missing)))
        text = answer.get("text")
        said = clean(text[-relay.MAX_TEXT :]).strip() if isinstance(text, str) else ""
        hint = f" {self._hint}" if self._hint and _NOT_INSTALLED in said else ""
        raise GatewayFailed((said or "It gave no reason.") + hint)

    def close(self) -> None:
        """End the way, and with it the gateway. Returns at once; any number of times."""
        self._carrier.stop()

    def gone(self, timeout: float) -> bool:
        """Wait until everything of it is closed; False when that took longer than ``timeout`` seconds."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the thread ------------------------------------------------------------------------------------

    def _carry(self) -> None:
        why = ""
        try:
            why = self._carrier.run()
        finally:
            self._listener.close()
            for fd in self._ends:
                os.close(fd)
            try:
                self._on_close()
            finally:
                with self._changed:
                    self._over, self._why = True, why
                    self._changed.notify_all()

    def _on_word(self, word: dict[str, Any]) -> None:
        with self._changed:
            if not self._waiting or self._answer is not None or word.get("id") != self._number:
                raise Breach("The other side answered what was not asked.")
            if word.get("op") not in ("ready", "failed"):
                raise Breach("The other side gave an answer that is none.")
            self._answer = word
            self._changed.notify_all()
