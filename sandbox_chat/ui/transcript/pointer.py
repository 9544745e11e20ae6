"""The mouse in the transcript: the wheel, the bar, selecting text, links, opening of items."""

from __future__ import annotations

from textual import events
from textual.timer import Timer

from .framing import GUTTER
from .joining import JoiningSurface
from .marks import Link
from .select import Place, Selection, line_at, place_at, word_at

WHEEL_ROWS = 3
"""Rows that one notch of the wheel moves."""
PULL_SECONDS = 0.05
"""Seconds between two steps of scrolling while the mouse is held beyond the edge."""
PULL_MOST = 8
"""Rows of one such step at most; it grows with the distance."""
_FAR = 1 << 30


class TranscriptPointer(JoiningSurface):
    """What the mouse does."""

    _grip: Place | None = None
    _dragged = False
    _clicks = 1
    _pull_timer: Timer | None = None
    _mouse = (0, 0)

    # -- what the keys' part does --------------------------------------------------------------------------

    def _act(self, index: int, row: int) -> None:
        """Open or close an item."""
        raise NotImplementedError

    def _choose(self, index: int) -> None:
        """Mark an item and tell others."""
        raise NotImplementedError

    def _open_link(self, href: str) -> None:
        """Ask about a link."""
        raise NotImplementedError

    # -- the wheel and the bar ---------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll with the wheel."""
        event.stop()
        self._scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll with the wheel."""
        event.stop()
        self._scroll(-WHEEL_ROWS)

    def _scroll(self, rows: int) -> None:
        self._catch_up()
        self._layout.move(rows)
        self._moved()

    def _place(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return where the mouse is, counted from the first cell inside a border."""
        gutter = self.styles.gutter
        return int(event.x) - gutter.left, int(event.y) - gutter.top

    def _drag_bar(self, y: float) -> None:
        height = max(1, self.size.height - 1)
        self._catch_up()
        self._layout.go(round(self._layout.max_top * min(max(y / height, 0.0), 1.0)))
        self._moved()

    # -- selecting ---------------------------------------------------------------------------------------

    @property
    def selected_text(self) -> str:
        """The text that is selected, empty for none."""
        selection = self._marks.selection
        return selection.text(self.transcript.blocks) if selection is not None else ""

    def clear_selection(self) -> bool:
        """Select nothing. Returns whether anything was."""
        had = self._marks.selection is not None
        self._marks.selection = None
        if had:
            self._paint()
        return had

    def _place_under(self, x: int, y: int) -> Place | None:
        """Return the place in the text that is nearest to a cell of the view."""
        layout = self._layout
        last = min(self.size.height, layout.total - layout.top) - 1
        if last < 0:
            return None
        column = x - GUTTER if 0 <= y <= last else 0 if y < 0 else _FAR
        for number in (min(max(y, 0), last), *range(min(y, last), -1, -1)):
            found = layout.find(number)
            if found is None:
                continue
            place = place_at(layout.blocks, layout.width, *found, column if number == y else _FAR)
            if place is not None:
                return self._widened(place)
        return None

    def _widened(self, place: Place) -> Place:
        """Return a place as wide as clicks ask for: a character, a word, a line."""
        if self._clicks == 1:
            return place
        return (word_at if self._clicks == 2 else line_at)(self._layout.blocks, place)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the bar at the right, or of the text."""
        x, y = self._place(event)
        self._dragged = False
        if event.button != 1:
            return
        if x >= self.size.width - 1 and self._layout.total > self.size.height:
            self._bar_held = True
            self.capture_mouse()
            self._drag_bar(y)
            event.stop()
            return
        self._clicks = 1
        place = self._place_under(x, y)
        selection = self._marks.selection
        if place is None:
            return
        if event.shift and selection is not None:
            self._grip, self._dragged = selection.anchor, True
            self._extend(place)
        else:
            self._grip = place
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the bar, or select up to the mouse."""
        x, y = self._mouse = self._place(event)
        if self._bar_held:
            self._drag_bar(y)
            event.stop()
        elif self._grip is not None:
            event.stop()
            self._reach(x, y)
            if not 0 <= y < self.size.height and self._pull_timer is None:
                self._pull_timer = self.set_interval(PULL_SECONDS, self._pull)

    def _reach(self, x: int, y: int) -> None:
        place = self._place_under(x, y)
        if place is not None and (self._dragged or place != self._grip):
            self._dragged = True
            self._extend(place)

    def _extend(self, place: Place) -> None:
        if self._grip is not None:
            self._marks.selection = Selection(self._grip, place)
            self._paint()

    def _pull(self) -> None:
        """Scroll on while the mouse is held above or below the view."""
        x, y = self._mouse
        beyond = y if y < 0 else y - self.size.height + 1 if y >= self.size.height else 0
        if not beyond or self._grip is None:
            self._stop_pulling()
            return
        self._layout.move(max(-PULL_MOST, min(PULL_MOST, beyond)))
        self._moved()
        self._reach(x, y)

    def _stop_pulling(self) -> None:
        if self._pull_timer is not None:
            self._pull_timer.stop()
            self._pull_timer = None

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        if self._bar_held or self._grip is not None:
            self._bar_held = False
            self._grip = None
            self._stop_pulling()
            self.release_mouse()
            event.stop()

    # -- clicking ----------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Follow a link, open a picture, choose and toggle a card; twice selects a word, three times a line."""
        x, y = self._place(event)
        if x >= self.size.width - 1 or event.button != 1:
            return
        event.stop()
        if self._dragged:
            self._dragged = False
            return
        if event.chain > 1 and self._select_more(x, y, event.chain):
            return
        self.clear_selection()
        found = self._layout.find(y)
        if found is None:
            return
        if href := self._href_at(x, y):
            self._open_link(href)
            return
        index, row = found
        block = self.transcript.blocks[index]
        if block.action(row) is None or (row == 0 and not block.first):
            self._select(-1)
            return
        self._choose(index)
        self._act(index, row)

    def _select_more(self, x: int, y: int, chain: int) -> bool:
        """Select the word or the line under the mouse. Returns whether there is text that no click opens."""
        found = self._layout.find(y)
        if found is None or self.transcript.blocks[found[0]].action(found[1]) is not None:
            return False
        self._clicks = min(chain, 3)
        place = self._place_under(x, y)
        self._clicks = 1
        if place is None:
            return False
        self._marks.selection = Selection(place, place)
        self._paint()
        return True

    # -- links -------------------------------------------------------------------------------------------

    def _href_at(self, x: int, y: int) -> str:
        used = 0
        for segment in self.render_line(y):
            used += segment.cell_length
            if x < used:
                return str(segment.style.meta.get("href", "")) if segment.style is not None else ""
        return ""

    def _links(self) -> list[Link]:
        """Return the links in sight from the top; one that goes on in the next row counts once."""
        out: list[Link] = []
        before: Link | None = None  # what ends the row above
        for index, row, strip in self._layout.visible():
            used, last = 0, None
            for segment in strip:
                end = used + segment.cell_length
                href = str(segment.style.meta.get("href", "")) if segment.style is not None else ""
                if href and last is not None and last.href == href and last.end == used:
                    last = last._replace(end=end)
                    if out and (out[-1].row, out[-1].start, out[-1].block) == (row, last.start, index):
                        out[-1] = last
                elif href:
                    last = Link(index, row, used, end, href)
                    if before is None or (before.block, before.href) != (index, href) or used > before.start:
                        out.append(last)
                    before = None
                used = end
            before = last
        return out
