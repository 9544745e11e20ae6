"""One MCP server of a session: started when it is needed, again after it ended, its tools known from the last time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from sandbox_chat.events import Notice, NoticeLevel, ServerChanged, ServerState, ServerTool, Sink
from sandbox_chat.mcp.base import McpError, ServerConfig, ToolDefinition
from sandbox_chat.mcp.connection import STOP, Connection
from sandbox_chat.mcp.kept import config_key, read_tools, write_tools
from sandbox_chat.mcp.secrets import SHORTEST, credentials, scrubbed
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean, clean_line

log = logging.getLogger(__name__)

DESCRIPTION = 500
"""Characters of a tool's description that an event tells."""
STEADY = 60.0
"""Seconds after which a server that ends is not taken for one that ends again and again."""
LONGEST_PAUSE = 30.0
"""Seconds that are waited at most before a server that ends again and again is started."""
RELIST = 1.0
"""Seconds between two times that the tools of a server are listed again because it says that they changed."""
LIST_WAIT = 25.0
"""Seconds that the agent waits for the tools of a server that is being started; its program gives one up after 30."""
LATE = "The MCP server {name} is still starting: its tools are not there before it is ready."
OFF = "The MCP server {name} is switched off. Do not call its tools; the user can switch it on again."


class Managed:
    """``name`` is the server's name as the model knows it; ``tools_file`` is where its tools are kept.

    ``on_tools`` is called when its tools are others than the agent was told. All methods belong to one loop.
    """

    def __init__(
        self,
        config: ServerConfig,
        name: str,
        settings: Settings,
        emit: Sink,
        *,
        log_file: Path,
        tools_file: Path,
        on_tools: Callable[[str], None],
    ) -> None:
        self.config = config
        self.name = name
        self.tools: list[ToolDefinition] = []
        """Its tools as far as they are known."""
        self.credentials = credentials(config)
        """What is kept out of its results."""
        self._settings = settings
        self._emit = emit
        self._log_file = log_file
        self._tools_file = tools_file
        self._key = config_key(config, settings)
        self._on_tools = on_tools
        self._known = False
        self._told: dict[str, str] | None = None  # fingerprints of the tools that the agent was told
        self._off = False
        self._closed = False
        self._state: ServerState = "idle"
        self._text = ""
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._deaths = 0
        self._since = 0.0
        self._said: set[str] = set()

    # -- what is known ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Tell of the server. One whose tools are not known is started, in the background."""
        kept = read_tools(self._tools_file, self._key, self.name)
        if kept is not None and not self._known:
            self.tools, self._known = kept, True
        self._tell("idle")
        if not self._known:
            self._start()

    async def listed(self) -> list[ToolDefinition]:
        """Return its tools, for the agent. One that is started for the first time is waited for; empty when it fails.

        When it is late, its tools are told of as others.
        """
        if not self._known and not self._off and not self._closed:
            try:
                async with asyncio.timeout(LIST_WAIT):
                    await self.connected()
            except McpError:
                log.info("no tools of an MCP server that did not start")
            except TimeoutError:
                self._say(LATE.format(name=self.name), LATE)
        tools = [] if self._off else self.tools
        self._told = _fingerprints(tools)
        return tools

    def scrub(self, text: str) -> str:
        """Return words of a failure, clean and without credentials."""
        values = [*self.credentials, *(value for value in self.config.secrets() if len(value) >= SHORTEST)]
        return clean(self._settings.scrub(scrubbed(text, values)))

    def tool(self, name: str) -> ToolDefinition | None:
        """Return the tool that the model calls ``name``."""
        return next((each for each in self.tools if each.name == name), None)

    @property
    def trouble(self) -> str:
        """Why its tools are not there, as a sentence; empty when they are."""
        if self._off:
            return OFF.format(name=self.name)
        return self.scrub(self._text) if self._state == "failed" and not self.tools else ""

    # -- its life --------------------------------------------------------------------------------------

    async def connected(self) -> Connection:
        """Return its connection; it is started if need be. Raises ``McpError``."""
        while True:
            if self._off:
                raise McpError(OFF.format(name=self.name))
            if self._connection is not None and not self._connection.lost:
                return self._connection
            start = self._start()
            try:
                return await asyncio.shield(start)
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if not start.cancelled() or caller is None or caller.cancelling():
                    raise  # else the start was given up for another one, or for good

    async def restart(self) -> None:
        """End it and start it again."""
        if self._closed:
            return
        self._deaths = 0
        await self._end(STOP)
        self._off = False
        try:
            await self.connected()
        except McpError:
            return  # its state says why

    async def switch(self, on: bool) -> None:
        """Switch it off or on. One that is on is started with its next call, or now if its tools are not known."""
        if self._closed or on is not self._off:
            return
        self._off = not on
        if on:
            self._deaths = 0
            self._tell("idle")
            if not self._known:
                self._start()
        else:
            self._tell("off")
            await self._end(STOP)
        self._compare()

    async def close(self, limit: float) -> None:
        """End it for good, within about ``limit`` seconds."""
        self._closed = True
        await self._end(limit)

    async def _end(self, limit: float) -> None:
        connection, self._connection = self._connection, None
        tasks = [task for task in (self._starting, self._relisting) if task is not None]
        self._starting = self._relisting = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if connection is not None:
            await connection.close(limit)

    def _start(self) -> asyncio.Task[Connection]:
        """Return the task that starts it: all who wait for it share one."""
        if self._closed:
            raise McpError(f"The MCP server {self.name} is closed with the session.")
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._open())
            self._starting.add_done_callback(self._opened)
        return self._starting

    def _opened(self, task: asyncio.Task[Connection]) -> None:
        if self._starting is task:
            self._starting = None
        if (
            not task.cancelled()
            and (error := task.exception()) is not None
            and not isinstance(error, McpError)
        ):
            log.error("an MCP server was not started", exc_info=error)
            self._tell("failed", f"It could not be started ({type(error).__name__}).")

    async def _open(self) -> Connection:
        if self._deaths > 1:
            pause = min(2.0 ** (self._deaths - 2), LONGEST_PAUSE)
            self._tell("starting", f"It ended {self._deaths} times; it is started in {pause:g} s.")
            await asyncio.sleep(pause)
        self._tell("starting")
        self._renew()
        connection = Connection(
            self.config,
            self._settings,
            self._log_file,
            server=self.name,
            on_lost=lambda reason: self._lost(connection, reason),
            on_changed=self._changed,
            on_note=self._note,
        )
        try:
            await connection.open()
        except McpError as error:
            self._deaths += 1
            self._tell("failed", str(error))
            self._say(f"{error} It is tried again when one of its tools is called, or with /mcp.", "failed")
            raise
        except BaseException:
            await connection.close(0.0)
            raise
        self._connection, self._since = connection, time.monotonic()
        self._take(connection)
        self._tell("ready")
        if connection.lost:  # in between
            self._lost(connection, connection.lost)
        return connection

    def _renew(self) -> None:
        """Take how it is started by now. What is wrong with that is said by the start that is tried as before."""
        if self.config.renewed is not None:
            with contextlib.suppress(ConfigError):
                self.config = self.config.renewed()

    def _lost(self, connection: Connection, reason: str) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        self._deaths = 1 if time.monotonic() - self._since > STEADY else self._deaths + 1
        if not self._off and not self._closed:
            self._tell("lost", reason)

    # -- its tools -------------------------------------------------------------------------------------

    def _changed(self) -> None:
        if self._relisting is None and (self._connection or self._starting) is not None:
            self._relisting = asyncio.ensure_future(self._relist())

    async def _relist(self) -> None:
        try:
            await asyncio.sleep(RELIST)
            if self._starting is not None:
                await asyncio.wait({self._starting})
            self._relisting = None  # what changes from here on is listed again
            connection = self._connection
            if connection is None:
                return
            async with asyncio.timeout(self._settings.mcp_start_timeout):
                await connection.refresh()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # it stays as it was; the next call says what is the matter
            log.info("the tools of an MCP server could not be listed again (%s)", error)
            return
        if self._connection is connection:
            self._take(connection)
            self._tell("ready")

    def _take(self, connection: Connection) -> None:
        """Take the tools that a server told."""
        before, self.tools, self._known = _fingerprints(self.tools), connection.tools, True
        if notes := " ".join(connection.notes):
            self._say(f"The MCP server {self.name}: {notes}", notes, level="info")
        if before != _fingerprints(self.tools) or not self._tools_file.exists():
            try:
                write_tools(self._tools_file, self._key, self.tools)
            except OSError as error:
                log.info("the tools of an MCP server could not be kept (%s)", error.strerror)
        self._compare()

    def _compare(self) -> None:
        now = _fingerprints([] if self._off else self.tools)
        if self._told is not None and self._told != now and not self._closed:
            self._told = now
            self._on_tools(self.name)

    # -- what is told ----------------------------------------------------------------------------------

    def _tell(self, state: ServerState, text: str = "") -> None:
        """Tell its state."""
        self._state, self._text = state, clean_line(text, 500)
        self._emit(
            ServerChanged(
                name=self.name,
                place=self.config.place,
                state=state,
                transport=self.config.transport,
                tools=tuple(
                    ServerTool(tool.name, clean_line(tool.original, 100), tool.description[:DESCRIPTION])
                    for tool in self.tools
                ),
                text=self._text,
                log=clean(str(self._log_file)) if self.config.command else "",
            )
        )

    def _note(self, text: str) -> None:
        self._say(f"The MCP server {self.name}: {text}", text)

    def _say(self, text: str, what: str, *, level: NoticeLevel = "warning") -> None:
        """Tell the user a sentence, once in a session."""
        if what not in self._said and len(self._said) < 20 and not self._closed:
            self._said.add(what)
            self._emit(Notice(level=level, text=clean(text)))


def _fingerprints(tools: list[ToolDefinition]) -> dict[str, str]:
    return {tool.name: tool.fingerprint for tool in tools}
