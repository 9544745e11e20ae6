"""The SDK's private parts, each with its reason and the condition for its removal.

``_query``, ``_send_control_request``
    ``ClaudeSDKClient.interrupt`` leaves prompts that were sent into the running turn where they are: the agent's program
    answers them as a turn of their own as soon as the interrupted one has ended. Its order to interrupt can take them
    back, but the client has no way to say so. To be removed when ``interrupt`` takes such an argument.

``_transport``, ``_process``
    When a line of the program could not be read, ``disconnect`` leaves the rest of its output unread in the pipe, and the
    pipe open for good. To be removed when ``disconnect`` closes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import anyio
from claude_agent_sdk import ClaudeSDKClient


async def interrupt_all(client: ClaudeSDKClient) -> bool:
    """Interrupt the running turn and take back the prompts that wait behind it. Returns false if any is still there.

    Raises what the SDK raises when the program does not answer or is gone.
    """
    query: Any = client._query
    if query is None:
        return False
    answer = await query._send_control_request({"subtype": "interrupt", "cancel_queued": True})
    return "cancelled" in answer and not answer.get("still_queued")


def output_of(client: ClaudeSDKClient) -> Any:
    """Return the stream of what the program writes, for ``drain``; ``None`` without one."""
    transport: Any = client._transport
    process = transport._process if transport is not None else None
    return process.stdout if process is not None else None


async def drain(output: Any, limit: float) -> None:
    """Read what a program that has ended left in its pipe, for ``limit`` seconds at most, so that the pipe is closed."""
    with contextlib.suppress(
        TimeoutError, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError
    ):
        async with asyncio.timeout(limit):
            while True:
                await output.receive()
