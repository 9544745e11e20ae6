"""The MCP servers of a session: offered to the agent as in-process servers, each call shown, asked about and bounded."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext

from sandbox_chat import __version__
from sandbox_chat.events import Notice, Sink
from sandbox_chat.mcp.base import McpError, Reveals, ServerConfig, ToolDefinition
from sandbox_chat.mcp.connection import NotSentError
from sandbox_chat.mcp.managed import Managed
from sandbox_chat.mcp.names import full_name, server_names
from sandbox_chat.mcp.permission import Permission
from sandbox_chat.mcp.results import to_outcome
from sandbox_chat.mcp.schemas import wrong_arguments
from sandbox_chat.mcp.secrets import scrubbed
from sandbox_chat.settings import Settings
from sandbox_chat.signs import suspect
from sandbox_chat.text import clean, from_name
from sandbox_chat.tools.calling import call_id_of, run_call, to_result
from sandbox_chat.tools.context import Ask, CallContext, ToolOutcome, text_outcome

log = logging.getLogger(__name__)

ASKED_AGAIN = 4
"""Rounds of one call: it is asked about again when its tool changed meanwhile, and sent again when it was not taken."""
NEW_TOOLS = "The tools of the MCP server {name} are others now; the agent knows the new ones from the next session on."
TOOL_CHANGED = "[error] The tool changed while the user was asked about the call, again and again. The call was not made."


class Refused(McpError):
    """A call was not made. ``kind``: ``unknown``, ``arguments`` or ``denied``; ``tool`` as far as it is known."""

    def __init__(self, words: str, kind: str, tool: ToolDefinition | None = None) -> None:
        super().__init__(words)
        self.kind = kind
        self.tool = tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms code calls a tool.

    ``timeout`` in seconds. ``shown`` are the arguments as they are shown and recorded. ``is_free`` tells whether a tool is called without asking. ``send`` makes of the arguments that
    were asked about those that are sent; ``note`` says so where the user is asked.
    """

    timeout: float | None = None
    shown: dict[str, Any] | None = None
    is_free: Callable[[ServerConfig, ToolDefinition], bool] | None = None
    send: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    note: str = ""


class Servers:
    """The servers of ``configs``, none of them started. ``emit`` takes the events, ``logs`` is the folder of their logs.

    ``on_tools`` is called with a server's name when its tools are others than the agent was told; without it
    the user is told. All methods belong to one loop, on which ``emit`` and the context's callbacks are called.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        settings: Settings,
        emit: Sink,
        logs: Path,
        *,
        on_tools: Callable[[str], None] | None = None,
    ) -> None:
        self._settings = settings
        self._emit = emit
        self._context: CallContext | None = None
        self.on_tools = on_tools
        self.private: Reveals | None = None
        """Where tokens in arguments become personal data again."""
        folder = settings.data_path / "mcp"
        self._permission = Permission(settings, folder / "pins.json")
        self._servers = {
            name: Managed(
                config,
                name,
                settings,
                emit,
                log_file=logs / f"{name}.log",
                tools_file=folder / "tools" / f"{name}.json",
                on_tools=self._tools_changed,
            )
            for config, name in zip(configs, server_names([each.name for each in configs]), strict=True)
        }

    # -- life ------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Tell of all servers, and start those whose tools are not known yet, in the background."""
        for server in self._servers.values():
            server.begin()

    async def restart(self, name: str) -> None:
        """End a server and start it again; ``ServerChanged`` tells how that went."""
        if (server := self._named(name)) is not None:
            await server.restart()

    async def switch(self, name: str, on: bool) -> None:
        """Switch a server off or on for this session."""
        if (server := self._named(name)) is not None:
            await server.switch(on)

    async def close(self, limit: float) -> None:
        """End all servers within about ``limit`` seconds."""
        await asyncio.gather(*(server.close(limit) for server in self._servers.values()))

    def _named(self, name: str) -> Managed | None:
        found = self._servers.get(name)
        return found or next((each for each in self._servers.values() if each.config.name == name), None)

    def _tools_changed(self, name: str) -> None:
        if self.on_tools is not None:
            self.on_tools(name)
        else:
            self._emit(Notice(level="info", text=NEW_TOOLS.format(name=name)))

    # -- for the agent ---------------------------------------------------------------------------------

    def attach(self, context: CallContext) -> Mapping[str, Server[dict[str, Any]]]:
        """Return an in-process MCP server for each of ours, by the name that the agent knows it by."""
        self._context = context
        return {name: self._server(server) for name, server in self._servers.items()}

    async def definitions(self) -> list[ToolDefinition]:
        """Return the tools of all servers that are on; those that are being started are waited for."""
        found = await asyncio.gather(*(server.listed() for server in self._servers.values()))
        return [tool for tools in found for tool in tools]

    def troubles(self) -> list[str]:
        """Return why the tools of servers are not there, a sentence for each such server."""
        return [trouble for server in self._servers.values() if (trouble := server.trouble)]

    def _server(self, server: Managed) -> Server[dict[str, Any]]:
        async def on_list_tools(
            request: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[_tool(tool) for tool in await server.listed()])

        async def on_call_tool(
            request: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
        ) -> types.CallToolResult:
            arguments = dict(params.arguments or {})
            return to_result(await self.call(server.name, params.name, arguments, call_id_of(request.meta)))

        return Server(
            server.name, version=__version__, on_list_tools=on_list_tools, on_call_tool=on_call_tool
        )

    # -- calls -----------------------------------------------------------------------------------------

    async def call(self, server: str, tool: str, arguments: dict[str, Any], call_id: str) -> ToolOutcome:
        """Call a tool, by the names that the model knows, and tell of its start and end. Every failure is an outcome."""
        context = self._context
        if context is None:
            raise McpError("The MCP servers are not attached to a session.")
        return await run_call(
            context,
            call_id,
            full_name(server, tool),
            arguments,
            lambda: self._guarded(context, server, tool, arguments, call_id),
        )

    async def _guarded(
        self, context: CallContext, server: str, tool: str, arguments: dict[str, Any], call_id: str
    ) -> ToolOutcome:
        managed = self._servers.get(server)
        if managed is None:
            return self._failed(f"[error] There is no MCP server {clean(server)!r}.")
        try:
            return await self._call(context, managed, tool, arguments, call_id)
        except McpError as error:
            return self._failed(f"[error] {managed.scrub(str(error))}")
        except Exception as error:
            log.exception("a call of an MCP server's tool failed")
            words = managed.scrub(str(error)) or "no more is known"
            return self._failed(f"[tool_error] {type(error).__name__}: {words}")

    async def _call(
        self, context: CallContext, server: Managed, name: str, arguments: dict[str, Any], call_id: str
    ) -> ToolOutcome:
        try:
            result, tool = await self._result(server, name, arguments, call_id=call_id, ask=context.ask)
        except Refused as refusal:
            return self._failed(str(refusal))
        return await to_outcome(
            result,
            context,
            has_schema=tool.output_schema is not None,
            scrub=lambda text: scrubbed(text, server.credentials),
        )

    async def nested(
        self, server: str, tool: str, arguments: dict[str, Any], *, call_id: str, ask: Ask, terms: Terms
    ) -> tuple[types.CallToolResult, ToolDefinition]:
        """Call a tool for code that the call ``call_id`` runs; nothing is told of it here.

        Raises ``McpError``, ``Refused`` among them. The words of a failure hold no credentials of the server's.
        """
        managed = self._servers.get(server)
        if managed is None:
            raise Refused(f"[error] There is no MCP server {clean(server)!r}.", "unknown")
        try:
            return await self._result(managed, tool, arguments, call_id=call_id, ask=ask, terms=terms)
        except Refused:
            raise
        except McpError as error:
            raise McpError(managed.scrub(str(error))) from None

    def config(self, server: str) -> ServerConfig | None:
        """Return how the server is reached that the model knows by that name."""
        managed = self._servers.get(server)
        return managed.config if managed is not None else None

    def scrub(self, server: str, text: str) -> str:
        """Return a text without the credentials of a server."""
        managed = self._servers.get(server)
        return scrubbed(text, managed.credentials) if managed is not None else text

    async def _result(
        self,
        server: Managed,
        name: str,
        arguments: dict[str, Any],
        *,
        call_id: str,
        ask: Ask,
        terms: Terms | None = None,
    ) -> tuple[types.CallToolResult, ToolDefinition]:
        """Make a call that may be made, and return what came of it and of which tool. Raises ``McpError``."""
        by_code = terms is not None  # which may be hostile, and write much
        frozen, words = await asyncio.to_thread(_frozen, arguments) if by_code else _frozen(arguments)
        terms = terms or self._terms(server, name)
        if terms.shown is not None:
            words = (await asyncio.to_thread(_frozen, terms.shown))[1]
        approved, again = "", False
        for _ in range(ASKED_AGAIN):
            connection = await server.connected()
            tool = server.tool(name)
            if tool is None:
                raise Refused(_no_tool(server, name), "unknown")
            if tool.fingerprint == approved:
                if server.config.on_call is not None:
                    server.config.on_call()
                sent = terms.send(frozen) if terms.send is not None else frozen
                try:
                    return await connection.call(tool.original, sent, limit=terms.timeout), tool
                except NotSentError:
                    if again:
                        raise
                    again = True
                    continue
            checked = (name, tool.schema, frozen)
            problem = (
                await asyncio.to_thread(wrong_arguments, *checked) if by_code else wrong_arguments(*checked)
            )
            if problem:
                raise Refused(f"[error] {clean(problem)}", "arguments", tool)
            free = terms.is_free is not None and terms.is_free(server.config, tool)
            refusal = await self._permission.refusal(
                server.config, tool, words, call_id, ask, free=free, note=terms.note
            )
            if refusal:
                raise Refused(refusal, "denied", tool)
            approved = tool.fingerprint
        raise Refused(TOOL_CHANGED, "denied")

    def _terms(self, server: Managed, name: str) -> Terms:
        """Return the terms of a call that the agent makes."""
        private, tool = self.private, server.tool(name)
        names = private.shows(server.config, tool) if private is not None and tool is not None else ()
        if private is None or not names:
            return Terms()
        return Terms(send=lambda frozen: private.revealed(frozen, names), note=private.note(names))

    def _failed(self, text: str) -> ToolOutcome:
        return text_outcome(text, limit=self._settings.text_limit, is_error=True)


def _frozen(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a copy of a call's arguments that nothing changes any more, and the same as JSON for people."""
    try:
        words = json.dumps(arguments, ensure_ascii=False, indent=2)
        words.encode()
    except (ValueError, TypeError, RecursionError):
        raise McpError(
            "The arguments hold broken characters or cannot be written as JSON. Write them again."
        ) from None
    return json.loads(words), _to_the_letter(words)


def _to_the_letter(words: str) -> str:
    """Return JSON with all that does not show as one sign of its own written as JSON's escapes, so that nothing is lost."""
    if words.isascii():
        return words
    return "".join(
        sign if sign in "\n\u3000" or (sign.isprintable() and not suspect(sign)) else json.dumps(sign)[1:-1]
        for sign in words
    )


def _no_tool(server: Managed, name: str) -> str:
    there = ", ".join(tool.name for tool in server.tools) or "none"
    return f"[error] The MCP server {server.name} has no tool {from_name(name, 80)!r}; it has {there[:2000]}."


def _tool(tool: ToolDefinition) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.schema),
        annotations=types.ToolAnnotations(read_only_hint=True) if tool.read_only else None,
    )
