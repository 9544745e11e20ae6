"""The tools for HTTP clients whose protocol has no sessions (2026-07-28): the sandbox is named by an argument.

A call without the name gets a sandbox of its own, and its name with the answer. The name is random and is all that
opens the sandbox, beside the server's token. A client can also have one by its address, ``/mcp?sandbox=NAME``: then its
calls need no name. So can a client of the older protocols, whose sandbox then outlives its session.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext

from sandbox_chat import __version__
from sandbox_chat.mcp.serve.session import INSTRUCTIONS, Session, noted
from sandbox_chat.sandbox.base import Capabilities, SandboxError
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean
from sandbox_chat.tools.schemas import SERVER_NAME, ToolSpec, tool_specs
from sandbox_chat.tools.server import as_tool

HANDLE = "sandbox"
"""Name of the argument."""

GetSession = Callable[[str, bool], Awaitable[tuple[Session, str]]]
"""Returns the session of a name and that name. One is made for an empty name, and if the second argument says so.

Raises ``SandboxError`` with a sentence."""
_OWNED = "own:"
_OWN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def make_front(settings: Settings, can: Capabilities, get: GetSession) -> Server[dict[str, Any]]:
    """Return the server that takes the calls and hands each to its session."""
    tools = [as_tool(_named(spec)) for spec in tool_specs(settings, can)]

    async def on_list_tools(
        request: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def on_call_tool(
        request: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = dict(params.arguments or {})
        wanted = arguments.pop(HANDLE, "")
        if not isinstance(wanted, str):
            return _refused(f"The argument {HANDLE!r} must be the name that an earlier answer gave.")
        own = own_name(getattr(request.request, "query_params", {}))
        if wanted.startswith(_OWNED) and wanted != own:  # that of another client, whose name can be guessed
            return _refused(f"The argument {HANDLE!r} must be the name that an earlier answer gave.")
        try:
            session, name = await get(wanted or own, not wanted)
        except SandboxError as error:
            return _refused(clean(settings.scrub(str(error))))
        entry = session.server.get_request_handler("tools/call")
        assert entry is not None
        with noted(request):
            result = await entry.handler(request, params.model_copy(update={"arguments": arguments}))
        assert isinstance(result, types.CallToolResult)
        if not wanted and not own:
            words = f"[sandbox] {name} (give this as the argument {HANDLE!r} of the next calls to go on with the same variables and files)"
            result.content.append(types.TextContent(type="text", text=words))
        return result

    return Server(
        SERVER_NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def own_name(query: Mapping[str, str]) -> str:
    """Return the name of the client's own sandbox that the query of its address gives, empty if it gives none."""
    name = str(query.get(HANDLE, ""))
    return f"{_OWNED}{name}" if _OWN.fullmatch(name) else ""


def _named(spec: ToolSpec) -> ToolSpec:
    about = "Name of the sandbox, from an earlier answer; left out: a new, empty one."
    properties = {**spec.schema["properties"], HANDLE: {"type": "string", "description": about}}
    return dataclasses.replace(spec, schema={**spec.schema, "properties": properties})


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=f"[error] {text}")], is_error=True
    )
