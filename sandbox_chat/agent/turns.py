"""How the end of a turn, its tool calls and the state of the agent are told in events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sandbox_chat.agent.budget import STOPPED, Budget
from sandbox_chat.agent.calls import Calls
from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import Trouble, turn_trouble
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.totals import Totals
from sandbox_chat.agent.turn import Turn
from sandbox_chat.agent.untooled import notice
from sandbox_chat.ansi import Piece
from sandbox_chat.events import (
    Cleared,
    ContextUse,
    ControlsChanged,
    Event,
    Notice,
    NoticeLevel,
    Progress,
    Sink,
    Status,
    Steered,
    Stream,
    Text,
    TextContent,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnSettled,
    TurnStarted,
    Usage,
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


class Reporter:
    """Emits the events of a session. Holds what is needed for that: calls, ledger, translator."""

    def __init__(
        self,
        settings: Settings,
        endpoint: Endpoint,
        emit: Sink,
        ledger: Ledger,
        budget: Budget | None = None,
    ) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._emit = emit
        self.calls = Calls()
        self.ledger = ledger
        self.budget = budget or Budget(0.0, ledger, emit, {})
        self.context_before = 0
        """Tokens of the context that were told before a request of this run tells them."""
        self.anchor_before = ""
        """The last message of the conversation that was told before one of this run is."""
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

    def tell(self, level: NoticeLevel, what: Trouble) -> None:
        """Tell the user what happened, in the language of the interface."""
        self._emit(Notice(level=level, text=clean(what.text), kind=what.kind, about=what.about))

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

    async def calls_ended(self, limit: float) -> None:
        """Wait at most ``limit`` seconds for our handlers to end: their events belong to this turn."""
        try:
            async with asyncio.timeout(limit):
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

    def end(
        self,
        turn: Turn,
        *,
        interrupted: bool = False,
        error: Trouble | str = "",
        cost_known: bool | None = True,
    ) -> None:
        """Tell the end of a turn that has no result. ``error``: it failed; a plain sentence is not translated.

        ``cost_known`` is false if it may have cost something, ``None`` if that is to be told yet (see ``settled``).
        """
        self.begin(turn)  # one that waited and is given up: its prompt is to be in the record
        if cost_known:
            figures = self.ledger.figures
        elif cost_known is None:
            figures = self.ledger.untold(self._answered())
        else:
            figures = self.ledger.cut(self._answered())
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
                usage=figures.usage,
                context=ContextUse(used=self._context_used({}), max=figures.context_max),
                **_said(error),
                models=figures.models,
                anchor=self._anchor,
            )
        )
        if cost_known is not None:
            self.budget.turn_ended(0.0 if cost_known else None)

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
        # The program stops a turn after the request that spent the rest, also when that was the end of the answer.
        ended = result.subtype == STOPPED and self.translator.answered
        failed = result.is_error and not aborted and not ended
        trouble: Trouble | str = ""
        if failed:
            failure = self.translator.failure(result)
            trouble = (
                self.budget.stop
                if result.subtype == STOPPED
                else turn_trouble(failure, self._endpoint, self._settings, model=model)
            )
        self._emit(
            TurnFinished(
                turn_id=turn.turn_id,
                subtype="success" if ended else result.subtype,
                is_error=failed,
                interrupted=aborted,
                num_turns=turn.steps + result.num_turns,
                duration_ms=_since(turn.start),
                cost_usd=figures.cost_usd,
                total_cost_usd=figures.total_cost_usd,
                usage=figures.usage,
                context=ContextUse(used=self._context_used(context), max=figures.context_max),
                **_said(trouble),
                models=figures.models,
                anchor=self._anchor,
            )
        )
        self.budget.turn_ended(figures.cost_usd)

    def partial(self, result: ResultMessage, *, model: str) -> None:
        """A part of a turn has ended, and a prompt that was sent into it is taken up now: say so if that part failed."""
        if result.is_error and self.translator is not None:
            failure = self.translator.failure(result)
            self.tell("warning", turn_trouble(failure, self._endpoint, self._settings, model=model))

    def settled(self, turn: Turn, result: ResultMessage | None) -> None:
        """Enter the result of a turn whose end was told before it came, and tell it; ``None``: it never came."""
        if result is None:
            figures = self.ledger.cut(self._answered())
        else:
            usage: Mapping[str, Any] | None = result.model_usage
            figures = self.ledger.turn(result.total_cost_usd, usage, result.usage)
            self._emit(
                TurnSettled(
                    turn_id=turn.turn_id,
                    cost_usd=figures.cost_usd,
                    total_cost_usd=figures.total_cost_usd,
                    usage=figures.usage,
                    models=figures.models,
                )
            )
        self.budget.turn_ended(figures.cost_usd)

    def steered(self, turn: Turn, prompt: str) -> None:
        """The user sends a prompt into the turn."""
        self._emit(Steered(turn_id=turn.turn_id, prompt=clean(prompt)))

    def controls(self, controls: Controls) -> None:
        """The user changed the model, its effort or its thinking."""
        self._emit(
            ControlsChanged(
                model=clean_line(controls.model), effort=controls.effort, thinking=controls.thinking
            )
        )

    def cleared(self, agent_id: str) -> None:
        """The agent begins a new conversation of its own id, which costs and holds nothing yet; what the session has cost goes on."""
        self.ledger.start_from(Totals())
        self.anchor_before = ""
        self.context_before = 0
        if self.translator is not None:
            self.translator.context_used = None
            self.translator.anchor = ""
        self._emit(Cleared(agent_id=agent_id))

    @property
    def _anchor(self) -> str:
        return (self.translator.anchor if self.translator is not None else "") or self.anchor_before

    def _answered(self) -> Mapping[str, Usage]:
        return self.translator.requests.answered if self.translator is not None else {}

    def _context_used(self, context: Mapping[str, Any]) -> int:
        """Tokens of the context: what the last request read, else by the program's account, else what was told last."""
        if self.translator is not None and self.translator.context_used is not None:
            return self.translator.context_used
        told = context.get("totalTokens")
        return told if isinstance(told, int) and told > 0 else self.context_before

    def _emit_if(self, event: Event | None) -> None:
        if event is not None:
            self._emit(event)


def _said(trouble: Trouble | str) -> dict[str, Any]:
    """The fields of ``TurnFinished`` that say what went wrong."""
    if isinstance(trouble, str):
        return {"error": clean(trouble)}
    return {"error": clean(trouble.text), "kind": trouble.kind, "about": trouble.about}


def _since(start: float) -> int:
    return int((time.monotonic() - start) * 1000)


def make_reporter(
    settings: Settings,
    endpoint: Endpoint,
    emit: Sink,
    *,
    resumed: bool,
    earlier: TurnFinished | None,
    limit: float | None,
) -> Reporter:
    """Return the reporter of a session with its ledger and budget.

    ``earlier`` is the last turn of an earlier run, whose figures go on. ``limit`` is the session's own budget in
    dollars, ``None``: the setting's. The demo costs nothing, so it has neither prices nor a budget.
    """
    prices = {} if settings.demo else settings.prices
    ledger = Ledger(resumed=resumed, earlier=earlier, prices=prices)
    wanted = settings.budget_usd if limit is None else limit
    budget = Budget(0.0 if settings.demo else wanted, ledger, emit, prices)
    reporter = Reporter(settings, endpoint, emit, ledger, budget)
    if earlier is not None:
        reporter.context_before = earlier.context.used
        reporter.anchor_before = earlier.anchor
    return reporter
