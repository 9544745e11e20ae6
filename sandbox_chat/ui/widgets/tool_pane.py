"""The tools pane: the list of calls, and everything about the chosen one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.worker import get_current_worker

from sandbox_chat.ui import call_views, tooltext
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.calls import Part, ToolCall
from sandbox_chat.ui.output_lines import OutputLines
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript.card_answer import failing_line
from sandbox_chat.ui.widgets.header import Header
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.ui.widgets.tool_list import ToolList
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from textual.widget import Widget

    from sandbox_chat.events import ImageContent
    from sandbox_chat.ui.transcript.cells import Row

VIEWS = ("code", "output", "result", "calls", "table", "image", "raw")

HIGHLIGHT_AT_ONCE = 2_000
"""Characters of code that are coloured at once; longer code is shown plain and coloured by a thread."""

DRAW_SHARE = 8
"""A call that still changes is drawn again after so many times the time that drawing it took."""


class ToolPane(Vertical):
    """List and detail. ``update_state`` takes the state's calls; the newest is followed until the user chooses.

    Posts ``Selected`` when the user chooses a call, ``CommandAsked`` when something is to be done with it.
    ``make_pager`` makes the widget that shows the pictures of a call and asks for a large one itself,
    ``show_pictures`` fills it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("pane")]

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

    class CommandAsked(Message):
        """Something is to be done with a call: ``copy_arguments``, ``copy_result``, ``edit``, ``page``, ``open``, ``save``."""

        def __init__(self, call: ToolCall, command: str) -> None:
            super().__init__()
            self.call = call
            self.command = command

    class Coloured(Message):
        """A thread has coloured the text of a view."""

        def __init__(self, key: tuple[object, ...], lines: Sequence[Row]) -> None:
            super().__init__()
            self.key = key
            self.lines = lines

    def __init__(
        self,
        state: ChatState,
        clock: Callable[[], datetime],
        make_pager: Callable[[], Widget],
        show_pictures: Callable[[Widget, Sequence[ImageContent]], None],
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
        self._make_pager = make_pager
        self._show_pictures = show_pictures
        self._picture: Widget | None = None
        self._drawn: tuple[object, ...] = ()
        self._draw_after = 0.0
        self._revision = -1
        self._output = OutputLines()
        self._draft = OutputLines()
        self._text_key: tuple[object, ...] = ()  # of the text that is shown coloured, or is being coloured

    def compose(self) -> ComposeResult:
        """Lay out list, views and text."""
        yield Header(tr("cards.pane_title"), id="tool-header")
        yield ToolList(self.state, self._clock, id="tool-list")
        yield TabRow(
            [(view, tr(f"cards.view_{view}")) for view in VIEWS if view not in ("table", "calls")],
            id="tool-views",
        )
        yield TextView(id="tool-text")

    def on_mount(self) -> None:
        """Begin empty."""
        self.update_state()

    def on_resize(self) -> None:
        """Lay out a table for another width."""
        if self.view == "table":
            self._drawn = ()
            self.call_after_refresh(self._draw)

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
        """Show one of the views: code, output, result, calls, table, image, raw."""
        self.view = view
        self._view_chosen = True
        self._draw()

    def action_step_view(self, by: int) -> None:
        """Show the next view, or the one before."""
        if self.call is not None:
            self.query_one("#tool-views", TabRow).action_step(by)

    def action_ask(self, command: str) -> None:
        """Ask for something to be done with the chosen call."""
        if self.call is not None:
            self.post_message(self.CommandAsked(self.call, command))

    # -- drawing -----------------------------------------------------------------------------------------

    def _draw(self) -> None:
        tool = self.call
        if tool is None:
            return
        if (self.view == "table" and not tool.tables) or (self.view == "calls" and not tool.nested):
            self.view = "result"
        self._draw_tabs(tool)
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
            self._draw_pictures(tool.images)
            return
        self._draw_text(text, tool, same=same)
        self._draw_after = begun + (DRAW_SHARE + 1) * (time.monotonic() - begun)

    def _draw_tabs(self, tool: ToolCall) -> None:
        views = self.query_one("#tool-views", TabRow)
        missing = {
            "output": not tool.output and not tool.late,
            "result": not tool.content,
            "image": not tool.images,
        }
        views.dim = frozenset(view for view, is_missing in missing.items() if is_missing)
        there = {"table": bool(tool.tables), "calls": bool(tool.nested)}
        labels = {view: tr(f"cards.view_{view}") for view in VIEWS if there.get(view, True)}
        if tool.server:
            labels["code"] = tr("cards.view_arguments")
        if (count := len(tool.images)) > 1:
            labels["image"] = tr("cards.view_images", count=count)
        views.show(self.view, list(labels.items()))

    def _draw_text(self, text: TextView, tool: ToolCall, *, same: bool) -> None:
        if self.view == "output":
            self._draw_output(text, tool, same=same)
            return
        if self.view in ("code", "raw"):
            self._draw_coloured(text, tool, same=same)
        else:
            lines = call_views.result_lines(tool) if self.view == "result" else []
            if self.view == "calls":
                lines = call_views.nested_lines(tool)
            if self.view == "table":
                lines = call_views.table_lines(tool, self._text_width(text))
            self._show(text, lines, same=same)

    def _text_width(self, text: TextView) -> int:
        return text.scrollable_content_region.width or text.size.width

    def _show(self, text: TextView, lines: Sequence[Row], *, same: bool) -> None:
        if not lines:
            nothing = tr(f"cards.nothing_{self.view}") if self.view != "raw" else ""
            text.show(call_views.plain_lines(nothing, ("faint",)), hint=True)
            return
        text.show(lines, numbers=self.view == "code", follow=same)
        tool = self.call
        grows = tool is not None and (tool.status == "writing" or (tool.open and self.view == "output"))
        if grows and not same:
            text.scroll_end(animate=False)  # what is new is at the end

    def _draw_output(self, text: TextView, tool: ToolCall, *, same: bool) -> None:
        if not same:
            self._output = OutputLines()
        self._draw_growing(text, self._output, call_views.output_parts(tool), same=same)

    def _draw_growing(self, text: TextView, shown: OutputLines, parts: Sequence[Part], *, same: bool) -> None:
        """Show text that grows: only what is new is made and laid out."""
        first = shown.update(parts)
        lines = shown.lines
        if not same or text.line_count == 0 or not lines or first == 0:
            self._show(text, lines, same=same)
        else:
            text.change(first, lines[first:])

    def _draw_coloured(self, text: TextView, tool: ToolCall, *, same: bool) -> None:
        """Show code or JSON: short text in colour, long text plain until a thread has coloured it."""
        body, language = tooltext.code(tool) if self.view == "code" else (tooltext.raw(tool), "json")
        failing = failing_line(tool.content) if self.view == "code" and tool.status == "failed" else 0
        key = (tool.id, self.view, body, failing)
        if same and key == self._text_key:
            return
        self._text_key = key
        if tool.status == "writing" and self.view == "code" and len(body) > HIGHLIGHT_AT_ONCE:
            self._draw_growing(text, self._draft, [Part("stdout", body)], same=same)
            return
        self._draft = OutputLines()
        if not language or len(body) <= HIGHLIGHT_AT_ONCE:
            self._show(text, call_views.code_lines(body, language, failing) if body else [], same=same)
            return
        self._show(text, call_views.plain_lines(body), same=same)
        self._colour(key, body, language, failing)

    @work(thread=True, exclusive=True, group="colour", exit_on_error=False)
    def _colour(self, key: tuple[object, ...], body: str, language: str, failing: int) -> None:
        lines = call_views.code_lines(body, language, failing)
        if not get_current_worker().is_cancelled:
            self.post_message(self.Coloured(key, lines))

    def on_tool_pane_coloured(self, event: Coloured) -> None:
        """Show the colours of the text that is shown."""
        event.stop()
        if event.key == self._text_key and event.key[:2] == self._drawn[:2]:
            text = self.query_one("#tool-text", TextView)
            text.show(event.lines, numbers=self.view == "code", keep=True)

    def _draw_pictures(self, images: Sequence[ImageContent]) -> None:
        if self._picture is None:
            self._picture = self._make_pager()
            self._picture.id = "tool-picture"
            self.mount(self._picture)
        self._show_pictures(self._picture, images)

    def on_tool_list_selected(self, event: ToolList.Selected) -> None:
        """Show the call that was chosen in the list."""
        event.stop()
        self.select(event.tool_use_id)
        self.post_message(self.Selected(event.tool_use_id))

    def on_tab_row_chosen(self, event: TabRow.Chosen) -> None:
        """Show the view that was chosen."""
        event.stop()
        self.show_view(event.tab)

    @property
    def summary(self) -> str:
        """How many calls there are, for the tab of the narrow layout."""
        return (
            tr("cards.pane_count", count=len(self.state.tools))
            if self.state.tools
            else tr("cards.pane_title")
        )
