"""What clients see: one MCP server over streamable HTTP behind a Bearer token, and ``GET /health``."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .library import LARGEST_REQUEST, NAME, make_manager
from .servers import Servers

PATH = "/mcp"
_CLOSE = {"Connection": "close"}  # who has not shown the token keeps no connection


class Front:
    """The ASGI application: token, size and path are looked at before the library sees a request."""

    def __init__(self, servers: Servers, token: str, host: str) -> None:
        self._servers = servers
        self._token = token.encode()
        self._manager = make_manager(servers, host)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is open."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        await self._app(scope)(scope, receive, send)

    def _app(self, scope: Scope) -> ASGIApp:
        path = scope["path"]
        if path == "/health":
            if scope["method"] not in ("GET", "HEAD"):
                return PlainTextResponse("Method not allowed", 405, {"Allow": "GET, HEAD", **_CLOSE})
            return JSONResponse(
                {"status": "ok", "servers": len(self._servers), "tools": len(self._servers.offered)},
                headers=_CLOSE,
            )
        if path not in (PATH, PATH + "/"):
            return PlainTextResponse("Not found", 404, _CLOSE)
        if not self._allowed(scope):
            headers = {"WWW-Authenticate": f'Bearer realm="{NAME}"', **_CLOSE}
            return JSONResponse({"error": "A valid Bearer token is needed."}, 401, headers)
        return self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the library, whole: one that is too large is not read to its end."""
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client is gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > LARGEST_REQUEST:
                text = f"A request has at most {LARGEST_REQUEST >> 20} MB"
                await PlainTextResponse(text, 413, {"Connection": "close"})(scope, receive, send)
                return
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def once() -> Message:
            return whole.pop() if whole else await receive()

        await self._manager.handle_request(scope, once, send)

    def _allowed(self, scope: Scope) -> bool:
        kind, _, given = _header(scope, b"authorization").partition(b" ")
        right = hmac.compare_digest(given.strip(), self._token)
        return right and bool(self._token) and kind.lower() == b"bearer"


def _header(scope: Scope, name: bytes) -> bytes:
    found = [value for key, value in scope["headers"] if key == name]
    return found[0] if len(found) == 1 else b""
