"""The line between transcript and side; dragging it changes their widths."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from sandbox_chat.ui.glyphs import glyph


class Splitter(Widget):
    """A vertical line of one column. Posts ``Moved`` with the side's new width while it is dragged."""

    DEFAULT_CSS = """
    Splitter { width: 1; height: 1fr; color: $border; background: $background; pointer: ew-resize; }
    Splitter:hover, Splitter.-dragging { color: $primary; }
    """

    ALLOW_SELECT = False  # dragging it is no selection of text

    class Moved(Message):
        """The line was dragged: the side should be ``columns`` wide."""

        def __init__(self, columns: int) -> None:
            super().__init__()
            self.columns = columns

    def render(self) -> Content:
        """Draw the line."""
        return Content("\n".join(glyph("upright") * max(1, self.size.height)))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag."""
        event.stop()
        self.capture_mouse()
        self.add_class("-dragging")

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the drag."""
        event.stop()
        self.release_mouse()
        self.remove_class("-dragging")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell the new width."""
        if self.has_class("-dragging"):
            event.stop()
            self.post_message(self.Moved(self.screen.size.width - int(event.screen_x) - 1))
