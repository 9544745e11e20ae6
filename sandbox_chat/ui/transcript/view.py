"""The transcript as the user handles it: keys, mouse, choosing and opening of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from .surface import TranscriptSurface

WHEEL_ROWS = 3
"""Rows that one notch of the wheel moves."""


class TranscriptView(TranscriptSurface, can_focus=True):
    """The conversation. ``feed`` takes events; the view follows the end unless the user scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_rows(-1)", "Up", show=False),
        Binding("down", "scroll_rows(1)", "Down", show=False),
        Binding("pageup", "scroll_pages(-1)", "Page up", show=False),
        Binding("pagedown,space", "scroll_pages(1)", "Page down", show=False),
        Binding("home,g", "scroll_start", "Start", show=False),
        Binding("end,G", "scroll_last", "End", show=False),
        Binding("k,shift+up", "cursor(-1)", "Previous item", show=False),
        Binding("j,shift+down", "cursor(1)", "Next item", show=False),
        Binding("enter", "open", "Open or close the item", show=False),
        Binding("y", "copy", "Copy the item", show=False),
    ]

    @dataclass
    class ToolSelected(Message):
        """The user chose a tool call."""

        tool_use_id: str

    @dataclass
    class PictureOpened(Message):
        """The user wants to see a picture large."""

        path: str

    @dataclass
    class LinkOpened(Message):
        """The user clicked a link. Its target is from outside: ask before it is opened."""

        href: str

    def select_tool(self, tool_use_id: str | None) -> None:
        """Mark a tool call and bring it into view; ``None`` marks nothing. Posts no message."""
        card = self.transcript.cards.get(tool_use_id or "")
        if card is None:
            self._select(-1)
            return
        self._flush()
        index = self.transcript.index(card)
        self._select(index)
        self._layout.show(index)
        self._moved()

    # -- moving and choosing ---------------------------------------------------------------------------

    def scroll_end(self, **options: Any) -> None:
        """Go to the end and follow, whatever Textual would do."""
        del options
        self.end()

    def scroll_home(self, **options: Any) -> None:
        """Go to the first row, whatever Textual would do."""
        del options
        self.action_scroll_start()

    def action_scroll_rows(self, rows: int) -> None:
        """Scroll by rows."""
        self._layout.move(rows)
        self._moved()

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by screens, two rows overlapping."""
        self._layout.move(pages * max(1, self.size.height - 2))
        self._moved()

    def action_scroll_start(self) -> None:
        """Go to the first row."""
        self._layout.go(0)
        self._moved()

    def action_scroll_last(self) -> None:
        """Go to the end and follow."""
        self.end()

    def action_cursor(self, step: int) -> None:
        """Go to the next or the previous item that can be opened."""
        blocks = self.transcript.blocks
        start = self._selected
        if start < 0:
            seen = [item[0] for item in self._layout.visible()]
            start = (seen[-1] + 1 if step < 0 else seen[0] - 1) if seen else -1
        index = start + step
        while 0 <= index < len(blocks):
            if blocks[index].visible and blocks[index].selectable:
                self._select(index)
                self._layout.show(index)
                self._moved()
                if blocks[index].tool_use_id:
                    self.post_message(self.ToolSelected(blocks[index].tool_use_id))
                return
            index += step

    def action_open(self) -> None:
        """Open or close the item under the cursor; a picture is opened large."""
        block = self.selected
        if block is None:
            self.action_cursor(-1)
            block = self.selected
        if block is not None:
            self._act(self._selected, 1)

    def action_copy(self) -> None:
        """Copy the item under the cursor, or else the last answer."""
        block = self.selected
        if block is None:
            block = next(
                (b for b in reversed(self.transcript.blocks) if b.kind == "answer" and b.visible), None
            )
        if block is not None:
            self.app.copy_to_clipboard(block.text)

    def _act(self, index: int, row: int) -> None:
        block = self.transcript.blocks[index]
        action = block.action(row)
        if action is None:
            return
        if action.kind == "picture":
            self.post_message(self.PictureOpened(action.path))
            return
        # A card that is opened grows downwards; the view stays where it is.
        was_following = self._layout.following
        block.toggle()
        top = self._layout.top
        self._layout.following = False
        self._layout.go(top)
        self._layout.changed([index])
        if was_following and self._layout.max_top <= top:
            self._layout.go_end()
        self._layout.show(index)
        self._moved()

    # -- mouse -----------------------------------------------------------------------------------------

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.action_scroll_rows(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll with the wheel."""
        event.stop()
        self.action_scroll_rows(-WHEEL_ROWS)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the bar at the right."""
        x, y = self._place(event)
        if x >= self.size.width - 1 and self._layout.total > self.size.height:
            self._dragging = True
            self.capture_mouse()
            self._drag(y)
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the bar."""
        if self._dragging:
            self._drag(self._place(event)[1])
            event.stop()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let the bar go."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()
            event.stop()

    def _place(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return where the mouse is, counted from the first cell inside a border."""
        gutter = self.styles.gutter
        return int(event.x) - gutter.left, int(event.y) - gutter.top

    def _drag(self, y: float) -> None:
        height = max(1, self.size.height - 1)
        self._layout.go(round(self._layout.max_top * min(max(y / height, 0.0), 1.0)))
        self._moved()

    def on_click(self, event: events.Click) -> None:
        """Follow a link, open a picture, choose and toggle a card."""
        x, y = self._place(event)
        if x >= self.size.width - 1:
            return
        found = self._layout.find(y)
        if found is None:
            return
        event.stop()
        href = self._href_at(x, y)
        if href:
            self.post_message(self.LinkOpened(href))
            return
        index, row = found
        block = self.transcript.blocks[index]
        if not block.selectable or (row == 0 and not block.first):
            self._select(-1)
            return
        self._select(index)
        if block.tool_use_id:
            self.post_message(self.ToolSelected(block.tool_use_id))
        self._act(index, row)

    def _href_at(self, x: int, y: int) -> str:
        used = 0
        for segment in self.render_line(y):
            used += segment.cell_length
            if x < used:
                return str(segment.style.meta.get("href", "")) if segment.style is not None else ""
        return ""
