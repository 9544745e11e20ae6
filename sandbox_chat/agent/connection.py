"""One running CLI: started, read by one task until it ends, and ended within a deadline.

Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
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

from sandbox_chat.agent.errors import AgentError
from sandbox_chat.text import clean_line

log = logging.getLogger(__name__)

KILL_WAIT = 1.0
"""Seconds that the SDK gets to see that a killed CLI has ended."""
CONTROL_TIMEOUT = 5.0
"""Seconds that the CLI may take to answer an order; it does so within milliseconds when it is alive."""


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
        self._pidfd = -1
        self.pid = 0
        """Process id of the CLI, 0 before it is known."""
        self.lost = ""
        """Why no more messages come; empty while they do."""

    async def open(self, limit: float) -> None:
        """Start the CLI and the reader. Raises ``AgentError`` with the CLI's own words; then nothing is left behind."""
        try:
            async with asyncio.timeout(limit):
                await self._client.connect()
        except TimeoutError:
            raise AgentError(
                f"The agent's program did not start within {limit:g} s. The computer may be very busy: try again, "
                "or raise SANDBOX_CHAT_CONNECT_TIMEOUT."
            ) from None
        except CLINotFoundError as error:
            raise AgentError(f"The agent's program was not found: {clean_line(str(error))}.") from None
        except OSError as error:
            raise AgentError(
                f"The agent's program could not be started: {error.strerror or error}."
            ) from None
        except Exception as error:
            raise AgentError(f"The agent's program could not be started: {_words(error)}") from None
        info = await self._client.get_server_info() or {}
        pid = info.get("pid")
        if isinstance(pid, int) and pid > 1:
            self.pid = pid
            if hasattr(os, "pidfd_open"):  # so that never another process is killed that got the same number
                with contextlib.suppress(OSError):
                    self._pidfd = os.pidfd_open(pid)
        self._reader = asyncio.ensure_future(self._read())

    async def query(self, prompt: str) -> None:
        """Send a prompt. Raises ``AgentError`` when the CLI has gone."""
        try:
            await self._client.query(prompt)
        except Exception as error:
            raise AgentError(_words(error)) from None

    async def interrupt(self) -> None:
        """Stop the running turn. Does nothing when the CLI is idle or gone."""
        try:
            async with asyncio.timeout(CONTROL_TIMEOUT):
                await self._client.interrupt()
        except Exception as error:
            log.warning("the interruption was not taken: %s", _words(error))

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
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1

    def kill(self, reason: str) -> None:
        """End the CLI at once; ``reason`` tells why, if it had not ended by itself."""
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
        reason = "it ended"
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
        if not self._closing:
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
