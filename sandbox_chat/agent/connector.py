"""Makes the connections of a session: the first, and new ones to the same session when a CLI was lost.

Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from claude_agent_sdk import Message

from sandbox_chat.agent.connection import Connection
from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError, not_started
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.options import Folders, build_options
from sandbox_chat.agent.totals import Totals, saved_totals
from sandbox_chat.sandbox.base import SandboxInfo
from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line

log = logging.getLogger(__name__)

NOT_FOUND = "No conversation found"
IN_USE = "is already in use"
EXITED = "Command failed with exit code"
"""How the SDK tells that the CLI ended at once; the reason is on its standard error."""
WAYS = 3
"""Tries to start a CLI with the session: to begin it, to resume it, to begin it with its file set aside."""
STDERR_LINES = 5
"""Lines of the CLI's standard error that are kept; the last one is quoted when it does not start."""
FORGOTTEN = (
    "The agent's own record of this conversation was not found, so it does not know what was said before. "
    "Tell it again what matters."
)


class Connector:
    """Knows how to start a CLI for one session.

    ``resume``: the session was begun in an earlier run of the program. ``servers`` are the in-process MCP servers by name.
    ``notify`` takes a sentence for the user. ``info`` tells where code runs, ``None`` without a sandbox.
    """

    def __init__(
        self,
        settings: Settings,
        endpoint: Endpoint,
        *,
        session_id: str,
        resume: bool,
        home: Path,
        servers: Mapping[str, Any],
        ledger: Ledger,
        on_message: Callable[[Message], None],
        on_lost: Callable[[str], None],
        notify: Callable[[str], None],
        info: SandboxInfo | None = None,
    ) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._session_id = session_id
        self._new_run = resume
        self._home = home
        self._temp: Scratch | None = None
        self._servers = servers
        self._ledger = ledger
        self._on_message = on_message
        self._on_lost = on_lost
        self._notify = notify
        self._info = info
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.recorded = resume
        """Whether the CLI should have a record of the session: set when a prompt was sent."""
        self.remembered = resume
        """Whether that record holds an answer, so that its loss matters: set when a turn has ended."""

    async def open(self, controls: Controls, *, budget: float | None = None) -> Connection:
        """Start a CLI that goes on with the session and may spend ``budget`` dollars. Raises ``AgentError``.

        The CLI refuses to resume a session of which it saved nothing (it was killed too early), and
        refuses to begin one that it has a file of. Then the other way is tried, and a file without a
        conversation is set aside.
        """
        await asyncio.to_thread(self._make_folders)
        resume = self.recorded
        for _ in range(WAYS):
            try:
                return await self._open(controls, budget, resume=resume)
            except AgentError as error:
                words = str(error)
                if resume and NOT_FOUND in words:
                    resume = False
                    await asyncio.to_thread(self._set_record_aside)
                    if self.remembered:
                        self.remembered = False
                        self._notify(FORGOTTEN)
                elif not resume and IN_USE in words:
                    resume = True
                else:
                    raise
        return await self._open(controls, budget, resume=resume)

    def begin_anew(self) -> str:
        """Let the next CLI begin another conversation, and return its id."""
        self._session_id = str(uuid.uuid4())
        self.recorded = self.remembered = self._new_run = False
        return self._session_id

    async def clean_up(self) -> None:
        """Remove the temporary folder."""
        if self._temp is not None:
            temp, self._temp = self._temp, None
            await asyncio.to_thread(temp.remove)

    async def _open(self, controls: Controls, budget: float | None, *, resume: bool) -> Connection:
        folders = self._folders()
        options = build_options(
            self._settings,
            self._endpoint,
            folders,
            session_id=self._session_id,
            resume=resume,
            new_run=self._new_run,
            servers=self._servers,
            info=self._info,
            controls=controls,
            budget=budget,
            on_stderr=self._log_line,
        )
        totals: Totals | None = Totals()
        if resume:
            totals = await asyncio.to_thread(saved_totals, self._config(folders), self._session_id)
        connection = Connection(options, on_message=self._on_message, on_lost=self._on_lost)
        self._stderr.clear()
        try:
            await connection.open(self._settings.connect_timeout)
        except AgentError as error:
            if EXITED in str(error) and self._stderr:
                raise not_started(self._stderr[-1]) from None
            raise
        self._ledger.start_from(totals)
        return connection

    def _make_folders(self) -> None:
        try:
            if self._temp is None or not self._temp.path.is_dir():
                self._temp = Scratch()
        except OSError as error:
            raise AgentError(
                f"No temporary folder can be made ({error.strerror}), and the agent needs one. "
                "Make room, or set TMPDIR to a folder that can be written."
            ) from None
        self._folders().make()

    def _folders(self) -> Folders:
        assert self._temp is not None
        return Folders(home=self._home, temp=self._temp.path)

    def _config(self, folders: Folders) -> Path:
        """The CLI's configuration folder, where its records of sessions are."""
        if not self._endpoint.use_login:
            return folders.config
        own = os.environ.get("CLAUDE_CONFIG_DIR")
        return Path(own) if own else Path.home() / ".claude"

    def _set_record_aside(self) -> None:
        """Rename the CLI's file of the session, which holds no conversation."""
        for path in (self._config(self._folders()) / "projects").glob(f"*/{self._session_id}.jsonl"):
            with contextlib.suppress(OSError):  # then the CLI refuses again, and says why
                path.replace(path.with_suffix(".jsonl.unused"))

    def _log_line(self, line: str) -> None:
        text = clean_line(self._settings.scrub(line), 1000)
        log.info("agent: %s", text)
        self._stderr.append(text)
