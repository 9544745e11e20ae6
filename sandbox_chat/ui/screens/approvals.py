"""Shows the answers that hold for the rest of the session; each can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from sandbox_chat.allowed import about
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.formats import fit, fit_end
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.key_line import KeyLine
from sandbox_chat.words import tr

SHOWN = 12
"""Answers that are seen at once; fewer where the screen is low."""


class AnswerList(Widget):
    """The answers, two rows each: what was said, and about what. The chosen one is marked."""

    DEFAULT_CSS = """
    AnswerList { height: auto; width: 1fr; margin: 1 0; }
    """

    def __init__(self, state: ChatState, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state
        self.place = 0
        self._top = 0

    @property
    def ids(self) -> list[str]:
        """Ids of the questions that the answers were given to."""
        return list(self.state.allowed.answers)

    def step(self, by: int) -> None:
        """Choose another answer."""
        self.place = max(0, min(self.place + by, len(self.ids) - 1))
        self.refresh(layout=True)

    def _window(self) -> range:
        room = max(1, min(SHOWN, (self.app.size.height - 10) // 2))
        count = len(self.ids)
        self._top = max(0, min(self._top, self.place, count - room))
        self._top = max(self._top, self.place - room + 1)
        return range(self._top, min(count, self._top + room))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that are needed."""
        del container, viewport
        return max(2 * len(self._window()), len(self._nothing(width)))

    @staticmethod
    def _nothing(width: int) -> list[Content]:
        return Content.styled(tr("approvals.none"), "$muted").wrap(max(1, width))

    def render(self) -> Content:
        """Draw the answers that are seen."""
        width = self.content_size.width
        answers = list(self.state.allowed.answers.values())
        if not answers:
            return Content("\n").join(self._nothing(width))
        rows: list[Content] = []
        for place in self._window():
            asked, label = answers[place]
            chosen = place == self.place
            mark = f"{glyph('prompt')} " if chosen else "  "
            rows.append(Content.styled(fit(mark + label, width), "bold $primary" if chosen else ""))
            rows.append(Content.styled(f"  {fit_end(about(asked), max(0, width - 2))}", "$muted"))
        return Content("\n").join(rows)

    def on_click(self, event: events.Click) -> None:
        """Choose the answer that was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y // 2 < len(self._window()):
            event.stop()
            self.place = self._window()[offset.y // 2]
            self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Choose the next one."""
        event.stop()
        self.step(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Choose the one before."""
        event.stop()
        self.step(-1)


class ApprovalsScreen(ModalScreen[None]):
    """Lists the answers that hold. ``take_back`` is called with the id of the question whose answer is taken back."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("approvals")]

    DEFAULT_CSS = """
    ApprovalsScreen { align: center middle; background: $background 60%; }
    #approvals-box { width: 76; max-width: 94%; height: auto; max-height: 90%; padding: 1 2; background: $panel; }
    #approvals-box Static { width: 1fr; }
    """

    def __init__(self, state: ChatState, take_back: Callable[[str], None]) -> None:
        super().__init__()
        self.state = state
        self._take_back = take_back
        self._shown: list[str] = []

    def compose(self) -> ComposeResult:
        """Lay out the list."""
        remove = f"{key_of('approvals.remove')} {tr('approvals.key_remove')}"
        back = f"{key_of('approvals.back')} {tr('approvals.key_back')}"
        with Vertical(id="approvals-box"):
            yield Static(Content.styled(tr("approvals.title"), "bold"))
            yield AnswerList(self.state, id="approvals-list")
            yield Static(Content.styled(tr("approvals.over"), "$muted"))
            yield KeyLine([(remove, "screen.remove"), (back, "screen.back")])

    def on_mount(self) -> None:
        """Look now and then whether other answers hold."""
        self._shown = self.answers.ids
        self.set_interval(0.2, self._follow)

    @property
    def answers(self) -> AnswerList:
        """The list."""
        return self.query_one(AnswerList)

    def _follow(self) -> None:
        if self.answers.ids != self._shown:
            self._shown = self.answers.ids
            self.answers.step(0)

    def action_step(self, by: int) -> None:
        """Choose another answer."""
        self.answers.step(by)

    def action_remove(self) -> None:
        """Take the chosen answer back."""
        ids = self.answers.ids
        if self.answers.place < len(ids):
            self._take_back(ids[self.answers.place])
            self.notify(tr("approvals.taken_back"), markup=False)

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)
