"""The arrangement of the chat's screen: which panes are seen, how wide, and where the focus goes."""

from __future__ import annotations

from textual import events, on
from textual.screen import Screen
from textual.widget import Widget

from sandbox_chat.ui.layout import Layout, Pane
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.ui.widgets.ask import AskBox
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.ui.widgets.cost import CostPane
from sandbox_chat.ui.widgets.splitter import Splitter
from sandbox_chat.ui.widgets.status import StatusBar
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.ui.widgets.tool_list import ToolList
from sandbox_chat.ui.widgets.tool_pane import ToolPane
from sandbox_chat.ui.widgets.waiting import Waiting
from sandbox_chat.words import tr


def _seen(widget: Widget) -> bool:
    return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))


class PaneScreen(Screen[None]):
    """A screen with the panes of the chat. Subclasses compose it with the ids that are used here."""

    def __init__(self, tabs_below: int) -> None:
        super().__init__()
        self.arrangement = Layout(tabs_below=tabs_below)

    # -- parts -------------------------------------------------------------------------------------------

    @property
    def transcript(self) -> TranscriptView:
        """The transcript."""
        return self.query_one("#transcript", TranscriptView)

    @property
    def composer(self) -> Composer:
        """The composer."""
        return self.query_one("#composer", Composer)

    @property
    def tool_pane(self) -> ToolPane:
        """The tools pane."""
        return self.query_one("#tool-pane", ToolPane)

    @property
    def status(self) -> StatusBar:
        """The status line."""
        return self.query_one("#status", StatusBar)

    # -- arrangement -------------------------------------------------------------------------------------

    def on_resize(self, event: events.Resize) -> None:
        """Arrange the panes for the new width."""
        self.arrangement.width = event.size.width
        self._arrange()
        self.query_one(Waiting).update_state()

    def _arrange(self) -> None:
        plan = self.arrangement
        if self.size.width:
            plan.width = self.size.width
        seen = plan.visible
        side = [pane for pane in seen if pane != "chat"]
        self.query_one("#tabs").display = plan.narrow
        self.set_class(plan.narrow, "-narrow")
        self.query_one("#chat").display = "chat" in seen
        self.query_one("#splitter").display = "chat" in seen and bool(side)
        box = self.query_one("#side")
        box.display = bool(side)
        box.styles.width = plan.side_width if "chat" in seen else "1fr"
        self.tool_pane.display = "tools" in seen
        cost = self.query_one(CostPane)
        cost.display = "cost" in seen
        cost.set_class("tools" not in seen, "-alone")
        self._label_tabs()
        focused = self.focused
        if focused is not None and not _seen(focused):
            self.composer.focus()

    def _label_tabs(self) -> None:
        tabs = [("chat", tr("panes.chat")), ("tools", self.tool_pane.summary), ("cost", tr("panes.cost"))]
        self.query_one("#tabs", TabRow).show(self.arrangement.tab, tabs)

    def _pane_in_use(self) -> Pane:
        focused = self.focused
        if focused is not None:
            if self.tool_pane in focused.ancestors_with_self:
                return "tools"
            if self.query_one(CostPane) in focused.ancestors_with_self:
                return "cost"
        return "chat"

    def show_pane(self, pane: Pane) -> None:
        """Make sure that a pane is seen."""
        self.arrangement.show(pane)
        self._arrange()

    @on(TabRow.Chosen, "#tabs")
    def _tab_chosen(self, event: TabRow.Chosen) -> None:
        event.stop()
        for pane in ("chat", "tools", "cost"):
            if pane == event.tab:
                self.show_pane(pane)

    def on_splitter_moved(self, event: Splitter.Moved) -> None:
        """The line between the panes was dragged."""
        self.arrangement.resize_side(event.columns)
        self._arrange()

    def action_toggle_tools(self) -> None:
        """Show or hide the tools."""
        self.arrangement.toggle("tools")
        self._arrange()

    def action_toggle_cost(self) -> None:
        """Show or hide the cost."""
        self.arrangement.toggle("cost")
        self._arrange()

    def action_maximise(self) -> None:
        """Let the pane in use fill the screen, or bring the others back."""
        self.arrangement.maximise(self._pane_in_use())
        self._arrange()

    def action_side(self, by: int) -> None:
        """Make the side wider or narrower."""
        plan = self.arrangement
        plan.resize_side(plan.side_width + by)
        self._arrange()

    def action_next_pane(self) -> None:
        """Move the focus to the next part that is seen."""
        waiting = self.query_one(Waiting)
        stops: list[Widget] = [
            self.composer,
            self.query_one(AskBox),
            self.transcript,
            self.tool_pane.query_one(ToolList),
            self.tool_pane.query_one(TextView),
        ]
        if len(waiting.chat.queue):
            stops.insert(2, waiting)
        seen = [stop for stop in stops if _seen(stop)]
        place = seen.index(self.focused) if self.focused in seen else -1
        seen[(place + 1) % len(seen)].focus()
