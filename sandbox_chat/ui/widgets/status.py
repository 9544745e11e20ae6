"""The last row: keys that matter now, what is going on, cost and context."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sandbox_chat.plain import NOT_AVAILABLE
from sandbox_chat.ui import formats
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.line import Line, Part

WORDS = 28
"""Cells that what is going on has at least before keys are dropped: its longest usual words."""

STILL = "●"
"""Sign of something alive when nothing may move."""


def phase_words(state: ChatState, now: datetime, *, stopping: bool = False) -> tuple[str, str]:
    """Return what is going on in words, and its colour."""
    seconds = formats.running((now - state.since).total_seconds() * 1000) if state.since else ""
    match state.phase:
        case "starting":
            return "starting", "$muted"
        case "connecting":
            waits = ", the prompt waits" if state.busy else ""
            return f"connecting{waits}", "$warning"
        case "idle":
            return "idle", "$muted"
        case "lost":
            return f"agent lost{': ' + state.agent_text if state.agent_text else ''}", "$error"
        case "closed":
            return "closed", "$muted"
        case "retrying":
            retry = state.retry
            why = f", attempt {retry.attempt}: {formats.fit(retry.reason, 40)}" if retry else ""
            return f"retrying{why}", "$warning"
        case _ if stopping:
            return "stopping", "$warning"
        case "running":
            tools = state.running_tools
            name = tools[0].short_name if tools else ""
            what = "code" if name in ("run_code", "") else name
            more = f" +{len(tools) - 1}" if len(tools) > 1 else ""
            return f"running {what}{more} {seconds}", "$primary"
        case "asking":
            return "waiting for your answer", "$accent"
        case "coding":
            return "writing code", "$primary"
        case "writing":
            return "writing", "$primary"
        case _:
            return f"thinking {seconds}", "$primary"


def cost_words(state: ChatState) -> str:
    """Return the session's cost in a word or two."""
    if state.demo:
        return "no cost"
    known, unknown = state.cost
    if not unknown:
        return f"${known:.2f}"
    return NOT_AVAILABLE if not known else f"${known:.2f} + {NOT_AVAILABLE}"


class StatusBar(Line):
    """The footer. ``tick`` draws it again while seconds go by; ``note`` overrides the keys for a while."""

    DEFAULT_CSS = """
    StatusBar { padding: 0 1; background: $background; color: $muted; }
    """

    def __init__(
        self, chat: Chat, clock: Callable[[], datetime], *, still: bool, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.chat = chat
        self.note = ""
        self.closing = False
        self._clock = clock
        self._still = still
        self._frame = 0

    def tick(self) -> None:
        """Move the spinner by one and draw the row again."""
        self._frame += 1
        self.changed()

    def say(self, note: str, seconds: float = 3.0) -> None:
        """Show ``note`` in place of the keys for some seconds."""
        self.note = note
        self.changed()

        def over() -> None:
            if self.note == note:
                self.note = ""
                self.changed()

        self.set_timer(seconds, over)

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the keys at the left and the state at the right."""
        if self.closing:
            return [Part("closing…", "$warning")], []
        state = self.chat.state
        words, colour = phase_words(state, self._clock(), stopping=self.chat.stopping)
        right: list[Part] = []
        if state.busy or state.phase in ("starting", "connecting"):
            sign = STILL if self._still else formats.SPINNER[self._frame % len(formats.SPINNER)]
            right.append(Part(f"{sign} ", colour, drop=2))
        right.append(Part(words, colour, shrink=WORDS))
        right.append(Part(f" · {cost_words(state)}", "", "screen.toggle_cost", drop=1))
        if context := formats.percent(state.context.used, state.context.max):
            right.append(Part(f" · {context}", "", "screen.toggle_cost", drop=1))
        return self._keys(), right

    def _keys(self) -> list[Part]:
        if self.note:
            return [Part(self.note, "$warning", shrink=10)]
        keys: list[tuple[str, str, str, int]] = []
        if self.chat.state.questions:
            keys.append(("F6", "answer", "screen.next_pane", 3))
        elif self.chat.busy:
            keys.append(("esc", "interrupt", "screen.escape", 3))
        elif self.chat.waiting:
            keys.append(("^G", "send waiting", "screen.resume_waiting", 3))
        keys += [
            ("⏎", "send", "screen.send", 5),
            ("alt+⏎", "newline", "screen.newline", 8),
            ("^P", "commands", "app.palette", 6),
            ("F1", "help", "app.help", 4),
            ("F2", "tools", "screen.toggle_tools", 7),
            ("F3", "cost", "screen.toggle_cost", 9),
        ]
        parts = []
        for key, label, action, drop in keys:
            # One part a key, so that a key and its word are dropped together.
            parts.append(Part(f"{key} {label}  ", "", action, drop=drop))
        return parts
