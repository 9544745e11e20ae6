"""Many clients over streamable HTTP, each with a sandbox of its own, behind one token.

A client of the older protocols has a session, which it begins and ends; one of the newest has none and names its
sandbox in each call (see ``stateless.py``). Either may name it in its address. All sandboxes count for the limit and end
when they are unused; beyond the limit the one that is unused longest makes room.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers, QueryParams
from starlette.responses import JSONResponse, Response

from sandbox_chat.mcp.serve.session import Session
from sandbox_chat.mcp.serve.stateless import make_front, own_name
from sandbox_chat.sandbox.base import Capabilities, SandboxError, SandboxUnavailable
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.text import clean

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

PATH = "/mcp"
BODY_LIMIT = 64_000_000
"""Bytes of the largest request: a file to write may be in it."""
CONNECTIONS = 256
"""Connections at most; beyond them a client is told to come again."""
_LOOK_EVERY = 15.0
"""Seconds between two looks for what is unused, at most."""


@dataclass(slots=True, eq=False)
class _Held:
    """A session of a client that has one, and the transport that its requests go to.

    ``own`` is the name of the sandbox that the client's address gives, if any; ``requests`` are in flight, first the one
    that begins it.
    """

    session: Session
    transport: StreamableHTTPServerTransport
    own: str = ""
    requests: int = 1


class HttpServer:
    """The ASGI application: checks the token, finds or makes the session, hands the request on.

    ``make`` makes a session for a random name, and raises ``SandboxError`` or ``OSError``. ``can`` is what its
    sandboxes can do. ``loopback``: requests must also name this machine as their host, against web pages of others.
    """

    def __init__(
        self,
        settings: Settings,
        token: Secret,
        make: Callable[[str], Session],
        can: Capabilities,
        *,
        loopback: bool,
    ) -> None:
        self._settings = settings
        self._token = token
        self._make = make
        self._held: dict[str, _Held] = {}
        self._named: dict[str, Session] = {}
        self._tasks: TaskGroup | None = None
        self._closed = False
        self._admitting = asyncio.Lock()
        names = [f"{name}:*" for name in ("127.0.0.1", "localhost", "[::1]")]
        self._security = TransportSecuritySettings(
            enable_dns_rebinding_protection=loopback,
            allowed_hosts=names,
            allowed_origins=[f"http://{name}" for name in names],
        )
        self._stateless = StreamableHTTPSessionManager(
            make_front(settings, can, self._get),
            stateless=True,
            security_settings=self._security,
            max_request_body_size=BODY_LIMIT,
        )
        self._stateful_app = RequestBodyLimitMiddleware(self._stateful, BODY_LIMIT)

    # -- life ------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside; all sessions are closed at the end."""
        async with anyio.create_task_group() as tasks, self._stateless.run():
            self._tasks = tasks
            tasks.start_soon(self._look_after)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.close()
                tasks.cancel_scope.cancel()

    async def close(self) -> None:
        """End all sessions; later requests are refused. Any number of times."""
        self._closed = True
        held, self._held = list(self._held.values()), {}
        named, self._named = list(self._named.values()), {}
        await asyncio.gather(*(each.close() for each in {*named, *(one.session for one in held)}))
        for one in held:
            await one.transport.terminate()

    async def _look_after(self) -> None:
        """End the named sandboxes that nobody uses any more."""
        limit = self._settings.serve_idle
        while True:
            await asyncio.sleep(min(limit / 4, _LOOK_EVERY))
            while unused := [
                each
                for each in self._unused()
                if each in self._named.values() and time.monotonic() - each.used > limit
            ]:
                await self._leave(unused[0])

    # -- requests --------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        if not self._may(headers):
            refused = _error(401, "The token is missing or wrong: send it as Authorization: Bearer TOKEN.")
            refused.headers["www-authenticate"] = "Bearer"
            refused.headers["connection"] = "close"  # who has not shown the token keeps no connection
            await refused(scope, receive, send)
        elif scope["path"].rstrip("/") != PATH:
            await _error(404, f"There is only {PATH} here.")(scope, receive, send)
        elif self._closed:
            await _error(503, "This server is ending.")(scope, receive, send)
        elif (
            headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS
        ):
            await self._stateful_app(scope, receive, send)
        else:
            await self._stateless.handle_request(scope, receive, send)

    def _may(self, headers: Headers) -> bool:
        scheme, _, offered = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(offered.strip().encode(), self._token.reveal().encode())
        return right and scheme.lower() == "bearer"

    async def _stateful(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = Headers(scope=scope).get("mcp-session-id")
        if wanted is not None:
            held = self._held.get(wanted)
            if held is None:
                await _error(404, "There is no such session; begin a new one.")(scope, receive, send)
                return
            held.requests += 1
            try:
                await held.transport.handle_request(scope, receive, send)
            finally:
                held.requests -= 1
                held.session.used = time.monotonic()
            return
        again = await _beginning(scope, receive)
        if again is None:
            await _error(400, "A session begins with the method initialize, sent by POST.")(
                scope, receive, send
            )
            return
        try:
            held = await self._open(own_name(QueryParams(scope["query_string"])))
        except (SandboxError, OSError) as error:
            words = clean(self._settings.scrub(str(error)))
            await _error(503, words)(scope, receive, send)
            return
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await held.transport.handle_request(scope, again, watch)
        finally:
            held.requests -= 1
            if not 0 < status < 400:  # it was no request that begins a session
                await self._end(held)

    async def _open(self, own: str) -> _Held:
        """Begin a session, over the client's ``own`` sandbox if it names one. Raises ``SandboxError`` or ``OSError``."""
        name = secrets.token_hex(16)
        transport = StreamableHTTPServerTransport(
            name, security_settings=self._security, idle_timeout=self._settings.serve_idle
        )
        if own:
            session, _ = await self._get(own, True)
            before = [each for each in self._held.values() if each.own == own and not each.requests]
            held = self._held[name] = _Held(session, transport, own)
            for each in before:  # of clients that went without a word; one that is there begins anew
                await self._end(each)
        else:
            async with self._admitting:
                held = self._held[name] = _Held(await self._admit(name), transport)
        assert self._tasks is not None
        await self._tasks.start(self._run, held)
        return held

    async def _run(self, held: _Held, *, task_status: TaskStatus[None]) -> None:
        """Serve one session from its begin to its end."""
        server = held.session.server
        try:
            async with held.transport.connect() as (read, write):
                task_status.started()
                with held.transport.idle_scope or anyio.CancelScope():
                    await server.run(read, write, server.create_initialization_options())
        except Exception:
            log.exception("a session failed")
        finally:
            await self._end(held)
            if not held.own:
                with anyio.CancelScope(shield=True):
                    await held.session.close()

    async def _end(self, held: _Held) -> None:
        """Forget a session; its transport refuses what still comes, and its server ends."""
        self._held.pop(held.transport.mcp_session_id or "", None)
        if not held.transport.is_terminated:
            with anyio.CancelScope(shield=True):
                await held.transport.terminate()

    async def _get(self, wanted: str, make: bool) -> tuple[Session, str]:
        """Return the sandbox that a client without sessions names, or a new one and its name. Raises ``SandboxError``."""
        wanted, make = wanted or secrets.token_hex(16), make or not wanted
        if make and wanted not in self._named:
            async with self._admitting:  # what it waited for may have made it
                try:
                    if wanted not in self._named:
                        self._named[wanted] = await self._admit(secrets.token_hex(16))
                except OSError as error:
                    raise SandboxError(f"No sandbox could be made ({error.strerror}).") from None
        session = self._named.get(wanted)
        if session is None:
            raise SandboxUnavailable(
                "There is no sandbox of that name (any more): one that is unused is ended. Leave the argument out for a new one."
            )
        session.used = time.monotonic()
        return session, wanted

    async def _admit(self, name: str) -> Session:
        """Make a session if there is room, one at a time; of those that nobody uses, the one unused longest makes room."""
        limit = self._settings.serve_sessions
        if len({*self._named.values(), *(each.session for each in self._held.values())}) >= limit:
            unused = self._unused()
            if not unused:
                raise SandboxUnavailable(
                    f"All {limit} sandboxes are in use (SANDBOX_CHAT_SERVE_SESSIONS). Try again later."
                )
            await self._leave(unused[0])
        if self._closed:
            raise SandboxUnavailable("This server is ending.")
        return self._make(name)

    def _unused(self) -> list[Session]:
        """Return the sessions that no call and no request uses, the one unused longest first."""
        held = self._held.values()
        used = {each.session for each in held if each.requests}
        all_of_them = {*self._named.values(), *(each.session for each in held)} - used
        return sorted((each for each in all_of_them if not each.busy), key=lambda each: each.used)

    async def _leave(self, session: Session) -> None:
        """End a session that nobody uses, and what its clients had of it."""
        self._named = {name: each for name, each in self._named.items() if each is not session}
        held = [each for each in self._held.values() if each.session is session]
        self._held = {name: each for name, each in self._held.items() if each not in held}
        await session.close()
        for each in held:
            await self._end(each)


async def _beginning(scope: Scope, receive: Receive) -> Receive | None:
    """Return what gives a request's body again if it is one that begins a session, which may cost another its sandbox."""
    if scope["method"] != "POST":
        return None
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    whole = b"".join(parts)
    try:
        found = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("method") != "initialize" or "id" not in found:
        return None
    given: list[Message] = [{"type": "http.request", "body": whole, "more_body": False}]

    async def again() -> Message:
        return given.pop() if given else await receive()

    return again


def _error(status: int, words: str) -> Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words}}
    return JSONResponse(body, status)


async def serve(app: HttpServer, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve on ``listener`` until ``stop``."""
    import uvicorn

    from sandbox_chat.gateway.connections import Patient

    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave the signals to the program."""
            yield

    # A connection that breaks is the client's business.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Patient,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    server = Quiet(config)
    async with app.running(), anyio.create_task_group() as tasks:

        async def leave() -> None:
            await stop.wait()
            await app.close()
            server.should_exit = True

        tasks.start_soon(leave)
        await server.serve(sockets=[listener])
        stop.set()


def listen(host: str, port: int) -> tuple[socket.socket, bool]:
    """Return a socket that listens, and whether only this machine reaches it. Raises ``OSError``."""
    import ipaddress

    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    loopback = ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    listener = socket.create_server(address[:2], family=family)
    return listener, loopback


def address_of(listener: socket.socket) -> str:
    """Return the address that clients use."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
