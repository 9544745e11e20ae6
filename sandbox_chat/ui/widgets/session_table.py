"""The table of sessions, and of the places in them that were found: one row each, drawn when it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from sandbox_chat.journal.index import SessionSummary
from sandbox_chat.journal.search_types import Place
from sandbox_chat.plain import cost_text, local_time
from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr, tr_count

WIDE = 110
"""Columns from which on model and last prompt have columns of their own."""
SMALL = 56
"""Columns below which only time and title are left."""


@dataclass(frozen=True, slots=True)
class Row:
    """A session, or a place in it that was found. ``more``: so many turns of it are not in the table."""

    summary: SessionSummary
    place: Place | None = None
    more: int = 0

    @property
    def turn(self) -> int | None:
        """The turn that it leads to, from 1; ``None`` for the end of the session."""
        return self.place.turn if self.place is not None and self.place.turn else None


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths of the columns in cells; 0 for one that is not shown."""

    when: int
    turns: int
    cost: int
    model: int
    title: int
    last: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """Return the columns for a table of so many cells."""
        when = min(16, max(0, width - 4))
        if width < SMALL:
            return cls(when, 0, 0, 0, max(0, width - when - 4), 0)
        turns = max(5, cell_len(tr("sessions.head_turns")))
        cost = 8
        left = width - 2 - when - turns - cost - 3 * 2
        if width < WIDE:
            return cls(when, turns, cost, 0, left, 0)
        model = 18 if width < 150 else 24
        left -= model + 2 * 2
        title = left * 2 // 5 + 1
        return cls(when, turns, cost, model, title, left - title)


def _cells(text: str, width: int, *, right: bool = False) -> str:
    text = fit(text, width)
    gap = " " * (width - cell_len(text))
    return gap + text if right else text + gap


def _line(columns: Columns, values: Sequence[tuple[str, str]], mark: tuple[str, str]) -> Content:
    widths = (columns.when, columns.turns, columns.cost, columns.model, columns.title, columns.last)
    pieces: list[tuple[str, str]] = [mark]
    for number, ((text, style), width) in enumerate(zip(values, widths, strict=True)):
        if width:
            gap = "  " if len(pieces) > 1 else ""
            pieces.append((gap + _cells(text, width, right=number in (1, 2)), style))
    return Content.assemble(*pieces)


def session_line(summary: SessionSummary, columns: Columns, *, present: bool) -> Content:
    """Return the row of a session."""
    cost = tr("sessions.demo") if summary.demo else cost_text(summary.total_cost_usd)
    return _line(
        columns,
        [
            (local_time(summary.updated), "$muted"),
            (str(summary.turns), ""),
            (cost, "$muted"),
            (summary.model, "$muted"),
            (summary.title or tr("sessions.no_prompt"), "bold" if summary.renamed else ""),
            (summary.last_prompt, "$muted"),
        ],
        (f"{glyph('on')} ", "$primary") if present else ("  ", ""),
    )


def place_line(row: Row, columns: Columns, width: int) -> Content:
    """Return the row of a place: where it is, and the text around it with what was searched for marked."""
    if row.place is None:
        words = tr_count("sessions.more_places", row.more)
        return Content.styled(" " * (columns.when + 4) + words, "$faint")
    place = row.place
    where = tr("sessions.turn", turn=place.turn) if place.turn else tr("sessions.in_title")
    kind = tr(f"sessions.kind_{place.kind}")
    head = f"  {_cells(where, columns.when, right=True)}  "
    text = Content(place.excerpt.text)
    for start, end in place.excerpt.marks:
        text = text.stylize("bold $accent", start, end)
    parts = [Content.styled(head, "$muted")]
    if place.turn and width >= SMALL:
        parts.append(Content.styled(f"{kind}  ", "$faint"))
    return Content.assemble(*parts, text)


class SessionHead(Widget):
    """The names of the columns."""

    DEFAULT_CSS = """
    SessionHead { height: 1; width: 1fr; padding: 0 1; color: $muted; }
    """

    def render(self) -> Content:
        """Draw the names."""
        names = ("when", "turns", "cost", "model", "title", "last")
        values = [(tr(f"sessions.head_{name}"), "") for name in names]
        return _line(Columns.of(self.content_size.width), values, ("  ", ""))


class SessionTable(ScrollView, can_focus=True):
    """The rows. ``note`` stands there while there are none. Posts ``Opened`` and ``Moved``."""

    DEFAULT_CSS = """
    SessionTable {
        height: 1fr; width: 1fr; padding: 0 1; scrollbar-size-vertical: 1; background: $background;
        & .session-table--cursor { background: $panel; }
        &:focus .session-table--cursor { background: $primary 25%; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"session-table--cursor"}

    class Opened(Message):
        """The user wants to open the row under the cursor."""

    class Moved(Message):
        """The cursor is on another row."""

    def __init__(self, present: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.present = present
        self.rows: list[Row] = []
        self.cursor = 0
        self.note = ""

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def show(self, rows: list[Row], *, keep: bool = False) -> None:
        """Show other rows; ``keep``: the cursor stays on what it is on, or else where it is."""
        row = self.row
        self.rows = rows
        if not keep:
            self.cursor = 0
            self.scroll_to(y=0, animate=False)
        elif row is not None and row in rows:
            self.cursor = rows.index(row)
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self._changed()

    def add(self, rows: Sequence[Row]) -> None:
        """Show more rows at the end."""
        self.rows.extend(rows)
        self._changed()

    def say(self, note: str) -> None:
        """Say why there are no rows."""
        self.note = note
        self.refresh()

    def _changed(self) -> None:
        self.virtual_size = Size(0, len(self.rows))
        self.refresh()
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        style = self.visual_style
        if index >= len(self.rows):
            content = self._note(y, width) if not self.rows else Content("")
        else:
            row = self.rows[index]
            columns = Columns.of(width)
            if row.place is not None or row.more:
                content = place_line(row, columns, width)
            else:
                content = session_line(row.summary, columns, present=row.summary.id == self.present)
            if index == self.cursor:
                style = self.get_visual_style("session-table--cursor")
        if content.cell_length > width:
            content = content.truncate(width, ellipsis=True)
        strip = Strip(content.render_segments(style), content.cell_length)
        return strip.adjust_cell_length(width, style.rich_style)

    def _note(self, y: int, width: int) -> Content:
        lines = Content.styled(self.note, "$muted").wrap(max(1, width - 2)) if self.note else []
        return Content("  ") + lines[y - 1] if 1 <= y <= len(lines) else Content("")

    # -- moving ------------------------------------------------------------------------------------------

    def page(self, by: int) -> None:
        """Go on by so many screens."""
        self.go(self.cursor + by * max(1, self.size.height - 1))

    def go(self, index: int) -> None:
        """Go to a row, or to the nearest that there is."""
        if not self.rows:
            return
        self.cursor = max(0, min(index, len(self.rows) - 1))
        top, height = round(self.scroll_target_y), self.scrollable_content_region.height
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif height and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)
        self.refresh()
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Go to the row that was clicked; a second click opens it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        event.stop()
        index = offset.y + self.scroll_offset.y
        if index < len(self.rows):
            again = event.chain > 1 and index == self.cursor
            self.go(index)
            if again:
                self.post_message(self.Opened())
