"""Where the terminal's own cursor is: at the caret of what has the focus, because input methods open there."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.geometry import Offset
from textual.widgets import Input, TextArea


class CaretApp(App[Any]):
    """An ``App`` whose cursor position is that of the focused caret at each frame.

    Textual sets it when the caret moves, and not when what holds the caret does: a question above the composer,
    a longer draft or another size of the terminal would leave it behind.
    """

    _cursor_position = Offset(0, 0)

    @property
    def cursor_position(self) -> Offset:
        """The place of the caret on the screen; where it was last when nothing with one has the focus."""
        focused = self.screen.focused if self.screen_stack else None
        if isinstance(focused, TextArea | Input) and focused.is_mounted:
            self._cursor_position = focused.cursor_screen_offset
        return self._cursor_position

    @cursor_position.setter
    def cursor_position(self, offset: Offset) -> None:
        self._cursor_position = offset
