"""What the program tells outside of its screen: messages while nobody looks, the title of the terminal's window."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from sandbox_chat.events import Event
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.notify import (
    KEEP_TITLE,
    RESTORE_TITLE,
    Attention,
    choose,
    message,
    multiplexer,
    window_title,
)
from sandbox_chat.words import tr


class Outward:
    """Tells. ``send`` writes to the terminal between two frames; ``name`` is what the terminal said that it is."""

    def __init__(self, settings: Settings, send: Callable[[str], None], name: str = "") -> None:
        self.way = choose(settings.notify, os.environ, name)
        self._inside = multiplexer(os.environ)
        # Whoever answers who it is reports its focus too; a multiplexer does so only if it is told to.
        self.attention = Attention(settings.notify_after, tells=bool(name) and not self._inside)
        self._send = send
        self._titles = settings.window_title or self.way == "title"
        self._kept = False
        self._marked = False
        self._title = ""

    def take(self, events: Sequence[Event], chat: Chat) -> None:
        """Tell what happened just now in ``chat``, which has taken the events."""
        called = ""
        for event in events:
            called = self.attention.take(event) or called
        if called and not (called == "done" and chat.busy):  # the next prompt runs already
            self._call(called, chat.state.title)
        self.show_title(chat.state.title)

    def _call(self, what: str, title: str) -> None:
        words = tr(f"notify.{what}")
        if title:
            words = tr("notify.text", what=words, title=title)
        self._marked = self.way == "title"
        if data := message(self.way, tr("notify.window"), words, inside=self._inside):
            self._send(data)

    def show_title(self, title: str) -> None:
        """Let the window be called after the session, with a mark while somebody is called by it."""
        if not self._titles:
            return
        words = tr("notify.window_titled", title=title) if title else tr("notify.window")
        if self._marked:
            words = tr("notify.marked", window=words)
        if words != self._title:
            self._send(("" if self._kept else KEEP_TITLE) + window_title(words))
            self._kept, self._title = True, words

    def used(self, at: datetime, title: str) -> None:
        """Somebody used a key or the mouse."""
        self.attention.seen(at)
        self._looked(title)

    def _looked(self, title: str) -> None:
        """Somebody is here: a mark has done its work."""
        if self._marked:
            self._marked = False
            self.show_title(title)

    def focus(self, here: bool, title: str) -> None:
        """The terminal tells that its window has the focus, or has it no longer."""
        self.attention.focused = here
        if here:
            self._looked(title)

    def restore(self) -> None:
        """Give the window its title back, when the interface has ended."""
        if self._kept and sys.__stderr__ is not None:
            self._kept = False
            try:
                if sys.__stderr__.isatty():
                    sys.__stderr__.write(RESTORE_TITLE)
                    sys.__stderr__.flush()
            except (OSError, ValueError):  # the terminal is gone
                return
