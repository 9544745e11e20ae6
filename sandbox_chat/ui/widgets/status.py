"""The last row: keys that matter now, what is going on, cost and context."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sandbox_chat.plain import NOT_AVAILABLE
from sandbox_chat.ui import formats
from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.cost import NEAR, OVER
from sandbox_chat.ui.widgets.line import Line, Part, arrange
from sandbox_chat.words import tr

WORDS = 28
"""Cells that what is going on has at least before keys are dropped: its longest usual words."""


def phase_words(state: ChatState, now: datetime, *, stopping: bool = False) -> tuple[str, str]:
    """Return what is going on in words, and its colour. ``stopping``: the user has stopped the turn."""
    match state.phase:
        case "connecting" if not state.agent:
            return tr("status.starting"), "$muted"
        case "connecting" if not stopping:
            return tr("status.connecting_waits" if state.busy else "status.connecting"), "$warning"
        case "idle":
            return tr("status.idle"), "$muted"
        case "dead" if state.agent == "closed" or state.finished:
            return tr("status.closed"), "$muted"
        case "dead":
            why = state.agent_text
            return tr("status.lost_why", why=why) if why else tr("status.lost"), "$error"
    if stopping or state.phase == "interrupting":
        return tr("status.stopping"), "$warning"
    return _turn_words(state, now)


def _turn_words(state: ChatState, now: datetime) -> tuple[str, str]:
    seconds = formats.running((now - state.since).total_seconds() * 1000) if state.since else ""
    if state.silent is not None and state.phase != "awaiting_approval":
        silence = f"{max((now - state.silent).total_seconds(), 0):.0f} s"
        return tr("status.silent", seconds=silence, key=key_of("chat.escape")), "$warning"
    match state.phase:
        case "retrying":
            retry = state.retry
            if retry is None:
                return tr("status.retrying"), "$warning"
            reason = formats.fit(retry.reason, 40)
            return tr("status.retrying_why", attempt=retry.attempt, reason=reason), "$warning"
        case "tool":
            return _running(state, seconds), "$primary"
        case "awaiting_approval":
            return tr("status.asking"), "$accent"
        case "streaming":
            return tr("status.coding" if state.coding else "status.writing"), "$primary"
        case _:
            return tr("status.thinking", seconds=seconds), "$primary"


def _running(state: ChatState, seconds: str) -> str:
    tools = state.running_tools
    name = tools[0].short_name if tools else ""
    what = tr("status.code") if name in ("run_code", "") else name
    more = f" +{len(tools) - 1}" if len(tools) > 1 else ""
    return tr("status.running", what=f"{what}{more}", seconds=seconds)


def cost_words(state: ChatState) -> str:
    """Return the session's cost in a word or two."""
    if state.demo:
        return tr("status.no_cost")
    if state.partial:
        return NOT_AVAILABLE
    known, unknown = state.cost
    if not unknown:
        return f"${known:.2f}"
    return NOT_AVAILABLE if not known else f"${known:.2f} + {NOT_AVAILABLE}"


def cost_colour(chat: Chat) -> str:
    """Return the colour of the session's cost: a warning when it nears its budget."""
    if chat.state.demo or chat.limit <= 0:
        return ""
    share = chat.state.cost[0] / chat.limit
    return "$error" if share >= OVER else "$warning" if share >= NEAR else ""


class StatusBar(Line):
    """The footer. ``tick`` draws it again while seconds go by; ``note`` overrides the keys for a while.

    ``work`` is something else that goes on, in words.
    """

    DEFAULT_CSS = """
    StatusBar { padding: 0 1; background: $background; color: $muted; }
    """

    def __init__(
        self, chat: Chat, clock: Callable[[], datetime], *, still: bool, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.chat = chat
        self.note = ""
        self.work = ""
        self.closing = False
        self._clock = clock
        self._still = still
        self._frame = 0

    def tick(self) -> None:
        """Move the spinner by one and draw the row again."""
        self._frame += 1
        self.changed()

    def say(self, note: str, seconds: float = 3.0) -> None:
        """Show ``note`` in place of the keys for some seconds; one that the row is too narrow for, above it."""
        self.note = note
        if not self._fits():
            self.note = ""
            self.app.notify(note, timeout=seconds, markup=False)
        self.changed()

        def over() -> None:
            if self.note == note:
                self.note = ""
                self.changed()

        self.set_timer(seconds, over)

    def _fits(self) -> bool:
        width = self.content_size.width
        left, _ = arrange(*self.parts(), width)
        return self.closing or not self.note or not width or left == self._keys()

    def parts(self) -> tuple[list[Part], list[Part]]:
        """Return the keys at the left and the state at the right."""
        if self.closing:
            return [Part(tr("status.closing"), "$warning")], []
        state = self.chat.state
        words, colour = phase_words(state, self._clock(), stopping=self.chat.stopping)
        if self.chat.read_only:
            words, colour = tr("opening.looking"), "$warning"
        right: list[Part] = []
        if self.work:
            right.append(Part(f"{self.work} {glyph('dot')} ", "$primary", drop=2))
        if state.busy or state.phase == "connecting":
            sign = glyph("still") if self._still else formats.spinner(self._frame)
            right.append(Part(f"{sign} ", colour, drop=2))
        idle = bool(self.note) and state.phase == "idle" and not self.chat.read_only
        right.append(Part(words, colour, drop=1 if idle else 0, shrink=0 if idle else WORDS))
        right.append(
            Part(f" {glyph('dot')} {cost_words(state)}", cost_colour(self.chat), "screen.toggle_cost", drop=1)
        )
        if context := formats.percent(state.context.used, state.context.max):
            right.append(Part(f" {glyph('dot')} {context}", "", "screen.toggle_cost", drop=1))
        return self._keys(), right

    def _keys(self) -> list[Part]:
        if self.note:
            return [Part(self.note, "$warning")]  # cost and context make room for it
        keys: list[tuple[str, str, str, int]] = []
        if self.chat.state.questions:
            keys.append(("chat.next_pane", "status.key_answer", "screen.next_pane", 3))
        elif self.chat.busy:
            keys.append(("chat.escape", "status.key_interrupt", "screen.escape", 3))
        elif self.chat.waiting:
            keys.append(("chat.send_waiting", "status.key_send_waiting", "screen.resume_waiting", 3))
        keys += [
            ("composer.send", "status.key_send", "screen.send", 5),
            ("composer.newline", "status.key_newline", "screen.newline", 8),
            ("app.palette", "status.key_commands", "app.command_palette", 6),
            ("app.help", "status.key_help", "app.help", 4),
            ("chat.tools", "status.key_tools", "screen.toggle_tools", 7),
            ("chat.cost", "status.key_cost", "screen.toggle_cost", 9),
        ]
        if self.chat.read_only:
            keys = [key for key in keys if not key[0].startswith("composer.")]
        parts = []
        for name, label, action, drop in keys:
            # One part a key, so that a key and its word are dropped together. Without a key the word is clicked.
            words = " ".join(filter(None, (key_of(name), tr(label))))
            parts.append(Part(f"{words}  ", "", action, drop=drop))
        return parts
