"""One call of any tool: its start and its end are told, a stop ends it, and its outcome becomes MCP's result."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp import types

from sandbox_chat.tools.context import CallContext, ImageBlock, ToolOutcome, text_outcome

TOOL_USE_ID = "claudecode/toolUseId"
CANCEL_SECONDS = 5.0
"""How long a cancelled call may take to let go of what it holds. The worker itself kills the shell well before."""


def call_id_of(meta: Mapping[str, Any] | None) -> str:
    """Return the model's tool use id, which the CLI puts into a request's metadata, or else a new id."""
    return str((meta or {}).get(TOOL_USE_ID) or f"call-{uuid.uuid4().hex[:12]}")


async def run_call(
    context: CallContext,
    call_id: str,
    name: str,
    arguments: dict[str, Any],
    work: Callable[[], Awaitable[ToolOutcome]],
) -> ToolOutcome:
    """Do the ``work`` of a call and tell of its start and end; ``name`` is the tool's full one.

    ``work`` raises nothing but ``CancelledError``, and so does this, after the call's end was told. Cancelling the task in
    ``context.running`` stops it too; then that is its answer.
    """
    context.started(call_id, name, arguments)
    start = time.monotonic()
    # A task of its own: the server's library repeats a cancellation until its task ends, which would
    # tear at the clean-up below; this task is cancelled once.
    task = asyncio.ensure_future(_without_personal_data(context, work))
    context.running.add(task)
    task.add_done_callback(context.running.discard)
    try:
        outcome = await asyncio.shield(task)
    except asyncio.CancelledError:
        stopped_here = task.cancelled()  # by the session, not by the server's library
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        stopped = text_outcome("The call was stopped before it ended.", limit=context.settings.text_limit)
        outcome = ToolOutcome(stopped.model, stopped.display, is_error=True, interrupted=True)
        context.finished(call_id, outcome, _milliseconds(start))
        if stopped_here:
            return outcome
        raise
    context.finished(call_id, outcome, _milliseconds(start))
    return outcome


async def _without_personal_data(
    context: CallContext, work: Callable[[], Awaitable[ToolOutcome]]
) -> ToolOutcome:
    outcome = await work()
    return outcome if context.private is None else await context.private.outcome(outcome)


def to_result(outcome: ToolOutcome) -> types.CallToolResult:
    """Return what the model gets of an outcome as MCP's result."""
    content: list[types.ContentBlock] = []
    for block in outcome.model:
        if isinstance(block, ImageBlock):
            data = base64.b64encode(block.data).decode("ascii")
            content.append(types.ImageContent(type="image", data=data, mime_type=block.mime))
        else:
            content.append(types.TextContent(type="text", text=block.text))
    return types.CallToolResult(content=content, is_error=outcome.is_error)


def _milliseconds(start: float) -> int:
    return int((time.monotonic() - start) * 1000)
