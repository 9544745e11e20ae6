"""How the ``mcp`` library speaks with clients, in its version 1 and in its version 2.

The servers beside the gateway in an environment decide which of the two is there. They differ in how handlers are
registered and in what they are given; what is passed on is the same.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from . import VERSION
from .link import OnProgress, RemoteError
from .servers import Servers

NAME = "mcp-gateway"
SESSION_IDLE = 3600.0
"""Seconds after which a session without requests is forgotten."""
LARGEST_REQUEST = 64 << 20
"""Bytes of the largest request."""
_MOST_SESSIONS = 1000
_ENVELOPE = (
    "io.modelcontextprotocol/"  # what one client and this server tell each other; not for the servers behind
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LIBRARY: Any = mcp  # without the types of one version

_Report = Callable[[float, float | None, str | None], Awaitable[None]]


def make_manager(servers: Servers, host: str) -> StreamableHTTPSessionManager:
    """Return the library's end of the endpoint, with the tools of ``servers``.

    ``host`` is the address that it listens at. On loopback requests are refused that a page in a browser could send.
    """
    security = None
    if host in _LOOPBACK:
        names = ("127.0.0.1:*", "localhost:*", "[::1]:*")
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=list(names),
            allowed_origins=[f"http://{name}" for name in names],
        )
    make: Any = StreamableHTTPSessionManager
    options = {
        "session_idle_timeout": SESSION_IDLE,
        "max_request_body_size": LARGEST_REQUEST,
        "max_sessions": _MOST_SESSIONS,
    }
    server = _server_2(servers) if hasattr(Server, "add_request_handler") else _server_1(servers)
    manager: StreamableHTTPSessionManager = make(
        app=server, security_settings=security, **_known(make, options)
    )
    return manager


def accepts(definition: Mapping[str, Any]) -> bool:
    """Return whether the library takes the definition of a tool."""
    try:
        _LIBRARY.types.Tool.model_validate(definition)
    except (ValueError, RecursionError):
        return False
    return True


def _known(make: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this version of the library has."""
    known = inspect.signature(make).parameters
    return {name: value for name, value in options.items() if name in known}


def _server_2(servers: Servers) -> Any:
    """The server, with version 2 of the library."""

    rest = _LIBRARY.types.ListToolsResult(tools=[]).model_dump(by_alias=True, exclude_none=True)

    async def list_tools(_context: Any, _params: Any) -> Any:
        return {**rest, "tools": [tool.definition for tool in servers.offered.values()]}

    async def call_tool(context: Any, _params: Any) -> Any:
        try:
            result = await _call(servers, context.params, context.session.report_progress)
        except RemoteError as error:
            raise _LIBRARY.MCPError(code=error.code, message=error.message, data=error.data) from None
        return {"resultType": "complete", **result}

    def schema_of(name: str) -> Mapping[str, Any] | None:
        tool = servers.offered.get(name)
        return None if tool is None else tool.definition["inputSchema"]

    make: Any = Server
    options = _known(Server.__init__, {"get_tool_input_schema": schema_of})
    return make(NAME, version=VERSION, on_list_tools=list_tools, on_call_tool=call_tool, **options)


def _server_1(servers: Servers) -> Any:
    """The server, with version 1 of the library."""
    types = _LIBRARY.types
    make: Any = Server
    server = make(NAME, version=VERSION)

    async def list_tools(_request: Any) -> Any:
        tools = [types.Tool.model_validate(tool.definition) for tool in servers.offered.values()]
        return types.ServerResult(types.ListToolsResult(tools=tools))

    async def call_tool(request: Any) -> Any:
        context = server.request_context
        params = request.params.model_dump(by_alias=True, mode="json", exclude_unset=True)
        token = (params.get("_meta") or {}).get("progressToken")

        async def report(value: float, total: float | None, message: str | None) -> None:
            await context.session.send_progress_notification(
                token, value, total=total, message=message, related_request_id=str(context.request_id)
            )

        try:
            result = await _call(servers, params, report)
        except RemoteError as error:
            data = types.ErrorData(code=error.code, message=error.message, data=error.data)
            raise _LIBRARY.McpError(data) from None
        return types.ServerResult(types.CallToolResult.model_validate(result))

    server.request_handlers[types.ListToolsRequest] = list_tools
    server.request_handlers[types.CallToolRequest] = call_tool
    return server


async def _call(servers: Servers, params: Mapping[str, Any] | None, report: _Report) -> dict[str, Any]:
    """Pass one call on, as it came; the token of its progress becomes one of ours on the way."""
    params = params or {}
    name = params.get("name")
    if not isinstance(name, str):
        raise RemoteError(-32602, "A call needs the name of a tool.")
    forwarded = {key: value for key, value in params.items() if key in ("arguments", "_meta")}
    meta = forwarded.pop("_meta", None)
    wants_progress = isinstance(meta, Mapping) and meta.get("progressToken") is not None
    if isinstance(meta, Mapping):
        kept = {
            key: value
            for key, value in meta.items()
            if key != "progressToken" and not str(key).startswith(_ENVELOPE)
        }
        if kept:
            forwarded["_meta"] = kept
    return await servers.call(name, forwarded, _progress(report) if wants_progress else None)


def _progress(report: _Report) -> OnProgress:
    async def forward(params: Mapping[str, Any]) -> None:
        value, total, message = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(value, (int, float)) and isinstance(total, (int, float, type(None))):
            # A client that is gone cancels the call by itself; its progress is nobody's.
            with contextlib.suppress(Exception):
                await report(value, total, message if isinstance(message, str) else None)

    return forward
