"""What is said to a server: the handshake, the list of its tools, a request's marks, and a result whatever it is.

Requests and results go through the library's dispatcher as they are: its own typed calls refuse a whole list for one
tool, and a whole result for one part.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from mcp import MCPError, types
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from sandbox_chat import __version__
from sandbox_chat.mcp.base import McpError, ToolDefinition
from sandbox_chat.mcp.definitions import TOOLS_LIMIT
from sandbox_chat.text import clean_line

PAGES = 100
"""Pages of a list of tools that are asked for at most."""
CLIENT = types.Implementation(name="sandbox-chat", version=__version__)
MODERN = (
    types.METHOD_NOT_FOUND,
    types.INVALID_REQUEST,
    types.INVALID_PARAMS,
    types.UNSUPPORTED_PROTOCOL_VERSION,
)
"""Errors with which a server of the newest protocol may answer the older handshake."""
_CONTENT: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)

Request = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


async def shake_hands(session: ClientSession) -> None:
    """Agree on a protocol: the older handshake, which nearly all know, then the newest.

    The other order makes a server that hangs be waited for twice, and ends some that know nothing of it.
    """
    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in MODERN:
            raise
        try:
            await session.discover()
        except (MCPError, ValidationError):
            raise error from None
    except ValidationError:
        raise McpError("its first answer is none of the protocol.") from None
    except RuntimeError as error:
        raise McpError(f"{clean_line(str(error))}.") from None


async def listed(request: Request) -> tuple[list[Any], list[str]]:
    """Return the tools of a server as they came, and sentences about the list. ``request`` sends ``tools/list`` with parameters.

    The library's own list fails as a whole when one tool is not as it should be. Raises ``MCPError``.
    """
    found: list[Any] = []
    cursors: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(PAGES):
        try:
            page = await request(params)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return [], []
            raise
        tools = page.get("tools")
        if not isinstance(tools, list):
            return found, ["Its list of tools is not a list."]
        found += tools[: TOOLS_LIMIT + 1 - len(found)]
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(found) > TOOLS_LIMIT:
            return found, []
        if cursor in cursors:
            return found, ["Its list of tools has no end: the same page came again."]
        cursors.add(cursor)
        params = {"cursor": cursor}
    return found, [f"Its list of tools has more than {PAGES} pages; the others are not read."]


def stamped(
    version: str, method: str, params: dict[str, Any], tools: Iterable[ToolDefinition]
) -> tuple[dict[str, Any], CallOptions]:
    """Return a request's parameters and options as ``version`` of the protocol wants them. ``tools`` are the server's."""
    headers = {MCP_PROTOCOL_VERSION_HEADER: version}
    if version in MODERN_PROTOCOL_VERSIONS:
        headers[MCP_METHOD_HEADER] = method
        if method == "tools/call":
            headers[MCP_NAME_HEADER] = encode_header_value(params["name"])
            tool = next((each for each in tools if each.original == params["name"]), None)
            if tool is not None:
                headers.update(mcp_param_headers(x_mcp_header_map(dict(tool.schema)), params["arguments"]))
        meta = {
            types.PROTOCOL_VERSION_META_KEY: version,
            types.CLIENT_INFO_META_KEY: CLIENT.model_dump(by_alias=True, mode="json", exclude_none=True),
            types.CLIENT_CAPABILITIES_META_KEY: {},
        }
        params = {**params, "_meta": meta}
    return params, {"headers": headers}


def result_of(found: Mapping[str, Any]) -> types.CallToolResult:
    """Return a result as the protocol's, whatever it is: a part that is none of it comes as its JSON."""
    blocks: list[types.ContentBlock] = []
    content = found.get("content")
    for part in content if isinstance(content, list) else [content] if content else []:
        try:
            blocks.append(_CONTENT.validate_python(part, by_name=False))
        except ValidationError:
            words = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, default=str)
            blocks.append(types.TextContent(type="text", text=words))
    return types.CallToolResult(
        content=blocks,
        structured_content=found.get("structuredContent"),
        is_error=found.get("isError") is True,
    )
