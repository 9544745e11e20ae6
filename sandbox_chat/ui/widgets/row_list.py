"""A list of a few things on a dialog, a row each, one of them chosen. The keys are those of the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual import events
from textual.content import Content
from textual.widget import Widget

OTHER_ROWS = 12
"""Rows of the screen that the list leaves for the rest."""
SHOWN = 8
"""Rows that are seen at once; fewer where the screen is low."""


class RowList(Widget):
    """Subclasses say what there is and how a row looks. ``changed`` is called when another one is chosen."""

    DEFAULT_CSS = """
    RowList { height: auto; width: 1fr; margin: 1 0; }
    """

    def __init__(self, changed: Callable[[], None], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.place = 0
        self._changed = changed
        self._top = 0

    @property
    def items(self) -> Sequence[Any]:
        """All there is, in its order."""
        raise NotImplementedError

    def rows_of(self, places: range, width: int) -> list[Content]:
        """Return the rows of the things at these places, in at most ``width`` cells."""
        raise NotImplementedError

    def choose(self, place: int) -> None:
        """Choose what is at this place, or the next one there is."""
        self.place = max(0, min(place, len(self.items) - 1))
        self.refresh(layout=True)
        self._changed()

    @property
    def present(self) -> int:
        """The place of the chosen one."""
        return max(0, min(self.place, len(self.items) - 1))

    def _window(self) -> range:
        room = max(1, min(SHOWN, self.app.size.height - OTHER_ROWS))
        count, place = len(self.items), self.present
        self._top = max(0, min(self._top, place, count - room))
        self._top = max(self._top, place - room + 1)
        return range(self._top, min(count, self._top + room))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that are needed."""
        del container, viewport, width
        return len(self._window())

    def render(self) -> Content:
        """Draw the rows that are seen."""
        return Content("\n").join(self.rows_of(self._window(), self.content_size.width))

    def on_click(self, event: events.Click) -> None:
        """Choose the row that was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < len(self._window()):
            event.stop()
            self.choose(self._window()[offset.y])

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Choose the next one."""
        event.stop()
        self.choose(self.place + 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Choose the one before."""
        event.stop()
        self.choose(self.place - 1)
