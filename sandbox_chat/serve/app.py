"""The ASGI application: who may ask, what is asked, and the answers. What runs is the scheduler's."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from sandbox_chat import __version__
from sandbox_chat.serve import report
from sandbox_chat.serve.asking import is_session, read_ask, read_owner
from sandbox_chat.serve.errors import Refused
from sandbox_chat.serve.metrics import CONTENT_TYPE
from sandbox_chat.serve.openapi import FILE_TYPES, describe
from sandbox_chat.serve.reading import check_type, read_body, wants_events
from sandbox_chat.serve.scheduler import Scheduler
from sandbox_chat.settings import Secret, Settings

if TYPE_CHECKING:
    from sandbox_chat.serve.task import Task

log = logging.getLogger(__name__)

ALIVE = 10.0
"""Seconds without an event after which a client that follows them is sent a comment."""
STALL = 30.0
"""Seconds that a client may take to read what waits for it; then its connection is closed."""
REQUESTS = 1000
"""Requests at a time beside the tasks that wait and run; more are refused."""
_PART = 65_536
_OWN_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_ALWAYS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_TASK, _HEALTH, _METRICS, _OPENAPI = "/task", "/health", "/metrics", "/openapi.json"
_SESSION, _FILE = "/sessions/{id}", "/sessions/{id}/files/{name}"
_PATTERNS = {_SESSION: re.compile("/sessions/([^/]+)"), _FILE: re.compile("/sessions/([^/]+)/files/([^/]+)")}
_METHODS = {
    _TASK: "POST",
    _HEALTH: "GET",
    _METRICS: "GET",
    _OPENAPI: "GET",
    _SESSION: "DELETE",
    _FILE: "GET",
}


class Stalled(Exception):
    """The client does not read."""


class App:
    """Answers requests. ``token``: ``None`` where none is needed. ``loopback``: requests must name this machine as their host.

    ``let_go`` closes the connection of a client at once, by its address.
    """

    def __init__(
        self,
        settings: Settings,
        scheduler: Scheduler,
        token: Secret | None,
        *,
        loopback: bool,
        let_go: Callable[[object], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._token = token
        self._loopback = loopback
        self._limit = REQUESTS + settings.http_queue + settings.http_tasks
        self.let_go = let_go
        self._requests = 0
        self.idle = asyncio.Event()
        """Set while no request is being answered."""
        self.idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self._requests += 1
        self.idle.clear()
        exchange = _Exchange(self, scope, receive, send)
        try:
            await self._answer(exchange)
        except Refused as refused:
            await exchange.refuse(refused)
        except Stalled:
            self.let_go(scope.get("client"))
        except Exception:
            log.exception("a request failed")
            if exchange.status:
                raise  # the library closes the connection
            await exchange.refuse(Refused("internal"))
        finally:
            self._requests -= 1
            if not self._requests:
                self.idle.set()
            route = exchange.route or "other"
            self._scheduler.metrics.requests.labels(route, str(exchange.status)).inc()
            method = scope["method"] if scope["method"] in _METHODS.values() else "other"
            report.request_ended(
                method, route, exchange.status, time.monotonic() - exchange.begun, **exchange.about
            )

    async def _answer(self, exchange: _Exchange) -> None:
        route = exchange.find_route()
        self._check_host(exchange.headers)
        exchange.known = self._may(exchange.headers)
        if not exchange.known and route != _HEALTH:
            raise Refused("unauthorized", "Send the token as Authorization: Bearer TOKEN.")
        if self._requests > self._limit:
            raise Refused("unavailable", "Too many requests at a time.", retry_after=1)
        if not route:
            raise Refused("not_found")
        if exchange.scope["method"] != _METHODS[route]:
            raise Refused("method_not_allowed", allow=_METHODS[route])
        handlers: dict[str, Callable[[_Exchange], Awaitable[None]]] = {
            _TASK: self._task,
            _HEALTH: self._health,
            _METRICS: self._metrics,
            _OPENAPI: self._openapi,
            _SESSION: self._remove,
            _FILE: self._file,
        }
        await handlers[route](exchange)

    # -- who may ask -----------------------------------------------------------------------------------

    def _check_host(self, headers: Headers) -> None:
        """On loopback a request must be meant for this machine: a page of another site can send one here."""
        if not self._loopback:
            return
        if _without_port(headers.get("host", "")) not in _OWN_HOSTS:
            raise Refused("wrong_host")
        origin = headers.get("origin")
        if origin is not None and _without_port(origin.partition("://")[2]) not in _OWN_HOSTS:
            raise Refused("wrong_origin")

    def _may(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        scheme, _, offered = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(offered.strip().encode(), self._token.reveal().encode())
        return right and scheme.lower() == "bearer"

    # -- what is asked ---------------------------------------------------------------------------------

    async def _health(self, exchange: _Exchange) -> None:
        state = self._scheduler.state
        body = {"state": state, "version": __version__, **self._scheduler.counts}
        await exchange.json(body, 200 if state == "ok" else 503)

    async def _metrics(self, exchange: _Exchange) -> None:
        await exchange.respond(
            Response(self._scheduler.metrics.text(), headers={"content-type": CONTENT_TYPE})
        )

    async def _openapi(self, exchange: _Exchange) -> None:
        await exchange.json(describe(self._settings, token=self._token is not None), 200)

    async def _remove(self, exchange: _Exchange) -> None:
        (session,) = exchange.parts
        owner = exchange.owner()
        if not is_session(session):
            raise Refused("no_session")
        exchange.about["session"] = session
        await self._scheduler.remove(session, owner)
        await exchange.respond(Response(status_code=204))

    async def _file(self, exchange: _Exchange) -> None:
        session, name = exchange.parts
        owner = exchange.owner()
        data = await asyncio.to_thread(self._scheduler.users.read_file, owner, session, name)
        if data is None:
            raise Refused("no_file")
        exchange.about["session"] = session
        headers = {
            "content-type": FILE_TYPES[name.rpartition(".")[2]],
            "content-disposition": f'attachment; filename="{name}"',
            "content-security-policy": "sandbox",  # a page that code made is not to act here
        }
        await exchange.respond(Response(data, headers=headers))

    async def _task(self, exchange: _Exchange) -> None:
        check_type(exchange.headers)
        raw = await read_body(exchange.headers, exchange.receive, self._settings.http_body_kb * 1000)
        stream = wants_events(exchange.headers.get("accept", ""))
        task = self._scheduler.accept(read_ask(raw), stream=stream)
        exchange.about["task"] = task.id
        watch = asyncio.ensure_future(self._watch(exchange, task))
        try:
            await (self._follow(exchange, task) if stream else self._await(exchange, task))
        except Stalled:
            self._scheduler.leave(task)
            raise
        finally:
            watch.cancel()

    async def _watch(self, exchange: _Exchange, task: Task) -> None:
        """Wait for the client to leave, which ends its task."""
        while (await exchange.receive())["type"] != "http.disconnect":
            pass
        self._scheduler.leave(task)

    async def _await(self, exchange: _Exchange, task: Task) -> None:
        await task.done.wait()
        exchange.about["session"] = task.session_id
        if task.outcome == "left":
            exchange.status = 499  # in the log: nobody is there to get an answer
        elif task.problem is not None:
            raise task.problem
        else:
            await exchange.json(task.result(), 200)

    async def _follow(self, exchange: _Exchange, task: Task) -> None:
        """Send the events of a task as they come."""
        assert task.feed is not None
        await exchange.begin_events()
        while True:
            part = await task.feed.take(ALIVE)
            if task.feed.over:
                raise Stalled
            if not part and task.feed.closed:
                break
            await exchange.more(part or b": alive\n\n")
        exchange.about["session"] = task.session_id
        await exchange.more(b"", last=True)


class _Exchange:
    """One request and its answer. ``about`` goes into the log; ``known``: its sender has shown the token."""

    def __init__(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.headers = Headers(scope=scope)
        self.begun = time.monotonic()
        self.route = ""
        self.parts: tuple[str, ...] = ()
        self.status = 0
        self.known = False
        self.about: dict[str, Any] = {}
        self._send = send

    def find_route(self) -> str:
        """Return the pattern of the path, empty when there is none; what stands for its names is in ``parts``."""
        path = self.scope["path"]
        for pattern, expression in _PATTERNS.items():
            if found := expression.fullmatch(path):
                self.route, self.parts = pattern, found.groups()
                return pattern
        self.route = path if path in _METHODS else ""
        return self.route

    def owner(self) -> str:
        """Return the user whom the query names, empty when it names none. Raises ``Refused``."""
        query = self.scope["query_string"].decode("latin-1")
        try:
            return read_owner(parse_qs(query, keep_blank_values=True, max_num_fields=10))
        except ValueError:
            raise Refused("invalid", "There is only the parameter userId here.") from None

    async def respond(self, response: Response) -> None:
        """Send a whole answer."""
        for name, value in _ALWAYS.items():
            response.headers[name] = value
        if not self.known:
            response.headers["connection"] = "close"  # who has not shown the token keeps no connection
        start = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
        await self.send(start)
        body = bytes(response.body)
        for place in range(0, len(body), _PART):  # before each the one before has left
            await self.more(body[place : place + _PART])
        await self.more(b"", last=True)

    async def json(self, body: object, status: int) -> None:
        """Send JSON; what is no Unicode text in it is escaped."""
        await self.respond(
            Response(json.dumps(body, ensure_ascii=True), status, media_type="application/json")
        )

    async def refuse(self, refused: Refused) -> None:
        """Send an error."""
        response = JSONResponse(refused.body, refused.status)
        if refused.retry_after:
            response.headers["retry-after"] = str(refused.retry_after)
        if refused.allow:
            response.headers["allow"] = refused.allow
        if refused.code == "unauthorized":
            response.headers["www-authenticate"] = "Bearer"
        if refused.code in ("too_large", "slow_body"):
            response.headers["connection"] = "close"  # the rest of the body is not read
        try:
            await self.respond(response)
        except Stalled:
            return

    async def begin_events(self) -> None:
        """Begin a stream of events."""
        headers = MutableHeaders(
            {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no", **_ALWAYS}
        )
        await self.send({"type": "http.response.start", "status": 200, "headers": headers.raw})
        await self.more(b": waiting\n\n")

    async def more(self, part: bytes, *, last: bool = False) -> None:
        """Send a part of an answer."""
        await self.send({"type": "http.response.body", "body": part, "more_body": not last})

    async def send(self, message: Message) -> None:
        """Send a message of the protocol. Raises ``Stalled`` when the client does not take it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        try:
            async with asyncio.timeout(STALL):
                await self._send(message)
        except TimeoutError:
            raise Stalled from None


def _without_port(host: str) -> str:
    """Return a host without its port; the brackets of an IPv6 address stay."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host
