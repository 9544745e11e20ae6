"""The processes of a gateway that runs: one that serves, and a small one above it that leaves nothing behind.

Started by ``launch.py`` with three file descriptors (a pipe to say ready, the listening socket, a lock) and one line of
JSON on standard input, which holds the token and the plans: neither is ever in an argument or an environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .config import Plan
from .errors import StartError
from .log import Handler, Log
from .processes import become_reaper, end_below, follow_parent, reap
from .servers import Places, Servers
from .token_file import remove_token, write_token

_TO_CLOSE = 8.0  # s that the one which serves has to end
_TO_SWEEP = 3.0  # s in which what is left is killed
_ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Run a gateway until it is asked to end. Does not return."""
    ready, listening, lock = map(int, sys.argv[1:4])
    for number in (ready, listening, lock):
        if number >= 0:
            os.set_inheritable(number, False)
    order = json.loads(sys.stdin.buffer.readline())
    try:
        code = _supervise(order, ready, listening)
    except BaseException:
        os._exit(1)
    os._exit(code)


def _supervise(order: Mapping[str, Any], ready: int, listening: int) -> int:
    """Start the process that serves, wait for its end, and end all that is left below."""
    become_reaper()
    alive, kept = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(alive)
        follow_parent(parent)
        code = 1
        with contextlib.suppress(KeyboardInterrupt):
            code = asyncio.run(_Gateway(order, ready, listening).run())
        os._exit(code)
    for number in (ready, listening, kept):
        os.close(number)
    try:
        code = _watch(child, alive, tied=bool(order["tied"]))
    finally:
        _clear(order)
    return code


def _clear(order: Mapping[str, Any]) -> None:
    """End every process below this one, and remove the token."""
    end_below(os.getpid(), _TO_SWEEP)
    if order["token_file"]:
        remove_token(Path(order["token_file"]), order["token"])


def _watch(child: int, alive: int, *, tied: bool) -> int:
    """Wait until ``child`` has ended, pass on what asks for the end, and return its exit code."""
    ended: dict[int, int] = {}
    deadline: float | None = None
    asked, ask = os.pipe()

    def on_signal(number: int, _frame: Any) -> None:
        if number == signal.SIGCHLD:
            ended.update({pid: status for pid, status in reap().items() if pid == child})
        else:
            os.write(ask, b"x")

    for number in (*_ASKED, signal.SIGCHLD):
        signal.signal(number, on_signal)
    sources = [alive, asked, *([0] if tied else [])]
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        readable = select.select(sources, [], [], left)[0]
        if alive in readable:
            break
        if not readable:
            os.kill(child, signal.SIGKILL)
            deadline = None
            continue
        for source in readable:
            if os.read(source, 4096) and source == 0:
                continue  # nothing is expected there but the end
            if source == 0:
                sources.remove(0)
            if deadline is None:
                deadline = time.monotonic() + _TO_CLOSE
                os.kill(child, signal.SIGTERM)
    for number in _ASKED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if child not in ended:
        with contextlib.suppress(ChildProcessError):
            ended[child] = os.waitpid(child, 0)[1]
    return abs(os.waitstatus_to_exitcode(ended.get(child, 1 << 8)))


class _Gateway:
    """The process that serves."""

    def __init__(self, order: Mapping[str, Any], ready: int, listening: int) -> None:
        self._order = order
        self._ready = ready
        self._socket = socket.socket(fileno=listening)
        self._token: str = order["token"]
        self._plans = [Plan.from_json(plan) for plan in order["plans"]]
        secrets = [self._token, *(value for plan in self._plans for value in plan.environment.values())]
        self._log = Log(Path(order["log_file"]), secrets)
        logging.basicConfig(level=logging.WARNING, handlers=[Handler(self._log)])
        places = Places(Path(order["clones"]), order["github"], order["timeout"])
        self._stop = asyncio.Event()
        self._servers = Servers(self._plans, places, self._log)

    async def run(self) -> int:
        """Start the servers, say ready, and serve until asked to end. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in _ASKED:
            loop.add_signal_handler(number, self._stop.set)
        # Nothing is read from this pipe; it becomes readable when nobody waits for the start any more.
        loop.add_reader(self._ready, self._stop.set)
        for text in self._order["warnings"]:
            self._log.say(text)
        try:
            await self._unless_stopped(self._start())
            from .front import Front
            from .library import accepts

            app = Front(self._servers, self._token, self._order["host"])
            self._servers.offer(accepts)
            async with app.running():
                await self._serve(app)
        except StartError as error:
            return self._failed(str(error))
        except Exception as error:
            return self._failed(f"The gateway failed: {type(error).__name__}: {error}")
        become_reaper()  # in case that the one above is gone: what the servers leave behind is found here then
        await self._servers.close()
        _clear(self._order)
        self._log.say("ended")
        return 0

    def _failed(self, text: str) -> int:
        """End all at once, and say why."""
        text = "\n".join(map(self._log.clean, text.splitlines()))
        self._log.say(text)
        become_reaper()
        _clear(self._order)
        self._say({"error": text})
        return 1

    async def _start(self) -> None:
        loading = asyncio.get_running_loop().run_in_executor(None, _load)  # while the servers start
        try:
            await self._servers.start()
        finally:
            await asyncio.shield(loading)

    async def _unless_stopped(self, work: Any) -> None:
        """Do ``work``, but not longer than until the gateway is asked to end."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise StartError("The gateway was ended before it was ready.")
            task.result()
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    async def _serve(self, app: Any) -> None:
        import uvicorn

        from .connections import Patient

        class Http(uvicorn.Server):
            """The HTTP server, without handlers of signals: those of the gateway hold."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        http = Http(
            uvicorn.Config(
                app,
                http=Patient,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=120,
                timeout_graceful_shutdown=2,
            )
        )
        serving = asyncio.ensure_future(http.serve(sockets=[self._socket]))
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            while not http.started and not serving.done():  # noqa: ASYNC110 - the library has no event for it
                await asyncio.sleep(0.01)
            self._announce()
            await asyncio.wait((serving, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            http.should_exit = True
            stop.cancel()
            await serving

    def _announce(self) -> None:
        """Write the token file and say ready."""
        asyncio.get_running_loop().remove_reader(self._ready)
        if self._order["token_file"]:
            try:
                write_token(Path(self._order["token_file"]), self._token)
            except OSError as error:
                raise StartError(f"The token file cannot be written: {error}.") from None
        tools = list(self._servers.offered)
        self._log.say(f"ready: {len(self._plans)} servers, {len(tools)} tools")
        self._say({"servers": [plan.name for plan in self._plans], "tools": tools})

    def _say(self, words: Mapping[str, Any]) -> None:
        """Tell the one that started the gateway. When nobody listens any more, it ends."""
        data = json.dumps(words).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._ready, data) :]
            os.close(self._ready)
        except OSError:
            self._stop.set()


def _load() -> None:
    from . import front  # noqa: F401 - takes a second or two, and is needed when the servers stand
