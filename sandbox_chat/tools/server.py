"""The MCP server of the tools: lists them, runs a call, turns every failure into an answer.

It is a low-level server of our own rather than the SDK's helper because only here the model's tool
use id is seen (in the request's metadata), which ties a call to its card on the screen.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext

from sandbox_chat import __version__
from sandbox_chat.sandbox.base import SandboxError, SandboxFileError
from sandbox_chat.text import clean
from sandbox_chat.tools.calling import call_id_of, run_call, to_result
from sandbox_chat.tools.context import ToolContext, ToolInputError, ToolOutcome, text_outcome
from sandbox_chat.tools.downloads import download_file
from sandbox_chat.tools.files import list_files, read_file, read_image, write_file
from sandbox_chat.tools.run_code import run_code
from sandbox_chat.tools.schemas import SERVER_NAME, ToolSpec, check_arguments, tool_specs

log = logging.getLogger(__name__)

STOP_ADVICE = (
    "The sandbox itself failed, not your code. Do not try again: stop using the sandbox tools in this turn, "
    "and tell the user what happened and what this message says."
)
CLIENT_ERRORS = (ToolInputError, SandboxFileError)

Handler = Callable[[ToolContext, str, dict[str, Any]], Awaitable[ToolOutcome]]
HANDLERS: Mapping[str, Handler] = {
    "run_code": run_code,
    "write_file": write_file,
    "read_file": read_file,
    "read_image": read_image,
    "list_files": list_files,
    "download_file": download_file,
}


def make_server(
    context: ToolContext,
    on_listed: Callable[[], None] | None = None,
    *,
    render: Callable[[ToolOutcome], types.CallToolResult] = to_result,
) -> Server[dict[str, Any]]:
    """Return the MCP server named ``sandbox`` with the six tools over ``context``.

    ``on_listed``: they were asked for. ``render`` makes the result that the client gets of an outcome.
    """
    specs = {spec.name: spec for spec in tool_specs(context.settings, context.worker.info.capabilities)}
    tools = [as_tool(spec) for spec in specs.values()]

    async def on_list_tools(
        request: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if on_listed is not None:
            on_listed()
        return types.ListToolsResult(tools=tools)

    async def on_call_tool(
        request: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        call_id = call_id_of(request.meta)
        spec = specs.get(params.name)
        if spec is None:
            outcome = _failed(
                context, f"[error] There is no tool {clean(params.name)!r}; there are {', '.join(specs)}."
            )
        else:
            outcome = await call_tool(context, spec, call_id, dict(params.arguments or {}))
        return render(outcome)

    return Server(SERVER_NAME, version=__version__, on_list_tools=on_list_tools, on_call_tool=on_call_tool)


async def call_tool(
    context: ToolContext, spec: ToolSpec, call_id: str, arguments: dict[str, Any]
) -> ToolOutcome:
    """Run one call and tell of its start and end; see ``run_call``."""
    return await run_call(
        context, call_id, spec.full_name, arguments, lambda: _guarded(context, spec, call_id, arguments)
    )


async def _guarded(
    context: ToolContext, spec: ToolSpec, call_id: str, arguments: dict[str, Any]
) -> ToolOutcome:
    problem = check_arguments(spec, arguments)
    if problem:
        return _failed(context, f"[error] {problem}")
    try:
        await context.before()
        return await HANDLERS[spec.name](context, call_id, arguments)
    except CLIENT_ERRORS as error:
        return _failed(context, f"[error] {_words(context, error)}")
    except SandboxError as error:
        log.warning("%s failed: %s", spec.name, _words(context, error))
        return _failed(
            context, f"[tool_error] {type(error).__name__}: {_words(context, error)}\n{STOP_ADVICE}"
        )
    except Exception as error:
        log.exception("%s failed", spec.name)
        return _failed(
            context, f"[tool_error] {type(error).__name__}: {_words(context, error)}\n{STOP_ADVICE}"
        )


def _words(context: ToolContext, error: Exception) -> str:
    return clean(context.settings.scrub(str(error))) or "no more is known"


def _failed(context: ToolContext, text: str) -> ToolOutcome:
    return text_outcome(text, limit=context.settings.text_limit, is_error=True)


def as_tool(spec: ToolSpec) -> types.Tool:
    """Return a tool as MCP tells of it."""
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.schema),
        annotations=types.ToolAnnotations(read_only_hint=True) if spec.read_only else None,
    )
