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
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.turns import Reporter, Turn
from sandbox_chat.events import FileContent, ImageContent, Sink, TurnFinished
from sandbox_chat.settings import Settings
from sandbox_chat.tools.attach import Attachments
from sandbox_chat.tools.context import Ask, ToolContext, take_default
from sandbox_chat.tools.images import picture_saver
from sandbox_chat.tools.news import News

if TYPE_CHECKING:
    from claude_agent_sdk import Message, ResultMessage

    from sandbox_chat.agent.connection import Connection
    from sandbox_chat.agent.connector import Connector
    from sandbox_chat.sandbox.worker import SandboxWorker

__all__ = ["AgentError", "ChatSession", "Endpoint"]

log = logging.getLogger(__name__)

STEP = 0.25
"""Seconds between two looks at a running turn."""
INTERRUPT_AGAIN = 0.4
"""Seconds after which an interruption that came too early to have an effect is sent again."""
INTERRUPT_GRACE = 3.0
"""Seconds after which a CLI that does not react to an interruption is ended and started anew."""
SILENCE_MARGIN = 60.0
"""Seconds on top of a request's own limit after which a CLI that says nothing is taken for dead."""
CONTEXT_TIMEOUT = 1.0
"""Seconds to wait for the account of the context window."""
CONTEXT_TIMEOUT_STOPPED = 0.2
"""The same after an interruption, which is to be over at once."""
LOST_CLOSE = 1.0
"""Seconds to clear away a CLI that was lost."""
CHANGE_CLOSE = 5.0
"""Seconds that a CLI may take to end and save its record before another one goes on with the session."""


class ChatSession:
    """A conversation with the agent over one long-lived CLI.

    ``session_id`` is a UUID; ``resume``: the conversation was begun in an earlier run. ``worker`` is ``None``
    when there is no sandbox. ``save_picture(data, mime, width, height)`` saves a picture of a tool,
    ``save_file(data, mime, title)`` what only another program can show.
    ``emit`` takes the events, on the loop. ``home`` is a private folder for the CLI's files, kept.
    ``earlier`` is the last ``TurnFinished`` of a resumed session: its totals are carried on. ``ask`` asks the user
    for a tool. ``output_dir`` is where the whole output of runs is kept whose answer was cut.
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
    ) -> None:
        self._settings = settings
        self._session_id = session_id
        self._resume = resume
        self._endpoint = endpoint
        self._worker = worker
        self._save_picture = save_picture
        self._save_file = save_file
        self._home = home
        self._report = Reporter(settings, endpoint, emit, Ledger(resumed=resume, earlier=earlier))
        self._report.offered = worker is not None
        self._ask = ask
        self._output_dir = output_dir
        self._news = News(self._report.late_output)
        self.attachments = Attachments(worker, settings, emit, self._news.add)
        self._model = self._model_sent = endpoint.model
        self._connector: Connector | None = None
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._opening: asyncio.Task[Connection] | None = None
        self._queue: deque[Turn] = deque()
        self._current: Turn | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._runner: asyncio.Task[None] | None = None
        self._heard = 0.0
        self._closing = False
        self._closed = asyncio.Event()

    # -- commands --------------------------------------------------------------------------------------

    @property
    def cli_pid(self) -> int:
        """Process id of the CLI that runs now, 0 if none does."""
        return self._connection.pid if self._connection is not None and not self._connection.lost else 0

    async def connect(self) -> None:
        """Start the CLI. Raises ``AgentError`` with a sentence; a later prompt tries again."""
        await self._connected()

    async def send(self, turn_id: str, prompt: str) -> None:
        """Accept a prompt; it runs when those before it are done.

        ``TurnStarted`` comes at once when nothing runs (also while connecting), else when its turn has come, so
        that the events of two turns never mix; ``TurnFinished`` always follows.
        """
        turn = Turn(turn_id, prompt, asyncio.get_running_loop().create_future())
        if self._current is None and not self._queue:
            self._report.begin(turn)
        if self._closing:
            self._report.end(turn, interrupted=True)
            return
        self._queue.append(turn)
        self._wake.set()
        if self._runner is None:
            self._runner = asyncio.ensure_future(self._run())

    async def interrupt(self) -> None:
        """Stop the running turn, or the next one if none has begun. Returns at once; ``TurnFinished`` tells the end."""
        turn = self._current or (self._queue[0] if self._queue else None)
        if turn is None or not turn.sent:
            self.attachments.stop()
        if turn is None or turn.stopped.is_set():
            return
        turn.stopped_at = time.monotonic()
        turn.stopped.set()
        if turn.sent and self._connection is not None:
            turn.stopper = asyncio.ensure_future(self._stop(turn, self._connection))

    async def set_model(self, name: str) -> None:
        """Use another model from the next turn on; an empty name means the CLI's default.

        The CLI is started again for that, with the same session: its own order to change the model would
        send a paid request to try it, and put words about the change into the conversation.
        """
        self._model = name.strip()

    async def close(self) -> None:
        """End the session within ``settings.close_timeout`` seconds. Any number of times."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        limit = self._settings.close_timeout
        deadline = time.monotonic() + limit
        try:
            waiting, self._queue = list(self._queue), deque()
            await self.interrupt()  # so that the partial answer gets into the agent's own record
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, limit / 3)):
                    await self._idle.wait()
            self.attachments.stop()
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.wait({self._opening}, timeout=LOST_CLOSE)
            if self._connection is not None:
                await self._connection.close(max(deadline - time.monotonic() - 0.5, 0.1))
            if self._runner is not None:
                self._runner.cancel()
                await asyncio.wait({self._runner}, timeout=1.0)
            for turn in waiting:
                self._report.end(turn, interrupted=True)
            if self._connector is not None:
                await self._connector.clean_up()
        finally:
            self._report.status("closed")
            self._closed.set()

    # -- connection ------------------------------------------------------------------------------------

    async def _connected(self) -> Connection:
        """Return a living connection, made now if there is none. Raises ``AgentError``."""
        async with self._connecting:
            old = self._connection
            if old is not None and self._usable:
                return old
            if self._closing:
                raise AgentError("The session is closed.")
            if old is not None:
                self._connection = None
                await old.close(LOST_CLOSE if old.lost else CHANGE_CLOSE)
            self._report.status("connecting")
            connector = self._connector = self._connector or self._make_connector()
            model = self._model
            try:
                self._connection = await connector.open(model)
            except AgentError as error:
                text = self._report.scrub(error)
                self._report.status("lost", text)
                raise AgentError(text) from None
            if self._is_closing():  # meanwhile
                await self._connection.close(LOST_CLOSE)
                raise AgentError("The session is closed.")
            self._model_sent = model
            self._report.status("ready")
            return self._connection

    def _is_closing(self) -> bool:
        return self._closing

    @property
    def _usable(self) -> bool:
        """True when the CLI lives and uses the model that is wanted."""
        connection = self._connection
        return connection is not None and not connection.lost and self._model == self._model_sent

    def _make_connector(self) -> Connector:
        """Import what is heavy and make what needs it."""
        from sandbox_chat.agent.connector import Connector
        from sandbox_chat.agent.translate import Translator

        report = self._report
        server = None
        if self._worker is not None:
            from sandbox_chat.tools.server import make_server

            server = make_server(
                ToolContext(
                    worker=self._worker,
                    settings=self._settings,
                    save_picture=picture_saver(self._save_picture),
                    save_file=self._save_file,
                    started=report.tool_started,
                    output=report.tool_output,
                    finished=report.tool_finished,
                    news=self._news,
                    ask=self._ask,
                    progress=report.progress,
                    before=self.attachments.restore,
                    output_dir=self._output_dir,
                ),
                on_listed=self._listed,
            )
        report.translator = Translator(report.calls)
        return Connector(
            self._settings,
            self._endpoint,
            session_id=self._session_id,
            resume=self._resume,
            home=self._home,
            server=server,
            ledger=report.ledger,
            on_message=self._on_message,
            on_lost=self._on_lost,
            notify=report.warn,
            info=self._worker.info if self._worker is not None else None,
        )

    def sandbox_lost(self, reason: str) -> None:
        """The sandbox is gone, with what was in it; ``reason`` is a sentence for the user, empty if they know."""
        self.attachments.gone()
        if reason and not self._closing and not self.attachments.under_way:  # else its own end says it
            self._report.sandbox_lost(reason)

    def _listed(self) -> None:
        self._report.listed = True

    def _on_message(self, message: Message) -> None:
        from claude_agent_sdk import ResultMessage, SystemMessage

        self._heard = time.monotonic()
        turn = self._current
        if turn is None or not turn.sent:
            return  # what comes after a result belongs to no turn
        if isinstance(message, SystemMessage) and message.subtype == "init":
            turn.ready.set()
        self._report.message(message)
        if isinstance(message, ResultMessage) and not turn.result.done():
            turn.result.set_result(message)

    def _on_lost(self, reason: str) -> None:
        if self._closing:
            return
        self._report.status("lost", f"The agent's program ended: {reason}.")
        turn = self._current
        if turn is not None and turn.sent and not turn.result.done():
            turn.result.set_result(None)

    # -- turns -----------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Run the turns one by one, for the whole life of the session."""
        report = self._report
        while True:
            await self._wake.wait()
            while self._queue:
                turn = self._current = self._queue.popleft()
                report.begin(turn)
                self._idle.clear()
                lost = False
                try:
                    lost = await self._turn(turn)
                except asyncio.CancelledError:
                    report.close_blocks(interrupted=True)
                    report.end(turn, interrupted=True, cost_known=not turn.sent)
                    raise
                except Exception as error:
                    log.exception("a turn failed")
                    report.close_blocks(interrupted=False)
                    words = f"The turn failed because of a fault in this program: {report.scrub(error)}."
                    report.end(turn, error=words, cost_known=not turn.sent)
                finally:
                    self._current = None
                    self._idle.set()
                if lost and not self._closing:
                    # Once: when that fails, its words are in the status, and the next prompt tries again.
                    with contextlib.suppress(AgentError):
                        await self._connected()
            self._wake.clear()

    async def _turn(self, turn: Turn) -> bool:
        """Run one turn and tell its end. Returns true when the CLI was lost in it."""
        turn.start = time.monotonic()
        report = self._report
        try:
            connection = await self._unless_stopped(turn)
            if connection is None or not await self._attached(turn):
                report.end(turn, interrupted=True)
                return False
            await self._submit(turn, connection)
        except AgentError as failure:
            report.end(turn, error=f"{str(failure).rstrip('.')}. The prompt was not answered; send it again.")
            return self._connection is not None and bool(self._connection.lost)
        result = await self._result(turn, connection)
        if turn.stopper is not None:
            turn.stopper.cancel()
            await asyncio.wait({turn.stopper})
        if result is None:
            await connection.close(LOST_CLOSE)  # also cancels what our handlers still run
        await report.calls_ended()
        stopped = turn.stopped.is_set()
        report.close_blocks(interrupted=stopped)
        if result is None:
            words = (
                f"The agent's program ended in the middle of the answer ({connection.lost or 'no reason was given'}). "
                "It is started again with the same session; send the prompt again."
            )
            report.end(turn, interrupted=stopped, error="" if stopped else words, cost_known=False)
            return True
        await self._finish(turn, connection, result)
        return False

    async def _unless_stopped(self, turn: Turn) -> Connection | None:
        """Return a living connection, or ``None`` if the turn was interrupted before there was one."""
        if turn.stopped.is_set():
            return None
        if self._connection is not None and self._usable:
            return self._connection
        connecting = self._opening = asyncio.ensure_future(self._connected())
        stopped = asyncio.ensure_future(turn.stopped.wait())
        try:
            await asyncio.wait({connecting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            connecting.cancel()
            raise
        finally:
            stopped.cancel()
        if connecting.done():
            connection = connecting.result()
            return None if turn.stopped.is_set() else connection
        # It goes on: the next prompt will need it.
        connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return None

    async def _attached(self, turn: Turn) -> bool:
        """Wait for the files that are on their way into the sandbox; false if the turn was interrupted meanwhile."""
        if self.attachments.under_way:
            waits = [
                asyncio.ensure_future(self.attachments.settled()),
                asyncio.ensure_future(turn.stopped.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()
        return not turn.stopped.is_set()

    async def _submit(self, turn: Turn, connection: Connection) -> None:
        report = self._report
        assert report.translator is not None and self._connector is not None
        report.translator.begin()
        self._heard = time.monotonic()
        turn.sent = True
        self._connector.recorded = True
        report.forget_answer()
        preface = self.attachments.preface()
        await connection.query(f"{preface}\n\n{turn.prompt}" if preface else turn.prompt)
        self.attachments.told()
        if turn.stopped.is_set() and turn.stopper is None:
            turn.stopper = asyncio.ensure_future(self._stop(turn, connection))

    async def _result(self, turn: Turn, connection: Connection) -> ResultMessage | None:
        """Wait for the turn's result; ``None`` when the CLI was lost, or had to be ended."""
        silence = self._settings.request_timeout + SILENCE_MARGIN
        while not turn.result.done() and not connection.lost:
            await asyncio.wait({turn.result}, timeout=STEP)
            now = time.monotonic()
            if turn.result.done():
                break
            if turn.stopped_at and now - turn.stopped_at > INTERRUPT_GRACE:
                connection.kill("it did not react to the interruption")
            elif now - self._heard > silence and not self._report.calls.handling:
                connection.kill(f"it said nothing for {now - self._heard:.0f} s")
        return turn.result.result() if turn.result.done() else None

    async def _stop(self, turn: Turn, connection: Connection) -> None:
        """Interrupt a turn once the CLI has taken it up, and again until it has ended."""
        await turn.ready.wait()
        while not turn.result.done():
            await connection.interrupt()
            await asyncio.wait({turn.result}, timeout=INTERRUPT_AGAIN)

    async def _finish(self, turn: Turn, connection: Connection, result: ResultMessage) -> None:
        from sandbox_chat.agent.translate import was_aborted

        assert self._connector is not None
        self._connector.remembered = True
        aborted = was_aborted(result)
        context = await connection.context_usage(CONTEXT_TIMEOUT_STOPPED if aborted else CONTEXT_TIMEOUT)
        self._report.finish(turn, result, aborted=aborted, context=context, model=self._model_sent)
