"""The box above the composer in which the user is asked. It never takes a key that was meant for the prompt."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual import events
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Static

from sandbox_chat.events import ApprovalRequested
from sandbox_chat.ui.actions import key_name, key_of
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.words import tr

GRACE = 0.5
"""Seconds that a question has been seen, and that nothing was typed, before keys answer it."""
TYPING = 0.25
"""Seconds after an answer's key within which another key says that both were the beginning of a prompt."""
DETAIL_ROWS = 8


class AskBox(Static, can_focus=True):
    """Shows the oldest open question. Posts ``Decided``, ``Typed`` for keys that belong into the prompt, and ``Left``.

    ``fresh()`` returns true while the user is at work in the composer: then the box does not take the focus.
    """

    DEFAULT_CSS = """
    AskBox {
        height: auto; width: 1fr; padding: 0 1; display: none; background: $panel; color: $foreground;
        &:focus { background: $primary 20%; }
    }
    """

    class Decided(Message):
        """The user chose an answer."""

        def __init__(self, approval_id: str, choice: str) -> None:
            super().__init__()
            self.approval_id = approval_id
            self.choice = choice

    class Typed(Message):
        """These characters belong into the prompt."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The question is gone; the focus is to go back to the composer."""

    def __init__(
        self,
        state: ChatState,
        fresh: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.state = state
        self.asked: ApprovalRequested | None = None
        self._at_work = fresh
        self._clock = clock
        self._seen = 0.0
        self._offered = False  # the focus was taken once; a user who goes away is not fetched back
        self._decided: set[str] = set()
        self._pending_key = ""
        self._pending_timer: Timer | None = None
        self._typing = False  # keys that are still on their way here are text, until the focus comes back
        self._watcher: Timer | None = None

    @property
    def ready(self) -> bool:
        """True when the question has been seen long enough to be answered."""
        return self.asked is not None and self._clock() - self._seen >= GRACE

    def update_state(self) -> None:
        """Show the oldest question that is open, or nothing."""
        asked = next((each for key, each in self.state.questions.items() if key not in self._decided), None)
        if asked is self.asked:
            return
        self._forget_pending()
        self.asked = asked
        self._offered = False
        self._seen = self._clock()
        self.display = asked is not None
        if asked is None:
            if self._watcher is not None:
                self._watcher.pause()
            if self.has_focus:
                self.post_message(self.Left())
            return
        self._draw_question(asked, focused=self.has_focus)
        if self._watcher is None:
            self._watcher = self.set_interval(GRACE / 2, self._offer)
        else:
            self._watcher.resume()

    def decide(self, choice: str) -> None:
        """Take an answer, by a click or a key."""
        asked = self.asked
        if asked is None or not self.ready or choice not in {each.name for each in asked.choices}:
            return
        self._decided.add(asked.approval_id)
        self.post_message(self.Decided(asked.approval_id, choice))
        self.update_state()

    def on_focus(self) -> None:
        """Say which keys count."""
        self._typing = False
        if self.asked is not None:
            self._draw_question(self.asked, focused=True)

    def on_blur(self) -> None:
        """Say how to come back."""
        self._forget_pending()
        if self.asked is not None:
            self._draw_question(self.asked, focused=False)

    def on_key(self, event: events.Key) -> None:
        """Answer by a choice's letter, or by Esc, which does nothing; other letters go into the prompt."""
        asked = self.asked
        if asked is None:
            return
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self._forget_pending()
            self.decide(asked.choices[-1].name)
            return
        if not event.is_printable or event.character is None:
            return
        event.stop()
        event.prevent_default()
        keys = {choice.key for choice in asked.choices}
        if (
            self._typing
            or self._pending_key
            or not self.has_focus
            or event.character not in keys
            or not self.ready
        ):
            text, self._pending_key = self._pending_key + event.character, ""
            self._forget_pending()
            self._typing = True
            self.post_message(self.Typed(text))
            return
        self._pending_key = event.character
        self._pending_timer = self.set_timer(TYPING, self._take_pending)

    def _take_pending(self) -> None:
        key = self._pending_key
        self._forget_pending()
        if self.asked is not None and key:
            self.decide(next((each.name for each in self.asked.choices if each.key == key), ""))

    def _forget_pending(self) -> None:
        self._pending_key = ""
        if self._pending_timer is not None:
            self._pending_timer.stop()
            self._pending_timer = None

    def _offer(self) -> None:
        """Take the focus, once, when the question has been seen and nothing is being typed."""
        if self._offered or not self.ready or self._at_work():
            return
        self._offered = True
        self.focus()

    def _draw_question(self, asked: ApprovalRequested, *, focused: bool) -> None:
        lines = [Content.assemble((f"{glyph('asks')} ", "bold $accent"), (asked.question, "bold"))]
        detail = asked.detail.splitlines()
        lines += [Content.styled(f"  {line}", "$muted") for line in detail[:DETAIL_ROWS]]
        if len(detail) > DETAIL_ROWS:
            lines.append(Content.styled(tr("ask.more_lines", count=len(detail) - DETAIL_ROWS), "$muted"))
        row = Content("  ")
        for number, choice in enumerate(asked.choices):
            click = Style.from_meta({"@click": f"screen.answer({number})"})
            row = row + Content.assemble((choice.key, "bold $accent"), " ", (choice.label, click), "   ")
        last = asked.choices[-1]
        if focused:
            hint = f"{key_name('escape')} {last.label}"
        else:
            hint = tr("ask.how", key=key_of("chat.next_pane"))
        lines.append(row + Content.styled(hint, "$muted"))
        self.update(Content("\n").join(lines))
