"""An MCP server over streamable HTTP in tests: the official library's server behind a token, in a thread."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp import types
from mcp.server import Server, ServerRequestContext

TOKEN = "right-t0ken"


@dataclass
class HttpServer:
    """A running server. ``refuse`` names methods that are answered with "unknown", ``hang`` those that are not answered, ``raw`` a fixed answer to calls."""

    port: int
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse: tuple[str, ...] = ()
    hang: tuple[str, ...] = ()
    raw: tuple[int, str, bytes, dict[str, str]] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/mcp"


def make_server(state: HttpServer) -> Server[dict[str, Any]]:
    """The server's tools: ``add`` and ``wait``."""

    async def on_list_tools(request: ServerRequestContext[Any, Any], params: Any) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=name, input_schema=schema)
                for name in ("add", "wait", "big")
            ]
        )

    async def on_call_tool(request: ServerRequestContext[Any, Any], params: Any) -> types.CallToolResult:
        given = params.arguments or {}
        words = str(given.get("a", 0) + given.get("b", 0))
        if params.name == "big":
            words = "x" * 3_000_000
        if params.name == "wait":
            try:
                await asyncio.sleep(60)
            finally:
                state.cancelled.set()
        return types.CallToolResult(content=[types.TextContent(type="text", text=words)])

    return Server("adder", version="1", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


@contextmanager
def http_server(*, json_response: bool = False, token: str = TOKEN, port: int = 0) -> Iterator[HttpServer]:
    """A started server; stopped at the end."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    state = HttpServer(sock.getsockname()[1])
    inner = make_server(state).streamable_http_app(json_response=json_response)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        state.headers.append(headers)

        async def reply(status: int, body: bytes, kind: str = "application/json", more: Any = None) -> None:
            fields = [(b"content-type", kind.encode())]
            fields += [(key.encode(), value.encode()) for key, value in (more or {}).items()]
            await send({"type": "http.response.start", "status": status, "headers": fields})
            await send({"type": "http.response.body", "body": body})

        if headers.get("authorization") != f"Bearer {token}":
            await reply(401, b"no", "text/plain")
            return
        message = await receive()
        body = message.get("body", b"")
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        method = asked.get("method")
        if method in state.hang or scope["method"] in state.hang:
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        if method in state.refuse:
            error = {"code": -32601, "message": "Method not found"}
            await reply(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}).encode())
            return
        if state.raw is not None and method == "tools/call":
            status, kind, data, more = state.raw
            await reply(status, data.replace(b"ID", str(asked["id"]).encode()), kind, more)
            return
        first = True

        async def again() -> Any:
            nonlocal first
            if first:
                first = False
                return message
            return await receive()

        await inner(scope, again, send)

    config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="http-mcp", daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    try:
        yield state
    finally:
        server.should_exit = True
        thread.join(10)
        sock.close()
