"""A turn, and how its end, its tool calls and the state of the agent are told in events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandbox_chat.agent.calls import Calls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import turn_error
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.untooled import notice
from sandbox_chat.ansi import Piece
from sandbox_chat.events import (
    ContextUse,
    Event,
    Notice,
    Progress,
    Sink,
    Status,
    Stream,
    Text,
    TextContent,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.tools.context import ToolOutcome

if TYPE_CHECKING:
    from claude_agent_sdk import Message, ResultMessage

    from sandbox_chat.agent.translate import Translator

FAILED = "error_during_execution"
"""The subtype of a turn that has no result of the CLI; its own name for one that did not end well."""
LOST_SAID = 40
"""Characters of the reason of a loss by which it is recognised in a call's result."""
TOOL_GRACE = 1.5
"""Seconds that tool calls may take to end after their turn: the sandbox kills what does not stop within 1 s."""


@dataclass(slots=True, eq=False)
class Turn:
    """A prompt and what has become of it.

    ``begun``: its ``TurnStarted`` was emitted. ``sent``: the CLI has got it.
    ``result`` gets the CLI's result, or ``None`` when none will come. ``ready``: the CLI took it up and can be
    interrupted. ``stopped``: the user interrupted it, at ``stopped_at`` (``time.monotonic``).
    """

    turn_id: str
    prompt: str
    result: asyncio.Future[ResultMessage | None]
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    start: float = field(default_factory=time.monotonic)
    stopped_at: float = 0.0
    begun: bool = False
    sent: bool = False
    stopper: asyncio.Task[None] | None = None


class Reporter:
    """Emits the events of a session. Holds what is needed for that: calls, ledger, translator."""

    def __init__(self, settings: Settings, endpoint: Endpoint, emit: Sink, ledger: Ledger) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._emit = emit
        self.calls = Calls()
        self.ledger = ledger
        self.translator: Translator | None = None
        """Set when the SDK has been imported."""
        self.offered = False
        """Whether the session has a sandbox."""
        self.listed = False
        """Whether the agent's program asked for its tools."""
        self._said: list[str] = []  # of the answer, since the turn began
        self._called = False
        self._lost = ""  # why the sandbox was lost, until it is known whether a call's result says it
        self._call_ended = asyncio.Event()

    def status(self, state: str, text: str = "") -> None:
        """Tell the state of the agent."""
        self._emit(Status(component="agent", state=state, text=clean_line(text, 500)))

    def warn(self, text: str) -> None:
        """Tell the user a sentence."""
        self._emit(Notice(level="warning", text=clean(text)))

    def scrub(self, error: object) -> str:
        """Return an exception's words, clean and without credentials."""
        return clean(self._settings.scrub(str(error))) or type(error).__name__

    def message(self, message: Message) -> None:
        """Emit what a message of the CLI stands for."""
        if self.translator is not None:
            for event in self.translator.feed(message):
                if isinstance(event, Text):
                    self._said.append(event.text)
                elif isinstance(event, ToolStarted):
                    self._called = True
                self._emit(event)

    # -- tools -----------------------------------------------------------------------------------------

    def tool_started(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        """Our handler took on a call."""
        self._called = True
        self._emit_if(self.calls.handler_started(call_id, name, arguments))

    def tool_output(self, call_id: str, stream: Stream, piece: Piece, late: bool) -> None:
        """A running call wrote something, or a thread of its code did when it had ended (``late``)."""
        if late or call_id in self.calls.handling:
            text, rewind, styles = piece
            self._emit(
                ToolOutput(
                    tool_use_id=call_id, stream=stream, text=text, late=late, rewind=rewind, styles=styles
                )
            )

    def tool_finished(self, call_id: str, outcome: ToolOutcome, duration_ms: int) -> None:
        """Our handler is done with a call."""
        if self._lost and self._lost[:LOST_SAID] not in outcome.text:
            self.warn(self._lost)  # the call was begun anew in another sandbox, and says nothing of it
        self._lost = ""
        self._emit_if(
            self.calls.handler_finished(
                call_id,
                outcome.display,
                is_error=outcome.is_error,
                interrupted=outcome.interrupted,
                duration_ms=duration_ms,
            )
        )
        self._call_ended.set()

    def sandbox_lost(self, reason: str) -> None:
        """The sandbox is gone. The result of a call that runs may say so; otherwise a notice does."""
        if not any(word in reason for word in ("afresh", "gone", " lost")):
            reason = f"{reason} Its variables and files are gone; a new one is made when it is needed."
        if self.calls.handling:
            self._lost = reason
        else:
            self.warn(reason)

    def late_output(self, call_id: str, stream: Stream, piece: Piece) -> None:
        """A thread of an ended call wrote something."""
        self.tool_output(call_id, stream, piece, True)

    def progress(self, subject: str, label: str, done: int, total: int, over: bool) -> None:
        """A transfer goes on."""
        self._emit(Progress(subject=subject, label=label, done=done, total=total, over=over))

    async def calls_ended(self) -> None:
        """Wait a little for our handlers to end: their events belong to this turn."""
        try:
            async with asyncio.timeout(TOOL_GRACE):
                while self.calls.handling:
                    self._call_ended.clear()
                    await self._call_ended.wait()
        except TimeoutError:
            return

    # -- turns -----------------------------------------------------------------------------------------

    def begin(self, turn: Turn) -> None:
        """Tell once that a turn begins."""
        if not turn.begun:
            turn.begun = True
            self._emit(TurnStarted(turn_id=turn.turn_id, prompt=clean(turn.prompt)))

    def forget_answer(self) -> None:
        """A prompt goes out: what was said before is of another turn."""
        self._said, self._called = [], False

    def close_blocks(self, *, interrupted: bool) -> None:
        """Finish the calls that nothing more will be told of, and the block that was being written."""
        words = "The call was stopped before it ended." if interrupted else "No result of this call came."
        for finished in self.calls.abandon((TextContent(words),), interrupted=interrupted):
            self._emit(finished)
        if self.translator is not None:
            for event in self.translator.close():
                self._emit(event)

    def end(self, turn: Turn, *, interrupted: bool = False, error: str = "", cost_known: bool = True) -> None:
        """Tell the end of a turn that has no result. ``cost_known`` is false if it may have cost something."""
        self.begin(turn)  # one that waited and is given up: its prompt is to be in the record
        figures = self.ledger.figures
        self._emit(
            TurnFinished(
                turn_id=turn.turn_id,
                subtype=FAILED,
                is_error=bool(error),
                interrupted=interrupted,
                num_turns=0,
                duration_ms=_since(turn.start),
                cost_usd=0.0 if cost_known else None,
                total_cost_usd=figures.total_cost_usd,
                context=ContextUse(max=figures.context_max),
                error=clean(error),
                models=figures.models,
            )
        )

    def finish(
        self, turn: Turn, result: ResultMessage, *, aborted: bool, context: Mapping[str, Any], model: str
    ) -> None:
        """Tell the end of a turn with its result. ``context`` is the CLI's account of the context, or empty."""
        assert self.translator is not None
        if not aborted and not result.is_error and not self._called:
            text = notice("\n".join(self._said), offered=self.offered, listed=self.listed)
            if text:
                self.warn(text)
        model_usage: Mapping[str, Any] | None = result.model_usage
        figures = self.ledger.turn(result.total_cost_usd, model_usage, result.usage)
        failed = result.is_error and not aborted
        error = ""
        if failed:
            failure = self.translator.failure(result)
            sentence = turn_error(failure, self._endpoint, self._settings, model=model)
            error = self._settings.scrub(sentence)  # an address may hold a key
        used = context.get("totalTokens")
        self._emit(
            TurnFinished(
                turn_id=turn.turn_id,
                subtype=result.subtype,
                is_error=failed,
                interrupted=aborted,
                num_turns=result.num_turns,
                duration_ms=_since(turn.start),
                cost_usd=figures.cost_usd,
                total_cost_usd=figures.total_cost_usd,
                usage=figures.usage,
                context=ContextUse(
                    used=used if isinstance(used, int) and used > 0 else self.translator.context_used,
                    max=figures.context_max,
                ),
                error=clean(error),
                models=figures.models,
            )
        )

    def _emit_if(self, event: Event | None) -> None:
        if event is not None:
            self._emit(event)


def _since(start: float) -> int:
    return int((time.monotonic() - start) * 1000)
