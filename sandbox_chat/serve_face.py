"""The face of ``sandbox-chat mcp serve``: the sandbox's tools for other MCP clients.

Over stdio one client has one sandbox, and stdout carries the protocol only. Over HTTP each client has its own.
What is said to people goes to stderr.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean
from sandbox_chat.values import Servers

OK, FAILED = 0, 1
HOST = "127.0.0.1"
"""Where ``--http PORT`` listens."""
_PATIENCE = 3.0
"""Seconds beyond ``close_timeout`` after which the program ends whatever still runs."""
MANUAL = (
    "This speaks MCP on stdin and stdout: a client starts it, such as: claude mcp add sandbox -- sandbox-chat mcp serve. "
    "Ctrl+D ends it."
)
PLAIN_HTTP = (
    "Others on the network can read what goes over plain HTTP, the token too: put a proxy with TLS before it."
)
UNSAFE = "Code that clients run is not isolated from this computer (unsafe-local)."


def run(settings: Settings, *, http: str | None, token_file: str | None) -> int:
    """Serve until the client leaves or a signal comes; returns the exit code.

    ``http``: ``[HOST:]PORT`` to listen on, ``None``: stdio. ``token_file`` holds the token of the HTTP server; one in
    the data folder when it is not given. Raises ``ConfigError`` or ``SandboxUnavailable`` with a sentence before anything is served.
    """
    settings = dataclasses.replace(settings, sandbox_mcp=Servers())  # only our own tools are served
    if settings.sandbox == "unsafe-local":
        _say(UNSAFE)
    if http is None:
        return _stdio(settings)
    return _http(settings, http, token_file)


def _stdio(settings: Settings) -> int:
    from sandbox_chat.mcp.serve import stdio
    from sandbox_chat.mcp.serve.files import Shelf
    from sandbox_chat.mcp.serve.session import Session

    with _scratch() as folder:
        session = Session(settings, Shelf(folder / "kept", _keep_bytes(settings)))
        if sys.stdin.isatty():
            _say(MANUAL)

        async def work(stop: asyncio.Event) -> None:
            await stdio.serve(session, stop, _say)

        return _until_signal(work, settings.close_timeout)


def _http(settings: Settings, where: str, token_file: str | None) -> int:
    from sandbox_chat.mcp.serve import http
    from sandbox_chat.mcp.serve.files import Shelf
    from sandbox_chat.mcp.serve.session import Session, capabilities
    from sandbox_chat.mcp.serve.token import NAME, load_token

    host, port = read_address(where)
    path = Path(token_file).absolute() if token_file else settings.data_path / "mcp" / NAME
    token = load_token(path)
    with _scratch() as folder:

        def make(name: str) -> Session:
            return Session(settings, Shelf(folder / name, _keep_bytes(settings)))

        can = capabilities(settings)
        listener, loopback = _listen(settings, host, port)
        with listener:
            app = http.HttpServer(settings, token, make, can, loopback=loopback)
            _say(f"Serving at {http.address_of(listener)}; the token is in {path}")
            if not loopback:
                _say(PLAIN_HTTP)

            async def work(stop: asyncio.Event) -> None:
                await http.serve(app, listener, stop)

            return _until_signal(work, settings.close_timeout)


def _listen(settings: Settings, host: str, port: int) -> tuple[socket.socket, bool]:
    from sandbox_chat.mcp.serve.http import listen

    try:
        listener, loopback = listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {clean(host)}:{port} ({error.strerror}). Take another with --http [HOST:]PORT."
        ) from None
    if not loopback and settings.sandbox == "unsafe-local":
        listener.close()
        raise ConfigError("unsafe-local is served to this computer only: leave the host out of --http.")
    return listener, loopback


def read_address(where: str) -> tuple[str, int]:
    """Return host and port of ``[HOST:]PORT``; an IPv6 host stands in brackets. Raises ``ConfigError``."""
    host, _, port = where.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = port = ""
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536) or any(
        sign in host for sign in "/ @[]"
    ):
        raise ConfigError(
            f"--http takes [HOST:]PORT with a port from 0 to 65535, such as 8765 or [::1]:8765; got {clean(where)[:80]!r}."
        )
    return host or HOST, int(port)


def _scratch() -> Scratch:
    try:
        return Scratch()
    except OSError as error:
        raise ConfigError(
            f"No temporary folder can be made ({error.strerror}). Make room, or set TMPDIR to another place."
        ) from None


def _keep_bytes(settings: Settings) -> int:
    return int(settings.serve_keep_mb * 1_000_000)


def _until_signal(work: Callable[[asyncio.Event], Awaitable[None]], patience: float) -> int:
    """Do ``work`` until it ends by itself or by SIGINT, SIGTERM or SIGHUP, which set its event. Returns the exit code."""
    code = OK

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def leave(number: int) -> None:
            nonlocal code
            code = code or 128 + number
            stop.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, leave, number)
        watch = asyncio.ensure_future(stop.wait())
        watch.add_done_callback(lambda _: _end_within(patience + _PATIENCE, lambda: code))
        try:
            await work(stop)
        finally:
            watch.cancel()

    asyncio.run(main())
    return code


def _end_within(seconds: float, code: Callable[[], int]) -> None:
    """End this process after ``seconds`` in any case: whatever hangs, the client has gone or wants it gone."""
    timer = threading.Timer(seconds, lambda: os._exit(code() or FAILED))
    timer.daemon = True
    timer.start()


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"sandbox-chat: {clean(text)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return
