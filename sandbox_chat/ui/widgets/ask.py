"""The box above the composer in which the user is asked. It never takes a key that was meant for the prompt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from sandbox_chat.events import ApprovalRequested
from sandbox_chat.ui.actions import bindings_of, key_name, key_of
from sandbox_chat.ui.folding import FoldedLines
from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph, own
from sandbox_chat.ui.keys import typed_text
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript.cells import Run
from sandbox_chat.words import tr, tr_count

GRACE = 0.5
"""Seconds that a question has been seen, and that nothing was typed, before keys answer it."""
TYPING = 0.25
"""Seconds after an answer's key within which another key says that both were the beginning of a prompt."""
DETAIL_ROWS = 8
"""Rows of what is asked about that are seen at least, where there is room."""
DETAIL_SHARE = 3
"""On a high screen it takes a third of the rows."""
TOOL_CALL = "mcp_tool"
"""Kind of a question whose detail is what is decided about: it is as plain to read as the question."""
WHEEL = 2
"""Rows that a step of the mouse wheel scrolls."""
QUESTION_ROWS = 3
"""Rows that a question takes at most when there is more to show."""
OTHER_ROWS = 5
"""Rows of the screen that are not the box's: title, tabs, one of the transcript, the prompt, the status."""

_NEWLINE_KEYS = frozenset(("enter", "ctrl+j"))
"""Newlines of a text that is on its way into the prompt."""


class AskBox(Widget, can_focus=True):
    """Shows the oldest open question; its choices are seen in any size. Posts ``Decided``, ``Typed`` for keys that belong into the prompt, and ``Left``.

    ``fresh()`` returns true while the user is at work in the composer: then the box does not take the focus.
    """

    DEFAULT_CSS = """
    AskBox {
        height: auto; width: 1fr; padding: 0 1; display: none; background: $panel; color: $foreground;
        &:focus { background: $primary 20%; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("ask")]

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
        self._detail = FoldedLines()
        self._top = 0  # row of the detail that is seen first
        self._seen_rows = 0
        self._more = 0  # questions that are open after this one

    @property
    def ready(self) -> bool:
        """True when the question has been seen long enough to be answered."""
        return self.asked is not None and self._clock() - self._seen >= GRACE

    def update_state(self) -> None:
        """Show the oldest question that is open, or nothing."""
        waiting = [each for key, each in self.state.questions.items() if key not in self._decided]
        asked = waiting[0] if waiting else None
        more, self._more = self._more, max(0, len(waiting) - 1)
        if asked is self.asked:
            if more != self._more:
                self.refresh(layout=True)
            return
        self._forget_pending()
        self.asked = asked
        self._offered = False
        self._seen = self._clock()
        self._top = 0
        detail = asked.detail.split("\n") if asked is not None and asked.detail else []
        self._detail.replace(0, [[Run(line)] for line in detail])
        self.display = asked is not None
        if asked is None:
            if self._watcher is not None:
                self._watcher.pause()
            if self.has_focus:
                self.post_message(self.Left())
            return
        self.refresh(layout=True)
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

    def action_scroll(self, by: int) -> None:
        """Scroll what is asked about by so many rows."""
        self._top = max(0, min(self._top + by, self._detail.height - self._seen_rows))
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Scroll it by so many pages; two of them share a row."""
        self.action_scroll(pages * max(1, self._seen_rows - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_scroll(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_scroll(-WHEEL)

    def on_focus(self) -> None:
        """Say which keys count."""
        self._typing = False
        self.refresh(layout=True)

    def on_blur(self) -> None:
        """Say how to come back."""
        self._forget_pending()
        self.refresh(layout=True)

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
        written = typed_text(event) or ("\n" if self._typing and event.key in _NEWLINE_KEYS else "")
        if not written:
            return
        event.stop()
        event.prevent_default()
        keys = {choice.key for choice in asked.choices}
        if self._typing or self._pending_key or not self.has_focus or written not in keys or not self.ready:
            text, self._pending_key = self._pending_key + written, ""
            self._forget_pending()
            self._typing = True
            self.post_message(self.Typed(text))
            return
        self._pending_key = written
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

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that are needed."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """Draw the question."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        """Return the rows: of the choices all, of the question and its detail what has room beside them."""
        asked = self.asked
        if asked is None or width < 1:
            return []
        choices = self._choices(asked, width)
        room = max(1, self.app.size.height - OTHER_ROWS - len(choices))
        question = Content.assemble((f"{glyph('asks')} ", "bold $accent"), (asked.question, "bold")).wrap(
            width
        )
        rows = _bounded(question, min(room, QUESTION_ROWS), width)
        self._detail.resize(max(1, width - 2))
        total = self._detail.height
        seen = min(max(DETAIL_ROWS, self.app.size.height // DETAIL_SHARE), room - len(rows))
        if total > seen:
            seen = max(0, seen - 1)
        self._seen_rows = seen
        self._top = max(0, min(self._top, total - seen))
        for number in range(self._top, min(total, self._top + seen)):
            found = self._detail.row(number)
            text = "".join(run.text for run in found.row) if found is not None else ""
            rows.append(Content.styled(f"  {text}", "" if asked.kind == TOOL_CALL else "$muted"))
        if total > seen and len(rows) < room:
            below = total - self._top - seen
            keys = f"{key_of('ask.up')}{key_of('ask.down')}" if self.has_focus else ""
            key = "ask.more_lines" if below else "ask.lines_above"
            more = " ".join((tr(key, count=f"{below or self._top:,}"), keys))
            rows.append(Content.styled(fit(own(more.rstrip()), width), "$muted"))
        return rows + choices

    def _choices(self, asked: ApprovalRequested, width: int) -> list[Content]:
        """Return the rows of the choices; none is broken."""
        pieces = []
        for number, choice in enumerate(asked.choices):
            click = Style.from_meta({"@click": f"screen.answer({number})"})
            label = fit(choice.label, max(1, width - 4))
            pieces.append(Content.assemble((choice.key, "bold $accent"), " ", (label, click)))
        if self.has_focus:
            hint = f"{key_name('escape')} {asked.choices[-1].label}"
        else:
            hint = tr("ask.how", key=key_of("chat.next_pane"))
        pieces.append(Content.styled(fit(hint, max(1, width - 2)), "$muted"))
        if self._more:
            more = tr_count("ask.more_questions", self._more)
            pieces.append(Content.styled(fit(more, max(1, width - 2)), "$accent"))
        rows: list[Content] = []
        for piece in pieces:
            if rows and rows[-1].cell_length + 3 + piece.cell_length <= width:
                rows[-1] = rows[-1] + "   " + piece
            else:
                rows.append(Content("  ") + piece)
        return rows


def _bounded(rows: list[Content], limit: int, width: int) -> list[Content]:
    """Return at most ``limit`` rows; the last one says when there were more."""
    if len(rows) <= limit:
        return rows
    last = fit(f"{rows[limit - 1].plain.ljust(width)}…", width)
    return [*rows[: limit - 1], Content.styled(last, "bold")]
