"""Runs one turn at a time: sends its prompt, follows it to its end, stops it when the user says so."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal

from sandbox_chat.agent.errors import AgentError, loss_trouble, trouble, unanswered
from sandbox_chat.agent.link import Link
from sandbox_chat.agent.turn import Turn
from sandbox_chat.agent.turns import Reporter
from sandbox_chat.agent.watch import Watch, wall_clock
from sandbox_chat.phases import Machine
from sandbox_chat.settings import Settings
from sandbox_chat.tools.attach import Attachments

if TYPE_CHECKING:
    from claude_agent_sdk import Message, ResultMessage

    from sandbox_chat.agent.connection import Connection

log = logging.getLogger(__name__)

STEP = 0.25
"""Seconds between two looks at a running turn."""
LAG_STEP = 0.05
"""Seconds between two looks at an interrupted turn. By how much they come too late, the CLI may be late too."""
INTERRUPT_AGAIN = 0.15
"""Seconds after which an interruption that came too early to have an effect is sent again."""
STOPPER_WAIT = 0.05
"""Seconds to wait for the answer to an interruption whose turn has ended meanwhile."""
STOP_LIMIT = 0.85
"""Seconds after an interruption in which a turn is over for the user, whatever still has to come to its end."""
SETTLE = 5.0
"""Seconds that a CLI which reacts may take to end a turn that is over for the user already."""
TOOL_GRACE = 1.5
"""Seconds that tool calls may take to end after their turn: the sandbox kills what does not stop within 1 s."""
CONTEXT_TIMEOUT = 1.0
"""Seconds to wait for the account of the context window."""
CONTEXT_TIMEOUT_STOPPED = 0.1
"""The same after an interruption, which is to be over at once."""
STEER_WAIT = 3.0
"""Seconds after a result in which the CLI must take up a prompt that was sent into the turn; it does so at once."""
TRIES = 3
"""How often a prompt is given to a new CLI because the one before had ended when its turn came."""

End = Literal["result", "lost", "late"]


class Runner:
    """Knows the turn that runs. All methods belong to one loop."""

    def __init__(
        self, settings: Settings, report: Reporter, link: Link, attachments: Attachments, machine: Machine
    ) -> None:
        self._settings = settings
        self._report = report
        self._link = link
        self._attachments = attachments
        self._machine = machine
        self._watch = Watch(settings, wall=wall_clock)
        self._opening: asyncio.Task[Connection] | None = None
        self._late: Turn | None = None
        self.turn: Turn | None = None
        """The turn that runs."""
        self.closing = False
        self.tasks: set[asyncio.Task[Any]] = set()
        """The tool calls that our handlers run."""

    # -- from outside ----------------------------------------------------------------------------------

    async def run(self, turn: Turn) -> None:
        """Run one turn and tell its end, whatever happens."""
        self.turn = turn
        report = self._report
        report.begin(turn)
        try:
            await self._run(turn)
        except asyncio.CancelledError:
            report.close_blocks(interrupted=True)
            report.end(turn, interrupted=True, cost_known=not turn.sent)
            raise
        except Exception as error:
            log.exception("a turn failed")
            # Nothing of it may go on, or end the next turn.
            if turn.sent and self._link.connection is not None:
                self._link.connection.kill("the turn failed")
                self._link.drop(self._link.connection)
                self._link.revive()
            report.close_blocks(interrupted=False)
            fault = trouble("fault", self._settings, reason=report.scrub(error))
            report.end(turn, error=fault, cost_known=not turn.sent)
        finally:
            self.turn = None

    def interrupt(self, turn: Turn | None) -> None:
        """Stop a turn, and files on their way into the sandbox if its prompt waits for them. Returns at once."""
        if turn is None or not turn.sent:
            self._attachments.stop()
        if turn is None or turn.stopped.is_set():
            return
        turn.stopped_at = time.monotonic()
        turn.stopped.set()
        if turn.begun:
            self._report.status("interrupting")
        if turn.sent and self._link.connection is not None:
            turn.stopper = asyncio.ensure_future(self._stop(turn, self._link.connection))

    async def steer(self, prompt: str) -> bool:
        """Send a prompt into the running turn. Returns false if there is none that could take it up."""
        turn, connection = self.turn, self._link.connection
        if turn is None or not turn.takes_more or connection is None or connection.gone:
            return False
        if self._report.budget.reached:
            return False
        self._report.steered(turn, prompt)
        try:
            await self._give(turn, connection, prompt)
        except AgentError as error:
            log.warning("a prompt could not be sent into the turn: %s", error)  # the loss ends the turn
        return True

    def take(self, message: Message) -> None:
        """Take a message of the CLI."""
        from claude_agent_sdk import ResultMessage, StreamEvent, SystemMessage

        if self._watch.heard():
            self._report.status("ready")  # the silence that was told is over
        turn = self._late or self.turn
        if turn is None or not turn.sent:
            return  # what comes after a result belongs to no turn
        if turn is not self._late:
            self._report.message(message)
        if isinstance(message, ResultMessage):
            if turn.take(message):
                self._report.partial(message, model=self._link.in_force.model)
        elif isinstance(message, StreamEvent) or (
            isinstance(message, SystemMessage) and message.subtype == "init"
        ):
            turn.goes_on = True
        elif isinstance(message, SystemMessage) and message.subtype == "api_retry":
            delay = message.data.get("retry_delay_ms")
            self._watch.expect(delay / 1000 if isinstance(delay, int | float) else 0.0)

    def lost(self, reason: str) -> None:
        """The CLI ended by itself, and its last message has been taken."""
        if self.closing:
            return
        self._link.lost(reason)
        turn = self._late or self.turn
        if turn is not None and turn.sent:
            if not turn.result.done():
                turn.result.set_result(None)
        elif self._link.connection is not None:
            self._link.drop(self._link.connection)
            self._link.revive(idle=reason)

    async def stop_opening(self, limit: float) -> None:
        """Give up a start of the CLI that a turn waits for."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening}, timeout=limit)

    # -- a turn ----------------------------------------------------------------------------------------

    async def _run(self, turn: Turn) -> None:
        turn.start = time.monotonic()
        report = self._report
        if report.budget.reached:
            report.end(turn, error=report.budget.refusal)
            return
        try:
            connection = await self._submitted(turn)
        except AgentError as failure:
            report.end(turn, error=unanswered(failure, self._settings))
            if self._link.connection is not None and not self._link.usable:
                self._link.revive()
            return
        if connection is None:
            report.end(turn, interrupted=True)
            return
        end = await self._follow(turn, connection)
        result = turn.result.result() if end == "result" else None
        if turn.stopper is not None:
            await asyncio.wait({turn.stopper}, timeout=STOPPER_WAIT)
            turn.stopper.cancel()
            await asyncio.wait({turn.stopper})
        if end == "lost":
            self._link.drop(connection)  # also cancels what our handlers still run
        await report.calls_ended(min(TOOL_GRACE, self._left(turn)))
        report.close_blocks(interrupted=turn.stopped.is_set())
        if result is not None:
            self._link.losses.over()
            await self._finish(turn, connection, result)
        elif end == "late":
            for task in self.tasks:  # nothing runs on, whether the CLI takes the call back or not
                if not task.cancelling():
                    task.cancel()
            self._late = turn
            report.end(turn, interrupted=True, cost_known=None)
            self._link.settling = asyncio.ensure_future(self._settle(turn, connection))
        else:
            self._end_lost(turn, connection)

    def _end_lost(self, turn: Turn, connection: Connection) -> None:
        """Tell the end of a turn whose CLI is gone, and start another one."""
        losses = self._link.losses
        if turn.stopped.is_set():
            if turn.frozen:
                self._report.tell("warning", trouble("cli_frozen", self._settings))
            self._report.end(turn, interrupted=True, cost_known=False)
        else:
            words = loss_trouble(connection.lost, self._settings)
            self._report.end(turn, error=self._link.given_up if losses.too_many else words, cost_known=False)
        if not self.closing:
            self._link.revive()

    async def _submitted(self, turn: Turn) -> Connection | None:
        """Send the prompt once there is a CLI. Returns ``None`` if the turn was interrupted before. Raises ``AgentError``."""
        for _ in range(TRIES):
            connection = await self._unless_stopped(turn)
            if connection is None or not await self._attached(turn):
                return None
            if connection.gone:  # meanwhile: nothing of the prompt has been sent
                continue
            await self._submit(turn, connection)
            return connection
        raise self._link.given_up.as_error()

    async def _unless_stopped(self, turn: Turn) -> Connection | None:
        """Return a living connection, or ``None`` if the turn was interrupted before there was one."""
        if turn.stopped.is_set():
            return None
        if self._link.connection is not None and self._link.usable:
            return self._link.connection
        opening = self._opening = asyncio.ensure_future(self._link.open())
        try:
            await _first(opening, asyncio.ensure_future(turn.stopped.wait()))
        except asyncio.CancelledError:
            opening.cancel()
            raise
        if opening.done():
            connection = opening.result()
            return None if turn.stopped.is_set() else connection
        # It goes on: the next prompt will need it.
        opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return None

    async def _attached(self, turn: Turn) -> bool:
        """Wait for the files that are on their way into the sandbox; false if the turn was interrupted meanwhile."""
        if self._attachments.under_way:
            settled = asyncio.ensure_future(self._attachments.settled())
            try:
                await _first(settled, asyncio.ensure_future(turn.stopped.wait()))
            finally:
                settled.cancel()
        return not turn.stopped.is_set()

    async def _submit(self, turn: Turn, connection: Connection) -> None:
        report = self._report
        assert report.translator is not None
        report.translator.model = self._link.in_force.model
        report.translator.begin()
        self._watch.begin()
        turn.sent = True
        self._link.connector.recorded = True
        report.forget_answer()
        # A CLI that stands still does not read a long prompt: then this never ends, and ``_follow`` does what is to be done.
        giving = asyncio.ensure_future(self._give(turn, connection, turn.prompt))
        giving.add_done_callback(lambda task: task.cancelled() or task.exception())
        stopped = asyncio.ensure_future(turn.stopped.wait())
        try:
            while not (giving.done() or stopped.done() or connection.lost):
                await asyncio.wait({giving, stopped}, timeout=STEP, return_when=asyncio.FIRST_COMPLETED)
                self._look(turn, connection)
            if giving.done():
                giving.result()
        finally:
            stopped.cancel()
        if turn.stopped.is_set() and turn.stopper is None:
            turn.stopper = asyncio.ensure_future(self._stop(turn, connection))

    async def _give(self, turn: Turn, connection: Connection, prompt: str) -> None:
        """Write a prompt of the turn to the CLI, with what the model has to know of attached files."""
        prompt_id = str(uuid.uuid4())
        turn.add(prompt_id)
        preface = "" if turn.order else self._attachments.preface()
        await connection.query(
            f"{preface}\n\n{prompt}" if preface else prompt, prompt_id=prompt_id, order=turn.order
        )
        if preface:
            self._attachments.told()

    async def _follow(self, turn: Turn, connection: Connection) -> End:
        """Wait for the turn's result, or until it is known that none will come, or not soon enough."""
        lag = 0.0
        while not turn.result.done() and not connection.lost:
            wait = STEP
            if turn.stopped_at:
                left = self._left(turn)
                grace = left - STOP_LIMIT + self._settings.interrupt_grace + lag
                if grace <= 0 and not turn.reacted:
                    turn.frozen = True
                    connection.kill("it did not react to the interruption")
                    break
                if left <= 0:
                    return "late"
                wait = min(left, wait if turn.reacted else min(grace, LAG_STEP))
            wait = max(wait, 0.01)
            asked = time.monotonic()
            await asyncio.wait({turn.result}, timeout=wait)
            lag += max(time.monotonic() - asked - wait, 0.0)
            self._look(turn, connection)
        return "result" if turn.result.done() and turn.result.result() is not None else "lost"

    def _look(self, turn: Turn, connection: Connection) -> None:
        """See whether the silence has become too long, and say what there is to say about it."""
        waiting = self._machine.phase == "awaiting_approval" or bool(self._report.calls.handling)
        look = self._watch.look(waiting=waiting)
        if look.slept:
            minutes = f"{max(look.slept / 60, 1):.0f}"
            self._report.tell("info", trouble("slept", self._settings, minutes=minutes))
        if look.quiet and not turn.stopped_at:
            self._report.status("silent", f"Nothing has come for {self._watch.silent:.0f} s.")
        if look.dead and not turn.result.done() and not connection.lost:
            reason = f"it said nothing for {self._watch.silent:.0f} s"
            connection.kill(reason)
            self._link.lost(reason)
        if self._watch.silent > STEER_WAIT:
            turn.give_up_waiting()

    def _left(self, turn: Turn) -> float:
        """Seconds in which the turn is to be over, once it was interrupted."""
        if not turn.stopped_at:
            return float("inf")
        return max(turn.stopped_at + STOP_LIMIT - time.monotonic(), 0.0)

    async def _stop(self, turn: Turn, connection: Connection) -> None:
        """Interrupt a turn, and again until it has ended: the CLI may not have taken it up yet."""
        while not turn.result.done() and not connection.lost:
            answer = await connection.interrupt(all_prompts=turn.steered)
            turn.reacted = turn.reacted or answer is not None
            turn.all_stopped = turn.all_stopped or bool(answer)
            await asyncio.wait({turn.result}, timeout=INTERRUPT_AGAIN)

    async def _settle(self, turn: Turn, connection: Connection) -> None:
        """Wait for the result of a turn that was told to be over; a CLI that never comes to it is ended."""
        stopper = asyncio.ensure_future(self._stop(turn, connection))
        try:
            await asyncio.wait({turn.result}, timeout=SETTLE)
        finally:
            stopper.cancel()
            self._late = None
        result = turn.result.result() if turn.result.done() else None
        self._report.settled(turn, result)
        if result is None or (turn.steered and not turn.all_stopped):
            if not connection.lost:
                connection.kill("it did not end an interrupted turn")
            self._link.drop(connection)
            if not self.closing:
                self._link.revive()

    async def _finish(self, turn: Turn, connection: Connection, result: ResultMessage) -> None:
        from sandbox_chat.agent.translate import was_aborted

        self._link.connector.remembered = True
        report = self._report
        aborted = was_aborted(result) or (turn.order and turn.stopped.is_set())
        context: dict[str, Any] = {}
        if report.translator is None or report.translator.context_used is None:
            asking = asyncio.ensure_future(connection.context_usage(CONTEXT_TIMEOUT))
            await _first(asking, asyncio.ensure_future(turn.stopped.wait()))
            await asyncio.wait({asking}, timeout=CONTEXT_TIMEOUT_STOPPED)
            context = asking.result() if asking.done() else {}
            asking.cancel()
        if turn.steered and turn.stopped.is_set() and not turn.all_stopped:
            connection.kill("it may have had more prompts of an interrupted turn")
            self._link.drop(connection)
            self._link.revive()
        report.finish(turn, result, aborted=aborted, context=context, model=self._link.in_force.model)


async def _first(task: asyncio.Future[Any], other: asyncio.Task[Any]) -> None:
    """Wait until one of two is done; the other one of them is left as it is if it is ``task``, else given up."""
    try:
        await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        other.cancel()
