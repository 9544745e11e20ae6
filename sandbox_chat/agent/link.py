"""The agent's program of a session: started when it is needed, and again with other controls or when it was lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.errors import AgentError, Trouble, loss_trouble, scrubbed, trouble
from sandbox_chat.agent.turns import Reporter
from sandbox_chat.agent.watch import Losses
from sandbox_chat.settings import Settings

if TYPE_CHECKING:
    from sandbox_chat.agent.connection import Connection
    from sandbox_chat.agent.connector import Connector

log = logging.getLogger(__name__)

LOST_CLOSE = 1.0
"""Seconds to clear away a CLI that was lost."""
CHANGE_CLOSE = 5.0
"""Seconds that a CLI may take to end and save its record before another one goes on with the session."""
LEFT_STEP = 0.02
"""Seconds between two looks whether a process has ended."""


class Link:
    """Holds the connection to the CLI. ``controls`` are those that are wanted; they count from the next turn on.

    ``make_connector`` imports what is heavy. All methods belong to one loop.
    """

    def __init__(
        self,
        settings: Settings,
        report: Reporter,
        controls: Controls,
        make_connector: Callable[[], Connector],
    ) -> None:
        self._settings = settings
        self._report = report
        self._make_connector = make_connector
        self.controls = controls
        self.in_force = controls
        """The controls of the CLI that runs, or of the last one."""
        self.connection: Connection | None = None
        self.settling: asyncio.Task[None] | None = None
        """Waits for the end of a turn that was told already: until then the CLI takes no prompt."""
        self.losses = Losses(settings.restart_limit)
        self._limit: float | None = None  # in dollars, that the CLI keeps
        self._connector: Connector | None = None
        self._opening = asyncio.Lock()
        self._reviving: asyncio.Task[None] | None = None
        self._leaving: dict[asyncio.Task[None], Connection] = {}
        self._closed = False

    @property
    def pid(self) -> int:
        """Process id of the CLI that runs now, 0 if none does."""
        return self.connection.pid if self.connection is not None and not self.connection.gone else 0

    @property
    def connector(self) -> Connector:
        """What makes the connections; imports the SDK at the first use."""
        self._connector = self._connector or self._make_connector()
        return self._connector

    @property
    def usable(self) -> bool:
        """True when a CLI lives that uses the controls that are wanted and keeps the limit that it should."""
        connection = self.connection
        return (
            connection is not None
            and not connection.gone
            and self.controls == self.in_force
            and self._limit == self._report.budget.for_program(self.controls.model)
            and (self.settling is None or self.settling.done())
        )

    async def open(self) -> Connection:
        """Return a living connection, made now if there is none. Raises ``AgentError``, whose words were told as status."""
        async with self._opening:
            if self.settling is not None:
                await asyncio.wait({self.settling})
            old = self.connection
            if old is not None and self.usable:
                return old
            self._check()
            if old is not None:
                self.drop(old, limit=LOST_CLOSE if old.gone else CHANGE_CLOSE)
            self._report.status("connecting")
            controls, budget = self.controls, self._report.budget
            limit = budget.for_program(controls.model)
            try:
                await self._left()
                self.connection = await self.connector.open(controls, budget=limit and budget.left)
            except AgentError as error:
                failure = scrubbed(error, self._settings)
                self._report.status("lost", str(failure))
                raise failure from None
            if self._closed:  # meanwhile
                await self.connection.close(LOST_CLOSE)
                await self.connector.clean_up()
            self._check()
            self.in_force, self._limit = controls, limit
            self._report.status("ready")
            return self.connection

    def drop(self, connection: Connection, *, limit: float = LOST_CLOSE) -> None:
        """Let a connection go; its CLI gets ``limit`` seconds to end. Returns at once."""
        if self.connection is connection:
            self.connection = None
        task = asyncio.ensure_future(connection.close(limit))
        self._leaving[task] = connection
        task.add_done_callback(self._dropped)

    def lost(self, reason: str) -> None:
        """The CLI ended by itself."""
        self.losses.add(reason)
        self._report.status("lost", f"The agent's program ended: {reason}.")

    def revive(self, *, idle: str = "") -> None:
        """Start the CLI again in the background, unless it ended too often. ``idle``: why it ended while nothing ran.

        When that fails, its words are in the status, and the next prompt tries again.
        """
        if self._closed or (self._reviving is not None and not self._reviving.done()):
            return
        if not self.losses.too_many:
            self._reviving = asyncio.ensure_future(self._revive(idle))
        elif idle:
            self._report.tell("error", self.given_up)

    @property
    def given_up(self) -> Trouble:
        """What is said when the CLI is not started again by itself."""
        reason, count = loss_trouble(self.losses.reason, self._settings), self.losses.count
        about = dict(reason.about).get("reason") or self.losses.reason
        return trouble("cli_given_up", self._settings, reason=about, count=count)

    async def forget(self) -> str:
        """Let the agent begin a new conversation, and return its id. The CLI is started with the next ``open``."""
        async with self._opening:
            if self.settling is not None:  # what is told of it yet is of the old conversation
                await asyncio.wait({self.settling})
            if self.connection is not None:
                self.drop(self.connection, limit=CHANGE_CLOSE)
            await self._left()
            return self.connector.begin_anew()

    async def close(self, limit: float) -> None:
        """End the CLI within ``limit`` seconds, for good."""
        self._closed = True
        tasks = {task for task in (self._reviving, self.settling) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LOST_CLOSE)
        if self.connection is not None:
            await self.connection.close(limit)
        if self._leaving:
            await asyncio.wait(set(self._leaving), timeout=LOST_CLOSE)
        if self._connector is not None:
            await self._connector.clean_up()

    def _check(self) -> None:
        if self._closed:
            raise AgentError("The session is closed.")

    async def _revive(self, idle: str) -> None:
        with contextlib.suppress(AgentError):
            await self.open()
            if idle:
                self._report.tell("info", trouble("cli_again", self._settings, reason=idle))

    async def _left(self) -> None:
        """Wait until the processes of connections that were let go have ended: two must not write one record."""
        while any(not connection.ended for connection in self._leaving.values()):
            await asyncio.wait(set(self._leaving), timeout=LEFT_STEP, return_when=asyncio.FIRST_COMPLETED)

    def _dropped(self, task: asyncio.Task[None]) -> None:
        self._leaving.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a connection was not closed cleanly: %s", type(error).__name__)
