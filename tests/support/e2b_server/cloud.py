"""The cloud itself: addresses, the sandboxes and their time, and what a test may do to it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from sandbox_chat.values import Secret

from .control import Control
from .edge import Cut, Edge
from .faults import Fault, Faults
from .guest.asgi import Receive, Send
from .record import Guest, Record, namespaces

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds that anything of the cloud's own may take."""

REAP_EVERY = 0.05
"""Seconds between two looks for sandboxes whose time is over."""


class Cloud:
    """An E2B-compatible cloud on loopback; see the package's text."""

    def __init__(
        self,
        *,
        api: str = "v2",
        charts: bool = True,
        quirks: bool = True,
        gateway_limit: float | None = None,
        hosts: bool = False,
        envd: str = "0.6.7",
        death_delay: float = 0.5,
        templates: tuple[str, ...] = ("code-interpreter-v1", "base"),
        unknown_template: int = 404,
        prestart: int = 1,
        memory: int = 4 << 30,
        query: bool = True,
        mcp: bool = False,
        servers: Path | None = None,
    ) -> None:
        self.api = api
        self.envd = envd
        self.gateway_limit = gateway_limit
        self.query = query
        self.templates = {*templates, "mcp-gateway"} if mcp else set(templates)
        self.unknown_template = unknown_template
        self.key = f"e2b_{secrets.token_hex(20)}"
        self.domain = "sandboxes.test"
        self.faults = Faults()
        self.records: dict[str, Record] = {}
        self.requests: list[tuple[str, str, int]] = []
        """Method, path and status of every request, in the order of the answers; status 0: ended without one."""
        self.errors: list[str] = []
        """Tracebacks of faults of this server itself: always empty unless it has a bug."""
        self.leftovers_expected = False
        """Set by a test that leaves sandboxes behind on purpose."""
        self.ended: list[str] = []
        """Ids of all sandboxes that are gone."""
        self.url = ""
        self.sandbox_url = ""
        self._hosts = hosts
        self._options = {"charts": charts, "quirks": quirks, "death_delay": death_delay, "memory": memory}
        self._mcp, self._servers = mcp, servers
        self._prestart = prestart
        self._spare: list[asyncio.Task[Guest]] = []
        self._advanced = 0.0
        self._reaping = asyncio.Lock()
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._folder = Path()
        self._ports: dict[int, Callable[[Any, Receive, Send], Awaitable[None]]] = {}

    # Life

    def __enter__(self) -> Cloud:
        self._folder = Path(tempfile.mkdtemp(prefix="e2b-server-"))
        self._folder.chmod(0o755)
        self._listeners = []
        for app in (Control(self).app, Edge(self)):
            listener = socket.create_server(("127.0.0.1", 0))
            self._ports[listener.getsockname()[1]] = app
            self._listeners.append(listener)
        self.url, self.sandbox_url = (f"http://127.0.0.1:{port}" for port in self._ports)
        config = uvicorn.Config(
            self._app, interface="asgi3", log_level="critical", lifespan="off", http="h11", ws="none", loop="asyncio",
            timeout_graceful_shutdown=1, timeout_keep_alive=60,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), name="e2b-cloud")
        self._thread.start()
        if not ready.wait(PATIENCE):
            raise RuntimeError("the test cloud did not start")
        return self

    def __exit__(self, *problem: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(PATIENCE)
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._thread.is_alive():
            raise RuntimeError("the test cloud did not end")

    def _main(self, ready: threading.Event) -> None:
        async def run() -> None:
            self._loop = asyncio.get_running_loop()
            self._spare = [asyncio.create_task(self._new_guest()) for _ in range(self._prestart)]
            reaper = asyncio.create_task(self._reap())
            ready.set()
            try:
                await self._server.serve(sockets=self._listeners)
            finally:
                reaper.cancel()
                await asyncio.gather(*(self.end(name) for name in list(self.records)))
                for task in self._spare:
                    with contextlib.suppress(Exception):
                        await (await task).end()

        asyncio.run(run())

    async def _app(self, scope: Any, receive: Receive, send: Send) -> None:
        answered = False

        async def noted(message: Any) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                # Noted first, so that a client that has its answer finds it in the list.
                answered = True
                self.requests.append((scope["method"], scope["path"], message["status"]))
            await send(message)

        try:
            await self._ports[scope["server"][1]](scope, receive, noted)
        except Cut:
            raise
        except Exception:
            self.errors.append(traceback.format_exc())
            raise
        finally:
            if not answered:
                self.requests.append((scope["method"], scope["path"], 0))

    async def _new_guest(self) -> Guest:
        self._count += 1
        guest = Guest(self._folder / f"s{self._count}", self._options, mcp=self._mcp, servers=self._servers)
        try:
            await guest.start()
        except BaseException:
            await guest.end()
            raise
        return guest

    async def _reap(self) -> None:
        while True:
            await self._reap_now()
            await asyncio.sleep(REAP_EVERY)

    async def _reap_now(self) -> None:
        async with self._reaping:
            for record in list(self.records.values()):
                if record.state == "running" and record.end_at <= self.now():
                    if record.auto_pause:
                        self.pause(record)
                    else:
                        await self.end(record.id)

    # What the control API does

    async def new_sandbox(self, template: str, seconds: float, wanted: dict[str, Any]) -> Record:
        guest = await (self._spare.pop() if self._spare else self._new_guest())
        now = self.now()
        record = Record(
            template=template,
            timeout=seconds,
            started_at=now,
            end_at=now + seconds,
            metadata=wanted.get("metadata") or {},
            envs=wanted.get("envVars") or {},
            internet=wanted.get("allow_internet_access"),
            auto_pause=bool(wanted.get("autoPause")),
            request=wanted,
            guest=guest,
        )
        await guest.init(record.token, record.envs)
        self.records[record.id] = record
        return record

    async def end(self, name: str) -> bool:
        """False when there is none of that name."""
        record = self.records.pop(name, None)
        if record is None:
            return False
        record.state = "ended"
        assert record.guest is not None
        await record.guest.end()
        self.ended.append(name)
        return True

    def pause(self, record: Record) -> None:
        record.state = "paused"
        assert record.guest is not None
        record.guest.pause(signal.SIGSTOP)

    def resume(self, record: Record, seconds: float) -> None:
        assert record.guest is not None
        record.guest.pause(signal.SIGCONT)
        record.state = "running"
        record.end_at = self.now() + seconds

    def now(self) -> float:
        """The cloud's clock: seconds since the epoch."""
        return time.time() + self._advanced

    # What a test does

    @property
    def isolated(self) -> bool:
        """Whether sandboxes have a /tmp and /home of their own (else they share the host's /tmp)."""
        return namespaces() is not None

    @property
    def sandboxes(self) -> dict[str, Record]:
        """The live ones (running or paused), by id."""
        return dict(self.records)

    def settings(self) -> dict[str, Any]:
        """Values of ``Settings`` that point here. With ``hosts`` the sandboxes are reached by their host
        names through a proxy node, else by one address and headers."""
        node = self.sandbox_url.removeprefix("http://")
        way = {"cube_proxy_node_ip": node} if self._hosts else {"e2b_sandbox_url": self.sandbox_url}
        return {
            "sandbox": "e2b",
            "e2b_api_key": Secret(self.key),
            "e2b_api_url": self.url,
            "e2b_domain": self.domain,
            **way,
        }

    def client(self) -> dict[str, Any]:
        """Arguments for the real client's calls (``Sandbox.create(**cloud.client())``)."""
        return {
            "api_key": self.key,
            "api_url": self.url,
            "domain": self.domain,
            "sandbox_url": self.sandbox_url,
        }

    def fail(
        self,
        kind: str,
        status: int = 500,
        *,
        times: int | None = 1,
        hang: bool = False,
        after: float | None = None,
        cut: bool = False,
        delay: float = 0.0,
        message: str | None = None,
        page: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Let the next ``times`` requests of a kind fail (None: until ``heal``).

        ``hang``: no answer ever. ``after``: the request is passed on and, when it takes longer than so many
        seconds, answered ``status``. ``cut``: the connection ends in the middle of the answer. ``delay``: the
        proper answer, so much later. ``message``: the words in E2B's JSON; ``page``: this text instead of JSON,
        as a proxy answers. Mind that the real client repeats control calls that were answered 429,
        502, 503 or 504 three times.
        """
        if after is not None and status == 500:
            status = 502
        self.faults.add(Fault(kind, status, times, hang, after, cut, delay, message, page, headers or {}))

    def heal(self) -> None:
        """Forget all faults."""
        self.faults.clear()

    def vanish(self, name: str) -> None:
        """End a sandbox behind the client's back."""
        self._do(self.end(name))

    def advance(self, seconds: float) -> None:
        """Let time pass; whose time is over then is gone when this returns."""
        self._advanced += seconds
        self._do(self._reap_now())

    def log(self, name: str) -> str:
        """What the programs of a sandbox complained about."""
        guest = self.records[name].guest
        assert guest is not None
        return (guest.folder / "log").read_text()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)
