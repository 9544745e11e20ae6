"""What a session is doing: one machine of nine phases, driven by the events alone.

The session itself and every view of it follow this machine, so a replayed journal ends in the phase in which
the live chat was. A turn that was interrupted ends in ``idle``; that it was is said by its ``TurnFinished``.

``connecting``
    the agent's program is being started. A turn may wait for it.
``idle``
    no turn runs; a prompt can be sent.
``thinking``
    the model has the prompt, or the result of a call, and nothing has come yet; or it is thinking.
``streaming``
    the model writes: text, or the arguments of a call.
``tool``
    a tool call runs.
``awaiting_approval``
    a tool call waits for an answer of the user.
``retrying``
    a request failed and is tried again.
``interrupting``
    the user has stopped the turn, and its end has not come yet.
``dead``
    the agent's program ended, could not be started, or the session is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from sandbox_chat import events as ev

Phase = Literal[
    "connecting", "idle", "thinking", "streaming", "tool", "awaiting_approval", "retrying", "interrupting", "dead",
]  # fmt: skip
PHASES: tuple[Phase, ...] = get_args(Phase)

Cause = Literal[
    "opened", "finished", "connecting", "ready", "lost", "prompt", "ended", "stray_end", "interrupted",
    "thought", "said", "told", "drafted", "called", "returned", "stray_return", "asked", "answered", "retried", "nothing",
]  # fmt: skip
"""What an event means to the machine. A *stray* one tells the end of what is not open; most events mean nothing to it."""
CAUSES: tuple[Cause, ...] = get_args(Cause)

Outcome = Phase | Literal["stay", "here", "odd"]
"""A phase; or ``stay``: the same; ``here``: what the context says (see ``Machine.here``); ``odd``: the same, and counted,
because the event makes no sense in this phase.
"""

# fmt: off
_ROWS: dict[Cause, tuple[Outcome, ...]] = {
    # in:            connecting    idle          thinking      streaming     tool          awaiting_approval    retrying      interrupting  dead
    "opened":       ("connecting", "connecting", "connecting", "connecting", "connecting", "connecting",        "connecting", "connecting", "connecting"),
    "finished":     ("dead",       "dead",       "dead",       "dead",       "dead",       "dead",              "dead",       "dead",       "dead"),
    "connecting":   ("stay",       "connecting", "connecting", "connecting", "connecting", "connecting",        "connecting", "stay",       "connecting"),
    "ready":        ("here",       "stay",       "stay",       "stay",       "stay",       "stay",              "stay",       "stay",       "here"),
    "lost":         ("dead",       "dead",       "dead",       "dead",       "dead",       "dead",              "dead",       "stay",       "stay"),
    "prompt":       ("here",       "here",       "odd",        "odd",        "odd",        "odd",               "odd",        "odd",        "here"),
    "ended":        ("here",       "odd",        "here",       "here",       "here",       "here",              "here",       "here",       "here"),
    "stray_end":    ("odd",        "odd",        "odd",        "odd",        "odd",        "odd",               "odd",        "odd",        "odd"),
    "interrupted":  ("interrupting", "odd",      "interrupting", "interrupting", "interrupting", "interrupting", "interrupting", "stay",    "stay"),
    "thought":      ("odd",        "odd",        "stay",       "thinking",   "thinking",   "stay",              "thinking",   "stay",       "odd"),
    "said":         ("odd",        "odd",        "streaming",  "stay",       "streaming",  "stay",              "streaming",  "stay",       "odd"),
    "told":         ("odd",        "odd",        "here",       "here",       "here",       "stay",              "here",       "stay",       "stay"),
    "drafted":      ("odd",        "odd",        "streaming",  "stay",       "streaming",  "stay",              "streaming",  "stay",       "odd"),
    "called":       ("odd",        "odd",        "tool",       "tool",       "stay",       "stay",              "tool",       "stay",       "stay"),
    "returned":     ("stay",       "odd",        "stay",       "stay",       "here",       "here",              "stay",       "stay",       "stay"),
    "stray_return": ("odd",        "odd",        "odd",        "odd",        "odd",        "odd",               "odd",        "odd",        "odd"),
    "asked":        ("odd",        "odd",        "awaiting_approval", "awaiting_approval", "awaiting_approval", "stay", "awaiting_approval", "stay", "odd"),
    "answered":     ("stay",       "odd",        "stay",       "stay",       "stay",       "here",              "stay",       "stay",       "stay"),
    "retried":      ("odd",        "odd",        "retrying",   "retrying",   "retrying",   "stay",              "stay",       "stay",       "odd"),
    "nothing":      ("stay",) * 9,
}
# fmt: on
TABLE: Mapping[Cause, Mapping[Phase, Outcome]] = {
    cause: dict(zip(PHASES, row, strict=True)) for cause, row in _ROWS.items()
}
"""The outcome of every cause in every phase."""

IN_TURN: tuple[Phase, ...] = ("thinking", "streaming", "tool", "awaiting_approval", "retrying")
"""Phases in which only a turn can be that the agent works on."""


@dataclass(slots=True)
class Machine:
    """The phase of a session, and what it depends on. Changed only by ``apply``.

    ``since`` is when the phase began, by the event that brought it. ``connection`` is how the agent's program is.
    ``turns``, ``calls`` and ``questions`` are the ids of what is open: turns, tool calls of theirs that run, and
    questions of theirs to the user. ``odd`` counts the events that made no sense in their phase; ``oddity`` names
    the last one.
    """

    phase: Phase = "connecting"
    since: datetime | None = None
    connection: Literal["connecting", "ready", "dead"] = "connecting"
    turns: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    questions: set[str] = field(default_factory=set)
    odd: int = 0
    oddity: str = ""

    @property
    def busy(self) -> bool:
        """True while a turn is open, also one that waits for the agent's program."""
        return bool(self.turns)

    @property
    def here(self) -> Phase:
        """What the context alone says: the state of the connection, then whether a turn is open, and what it waits for."""
        if self.connection != "ready":
            return "dead" if self.connection == "dead" else "connecting"
        if not self.turns:
            return "idle"
        if self.questions:
            return "awaiting_approval"
        return "tool" if self.calls else "thinking"

    def apply(self, event: ev.Event) -> Phase:
        """Take one event, and return the phase after it. Never raises."""
        cause = self._note(event)
        outcome = TABLE[cause][self.phase]
        after = self.phase
        if outcome == "odd":
            self.odd += 1
            self.oddity = f"{event.type} ({cause}) in {self.phase}"
        elif outcome == "here":
            after = self.here
        elif outcome != "stay":
            after = outcome
        if after != self.phase or self.since is None or cause in ("prompt", "ended"):
            self.phase = after
            self.since = event.at
        return after

    def _note(self, event: ev.Event) -> Cause:
        """Take an event into the context, and return what it means."""
        match event:
            case ev.TextDelta():
                return "said"
            case ev.ThinkingDelta():
                return "thought"
            case ev.Text():
                return "told"
            case ev.ToolInputDelta():
                return "drafted"
            case ev.Retry():
                return "retried"
            case ev.ToolStarted():
                if self.turns:
                    self.calls.add(event.tool_use_id)
                return "called"
            case ev.ToolFinished():
                return self._returned(event.tool_use_id)
            case ev.ApprovalRequested() if event.tool_use_id:
                if self.turns:
                    self.questions.add(event.approval_id)
                return "asked"
            case ev.ApprovalAnswered() if event.approval_id in self.questions:
                self.questions.discard(event.approval_id)
                return "answered"
            case ev.TurnStarted():
                self.turns.append(event.turn_id)
                return "prompt"
            case ev.TurnFinished():
                return self._ended(event.turn_id)
            case ev.Status(component="agent"):
                return self._status(event.state)
            case ev.SessionStarted():
                self._forget("connecting")
                return "opened"
            case ev.SessionFinished():
                self._forget("dead")
                return "finished"
            case _:
                return "nothing"

    def _returned(self, tool_use_id: str) -> Cause:
        if tool_use_id not in self.calls:
            return "stray_return"
        self.calls.discard(tool_use_id)
        return "returned"

    def _ended(self, turn_id: str) -> Cause:
        if turn_id not in self.turns:
            return "stray_end"
        self.turns.remove(turn_id)
        self.calls.clear()  # of what an ended turn left open nothing more is told
        self.questions.clear()
        return "ended"

    def _status(self, state: str) -> Cause:
        match state:
            case "connecting":
                self.connection = "connecting"
                return "connecting"
            case "ready":
                self.connection = "ready"
                return "ready"
            case "lost" | "closed":
                self.connection = "dead"
                return "lost"
            case "interrupting" if self.turns:
                return "interrupted"
            case _:
                return "nothing"

    def _forget(self, connection: Literal["connecting", "dead"]) -> None:
        """Another run of the program begins, or this one ends: nothing goes on."""
        self.connection = connection
        self.turns.clear()
        self.calls.clear()
        self.questions.clear()
