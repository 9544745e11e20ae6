"""A connection to one MCP server: opened within a limit, its tools listed, calls made, closed for certain."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from mcp import MCPError, types
from mcp.client.session import ClientSession
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from sandbox_chat.mcp.base import Endpoint, McpError, ServerConfig, ToolDefinition
from sandbox_chat.mcp.bounded import bounded
from sandbox_chat.mcp.definitions import definitions
from sandbox_chat.mcp.last_words import last_words
from sandbox_chat.mcp.names import server_names
from sandbox_chat.mcp.protocol import CLIENT, listed, result_of, shake_hands, stamped
from sandbox_chat.mcp.secrets import credentials, scrubbed
from sandbox_chat.mcp.stdio import End, ServerProcess
from sandbox_chat.mcp.wire import OWN
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

log = logging.getLogger(__name__)

NOTES = 20
"""Sentences about one list of tools at most."""
STOP = 2.0
"""Seconds that a server may take to end by itself."""
FAREWELL = 0.5
"""Seconds that a server over HTTP may take to answer that the session ends, when it was not ready."""
REASON_WAIT = 0.5
"""Seconds that are waited to learn why a server ended."""
CALLS = 1_000_000
"""The id of the first call; other requests have those that the library gives them, from 1 on."""
SAID = 300
"""Characters of a server's own words in a message."""
_SESSION_UNKNOWN = 404
_NOTHING_THERE = (502, 503, 504)  # the way to a server in a sandbox says that there is none any more
"""Status of a server over HTTP that does not know the session: it was started anew."""


class NotSentError(McpError):
    """A call did not reach the server: it can be made again on a new connection."""


def _nothing(*_: str) -> None:
    """Take no notice."""


class Connection:
    """One server, spoken to over its pipes or over HTTP.

    ``log``: file for what its program writes on its standard error. ``server``: its name as the model knows it.
    ``on_lost`` is called once with the reason when the connection ends by itself, ``on_changed`` when the server says
    that its tools changed, ``on_note`` with a sentence about what it does. All methods belong to one loop.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        log: Path | None = None,
        *,
        server: str = "",
        on_lost: Callable[[str], None] = _nothing,
        on_changed: Callable[[], None] = _nothing,
        on_note: Callable[[str], None] = _nothing,
    ) -> None:
        self._config = config
        self._settings = settings
        self._log = log
        self._server = server or server_names([config.name])[0]
        self._on_lost = on_lost
        self._on_changed = on_changed
        self._on_note = on_note
        self._secrets = config.secrets()
        self._credentials = credentials(config)
        self._limit = int(settings.mcp_result_mb * 1_000_000)
        self._process: ServerProcess | None = None
        self._fault: Callable[[], str] = str
        self._session_over: Callable[[], bool] = bool
        self._away: Callable[[], bool] = bool
        self._dispatcher: JSONRPCDispatcher[Any] | None = None
        self._version = ""
        self._ready: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._over = asyncio.Event()
        self._stop = STOP
        self._numbers = itertools.count(CALLS)
        self._unsent: int | None = None  # the call that was not sent because no connection was made for it
        self.tools: list[ToolDefinition] = []
        """The tools that are offered, in the server's order."""
        self.notes: list[str] = []
        """Sentences about what of its list is not offered."""
        self.lost = ""
        """Why the connection has ended, as a sentence; empty while it stands."""

    # -- life ------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start or reach the server and list its tools. Raises ``McpError``; then nothing of it is left."""
        limit = self._config.start_timeout or self._settings.mcp_start_timeout
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())
        try:
            async with asyncio.timeout(limit):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close(0.0)
            raise self._error(f"was not ready within {limit:g} s (SANDBOX_CHAT_MCP_START_TIMEOUT)") from None
        except BaseException:
            if not self._ready.done():
                await asyncio.shield(self.close(0.0))
            raise

    async def close(self, limit: float = STOP) -> None:
        """End the connection, and the server's program within about ``limit`` seconds. Any number of times."""
        self._stop = limit
        self._closing.set()
        task = self._task
        if task is None:
            return
        early = self._ready is not None and not self._ready.done()
        if early and self._ready is not None:
            self._ready.cancel()
            task.cancel()
        if self._process is None:  # an address: its farewell may never be answered
            await asyncio.wait({task}, timeout=min(limit, FAREWELL) if early else limit)
            while not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=FAREWELL)
        await asyncio.wait({task})

    async def _run(self) -> None:
        """Hold the connection from its beginning to its end: what the library opens must be closed in the same task."""
        failure: BaseException | None = None
        try:
            async with self._streams() as (read, write, ended):
                await self._hold(read, write, ended)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
        except BaseException as error:  # the library's task groups wrap what happened
            failure = _cause(error)
            if not isinstance(failure, Exception):
                raise
        assert self._ready is not None
        if not self._ready.done():
            self._ready.set_exception(self._not_opened(failure))
        elif not self._ready.cancelled():
            if self._process is None:
                from sandbox_chat.mcp.http import not_sent

                self._unsent = not_sent(failure)
            self._lose(self._ended(failure))
        self._dispatcher = None

    def _lose(self, why: McpError) -> None:
        """The connection ends by itself. Once only, and not while it is closed."""
        if self.lost or self._closing.is_set():
            return
        self.lost = str(why)
        self._dispatcher = None
        self._on_lost(self.lost)

    async def _hold(self, read: Any, write: Any, ended: asyncio.Event) -> None:
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*bounded(read, write))
        session = ClientSession(dispatcher=dispatcher, message_handler=self._on_message, client_info=CLIENT)
        async with session:
            await shake_hands(session)
            self._dispatcher, self._version = dispatcher, session.protocol_version or ""
            await self.refresh()
            assert self._ready is not None
            if not self._ready.done():
                self._ready.set_result(None)
            await _first(self._closing, self._over, ended)

    @contextlib.asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any, asyncio.Event]]:
        config = self._config
        if not config.command:
            from sandbox_chat.mcp.http import Seen, http_streams, words_of

            endpoint = config.endpoint or await self._resolved()
            self._secrets += [value.reveal() for value in endpoint.headers.values()]
            seen = Seen()
            self._fault = lambda: words_of(seen)
            self._session_over = lambda: seen.status == _SESSION_UNKNOWN
            self._away = lambda: config.resolve is not None and seen.status in _NOTHING_THERE
            async with http_streams(endpoint, seen, limit=self._limit) as (read, write):
                yield read, write, asyncio.Event()
            return
        process = ServerProcess(
            config,
            self._log,
            limit=self._limit,
            log_limit=int(self._settings.mcp_log_mb * 1_000_000),
            note=self._on_note,
        )
        self._process = process
        self._fault = lambda: process.fault
        try:
            read, write = await process.start()
            yield read, write, process.ended
        finally:
            await process.stop(self._stop)

    async def _resolved(self) -> Endpoint:
        assert self._config.resolve is not None
        return await self._config.resolve()

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_changed()

    # -- tools -----------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """List the tools again. Raises ``McpError`` or the library's errors; then the list is as before."""
        found, notes = await listed(lambda params: self._request("tools/list", params))
        tools, more = await asyncio.to_thread(
            definitions, self._server, found, lambda text: scrubbed(text, self._credentials)
        )
        notes += more
        if len(notes) > NOTES:
            notes[NOTES - 1 :] = [f"{len(notes) - NOTES + 1} more of its tools are not offered."]
        self.tools, self.notes = tools, [self.scrub(note) for note in notes]

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limit: float | None = None
    ) -> types.CallToolResult:
        """Call the tool that the server itself calls ``name``. Cancelling tells the server, and returns at once.

        Raises ``McpError`` when it refuses, takes longer than ``limit`` seconds, or ends; ``NotSentError`` when it
        never got the call.
        """
        limit = limit or self._config.call_timeout or self._settings.mcp_call_timeout
        number = next(self._numbers)
        try:
            async with asyncio.timeout(limit):
                found = await self._request(
                    "tools/call", {"name": name, "arguments": dict(arguments)}, number
                )
        except TimeoutError:
            raise self._error(
                f"did not answer within {limit:g} s, and the call was cancelled (SANDBOX_CHAT_MCP_CALL_TIMEOUT)"
            ) from None
        except MCPError as error:
            raise await self._refused(error, number) from None
        if found.get("resultType") == "input_required":
            raise self._error("wants to ask something before it answers, which is not offered to servers")
        return result_of(found)

    async def _request(
        self, method: str, params: dict[str, Any], number: int | None = None
    ) -> dict[str, Any]:
        """Send a request, with ``number`` as its id, and return its result as it came.

        Raises ``McpError``, or ``MCPError`` of the library.
        """
        dispatcher = self._dispatcher
        if dispatcher is None:
            raise McpError(self.lost or f"The MCP server {self._name} is not connected.")
        params, options = stamped(self._version, method, params, self.tools)
        if number is not None:
            options["request_id"] = number
        return await dispatcher.send_raw_request(method, params, options)

    # -- words -----------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return clean_line(self._config.name, 64)

    def scrub(self, text: str) -> str:
        """Return a text without the credentials of the server and of the program."""
        for value in sorted(self._secrets, key=len, reverse=True):
            if len(value) >= 4:
                text = text.replace(value, "[secret]")
        return self._settings.scrub(text)

    def _error(self, words: str) -> McpError:
        said = self._end_said()
        return McpError(f"The MCP server {self._name} {words}.{said}")

    def _end_said(self) -> str:
        end = self._process.end if self._process is not None else End()
        words = clean_line(self.scrub(" / ".join(last_words(end.tail))), 10 * SAID)
        if len(words) > SAID:
            words = "…" + words[1 - SAID :]
        return f" It says: {words}" if words else ""

    def _not_opened(self, failure: BaseException | None) -> McpError:
        process = self._process
        if process is not None and process.end.problem:
            return McpError(
                f"The MCP server {self._name} cannot be started: {clean_line(process.end.problem)}."
            )
        if isinstance(failure, McpError):
            return McpError(f"The MCP server {self._name} cannot be started: {self.scrub(str(failure))}")
        fault = self._fault()
        if fault:
            return McpError(f"The MCP server {self._name} cannot be used. {fault}{self._end_said()}")
        if isinstance(failure, MCPError) and failure.code == OWN:
            return McpError(
                f"The MCP server {self._name} cannot be used. {failure.message}{self._end_said()}"
            )
        if isinstance(failure, MCPError) and failure.code != types.CONNECTION_CLOSED:
            return self._error(f"refused to begin ({self._short(failure)})")
        if process is not None:
            return self._error(f"{_how(process)} before it was ready")
        return self._error(f"cannot be reached ({self._short(failure)})")

    def _ended(self, failure: BaseException | None) -> McpError:
        fault = self._fault()
        if fault:
            return McpError(f"The MCP server {self._name} was given up. {fault}{self._end_said()}")
        if self._process is not None:
            return self._error(_how(self._process))
        return self._error(f"cannot be reached any more ({self._short(failure)})")

    async def _refused(self, error: MCPError, number: int) -> McpError:
        if error.code == types.CONNECTION_CLOSED:
            assert self._task is not None
            await asyncio.wait({self._task}, timeout=REASON_WAIT)
            if self._process is None and not self.lost:
                return self._error(f"did not answer the call ({self._short(error)})")
            words = self.lost or f"The MCP server {self._name} ended before it answered."
            return NotSentError(words) if number == self._unsent else McpError(words)
        if error.code == OWN:
            return McpError(f"The MCP server {self._name} did not answer the call. {error.message}")
        if self._session_over():
            assert self._task is not None
            self._lose(self._error("does not know this session any more"))
            self._over.set()
            asyncio.get_running_loop().call_later(
                STOP, self._task.cancel
            )  # its farewell may never be answered
            return NotSentError(self.lost)
        away = self._away()
        if fault := self._fault():
            said = McpError(f"The MCP server {self._name} did not answer the call. {fault}")
            if away:  # the next call asks for its address again
                assert self._task is not None
                self._lose(said)
                self._over.set()
                asyncio.get_running_loop().call_later(STOP, self._task.cancel)
            return said
        if error.code == types.PARSE_ERROR and self._process is None:
            return self._error("gave an answer that is none of the protocol")
        return self._error(f"refused the call: {self._short(error)}")

    def _short(self, error: BaseException | None) -> str:
        words = clean_line(self.scrub(str(error or "")), SAID)
        return words.rstrip(".") or type(error).__name__


async def _first(*events: asyncio.Event) -> None:
    """Wait for the first of some events."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _cause(error: BaseException) -> BaseException:
    """Return what happened within the groups that the library's tasks wrap it in."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _how(process: ServerProcess) -> str:
    """Say how a server's program ended by itself."""
    status = process.end.status
    if process.ordered or status is None:
        return "closed its standard output"
    if status < 0:
        return f"was killed by signal {-status}"
    return f"ended with status {status}"
