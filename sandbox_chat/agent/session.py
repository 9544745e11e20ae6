"""The session with the agent: prompts go in one by one, events come out.

Light to import: the SDK and the MCP library are imported when the session connects, which is to
happen on the engine's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.agent.controls import Controls, first_controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError
from sandbox_chat.agent.link import LOST_CLOSE, Link
from sandbox_chat.agent.running import Runner
from sandbox_chat.agent.turn import Turn
from sandbox_chat.agent.turns import make_reporter
from sandbox_chat.events import Event, FileContent, ImageContent, Sink, TurnFinished
from sandbox_chat.last_prompt import COMPACT
from sandbox_chat.phases import Machine
from sandbox_chat.settings import Settings
from sandbox_chat.tools.attach import Attachments
from sandbox_chat.tools.context import (
    Ask,
    CallContext,
    CodeMode,
    OtherServers,
    Private,
    ToolContext,
    take_default,
)
from sandbox_chat.tools.images import picture_saver
from sandbox_chat.tools.news import News
from sandbox_chat.tools.schemas import SERVER_NAME

if TYPE_CHECKING:
    from claude_agent_sdk import Message

    from sandbox_chat.agent.connector import Connector
    from sandbox_chat.sandbox.worker import SandboxWorker

__all__ = ["AgentError", "ChatSession", "Endpoint"]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Errand:
    """Something that is done between two turns. ``done`` tells its end."""

    action: Callable[[], Awaitable[None]]
    done: asyncio.Future[None]


class ChatSession:
    """A conversation with the agent over one long-lived CLI.

    ``session_id`` is the agent's own id of the conversation, a UUID; ``resume``: it was begun in an earlier run.
    ``worker`` is ``None`` when there is no sandbox. ``save_picture(data, mime, width, height)`` saves a picture of a
    tool, ``save_file(data, mime, title)`` what only another program can show.
    ``emit`` takes the events, on the loop. ``home`` is a private folder for the CLI's files, kept.
    ``earlier`` is the last ``TurnFinished`` of a resumed session: its totals are carried on. ``ask`` asks the user
    for a tool. ``output_dir`` is where the whole output of runs is kept whose answer was cut.
    ``others`` are the MCP servers beside the sandbox's tools.
    ``code_mode`` lets code call their tools, ``private`` hides personal data in what tools give.
    ``budget`` is the session's own limit in dollars, ``None``: the setting's, and so ``controls``.
    All methods belong to one loop.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        session_id: str,
        resume: bool,
        endpoint: Endpoint,
        worker: SandboxWorker | None,
        save_picture: Callable[[bytes, str, int, int], ImageContent],
        save_file: Callable[[bytes, str, str], FileContent],
        emit: Sink,
        home: Path,
        earlier: TurnFinished | None = None,
        ask: Ask = take_default,
        output_dir: Path | None = None,
        budget: float | None = None,
        others: OtherServers | None = None,
        controls: Controls | None = None,
        code_mode: CodeMode | None = None,
        private: Private | None = None,
    ) -> None:
        self._settings = settings
        self._session_id = session_id
        self._resume = resume
        self._endpoint = endpoint
        self._worker = worker
        self._save_picture = save_picture
        self._save_file = save_file
        self._sink = emit
        self._home = home
        self._ask = ask
        self._output_dir = output_dir
        self._others = others
        self._code_mode = code_mode
        self._private = private
        self.machine = Machine()
        """What the session is doing; see ``phases.py``."""
        self._report = make_reporter(
            settings, endpoint, self.emit, resumed=resume, earlier=earlier, limit=budget
        )
        self._report.offered = worker is not None
        self._news = News(self._report.late_output, private)
        self.attachments = Attachments(worker, settings, self.emit, self._news.add)
        self._link = Link(
            settings,
            self._report,
            controls or first_controls(endpoint.model, settings),
            self._make_connector,
        )
        self._runner = Runner(settings, self._report, self._link, self.attachments, self.machine)
        self._queue: deque[Turn | _Errand] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._loop: asyncio.Task[None] | None = None
        self._closing = False
        self._closed = asyncio.Event()

    def emit(self, event: Event) -> None:
        """Give out an event of this session, after its machine has taken it."""
        odd = self.machine.odd
        self.machine.apply(event)
        if self.machine.odd != odd:
            log.info("an event out of place: %s", self.machine.oddity)
        self._sink(event)

    # -- commands --------------------------------------------------------------------------------------

    @property
    def cli_pid(self) -> int:
        """Process id of the CLI that runs now, 0 if none does."""
        return self._link.pid

    @property
    def models(self) -> list[dict[str, Any]]:
        """The models that the CLI offers, as it describes them; empty before it runs."""
        return self._link.connection.models if self._link.connection is not None else []

    async def connect(self) -> None:
        """Start the CLI. Raises ``AgentError`` with a sentence; a later prompt tries again."""
        await self._link.open()

    async def send(self, turn_id: str, prompt: str) -> None:
        """Accept a prompt; it runs when those before it are done.

        ``TurnStarted`` comes at once when nothing runs (also while connecting), else when its turn has come, so
        that the events of two turns never mix; ``TurnFinished`` always follows.
        """
        self._accept(Turn(turn_id, prompt, asyncio.get_running_loop().create_future()))

    async def steer(self, turn_id: str, prompt: str) -> None:
        """Send a prompt into the running turn, which takes it up; without one that can, it is a turn of its own.

        ``Steered`` tells the first; ``turn_id`` is the id in the other case.
        """
        if not await self._runner.steer(prompt):
            await self.send(turn_id, prompt)

    async def interrupt(self) -> None:
        """Stop the running turn, or the next one if none has begun. Returns at once; ``TurnFinished`` tells the end."""
        waiting = next((each for each in self._queue if isinstance(each, Turn)), None)
        self._runner.interrupt(self._runner.turn or waiting)

    async def set_model(self, name: str) -> None:
        """Use another model from the next turn on; an empty name means the CLI's default."""
        await self.set_controls(model=name)

    async def set_controls(
        self, *, model: str | None = None, effort: str | None = None, thinking: str | None = None
    ) -> None:
        """Use another model, effort or thinking from the next turn on, as in the settings; ``None``: as it is.

        The CLI is started again for that, with the same session: its own order to change the model would
        send a paid request to try it, and put words about the change into the conversation.
        """
        self._link.controls = self._link.controls.changed(model=model, effort=effort, thinking=thinking)
        self._report.controls(self._link.controls)

    async def set_budget(self, limit: float) -> None:
        """Let the session cost ``limit`` dollars in all, its earlier runs included; 0: no limit."""
        self._report.budget.change(limit)

    async def clear(self) -> None:
        """Let the agent forget what was said, as soon as the turns before have ended; ``Cleared`` tells it.

        The sandbox and the record of the session stay.
        """
        done = asyncio.get_running_loop().create_future()
        self._accept(_Errand(self._clear, done))
        await done

    def renew_tools(self, server: str) -> None:
        """Let the agent see the tools that an MCP server has now, as soon as the turns before have ended."""
        done = asyncio.get_running_loop().create_future()
        self._accept(_Errand(lambda: self._renew_tools(server), done))

    async def compact(self, turn_id: str, wish: str = "") -> None:
        """Replace what the agent remembers by a summary, as a turn of its own; ``wish`` says what matters in it."""
        order = f"{COMPACT} {' '.join(wish.split())}".strip()
        turn = Turn(turn_id, order, asyncio.get_running_loop().create_future(), order=True)
        self._accept(turn)

    async def close(self) -> None:
        """End the session within ``settings.close_timeout`` seconds. Any number of times."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = self._runner.closing = True
        limit = self._settings.close_timeout
        deadline = time.monotonic() + limit
        try:
            waiting, self._queue = list(self._queue), deque()
            self._runner.interrupt(
                self._runner.turn
            )  # so that the partial answer gets into the agent's own record
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, limit / 3)):
                    await self._idle.wait()
            self.attachments.stop()
            await self._runner.stop_opening(LOST_CLOSE)
            await self._link.close(max(deadline - time.monotonic() - 0.5, 0.1))
            if self._loop is not None:
                self._loop.cancel()
                await asyncio.wait({self._loop}, timeout=1.0)
            for each in waiting:
                if isinstance(each, Turn):
                    self._report.end(each, interrupted=True)
                else:
                    each.done.cancel()
        finally:
            self._report.status("closed")
            self._closed.set()

    def sandbox_lost(self, reason: str) -> None:
        """The sandbox is gone, with what was in it; ``reason`` is a sentence for the user, empty if they know."""
        self.attachments.gone()
        if reason and not self._closing and not self.attachments.under_way:  # else its own end says it
            self._report.sandbox_lost(reason)

    # -- one after the other ---------------------------------------------------------------------------

    def _accept(self, item: Turn | _Errand) -> None:
        """Put a turn or an errand in line."""
        if isinstance(item, Turn) and self._idle.is_set() and not self._queue:
            self._report.begin(item)
        if self._closing:
            if isinstance(item, Turn):
                self._report.end(item, interrupted=True)
            else:
                item.done.cancel()
            return
        self._queue.append(item)
        self._wake.set()
        if self._loop is None:
            self._loop = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        """Do what is in line one by one, for the whole life of the session."""
        while True:
            await self._wake.wait()
            while self._queue:
                item = self._queue.popleft()
                self._idle.clear()
                try:
                    if isinstance(item, Turn):
                        await self._runner.run(item)
                    else:
                        await self._do(item)
                finally:
                    self._idle.set()
            self._wake.clear()

    async def _do(self, errand: _Errand) -> None:
        try:
            await errand.action()
        except asyncio.CancelledError:
            errand.done.cancel()
            raise
        except Exception as error:
            if not errand.done.done():
                errand.done.set_exception(error)
        else:
            if not errand.done.done():
                errand.done.set_result(None)

    async def _clear(self) -> None:
        agent_id = await self._link.forget()
        self._report.cleared(agent_id)
        self._link.revive()

    async def _renew_tools(self, server: str) -> None:
        with contextlib.suppress(AgentError):  # then they are listed when the CLI is started
            await (await self._link.open()).renew_tools(server)

    # -- connection ------------------------------------------------------------------------------------

    def _make_connector(self) -> Connector:
        """Import what is heavy and make what needs it."""
        from sandbox_chat.agent.connector import Connector
        from sandbox_chat.agent.translate import Translator

        report = self._report
        servers: dict[str, Any] = {}
        surroundings: dict[str, Any] = {
            "settings": self._settings,
            "save_picture": picture_saver(self._save_picture),
            "save_file": self._save_file,
            "started": report.tool_started,
            "finished": report.tool_finished,
            "ask": self._ask,
            "progress": report.progress,
            "running": self._runner.tasks,
            "private": self._private,
        }
        if self._worker is not None:
            from sandbox_chat.tools.server import make_server

            context = ToolContext(
                **surroundings,
                worker=self._worker,
                output=report.tool_output,
                news=self._news,
                before=self.attachments.restore,
                output_dir=self._output_dir,
                code_mode=self._code_mode,
            )
            servers[SERVER_NAME] = make_server(context, on_listed=self._listed)
        if self._others is not None:
            offered = self._others.attach(CallContext(**surroundings))
            if self._settings.code_mode != "on":  # then code calls them
                servers.update(offered)
        report.translator = Translator(report.calls)
        return Connector(
            self._settings,
            self._endpoint,
            session_id=self._session_id,
            resume=self._resume,
            home=self._home,
            servers=servers,
            ledger=report.ledger,
            on_message=self._on_message,
            on_lost=self._runner.lost,
            notify=report.warn,
            info=self._worker.info if self._worker is not None else None,
        )

    def _listed(self) -> None:
        self._report.listed = True

    def _on_message(self, message: Message) -> None:
        self._runner.take(message)
