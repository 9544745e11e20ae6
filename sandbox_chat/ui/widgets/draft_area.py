"""A text area for drafts: long pastes and mentioned files stand in it as tokens that act as one character."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Offset, Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from sandbox_chat.text import from_paste
from sandbox_chat.ui.tokens import Part, Span, Tokens, clean_slowly, outside, shown, span_at, spans

HEAVY_CHARACTERS = 20_000
HEAVY_LINE = 4_000
HEAVY_LINES = 1_000
"""What a draft may hold as plain text: characters, of them in one line, and lines. A text area lays a whole line
out again at each key, so what is longer stands there as a token."""

LATER = HEAVY_CHARACTERS
"""Characters from which a paste is cleaned on a thread."""

SMALL = 200
"""Characters of a text that is never folded for what is there already."""


def heavy(text: str) -> bool:
    """True for a text that would make each key slow."""
    if len(text) > HEAVY_CHARACTERS or text.count("\n") >= HEAVY_LINES:
        return True
    return len(text) > HEAVY_LINE and max(map(len, text.split("\n"))) > HEAVY_LINE


class DraftArea(TextArea):
    """A text area whose ``text`` is what the draft stands for, with all tokens written out.

    A pasted text of more than ``fold_lines`` lines or ``fold_chars`` characters becomes a token; 0 folds only what
    would make the keys slow. A click on a token writes it out in its place.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"draft--token"}

    DEFAULT_CSS = """
    DraftArea .draft--token { color: $accent; text-style: bold; }
    """

    class TooLong(Message):
        """A token cannot be written out in its place, because the keys would become slow."""

    def __init__(
        self, *, fold_lines: int = 20, fold_chars: int = 2000, placeholder: str = "", id: str | None = None
    ) -> None:
        self.tokens = Tokens()
        self._styled_for: tuple[str, bool] | None = None
        self._sections: list[tuple[int, int, int]] = []
        super().__init__(
            id=id,
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder=placeholder,
            highlight_cursor_line=False,
        )
        self._fold_lines = fold_lines
        self._fold_chars = fold_chars
        self.cursor_blink = False
        # Nobody listens to these, and each would travel up the tree at every key.
        self.disable_messages(TextArea.Changed, TextArea.SelectionChanged)

    # -- the draft ---------------------------------------------------------------------------------------

    @property
    def document_text(self) -> str:
        """The text of the document, with tokens as they stand in it."""
        return self.document.text

    @property
    def text(self) -> str:
        """What the draft stands for."""
        return self.tokens.expand(self.document.text)

    @text.setter
    def text(self, value: str) -> None:
        self.load_parts([Part("text", value)] if value else [])

    @property
    def parts(self) -> list[Part]:
        """The pieces of the draft, in order."""
        return self.tokens.parts(self.document.text)

    def load_parts(self, parts: list[Part]) -> None:
        """Replace the draft, and forget its edits. Text that would make the keys slow is folded."""
        self.tokens.clear()
        held = sum(len(part.text) for part in parts if part.kind == "text")
        document = self.tokens.document(
            Part("paste", part.text)
            if part.kind == "text"
            and (heavy(part.text) or (held > HEAVY_CHARACTERS and len(part.text) > SMALL))
            else part
            for part in parts
        )
        self.load_document(document)

    def load_document(self, document: str) -> None:
        """Replace the document by one with tokens of this draft; the cursor goes to its end."""
        self.load_text(document)
        self.move_cursor(self.document.end)

    def insert_text(self, text: str) -> None:
        """Insert text from outside at the cursor, cleaned, and folded when it is long."""
        if len(text) > LATER:
            self.put(self.tokens.fold(text.replace("\r\n", "\n").replace("\r", "\n"), raw=True))
            self.run_worker(self._clean_later(), exit_on_error=False)
        elif text := from_paste(text):
            self.put(self.tokens.fold(text) if self._too_long(text) else outside(text))

    async def _clean_later(self) -> None:
        for label, raw in self.tokens.raw:
            self.tokens.settle(label, raw, await asyncio.to_thread(clean_slowly, raw))

    def _too_long(self, text: str) -> bool:
        if self._fold_lines and text.count("\n") >= self._fold_lines:
            return True
        if self._fold_chars and len(text) > self._fold_chars:
            return True
        if heavy(text):
            return True
        if len(text) <= SMALL:
            return False
        row, _ = self.cursor_location
        return (
            sum(map(len, self.document.lines)) + len(text) > HEAVY_CHARACTERS
            or len(self.document[row]) + len(text) > HEAVY_LINE
        )

    def put(self, document: str) -> None:
        """Put a piece of a document in place of the selection, or at the cursor."""
        result = self.replace(document, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    # -- tokens ------------------------------------------------------------------------------------------

    def paste_beside(self) -> tuple[int, Span] | None:
        """Return the row and place of the long paste that ends or begins at the cursor."""
        row, column = self.cursor_location
        found = [span for span in spans(self.document[row]) if span.kind == "paste"]
        beside = next((span for span in found if span.end == column), None) or next(
            (span for span in found if span.start == column), None
        )
        return (row, beside) if beside else None

    def write_out(self, row: int, span: Span) -> None:
        """Write a long paste out in its place, if that does not make the keys slow."""
        text = self.tokens.part(span).text
        rest = sum(map(len, self.document.lines)) - (span.end - span.start)
        line = len(self.document[row]) - (span.end - span.start)
        if heavy(text) or rest + len(text) > HEAVY_CHARACTERS or line + len(text.split("\n")[0]) > HEAVY_LINE:
            self.post_message(self.TooLong())
            return
        result = self.replace(
            outside(text), (row, span.start), (row, span.end), maintain_selection_offset=False
        )
        self.move_cursor(result.end_location)

    async def on_click(self, event: events.Click) -> None:
        """Write out the long paste that was clicked."""
        if not self.selection.is_empty:
            return
        row, column = self.get_target_document_location(event)
        for span in spans(self.document[row]):
            if span.start <= column < span.end and span.kind == "paste":
                event.stop()
                self.write_out(row, span)

    # -- drawing -----------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """The styles of the area are other ones."""
        self._styled_for = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows. A text area looks all its styles up at each frame, which costs more than drawing them."""
        self._sections = self._find_sections()
        styled_for = (self.app.theme, self.has_focus)
        if styled_for == self._styled_for:
            return ScrollView.render_lines(self, crop)
        self._styled_for = styled_for
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return a row. A text area lays out a whole line for each of its rows; here a row costs what it shows."""
        if not self.document_text:
            return super().render_line(y)
        width, base = self.size.width, self.rich_style
        if y >= len(self._sections):
            return Strip.blank(width, base)
        row, start, end = self._sections[y]
        line = self.document[row]
        last = end == len(line)
        marked = self._marked(row, len(line))
        cursor_row, cursor = self.selection.end
        at = cursor if cursor_row == row and self.has_focus else -1
        styles = self.get_component_rich_style
        tokens = [
            (span.start, span.end, styles("draft--token", partial=True))
            for span in spans(line)
            if span.start < end and span.end > start
        ]
        cuts = {start, end, *(edge for token in tokens for edge in token[:2]), *marked, at, at + 1}
        places = sorted(place for place in cuts if start <= place <= end)
        tabs = iter(
            self.wrapped_document.get_tab_widths(row)[line[:start].count("\t") :] if "\t" in line else ()
        )
        segments: list[Segment] = []
        for left, right in pairwise(places):
            style = base
            for first, stop, token_style in tokens:
                if first <= left < stop:
                    style += token_style
            if marked[0] <= left < marked[1]:
                style += styles("text-area--selection")
            if left == at:
                style += styles("text-area--cursor")
            text = re.sub("\t", lambda _: " " * next(tabs, 1), shown(line[left:right]))
            segments.append(Segment(text, style))
        if last and at == end:
            segments.append(Segment(" ", base + styles("text-area--cursor")))
        elif not line and marked[1] > marked[0]:
            segments.append(Segment(" ", base + styles("text-area--selection")))
        return Strip(segments).adjust_cell_length(width, base)

    def _find_sections(self) -> list[tuple[int, int, int]]:
        """Return the line, and the columns from and up to which it goes, of each row that is seen."""
        found: list[tuple[int, int, int]] = []
        first, rows = self.scroll_offset.y, self.size.height
        for row in range(self.document.line_count):
            offsets = self.wrapped_document.get_offsets(row)
            if first > len(offsets):
                first -= len(offsets) + 1
                continue
            bounds = [0, *offsets, len(self.document[row])]
            found += [(row, *bounds[place : place + 2]) for place in range(first, len(bounds) - 1)]  # type: ignore[misc]
            first = 0
            if len(found) >= rows:
                break
        return found[:rows]

    def _marked(self, row: int, length: int) -> tuple[int, int]:
        """Return the columns of a line that are selected; of an empty line in the midst one more than it has."""
        start, end = sorted(self.selection)
        if start == end or not start[0] <= row <= end[0]:
            return 0, 0
        return (
            start[1] if row == start[0] else 0,
            end[1] if row == end[0] else max(length, 1),
        )

    # -- places: none is inside of a token ---------------------------------------------------------------

    def _outside_token(self, location: Location, *, forward: bool) -> Location:
        row, column = location
        span = span_at(self.document[row], column)
        if span is None:
            return location
        return row, span.end if forward else span.start

    def clamp_visitable(self, location: Location) -> Location:
        """Return the nearest place that the cursor may have."""
        row, column = super().clamp_visitable(location)
        span = span_at(self.document[row], column)
        return self._outside_token(
            (row, column), forward=span is not None and column - span.start > span.end - column
        )

    def get_cursor_left_location(self) -> Location:
        """Return the place to the left."""
        return self._outside_token(super().get_cursor_left_location(), forward=False)

    def get_cursor_right_location(self) -> Location:
        """Return the place to the right."""
        return self._outside_token(super().get_cursor_right_location(), forward=True)

    def get_cursor_word_left_location(self) -> Location:
        """Return the place one word to the left."""
        return self._outside_token(super().get_cursor_word_left_location(), forward=False)

    def get_cursor_word_right_location(self) -> Location:
        """Return the place one word to the right."""
        return self._outside_token(super().get_cursor_word_right_location(), forward=True)

    def get_cursor_line_start_location(self, smart_home: bool = False) -> Location:
        """Return the beginning of the row."""
        return self._outside_token(super().get_cursor_line_start_location(smart_home), forward=False)

    def get_cursor_line_end_location(self) -> Location:
        """Return the end of the row."""
        return self._outside_token(super().get_cursor_line_end_location(), forward=True)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, once it is in the draft again: while edits are undone it may be past the end."""
        row, column = self.cursor_location
        if row >= self.document.line_count or column > len(self.document[row]):
            return Offset(0, 0)
        return super().scroll_cursor_visible(center, animate)

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """Look for no brackets: a prompt is not code, and the search goes through the whole draft."""
        del bracket, search_from
        return None

    # -- deleting, copying -------------------------------------------------------------------------------

    def get_text_range(self, start: Location, end: Location) -> str:
        """Return what stands between two places, with all tokens written out."""
        return self.tokens.expand(super().get_text_range(start, end))

    def action_delete_word_right(self) -> None:
        """Delete to the end of the word, or the token."""
        row, _ = self.cursor_location
        if self.selection.is_empty and spans(self.document[row]):
            self.delete(self.cursor_location, self.get_cursor_word_right_location())
        else:
            super().action_delete_word_right()

    def action_copy(self) -> None:
        """Copy what is selected."""
        self._copy(self.selected_text)

    def _copy(self, text: str) -> None:
        if text:
            from sandbox_chat.ui.outside import copy_text

            copy_text(self.app, text)

    def action_cut(self) -> None:
        """Cut what is selected, or else the line."""
        start, end = sorted(self.selection)
        if start == end:
            start = (start[0], 0)
            last = start[0] + 1 >= self.document.line_count
            end = (start[0], len(self.document[start[0]])) if last else (start[0] + 1, 0)
        if text := self.get_text_range(start, end):
            self.delete(start, end, maintain_selection_offset=False)
            self._copy(text)

    def action_paste(self) -> None:
        """Insert what was copied in this program."""
        self.insert_text(self.app.clipboard)
