"""A Messages endpoint on loopback, on its own thread: the demo model's and the test suite's.

It serves ``POST /v1/messages`` (streamed and not) and ``POST /v1/messages/count_tokens`` to whoever
holds its token. It prints nothing and logs nothing. The web framework is imported on the server's
thread, so ``start`` returns at once: the socket listens already and early requests wait in line.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_chat.demo.reply import (
    ErrorReply,
    Faults,
    Reply,
    Responder,
    complete,
    error_body,
    error_type,
    frames,
    whole,
)
from sandbox_chat.demo.wire import Request, WireError, count_tokens, parse_request

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

MAX_BODY = 32 * 1024 * 1024
"""Bytes of the largest request: the limit of the real service."""
HOLD_STEP = 0.01
"""Seconds between two looks at a fault's ``hold`` event."""
CLOSE_TIMEOUT = 1.0
"""Seconds that ``close`` waits for the thread; it ends with the program in any case."""


@dataclass(slots=True)
class RecordedRequest:
    """A request as it came. ``headers`` have lower-case names; ``body`` is the JSON, ``{}`` if it was none.

    ``status`` is that of the answer. ``outcome`` is empty while the answer is under way, then ``done``,
    ``cut`` (by a fault) or ``aborted`` (the client went away). ``at`` is ``time.monotonic()``.
    """

    path: str
    query: str
    headers: Mapping[str, str] = field(repr=False)
    body: dict[str, Any] = field(default_factory=dict, repr=False)
    request: Request | None = None
    at: float = 0.0
    status: int = 0
    outcome: str = ""


class MessagesServer:
    """An Anthropic-compatible endpoint that asks ``responder`` for each answer.

    ``token`` must come with every request, as a bearer token or as ``x-api-key``; ``None`` makes a random
    one, ``""`` asks for none. ``requests`` are those to ``/v1/messages`` if the responder wants them
    recorded; ``others`` are those to other paths, and those that only try a model's name.
    """

    def __init__(self, responder: Responder, *, token: str | None = None) -> None:
        self.responder = responder
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.requests: list[RecordedRequest] = []
        self.others: list[RecordedRequest] = []
        self.errors: list[BaseException] = []
        """What the responder raised (a bounded list), answered with status 500."""
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._server: uvicorn.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transports: dict[tuple[str, int], asyncio.Transport] = {}
        self._url = ""

    @property
    def url(self) -> str:
        """Base address, without a path. Empty before ``start``."""
        return self._url

    def start(self) -> None:
        """Listen on a free port of the loopback address. Raises ``OSError`` when there is none."""
        with self._lock:
            if self._closed or self._thread is not None:
                raise RuntimeError("A MessagesServer starts once.")
            listener = socket.create_server(("127.0.0.1", 0))
            self._socket = listener
            self._url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._thread = threading.Thread(
                target=self._run, args=(listener,), name="demo-endpoint", daemon=True
            )
            self._thread.start()

    def close(self, timeout: float = CLOSE_TIMEOUT) -> None:
        """Stop: cut open streams, free the port. Any thread, any number of times."""
        with self._lock:
            self._closed = True
            thread, loop, listener = self._thread, self._loop, self._socket
            if loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                    loop.call_soon_threadsafe(self._stop)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        if listener is not None:
            listener.close()

    def __enter__(self) -> MessagesServer:
        """Start, for a ``with`` block."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close at the end of a ``with`` block."""
        self.close()

    # -- the server's thread ---------------------------------------------------------------------------

    def _run(self, listener: socket.socket) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        import uvicorn

        loop = asyncio.get_running_loop()
        # A connection that breaks is the client's business, not a message on the user's screen.
        loop.set_exception_handler(lambda _loop, _context: None)
        config = uvicorn.Config(
            self._app(),
            loop="asyncio",
            http=_protocol(self._transports),
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
        server = uvicorn.Server(config)
        with self._lock:
            self._server, self._loop = server, loop
            if self._closed:
                return
        await server.serve(sockets=[listener])

    def _stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
        for transport in list(self._transports.values()):
            transport.abort()

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(
            routes=[
                Route("/v1/messages", self._guarded(self._messages), methods=["POST"]),
                Route("/v1/messages/count_tokens", self._guarded(self._count_tokens), methods=["POST"]),
                Route("/{path:path}", self._guarded(_not_found), methods=["GET", "POST", "HEAD"]),
            ]
        )

    def _guarded(
        self, handler: Callable[[HttpRequest, RecordedRequest, bytes], Awaitable[Response]]
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        """Wrap a handler: size, recording, token, errors."""

        async def endpoint(http: HttpRequest) -> Response:
            record = RecordedRequest(
                http.url.path, http.url.query, dict(http.headers.items()), at=time.monotonic()
            )
            raw = await _read_body(http)
            if self.responder.record:
                with contextlib.suppress(ValueError, RecursionError):
                    body = json.loads(raw or b"{}")
                    record.body = body if isinstance(body, dict) else {}
                probe = record.body.get("max_tokens") == 1 and not record.body.get("stream")
                real = record.path == "/v1/messages" and not probe
                (self.requests if real else self.others).append(record)
            if not self._may(http):
                return _refuse(record, ErrorReply(401, message="invalid x-api-key"))
            if raw is None:
                return _refuse(
                    record, ErrorReply(413, message="Request exceeds the maximum allowed number of bytes.")
                )
            try:
                return await handler(http, record, raw)
            except WireError as error:
                return _refuse(record, ErrorReply(400, message=str(error)))

        return endpoint

    def _may(self, http: HttpRequest) -> bool:
        if not self.token:
            return True
        offered = http.headers.get("x-api-key", "")
        scheme, _, bearer = http.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            offered = bearer.strip()
        return hmac.compare_digest(offered.encode(), self.token.encode())

    async def _count_tokens(self, http: HttpRequest, record: RecordedRequest, raw: bytes) -> Response:
        request = parse_request(raw)
        return _json(record, 200, {"input_tokens": count_tokens(request.body)})

    async def _messages(self, http: HttpRequest, record: RecordedRequest, raw: bytes) -> Response:
        from starlette.responses import StreamingResponse

        request = record.request = parse_request(raw)
        try:
            answer = self.responder.reply(request)
        except Exception as error:
            if len(self.errors) < 100:
                self.errors.append(error)
            answer = ErrorReply(500, message=f"The responder failed: {type(error).__name__}: {error}")
        if isinstance(answer, ErrorReply):
            await asyncio.sleep(answer.delay)
            return _refuse(record, answer)
        answer = complete(answer, request)
        faults = answer.faults
        await asyncio.sleep(faults.first_stall)
        record.status = 200
        if faults.drop:
            self._hang_up(http, abort=True)
            record.outcome = "cut"
        if request.stream:
            return StreamingResponse(
                self._stream(http, record, answer),
                media_type="text/event-stream",
                headers={"cache-control": "no-cache", **_request_id()},
            )
        if faults.error_at is not None:
            return _refuse(record, ErrorReply(500, faults.error_type, faults.error_message))
        if faults.cut_at is not None:
            body = json.dumps(whole(answer)).encode()
            return StreamingResponse(self._half(http, record, body), media_type="application/json")
        return _json(record, 200, whole(answer))

    async def _stream(self, http: HttpRequest, record: RecordedRequest, reply: Reply) -> AsyncIterator[bytes]:
        faults = _Progress(reply.faults)
        sent = 0
        try:
            for frame in frames(reply):
                at_end = frame.event["type"] == "message_delta"
                if frame.chars or at_end:
                    await faults.wait(sent, at_end)
                    if faults.reached(reply.faults.cut_at, sent, at_end):
                        self._hang_up(http)
                        record.outcome = "cut"
                        return
                    if faults.reached(reply.faults.error_at, sent, at_end):
                        event = error_body(reply.faults.error_type, reply.faults.error_message)
                        yield b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n"
                        record.outcome = "cut"
                        return
                yield frame.encode()
                sent += frame.chars
                if frame.chars and reply.pace > 0:
                    await asyncio.sleep(reply.pace)
            record.outcome = "done"
        finally:
            record.outcome = record.outcome or "aborted"

    async def _half(self, http: HttpRequest, record: RecordedRequest, body: bytes) -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]
        record.outcome = "cut"
        self._hang_up(http)

    def _hang_up(self, http: HttpRequest, *, abort: bool = False) -> None:
        """Close the connection of a request without an orderly end; ``abort`` also drops what is unsent."""
        client = http.client
        transport = self._transports.get((client.host, client.port)) if client else None
        if transport is not None:
            if abort:
                transport.abort()
            else:
                transport.close()


class _Progress:
    """The stops that a stream makes because of its faults; each happens once."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.stalled = self.held = False

    @staticmethod
    def reached(position: int | None, sent: int, at_end: bool) -> bool:
        """True when a fault at ``position`` is due."""
        return position is not None and (sent >= position or at_end)

    async def wait(self, sent: int, at_end: bool) -> None:
        """Stop as long as the faults want it here."""
        faults = self.faults
        if not self.stalled and self.reached(faults.stall_at, sent, at_end):
            self.stalled = True
            await asyncio.sleep(faults.stall)
        if not self.held and faults.hold is not None and self.reached(faults.hold_at or 0, sent, at_end):
            self.held = True
            # The event is set by another thread: it is looked at now and then.
            while not faults.hold.is_set():  # noqa: ASYNC110
                await asyncio.sleep(HOLD_STEP)


async def _read_body(http: HttpRequest) -> bytes | None:
    """The request's body, ``None`` when it is too large (the rest is read and thrown away)."""
    parts: list[bytes] = []
    size = 0
    async for part in http.stream():
        size += len(part)
        if size <= MAX_BODY:
            parts.append(part)
        else:
            parts.clear()
    return b"".join(parts) if size <= MAX_BODY else None


async def _not_found(http: HttpRequest, record: RecordedRequest, raw: bytes) -> Response:
    return _refuse(record, ErrorReply(404, message=f"Not found: {http.url.path}"))


def _refuse(record: RecordedRequest, error: ErrorReply) -> Response:
    from starlette.responses import Response as PlainResponse

    headers = {**_request_id(), **error.headers}
    record.status, record.outcome = error.status, "done"
    if error.body is not None:
        return PlainResponse(error.body, error.status, headers)
    body = error_body(error.type or error_type(error.status), error.message)
    return _json(record, error.status, body, headers)


def _json(
    record: RecordedRequest, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    from starlette.responses import Response as PlainResponse

    record.status = status
    record.outcome = record.outcome or "done"
    content = json.dumps(body).encode("ascii")
    return PlainResponse(
        content, status, headers if headers is not None else _request_id(), "application/json"
    )


def _request_id() -> dict[str, str]:
    return {"request-id": "req_" + secrets.token_hex(12)}


def _protocol(transports: dict[tuple[str, int], asyncio.Transport]) -> type[asyncio.Protocol]:
    """The HTTP protocol of the web server, which also notes each connection by the client's address."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in its base
            super().connection_made(transport)
            if self.client is not None:
                transports[self.client] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                transports.pop(self.client, None)
            super().connection_lost(exc)

    return Protocol
