"""What a resumed session brings along from its earlier runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sandbox_chat.agent.controls import Controls
from sandbox_chat.events import (
    Attached,
    BudgetChanged,
    Cleared,
    ContextUse,
    ControlsChanged,
    Event,
    SessionForked,
    SessionStarted,
    Sink,
    TurnFinished,
    TurnSettled,
    TurnStarted,
)
from sandbox_chat.last_prompt import LastPrompt, follow
from sandbox_chat.settings import COMMAND_LINE, Settings

if TYPE_CHECKING:
    from sandbox_chat.journal import Journal
    from sandbox_chat.journal.tail import Tail

NOTED = (
    TurnStarted,
    TurnFinished,
    TurnSettled,
    SessionStarted,
    SessionForked,
    Attached,
    BudgetChanged,
    Cleared,
    ControlsChanged,
)
"""Types of events that ``Past.take`` looks at: of a long past only these are read before the session goes on."""

_UNTOLD = TurnFinished(
    turn_id="",
    subtype="",
    is_error=True,
    interrupted=True,
    num_turns=0,
    duration_ms=0,
    cost_usd=None,
    total_cost_usd=None,
)
"""Stands for a session's only turn, of which no end was told."""


class Past:
    """Notes what is carried on, event by event.

    ``attached`` are the names of files that were in the sandbox of the run before, by their paths in it. ``budget`` is
    the session's own limit in dollars, if the user set one. ``agent_id`` is the agent's own id of the conversation,
    empty where it is the session's; ``spoken``: there was a turn in it. ``last_prompt`` is what was asked last.
    """

    def __init__(self) -> None:
        self.budget: float | None = None
        self.agent_id = ""
        self.started: SessionStarted | None = None
        """How the latest run began."""
        self.changed: ControlsChanged | None = None
        """What the latest run ended with, if the user had changed model, effort or thinking."""
        self.spoken = False
        self.last_prompt: LastPrompt | None = None
        self._last: TurnFinished | None = None
        self._journal: Journal | None = None
        self._tail: Tail | None = None
        self._open = False  # a turn began and has not ended
        self._untold = False  # one before never ended: the program was killed
        self.attached: dict[str, str] = {}

    @property
    def earlier(self) -> TurnFinished | None:
        """The last turn that ended: its totals go on. What a turn cost that never ended is not known."""
        last = self._last
        if self._open or self._untold:
            last = dataclasses.replace(last or _UNTOLD, total_cost_usd=None)
        if last is not None and not self.spoken:  # the context is empty again
            last = dataclasses.replace(last, context=ContextUse(max=last.context.max))
        return last

    def load(self, journal: Journal, replay: Sink | None, *, tail_first: bool = False) -> None:
        """Note what is carried on, and give the events to ``replay``: all, or the last turns if ``tail_first``.

        Then ``older`` gives the rest. Raises ``OSError``.
        """
        self._journal = journal
        if replay is None or tail_first:
            if replay is not None:
                self._show_tail(journal, replay)
            for event in journal.only(*NOTED):
                self.take(event)
            return
        for event in journal.events():
            self.take(event)
            replay(event)

    def _show_tail(self, journal: Journal, replay: Sink) -> None:
        tail = journal.tail()
        self._tail = tail if tail.start else None
        for event in tail.events:
            replay(event)

    @property
    def has_older(self) -> bool:
        """True when there are events before those that were replayed."""
        return self._tail is not None

    def older(self) -> Iterator[Event]:
        """Yield the events before those that were replayed, in order. Any thread; blocking. Raises ``OSError``."""
        if self._tail is not None and self._journal is not None:
            yield from self._journal.older(self._tail)

    def controls(self, settings: Settings) -> Controls | None:
        """Return the controls that go on, ``None``: those of the settings. A model on the command line comes first.

        So does the settings' model where the user had changed only effort or thinking.
        """
        told = self.changed
        if told is None or settings.demo:
            return None
        chosen = self.started is None or told.model != self.started.model
        kept = chosen and settings.origins.get("model") != COMMAND_LINE
        return Controls(told.model if kept else settings.model, told.effort, told.thinking)

    def damage(self) -> str:
        """Return a sentence about what could not be read and was not told of before; empty if there is nothing."""
        try:
            count = self._journal.new_damage() if self._journal is not None else 0
        except OSError:
            return ""
        if not count:
            return ""
        places = "A damaged place" if count == 1 else f"{count:,} damaged places"
        return (
            f"{places} in the record of this session could not be read and {'was' if count == 1 else 'were'} passed over. "
            "What stands there is kept in events.damaged in the session's folder."
        )

    def take(self, event: Event) -> None:
        """Note one event."""
        self.last_prompt = follow(self.last_prompt, event)
        if isinstance(event, TurnStarted):
            self._untold = self._untold or self._open
            self._open = True
        elif isinstance(event, TurnFinished):
            self._open = False
            # A prompt that never went out is in no record of the agent.
            self.spoken = self.spoken or event.cost_usd != 0 or event.num_turns > 0
            if event.models or event.total_cost_usd is not None:  # else it tells no totals
                self._last = event
                self._untold = False  # its totals know of that
        elif isinstance(event, TurnSettled):
            self._last = dataclasses.replace(
                self._last or _UNTOLD,
                cost_usd=event.cost_usd,
                total_cost_usd=event.total_cost_usd,
                usage=event.usage,
                models=event.models,
            )
        elif isinstance(event, Cleared | SessionForked):
            self.agent_id = event.agent_id
            self.spoken = isinstance(event, SessionForked)
        elif isinstance(event, BudgetChanged):
            self.budget = event.limit_usd
        elif isinstance(event, SessionStarted):
            self.started, self.changed = event, None
            self.attached.clear()  # what an earlier run had was told of when it was resumed
        elif isinstance(event, ControlsChanged):
            self.changed = event
        elif isinstance(event, Attached) and not event.error:
            self.attached[event.path] = event.name
