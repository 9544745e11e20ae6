"""A scrolling view of text that is drawn row by row: code with numbers, output, JSON. Long lines are folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.folding import FoldedLines
from sandbox_chat.ui.strips import overlaid
from sandbox_chat.ui.transcript.cells import Row, Run, width_of
from sandbox_chat.ui.transcript.palette import Palette
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.ui.transcript.palette import Kind


class TextView(ScrollView, can_focus=True):
    """Shows lines of runs. What is wrapped and drawn is only what is seen, so its length does not matter."""

    DEFAULT_CSS = """
    TextView { background: $background; scrollbar-size-vertical: 1; overflow-x: hidden; padding: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("details")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._folded = FoldedLines()
        self._numbers = False
        self._hint = False
        self._palette: Palette | None = None

    @property
    def allow_select(self) -> bool:
        """Text can be selected with the mouse."""
        return True

    @property
    def text(self) -> str:
        """The whole text, as it is shown."""
        return self._folded.text().rstrip("\n")

    @property
    def line_count(self) -> int:
        """Number of lines."""
        return len(self._folded.lines)

    def show(
        self,
        lines: Sequence[Row],
        *,
        numbers: bool = False,
        follow: bool = False,
        keep: bool = False,
        hint: bool = False,
    ) -> None:
        """Show ``lines`` from their start. ``numbers`` puts line numbers before them.

        ``follow`` stays at the end if that is in view, else where it is; ``keep`` stays where it is.
        ``hint``: they are no text but say that there is none.
        """
        at_end = self._at_end
        self._numbers, self._hint = numbers, hint
        self._folded.resize(self._room(len(lines)))
        self._folded.replace(0, lines)
        self._changed(follow=follow and at_end)
        if not (follow or keep):
            self.scroll_home(animate=False)

    def change(self, first: int, lines: Sequence[Row]) -> None:
        """Put ``lines`` in place of those from number ``first`` on. The end is followed when it was in view."""
        at_end = self._at_end
        self._hint = False
        self._folded.resize(self._room(first + len(lines)))
        self._folded.replace(first, lines)
        self._changed(follow=at_end)

    @property
    def _at_end(self) -> bool:
        return self.scroll_offset.y >= self.max_scroll_y

    def _changed(self, *, follow: bool) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self._folded.height)
        if follow:
            self.scroll_end(animate=False)
        self.refresh()

    def _gutter(self, lines: int) -> int:
        return len(str(max(1, lines))) + 1 if self._numbers else 0

    def _room(self, lines: int) -> int:
        return self.scrollable_content_region.width - self._gutter(lines)

    def on_resize(self) -> None:
        """Fold again when the width changed."""
        self._folded.resize(self._room(self.line_count))
        self._changed(follow=False)

    def notify_style_update(self) -> None:
        """Draw again in the new colours."""
        super().notify_style_update()
        self._palette = None
        self.refresh()

    def _colours(self) -> Palette:
        if self._palette is None:
            app = self.app
            kind: Kind = "none" if app.no_color else "ansi" if app.native_ansi_color else "rgb"
            self._palette = Palette(
                app.theme_variables,
                background=self.background_colors[1].hex6,
                dark=app.current_theme.dark,
                kind=kind,
            )
        return self._palette

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text that is selected, without line numbers and the ends of folded rows."""
        start, end = selection.start, selection.end
        first = (start.y, start.x) if start is not None else (0, 0)
        last = (end.y, end.x) if end is not None else (self._folded.height, 0)
        return self._folded.text_between(first, last), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        del selection
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width = self.scrollable_content_region.width
        palette = self._colours()
        index = y + self.scroll_offset.y
        found = self._folded.row(index)
        if found is None:
            return palette.blank(width)
        gutter = self._gutter(self.line_count)
        body = palette.strip(found.row, max(0, width - gutter)).apply_offsets(0, index)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(index)) is not None:
            body = self._selected(body, found.row, span)
        if not gutter:
            return body
        label = f"{found.line + 1:>{gutter - 1}} " if found.first else " " * gutter
        return Strip.join([palette.strip([Run(label, ("faint",))], gutter), body])

    def _selected(self, body: Strip, row: Row, span: tuple[int, int]) -> Strip:
        text = "".join(run.text for run in row)
        start = width_of(text[: span[0]])
        end = width_of(text if span[1] == -1 else text[: span[1]])
        style = self.screen.get_visual_style("screen--selection").rich_style
        return overlaid(body, [(start, end, style)]) if end > start else body

    def action_copy(self) -> None:
        """Copy the whole text to the clipboard."""
        if not self._hint and (text := self.text):
            from sandbox_chat.ui.outside import copy_text

            copy_text(self.app, text)
            self.app.notify(tr("cards.copied"), markup=False, timeout=2)
