"""One running CLI: started, read by one task until it ends, and ended within a deadline.

Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
from collections.abc import AsyncIterator, Callable
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    Message,
    ProcessError,
)

from sandbox_chat.agent.errors import AgentError, Trouble, not_started
from sandbox_chat.agent.private import drain, interrupt_all, output_of
from sandbox_chat.text import clean_line

log = logging.getLogger(__name__)

KILL_WAIT = 1.0
"""Seconds that the SDK gets to see that a killed CLI has ended."""
DRAIN_LIMIT = 0.5
"""Seconds to read what a CLI that has ended left in its pipe."""
CONTROL_TIMEOUT = 5.0
"""Seconds that the CLI may take to answer an order; it does so within milliseconds when it is alive."""
COMPOSED = "client_composed"
"""Mark of a prompt that the CLI takes to the letter: what the SDK's option ``verbatim_prompts`` puts on every prompt, orders too."""


class Connection:
    """A CLI and its client. ``on_message`` gets every message, ``on_lost`` once the reason why no more will come.

    Both are called on the loop by the one task that reads, and must return quickly.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        *,
        on_message: Callable[[Message], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._client = ClaudeSDKClient(options)
        self._on_message = on_message
        self._on_lost = on_lost
        self._reader: asyncio.Task[None] | None = None
        self._closing = False
        self._killed = False
        self._broken = False
        self._pidfd = -1
        self.pid = 0
        """Process id of the CLI, 0 before it is known."""
        self.lost = ""
        """Why no more messages come; empty while they do."""
        self.models: list[dict[str, Any]] = []
        """The models that the CLI offers, as it describes them."""

    async def open(self, limit: float) -> None:
        """Start the CLI and the reader. Raises ``AgentError`` with the CLI's own words; then nothing is left behind."""
        try:
            async with asyncio.timeout(limit):
                await self._client.connect()
        except TimeoutError:
            raise Trouble("cli_slow", (("seconds", f"{limit:g}"),)).as_error() from None
        except CLINotFoundError as error:
            raise not_started(str(error)) from None
        except OSError as error:
            raise not_started(error.strerror or str(error)) from None
        except Exception as error:
            raise not_started(_words(error)) from None
        info = await self._client.get_server_info() or {}
        self.models = [item for item in info.get("models") or () if isinstance(item, dict)]
        pid = info.get("pid")
        if isinstance(pid, int) and pid > 1:
            self.pid = pid
            if hasattr(os, "pidfd_open"):  # so that never another process is killed that got the same number
                with contextlib.suppress(OSError):
                    self._pidfd = os.pidfd_open(pid)
        self._reader = asyncio.ensure_future(self._read())

    @property
    def ended(self) -> bool:
        """True when the CLI's process is known to have ended."""
        if self._pidfd < 0:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    @property
    def gone(self) -> bool:
        """True when no more can be asked of the CLI, also when its last words were not read yet."""
        return bool(self.lost) or self._broken or self.ended

    async def query(self, prompt: str, *, prompt_id: str, order: bool = False) -> None:
        """Send a prompt with a new UUID, under which its result is told. Raises ``AgentError`` when the CLI has gone.

        ``order``: it is an order to the CLI. All else it takes to the letter, also what looks like an order or a
        mention of a file, because it is marked as composed by the program.
        """
        message: dict[str, Any] = {
            "type": "user",
            "uuid": prompt_id,
            "message": {"role": "user", "content": prompt},
            "parent_tool_use_id": None,
        }
        if not order:
            message[COMPOSED] = True

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield message

        try:
            await self._client.query(one())
        except Exception as error:
            self._broken = True
            raise AgentError(_words(error)) from None

    async def interrupt(self, *, all_prompts: bool = False) -> bool | None:
        """Stop the running turn. Does nothing when the CLI is idle or gone.

        ``all_prompts``: also those that wait in the CLI. Returns whether nothing is left to do, ``None`` without an answer.
        """
        try:
            async with asyncio.timeout(CONTROL_TIMEOUT):
                if all_prompts:
                    return await interrupt_all(self._client)
                await self._client.interrupt()
                return True
        except Exception as error:
            log.warning("the interruption was not taken: %s", _words(error))
            return None

    async def renew_tools(self, server: str) -> None:
        """Let the CLI list the tools of an in-process server again: it follows no word of one that they changed."""
        try:
            async with asyncio.timeout(CONTROL_TIMEOUT):
                await self._client.toggle_mcp_server(server, False)
                await self._client.toggle_mcp_server(server, True)
        except Exception as error:
            log.warning("the tools of a server were not listed again: %s", _words(error))

    async def context_usage(self, limit: float) -> dict[str, Any]:
        """Return the CLI's account of the context window, empty when it does not answer in time."""
        try:
            async with asyncio.timeout(limit):
                return dict(await self._client.get_context_usage())
        except Exception as error:
            log.debug("no context usage: %s", _words(error))
            return {}

    async def close(self, limit: float) -> None:
        """End the CLI: politely, and after ``limit`` seconds by force. Any number of times."""
        self._closing = True
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
        output = output_of(self._client)
        leaving = asyncio.ensure_future(self._client.disconnect())
        try:
            await asyncio.wait({leaving}, timeout=limit)
        finally:
            if not leaving.done():
                self.kill("it did not end in time")
                await asyncio.wait({leaving}, timeout=KILL_WAIT)
            if not leaving.done():
                leaving.cancel()
            elif not leaving.cancelled() and (error := leaving.exception()) is not None:
                log.warning("the agent's program did not end cleanly: %s", _words(error))
                self.kill("it did not end cleanly")
            if output is not None and leaving.done():
                await drain(output, DRAIN_LIMIT)
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1

    def kill(self, reason: str) -> None:
        """End the CLI at once; ``reason`` tells why, if it had not ended by itself."""
        self._killed = True
        self.lost = self.lost or reason
        log.warning("the agent's program is ended: %s", reason)
        try:
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            elif self.pid and not hasattr(os, "pidfd_open"):
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    async def _read(self) -> None:
        reason = "it ended by itself"
        while True:
            try:
                async for message in self._client.receive_messages():
                    try:
                        self._on_message(message)
                    except Exception:  # a fault of ours with one message must not stop the reading
                        log.exception("a message could not be handled")
                break
            except Exception as error:
                if type(error).__name__ == "MessageParseError":  # not exported by the SDK
                    log.warning("a message was not understood: %s", _words(error))
                    continue
                reason = _loss(error)
                break
        self.lost = self.lost or reason
        if not self._closing and not self._killed:
            self._on_lost(self.lost)


def _loss(error: Exception) -> str:
    if isinstance(error, ProcessError):
        code = error.exit_code
        if code is not None and code < 0:
            try:
                return f"it was ended by {signal.Signals(-code).name}"
            except ValueError:
                return f"it was ended by signal {-code}"
        return f"it ended with status {code}"
    if isinstance(error, CLIJSONDecodeError):
        return "it sent a message that was too long or damaged"
    if isinstance(error, CLIConnectionError):
        return "the connection to it broke"
    return _words(error)


def _words(error: BaseException) -> str:
    text = str(error).removeprefix("Claude Code returned an error result: ")
    return clean_line(text, 300) or type(error).__name__
