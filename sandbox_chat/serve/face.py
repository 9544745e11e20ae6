"""The face of ``sandbox-chat serve --http``: what must be right before it listens, its life and its end.

SIGTERM, SIGINT or SIGHUP let it end in order: no new tasks, those that run finish within ``http_drain`` seconds, everything
is closed, exit code 0. A second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.serve_face import PLAIN_HTTP, UNSAFE, read_address
from sandbox_chat.settings import ConfigError, Secret, Settings
from sandbox_chat.text import clean

if TYPE_CHECKING:
    from sandbox_chat.serve.app import App
    from sandbox_chat.serve.scheduler import Scheduler

OK, FAILED = 0, 1
TOKEN_FILE = "http-token"  # noqa: S105 - the name of a file
"""Name of the token's file in the data folder."""
_SHORTEST = 16
_LAST_ANSWERS = 3.0
"""Seconds that answers get to be read when everything is over."""
_PATIENCE = 25.0
"""Seconds beyond ``http_drain`` and twice ``close_timeout`` after which the program ends whatever still runs."""


def run(
    settings: Settings,
    where: str,
    *,
    token_file: str = "",
    no_auth: bool = False,
    allow: Collection[str] = (),
    log_json: bool = False,
) -> int:
    """Serve at ``where`` (``[HOST:]PORT``) until a signal comes; returns the exit code.

    Raises ``ConfigError`` or ``SandboxUnavailable`` with a sentence before anything is served.
    """
    host, port = read_address(where)
    _check(settings, allow)
    listener, loopback = _listen(settings, host, port, no_auth=no_auth)
    with listener:
        token, said = (None, "no token is needed") if no_auth else _token(settings, token_file)
        from sandbox_chat.serve import report
        from sandbox_chat.serve.app import App
        from sandbox_chat.serve.scheduler import Scheduler

        report.set_up(settings, on_stderr=log_json)
        scheduler = Scheduler(settings, allow=allow, state="starting")
        app = App(settings, scheduler, token, loopback=loopback)
        if settings.sandbox == "unsafe-local":
            _say(UNSAFE)
        name, number = listener.getsockname()[:2]
        _say(f"Serving at http://{f'[{name}]' if ':' in name else name}:{number}; {said}")
        if not loopback:
            _say(PLAIN_HTTP)
        return asyncio.run(_live(settings, app, scheduler, listener))


def _check(settings: Settings, allow: Collection[str]) -> None:
    """Look at everything that would fail each task. Raises ``ConfigError`` or ``SandboxUnavailable``."""
    from sandbox_chat.engine_code import check as check_code_mode
    from sandbox_chat.engine_endpoint import check_model
    from sandbox_chat.engine_servers import names_of, server_configs
    from sandbox_chat.headless import check_allowed
    from sandbox_chat.sandbox import make_worker
    from sandbox_chat.serve import users

    check_model(settings)
    users.check(settings)
    check_allowed(allow, settings)
    check_code_mode(settings, names_of(server_configs(settings, []), settings))
    worker = make_worker(settings, session_id="")
    if worker is not None:
        worker.close(0.0)


def _listen(settings: Settings, host: str, port: int, *, no_auth: bool) -> tuple[socket.socket, bool]:
    from sandbox_chat.mcp.serve.http import listen

    try:
        listener, loopback = listen(host, port)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {clean(host)}:{port} ({error.strerror}). Take another with --http [HOST:]PORT."
        ) from None
    problem = ""
    if not loopback and no_auth:
        problem = "--no-auth is for this computer only: leave the host out of --http, or let each request show the token."
    elif not loopback and settings.sandbox == "unsafe-local":
        problem = "unsafe-local is served to this computer only: leave the host out of --http."
    if problem:
        listener.close()
        raise ConfigError(problem)
    return listener, loopback


def _token(settings: Settings, token_file: str) -> tuple[Secret, str]:
    """Return the token, and where it is from in a few words."""
    if settings.http_token and not token_file:
        if len(settings.http_token.reveal()) < _SHORTEST:
            raise ConfigError(
                f"SANDBOX_CHAT_HTTP_TOKEN is shorter than {_SHORTEST} signs, which can be guessed. Take a random one."
            )
        return settings.http_token, "the token is that of the setting http_token"
    from sandbox_chat.mcp.serve.token import load_token

    path = Path(token_file).absolute() if token_file else settings.data_path / TOKEN_FILE
    return load_token(path), f"the token is in {path}"


async def _live(settings: Settings, app: App, scheduler: Scheduler, listener: socket.socket) -> int:
    from sandbox_chat.serve.listening import Server

    stop = asyncio.Event()
    _follow_signals(stop)
    server = Server(app)
    # A connection that breaks is the client's business.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    starting = asyncio.ensure_future(_start(scheduler))
    looking = asyncio.ensure_future(scheduler.look_after())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    _end_within(settings.http_drain + 2 * settings.close_timeout + _PATIENCE)
    looking.cancel()
    starting.cancel()
    await scheduler.drain()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_ANSWERS):
            await app.idle.wait()
    server.should_exit = True
    stopping.cancel()
    await serving
    return OK if stop.is_set() else FAILED


async def _start(scheduler: Scheduler) -> None:
    """Load what tasks need, beside the loop; then tasks run."""

    def load() -> None:
        import sandbox_chat.agent.session
        import sandbox_chat.engine  # noqa: F401

    await asyncio.to_thread(load)
    scheduler.begin()


def _follow_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def leave(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)  # what was started ends with the program
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, leave, number)


def _end_within(seconds: float) -> None:
    """End this process after ``seconds`` in any case, whatever hangs: it was told to end."""
    timer = threading.Timer(seconds, os._exit, (FAILED,))
    timer.daemon = True
    timer.start()


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"sandbox-chat: {clean(text)}\n")
        sys.stderr.flush()
