"""A scrolling view of text that is drawn row by row: code with numbers, output, JSON. Long lines are folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

TAB = 4


class TextView(ScrollView, can_focus=True):
    """Shows lines of ``Content``. What is drawn is only what is seen, so its length does not matter."""

    DEFAULT_CSS = """
    TextView { background: $background; scrollbar-size-vertical: 1; overflow-x: hidden; padding: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "Up", show=False),
        Binding("down", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home", "scroll_home", "To the start", show=False),
        Binding("end", "scroll_end", "To the end", show=False),
        Binding("c", "copy", "Copy all of it", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Content] = []
        self._numbers = False
        self._rows: list[tuple[int, bool, Content]] = []
        self._width = 0
        self._text = ""

    @property
    def allow_select(self) -> bool:
        """Text can be selected with the mouse."""
        return True

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    def show(
        self, content: Content | Sequence[Content], *, numbers: bool = False, follow: bool = False
    ) -> None:
        """Show ``content``. ``numbers`` puts line numbers before it; ``follow`` stays at its end."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        lines = content.split("\n", allow_blank=True) if isinstance(content, Content) else list(content)
        self._lines = [line.expand_tabs(TAB) if "\t" in line.plain else line for line in lines]
        while self._lines and not self._lines[-1]:
            self._lines.pop()
        self._text = "\n".join(line.plain for line in self._lines)
        self._numbers = numbers
        self._fold()
        if follow and at_end:
            self.scroll_end(animate=False)
        elif not follow:
            self.scroll_home(animate=False)
        self.refresh()

    def _gutter(self) -> int:
        return len(str(max(1, len(self._lines)))) + 1 if self._numbers else 0

    def _fold(self) -> None:
        self._width = width = self.scrollable_content_region.width
        room = max(2, width - self._gutter())
        rows: list[tuple[int, bool, Content]] = []
        for number, line in enumerate(self._lines, 1):
            if line.cell_length <= room:
                rows.append((number, True, line))
            else:
                rows.extend((number, part == 0, piece) for part, piece in enumerate(line.fold(room)))
        self._rows = rows
        self.virtual_size = Size(width, len(rows))

    def on_resize(self) -> None:
        """Fold again when the width changed."""
        if self.scrollable_content_region.width != self._width:
            self._fold()

    def notify_style_update(self) -> None:
        """Draw again in the new colours."""
        super().notify_style_update()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text that is selected, without line numbers."""
        return selection.extract("\n".join(row.plain for _, _, row in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width = self.scrollable_content_region.width
        style = self.visual_style
        index = y + self.scroll_offset.y
        if index >= len(self._rows):
            return Strip.blank(width, style.rich_style)
        number, first, content = self._rows[index]
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(index)) is not None:
            start, end = span
            end = len(content) if end == -1 else end
            content = content.stylize(self.screen.get_visual_style("screen--selection"), start, end)
        body = Strip(content.render_segments(style), content.cell_length).apply_offsets(0, index)
        if self._numbers:
            label = f"{number:>{self._gutter() - 1}} " if first else " " * self._gutter()
            gutter = Content.styled(label, "$faint")
            body = Strip.join([Strip(gutter.render_segments(style), gutter.cell_length), body])
        return body.adjust_cell_length(width, style.rich_style)

    def action_copy(self) -> None:
        """Copy the whole text to the clipboard."""
        if self._text:
            self.app.copy_to_clipboard(self._text)
            self.app.notify("Copied.", markup=False, timeout=2)
