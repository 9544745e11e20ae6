"""The tools pane: the list of calls, and everything about the chosen one."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from sandbox_chat.ui import tooltext
from sandbox_chat.ui.calls import ToolCall
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.header import Header
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.ui.widgets.tool_list import ToolList

if TYPE_CHECKING:
    from textual.widget import Widget

    from sandbox_chat.events import ImageContent

VIEWS = (("code", "code"), ("output", "output"), ("result", "result"), ("image", "image"), ("raw", "raw"))

HIGHLIGHT_LIMIT = 8_000
"""Characters of code that are coloured; lexing more on the terminal's loop would be felt."""

DRAW_SHARE = 8
"""A call that still changes is drawn again after so many times the time that drawing it took."""

NOTHING = {
    "code": "No arguments yet.",
    "output": "No output.",
    "result": "No result yet.",
    "image": "No picture.",
    "raw": "",
}


def view_content(tool: ToolCall, view: str) -> Content:
    """Return the text of one view of a call, coloured by code, stream or outcome."""
    if view == "code":
        text, language = tooltext.code(tool)
        return _highlighted(text, language)
    if view == "output":
        styles = {"stderr": "$error", "note": "$faint"}
        return Content.assemble(*((text, styles.get(stream, "")) for stream, text in tooltext.output(tool)))
    if view == "result":
        return Content.styled(tooltext.result(tool), "$error" if tool.status == "failed" else "")
    return _highlighted(tooltext.raw(tool), "json")


def _highlighted(text: str, language: str) -> Content:
    if not language or len(text) > HIGHLIGHT_LIMIT:
        return Content(text)
    from textual.highlight import highlight

    return highlight(text, language=language, tab_size=4)


class ToolPane(Vertical):
    """List and detail. ``update_state`` takes the state's calls; the newest is followed until the user chooses.

    Posts ``Selected`` when the user chooses a call, ``PictureOpened`` for a picture to be seen large.
    ``make_picture`` makes the widget that shows pictures.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step_view(-1)", "View before: code, output, result, …", show=False),
        Binding("right", "step_view(1)", "Next view", show=False),
    ]

    DEFAULT_CSS = """
    ToolPane { height: 1fr; padding: 0 1; background: $background; }
    ToolPane #tool-views { padding: 0; margin-top: 1; }
    ToolPane #tool-text { height: 1fr; }
    ToolPane #tool-picture { height: 1fr; }
    ToolPane.-empty #tool-views, ToolPane.-empty #tool-text { display: none; }
    """

    class Selected(Message):
        """The user chose a call."""

        def __init__(self, tool_use_id: str) -> None:
            super().__init__()
            self.tool_use_id = tool_use_id

    class PictureOpened(Message):
        """The picture at ``path`` is to be shown large."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(
        self,
        state: ChatState,
        clock: Callable[[], datetime],
        make_picture: Callable[[], Widget],
        show_picture: Callable[[Widget, ImageContent], None],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.state = state
        self.selected: str | None = None
        self.view = "code"
        self.following = True
        self._view_chosen = False
        self._clock = clock
        self._make_picture = make_picture
        self._show_picture = show_picture
        self._picture: Widget | None = None
        self._picture_path = ""
        self._drawn: tuple[object, ...] = ()
        self._draw_after = 0.0
        self._revision = -1

    def compose(self) -> ComposeResult:
        """Lay out list, views and text."""
        yield Header("Tools", id="tool-header")
        yield ToolList(self.state, self._clock, id="tool-list")
        yield TabRow(VIEWS, id="tool-views")
        yield TextView(id="tool-text")

    def on_mount(self) -> None:
        """Begin empty."""
        self.update_state()

    @property
    def call(self) -> ToolCall | None:
        """The chosen call."""
        return self.state.tools.get(self.selected) if self.selected else None

    def update_state(self) -> None:
        """Take changes of the state's calls."""
        if self._revision == self.state.tool_revision:
            return
        self._revision = self.state.tool_revision
        calls = self.query_one(ToolList)
        calls.update_calls()
        header = self.query_one(Header)
        header.count = str(len(calls.ids)) if calls.ids else ""
        header.changed()
        self.set_class(not calls.ids, "-empty")
        if calls.ids and (self.following or self.selected not in self.state.tools):
            newest = calls.ids[-1]
            if newest != self.selected:
                self.selected = newest
                self.view = "code"
                self._view_chosen = False
                calls.select(newest)
        tool = self.call
        if tool is not None and not self._view_chosen and tool.images and "code" not in tool.input:
            self.view = "image"  # a call that only looked at a picture: that is what there is to see
        self._draw()

    def tick(self, spinner: str) -> None:
        """Let running durations go on."""
        if self.state.running_tools:
            self.query_one(ToolList).tick(spinner)
            self._draw()

    def select(self, tool_use_id: str | None) -> None:
        """Show a call, chosen elsewhere. Posts nothing."""
        if tool_use_id not in self.state.tools:
            return
        self.selected = tool_use_id
        self.following = tool_use_id == next(reversed(self.state.tools))
        self.query_one(ToolList).select(tool_use_id)
        self._draw()

    def step(self, by: int) -> None:
        """Choose the call before or after, as the user."""
        self.query_one(ToolList).action_step(by)

    def show_view(self, view: str) -> None:
        """Show one of the views: code, output, result, image, raw."""
        self.view = view
        self._view_chosen = True
        self._draw()

    def action_step_view(self, by: int) -> None:
        """Show the next view, or the one before."""
        if self.call is not None:
            self.query_one("#tool-views", TabRow).action_step(by)

    def _draw(self) -> None:
        tool = self.call
        views = self.query_one("#tool-views", TabRow)
        if tool is None:
            return
        views.dim = frozenset(
            view
            for view, missing in (
                ("output", not tool.output and not tool.late),
                ("result", not tool.content),
                ("image", not tool.images),
            )
            if missing
        )
        count = len(tool.images)
        label = f"images {count}" if count > 1 else "image"
        views.show(self.view, [(v, label if v == "image" else text) for v, text in VIEWS])
        drawn = (tool.id, self.view, tool.revision)
        if drawn == self._drawn:
            return
        same = self._drawn[:2] == drawn[:2]
        begun = time.monotonic()
        if same and tool.open and begun < self._draw_after:
            return  # the tick will come back to it
        self._drawn = drawn
        text = self.query_one("#tool-text", TextView)
        picture = self.view == "image" and bool(tool.images)
        text.display = not picture
        if self._picture is not None:
            self._picture.display = picture
        if picture:
            self._draw_picture(tool.images[-1])
            return
        content = Content() if self.view == "image" else view_content(tool, self.view)
        if not content:
            content = Content.styled(NOTHING[self.view], "$faint")
            text.show(content)
        else:
            text.show(content, numbers=self.view == "code", follow=same)
        self._draw_after = begun + (DRAW_SHARE + 1) * (time.monotonic() - begun)

    def _draw_picture(self, image: ImageContent) -> None:
        if self._picture is None:
            self._picture = self._make_picture()
            self._picture.id = "tool-picture"
            self.mount(self._picture)
            self._picture_path = ""
        if image.path != self._picture_path:
            self._picture_path = image.path
            self._show_picture(self._picture, image)

    def on_tool_list_selected(self, event: ToolList.Selected) -> None:
        """Show the call that was chosen in the list."""
        event.stop()
        self.select(event.tool_use_id)
        self.post_message(self.Selected(event.tool_use_id))

    def on_tab_row_chosen(self, event: TabRow.Chosen) -> None:
        """Show the view that was chosen."""
        event.stop()
        self.show_view(event.tab)

    def on_click(self) -> None:
        """A click on the picture shows it large."""
        tool = self.call
        shown = self.view == "image" and self._picture is not None and self._picture.is_mouse_over
        if shown and tool is not None and tool.images:
            self.post_message(self.PictureOpened(tool.images[-1].path))

    @property
    def summary(self) -> str:
        """How many calls there are, for the tab of the narrow layout."""
        return f"Tools {len(self.state.tools)}" if self.state.tools else "Tools"
