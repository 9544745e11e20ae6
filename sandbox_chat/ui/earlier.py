"""The turns before those that a long session opens with: read in a thread, and put before the others all at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sandbox_chat.events import Event, Status
from sandbox_chat.text import clean_line
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.words import tr


def _agent_settled(event: Event) -> bool:
    """Whether the agent's program is there, or is known not to come."""
    return isinstance(event, Status) and event.component == "agent" and event.state != "connecting"


class EarlierTurns:
    """Brings older turns into one chat. All methods are called on the terminal's loop.

    The transcript gets their blocks; the state is made anew from all events in order, so that it ends as if nothing
    had come late. ``later`` calls a function on the loop, from any thread; ``came`` is called when all is there.
    """

    def __init__(self, chat: Chat, later: Callable[..., Any], came: Callable[[], None]) -> None:
        self._chat = chat
        self._later = later
        self._came = came
        self._view: TranscriptView | None = None
        self._events: list[Event] = []  # that came after the older ones
        self._begun = False

    def take(self, batch: Sequence[Event], past: int, view: TranscriptView) -> None:
        """Note events before they are shown; the first ``past`` of them are replayed."""
        engine = self._chat.engine
        if self._view is None and past and not self._begun and engine is not None and engine.has_older:
            self._view = view
            state = self._chat.state
            state.partial = True
            state.title = state.made_title = glyph("ellipsis")  # its first prompt is not known yet
            view.await_older(tr("opening.reading"))
        if self._view is None:
            return
        self._events.extend(batch)
        if not self._begun and any(map(_agent_settled, batch[past:])):
            self._begun = True
            # The last turns come first, then the agent, for which the next prompt waits, and then these.
            self._later(self._begin)

    def _begin(self) -> None:
        from sandbox_chat.ui.transcript.older import OlderBlocks

        engine, view = self._chat.engine, self._view
        assert engine is not None
        assert view is not None
        blocks = OlderBlocks(view.scene)
        strays = tuple(view.transcript.strays)
        width = view.layout_width
        older = engine.older()
        threading.Thread(
            target=self._read, args=(older, blocks, strays, width), name="earlier-turns", daemon=True
        ).start()

    def _read(self, older: Iterable[Event], blocks: Any, strays: Sequence[Event], width: int) -> None:
        """In a thread: make blocks and state."""
        state = ChatState()
        try:
            for event in older:
                blocks.take(event)
                state.apply(event)
        except OSError as error:
            with contextlib.suppress(RuntimeError):  # the program has ended
                self._later(self._lost, clean_line(error.strerror or type(error).__name__))
            return
        made = blocks.end(strays, width)
        count = len(self._events)
        state.apply_all(self._events[:count])
        with contextlib.suppress(RuntimeError):
            self._later(self._join, made, state, count)

    def _join(self, made: Any, state: ChatState, count: int) -> None:
        view, self._view = self._view, None
        state.apply_all(self._events[count:])
        self._events = []
        self._chat.state.become(state)
        if view is not None and view.is_mounted:
            view.join(made)
        self._came()

    def _lost(self, reason: str) -> None:
        view, self._view = self._view, None
        self._events = []
        if view is not None and view.is_mounted:
            view.older_lost(tr("opening.unread", reason=reason))
        self._came()
