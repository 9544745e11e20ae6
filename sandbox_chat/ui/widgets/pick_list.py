"""A list of a few rows above the composer: commands, files, prompts. The composer keeps the focus and drives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph

ROWS = 8
"""Rows of choices that are seen at once; fewer where the screen is low."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A choice: its text, and a word about it at the right."""

    text: str
    detail: str = ""


class PickList(Widget):
    """Shows choices and which one is chosen. Hidden when there is nothing to choose."""

    DEFAULT_CSS = """
    PickList { height: auto; width: 1fr; display: none; padding: 0 1; background: $panel; color: $foreground; }
    """

    class Clicked(Message):
        """A choice was clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.title = ""
        self.picks: Sequence[Pick] = ()
        self.chosen = 0
        self._top = 0
        self._rows = ROWS

    @property
    def open(self) -> bool:
        """True while the list is seen."""
        return bool(self.display)

    def show(self, title: str, picks: Sequence[Pick]) -> None:
        """Show ``picks``, the first of them chosen, under a ``title``."""
        before = len(self._window())
        self._rows = max(1, min(ROWS, self.app.size.height // 3))
        self.title, self.picks, self.chosen, self._top = title, picks, 0, 0
        self.display = True
        self.refresh(layout=before != len(self._window()))

    def retitle(self, title: str) -> None:
        """Show another title over the same choices."""
        self.title = title
        self.refresh()

    def hide(self) -> None:
        """Hide the list."""
        if self.display:
            self.display = False
        self.picks = ()

    def move(self, by: int) -> None:
        """Choose another row; from the last one on to the first."""
        if self.picks:
            step = by if abs(by) > 1 else 0
            place = self.chosen + by
            last = len(self.picks) - 1
            self.chosen = min(max(place, 0), last) if step else place % len(self.picks)
            self._top = min(max(self._top, self.chosen - self._rows + 1), self.chosen)
            self.refresh()

    def _window(self) -> range:
        return range(self._top, min(self._top + self._rows, len(self.picks)))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that are needed."""
        del container, viewport, width
        return len(self._window()) + 1

    def render(self) -> Content:
        """Draw the title and the rows that are seen."""
        width = self.content_size.width
        place = f"  {self.chosen + 1}/{len(self.picks)}" if len(self.picks) > self._rows else ""
        title = fit(self.title, max(0, width - len(place)))
        lines = [Content.styled(title + place.rjust(width - Content(title).cell_length), "$muted")]
        for number in self._window():
            pick = self.picks[number]
            room = max(width // 2, width - 4 - Content(pick.text).cell_length)
            detail = fit(pick.detail, max(0, room))
            text = fit(pick.text, max(0, width - 2 - (Content(detail).cell_length + 2 if detail else 0)))
            gap = " " * max(0, width - 2 - Content(text).cell_length - Content(detail).cell_length)
            mark = f"{glyph('prompt')} " if number == self.chosen else "  "
            style = "bold $primary" if number == self.chosen else ""
            lines.append(Content.assemble((mark + text, style), gap, (detail, "$muted")))
        return Content("\n").join(lines)

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked."""
        event.stop()
        number = self._top + event.y - 1
        if event.y >= 1 and number < len(self.picks):
            self.chosen = number
            self.post_message(self.Clicked())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Choose the next one."""
        event.stop()
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Choose the one before."""
        event.stop()
        self.move(-1)
