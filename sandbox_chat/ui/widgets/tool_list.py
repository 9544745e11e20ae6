"""The list of tool calls: one row each, with status, name, what it does, and how long it took."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sandbox_chat.plain import duration_text, tool_parts
from sandbox_chat.ui import formats, tooltext
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.calls import ToolCall
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.words import tr

STATUS: dict[str, tuple[str, str]] = {
    "writing": ("waiting", "$muted"),
    "running": ("still", "$primary"),
    "ok": ("ok", "$success"),
    "failed": ("failed", "$error"),
    "interrupted": ("interrupted", "$warning"),
}
"""Name of the sign and colour of each status; both, so that neither has to be seen."""

ASKS = ("asks", "$accent")
"""The same for a call that waits for an answer of the user."""

NAME_WIDTH = 12


def row(tool: ToolCall, width: int, now: datetime, spinner: str, *, asks: bool = False) -> Content:
    """Return the row of a call in exactly ``width`` cells. ``asks``: it waits for an answer of the user."""
    status, colour = ASKS if asks else STATUS[tool.status]
    sign = spinner if spinner and not asks and tool.status == "running" else glyph(status)
    name = _name(tool, max(NAME_WIDTH, width // 2 - 4))
    name += " " * max(0, NAME_WIDTH - cell_len(name))
    if tool.duration_ms is not None:
        time = duration_text(tool.duration_ms)
    else:
        time = formats.running(tool.elapsed_ms(now)) if tool.open else ""
    room = width - 2 - cell_len(name) - 1 - cell_len(time) - 1
    what = formats.fit(" ".join(tooltext.first_line(tool).split()), room)
    gap = " " * max(0, room - cell_len(what))
    line = Content.assemble((sign, colour), " ", (name, "bold"), " ", (what, "$muted"), gap, " ", (time, ""))
    return line if line.cell_length <= width else line.truncate(width)


def _name(tool: ToolCall, width: int) -> str:
    """Return a tool's name in at most ``width`` cells; of another server's the tool alone where both have no room."""
    name = tool.short_name or "tool"
    if tool.server and cell_len(name) > width:
        return formats.fit(tool_parts(tool.name)[1], width)
    return formats.fit(name, width if tool.server else NAME_WIDTH)


class ToolList(ScrollView, can_focus=True):
    """The calls, oldest first. Posts ``Selected`` when the user chooses one."""

    DEFAULT_CSS = """
    ToolList {
        height: auto; max-height: 40%; min-height: 1; background: $background; scrollbar-size-vertical: 1;
        & .tool-list--selected { background: $panel; }
        &:focus .tool-list--selected { background: $primary 25%; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tool-list--selected"}

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("tools")]

    class Selected(Message):
        """The user chose a call."""

        def __init__(self, tool_use_id: str) -> None:
            super().__init__()
            self.tool_use_id = tool_use_id

    def __init__(self, state: ChatState, clock: Callable[[], datetime], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state
        self.selected: str | None = None
        self._clock = clock
        self._spinner = ""
        self._ids: list[str] = []

    @property
    def ids(self) -> list[str]:
        """Ids of the calls in the order of the rows."""
        return self._ids

    def update_calls(self) -> None:
        """Take the calls of the state."""
        ids = list(self.state.tools)
        if ids != self._ids:
            self._ids = ids
            self.virtual_size = Size(0, len(self._ids))
            self.refresh(layout=True)
        else:
            self.refresh()

    def tick(self, spinner: str) -> None:
        """Draw the rows of open calls again."""
        self._spinner = spinner
        top = self.scroll_offset.y
        for y, tool_id in enumerate(self._ids[top : top + self.size.height]):
            if tool_id in self.state.tools and self.state.tools[tool_id].open:
                self.refresh_line(y)

    def refresh_line(self, y: int) -> None:
        """Draw row ``y`` of what is seen."""
        if 0 <= y < self.size.height:
            self.refresh_lines(y, 1)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One row for each call, one at least."""
        return max(1, len(self._ids))

    def select(self, tool_use_id: str | None) -> None:
        """Mark a call and scroll it into view. Posts nothing."""
        self.selected = tool_use_id
        if tool_use_id in self._ids:
            self._show(self._ids.index(tool_use_id))
        self.refresh()

    def _show(self, index: int) -> None:
        top, height = round(self.scroll_target_y), self.scrollable_content_region.height
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif height and index >= top + height:
            self.scroll_to(y=index - height + 1, animate=False)

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        style = self.visual_style
        if index >= len(self._ids):
            text = tr("cards.no_calls") if not self._ids and y == 0 else ""
            content = Content.styled(formats.fit(text, width), "$faint")
        else:
            tool = self.state.tools[self._ids[index]]
            content = row(tool, width, self._clock(), self._spinner, asks=self.state.asks(tool.id))
            if tool.id == self.selected:
                style = self.get_visual_style("tool-list--selected")
        strip = Strip(content.render_segments(style), content.cell_length)
        return strip.adjust_cell_length(width, style.rich_style)

    # -- choosing ----------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Choose the call ``by`` rows further."""
        if not self._ids:
            return
        if self.selected in self._ids:
            place = self._ids.index(self.selected) + by
        else:
            place = len(self._ids) - 1 if by < 0 else 0
        self._choose(max(0, min(place, len(self._ids) - 1)))

    def _choose(self, index: int) -> None:
        self.select(self._ids[index])
        self.post_message(self.Selected(self._ids[index]))

    def on_click(self, event: events.Click) -> None:
        """Choose the call that was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None:
            index = offset.y + self.scroll_offset.y
            if 0 <= index < len(self._ids):
                event.stop()
                self._choose(index)
