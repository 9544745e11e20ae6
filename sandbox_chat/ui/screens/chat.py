"""The chat's screen: lays out transcript, tools, cost, composer and status, and passes events to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from sandbox_chat.events import Event, TextDelta, ThinkingDelta
from sandbox_chat.settings import Settings
from sandbox_chat.ui import formats
from sandbox_chat.ui.actions import bindings_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.history import History
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.keys import typed_text
from sandbox_chat.ui.private import paint_narrowly
from sandbox_chat.ui.screens.asking import Asking
from sandbox_chat.ui.screens.looking import LookingScreen
from sandbox_chat.ui.screens.picturing import Picturing
from sandbox_chat.ui.screens.prompting import Prompting
from sandbox_chat.ui.screens.queueing import Queueing
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.ui.widgets.ask import GRACE, AskBox
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.ui.widgets.cost import CostPane
from sandbox_chat.ui.widgets.find import FindBar
from sandbox_chat.ui.widgets.ground import Ground, GroundColumn, GroundRow
from sandbox_chat.ui.widgets.hint import Hint, Unseen, examples
from sandbox_chat.ui.widgets.pick_list import PickList
from sandbox_chat.ui.widgets.splitter import Splitter
from sandbox_chat.ui.widgets.status import StatusBar
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.title import TitleBar
from sandbox_chat.ui.widgets.tool_pane import ToolPane
from sandbox_chat.ui.widgets.waiting import Waiting
from sandbox_chat.words import tr

TICK = 0.1
"""Seconds between two frames of what is alive."""

PAST_UPDATE = 0.2
"""Seconds between two updates of the panes while a past session is read."""

STILL_TICK = 1.0
"""The same with reduced motion: only the seconds go on."""


TEXT = (TextDelta, ThinkingDelta)
"""Events that only the transcript shows, as long as they do not change what is going on."""


class ChatScreen(Ground, Prompting, Queueing, Asking, Picturing, LookingScreen):
    """The main screen. ``deliver`` takes the engine's events on the terminal's loop."""

    is_chat = True

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("chat")]

    def __init__(
        self,
        settings: Settings,
        chat: Chat,
        history: History,
        images: Images,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(settings.tabs_below)
        paint_narrowly(self)
        self.settings = settings
        self.chat = chat
        chat.default_budget = settings.budget_usd
        self.history = history
        self.images = images
        self._clock = clock
        self._past_timer: Timer | None = None
        self._frame = 0
        self._phase = ""  # that the parts show
        self._tick_due = False

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        yield TitleBar(self.settings, self.chat.state, id="title")
        yield TabRow([(pane, tr(f"panes.{pane}")) for pane in ("chat", "tools", "cost")], id="tabs")
        with GroundRow(id="body"):
            with GroundColumn(id="chat"):
                yield Hint(self.settings, id="hint")
                yield TranscriptView(
                    motion=not self.settings.reduced_motion,
                    beat=False,
                    memory=self.settings.transcript_memory_mb,
                    id="transcript",
                )
                yield Unseen(id="unseen")
            yield Splitter(id="splitter")
            with GroundColumn(id="side"):
                yield ToolPane(
                    self.chat.state, self._clock, self.images.make_pager, self.images.show, id="tool-pane"
                )
                yield CostPane(self.chat.state, lambda: self.chat.limit, id="cost-pane")
        yield AskBox(self.chat.state, self._at_work, id="ask")
        yield Waiting(self.chat, id="waiting")
        yield (picks := PickList(id="picks"))
        yield FindBar(id="find")
        with GroundRow(id="prompt"):
            yield Static(Content(glyph("prompt")), id="prompt-sign")
            yield Composer(self.history, self.settings, picks, id="composer")
        yield StatusBar(self.chat, self._clock, still=self.settings.reduced_motion, id="status")

    def on_mount(self) -> None:
        """Wire the transcript and start the clock."""
        self.transcript.scene.now = self._clock
        self.transcript.scene.expand = self.settings.expand_tools
        self.watch(self.transcript, "unseen_lines", self._show_unseen, init=False)
        self.watch(self.transcript, "following", self._show_unseen, init=False)
        self._timer = self.set_interval(
            STILL_TICK if self.settings.reduced_motion else TICK, self._tick, pause=False
        )
        self.composer.focus()
        self._arrange()

    # -- events of the engine ----------------------------------------------------------------------------

    def deliver(self, batch: Sequence[Event], past: int = 0) -> None:
        """Show events; the first ``past`` of them are replayed from the journal."""
        self.chat.apply(batch, past=past)
        self.transcript.feed(batch, paced=True)
        if self._tick_due:
            self._draw_tick()
        if past < len(batch):
            if self.chat.state.phase != self._phase or not all(isinstance(event, TEXT) for event in batch):
                self.update_state()
        elif self._past_timer is None:  # a long past comes in many batches; the panes need not show each
            self._past_timer = self.set_timer(PAST_UPDATE, self.update_state)

    def update_state(self) -> None:
        """Let every part show the present state."""
        if self._past_timer is not None:
            self._past_timer.stop()
            self._past_timer = None
        state = self.chat.state
        self._phase = state.phase
        self.query_one("#title", TitleBar).changed()
        self.status.changed()
        self.tool_pane.update_state()
        self.query_one(CostPane).update_state()
        self.query_one(Waiting).update_state()
        self.query_one(AskBox).update_state()
        if (state.turns or state.remarks) and not self.transcript.display:
            self.query_one("#hint").display = False
            self.transcript.display = True
        self._label_tabs()
        if self._alive:
            self._timer.resume()

    @property
    def _alive(self) -> bool:
        return self.chat.busy or bool(self.chat.state.attaching) or self.chat.state.phase == "connecting"

    def _tick(self) -> None:
        # While events come, the next batch of them draws it too: two frames would cost twice.
        if self.chat.state.phase == "streaming" and self._alive and not self._tick_due:
            self._tick_due = True
        else:
            self._draw_tick()

    def _draw_tick(self) -> None:
        self._tick_due = False
        self._frame += 1
        self.status.tick()
        spinner = "" if self.settings.reduced_motion else formats.spinner(self._frame)
        self.tool_pane.tick(spinner)
        self.transcript.spin()
        if not self._alive:
            self._timer.pause()

    def _show_unseen(self) -> None:
        view = self.transcript
        self.query_one(Unseen).show(0 if view.following else view.unseen_lines)

    # -- tools and pictures ------------------------------------------------------------------------------

    def on_tool_pane_selected(self, event: ToolPane.Selected) -> None:
        """A call was chosen in the tools pane: show it in the transcript."""
        self.transcript.select_tool(event.tool_use_id)

    def on_transcript_view_tool_selected(self, event: TranscriptView.ToolSelected) -> None:
        """A call was chosen in the transcript: show it in the tools pane."""
        self.tool_pane.select(event.tool_use_id)

    def on_transcript_view_link_opened(self, event: TranscriptView.LinkOpened) -> None:
        """Show where a link leads before it is opened: its words may say something else."""
        from sandbox_chat.ui.screens.link import LinkScreen

        self.app.push_screen(LinkScreen(event.href))

    def action_step_tool(self, by: int) -> None:
        """Choose the call before or after."""
        self.tool_pane.step(by)

    # -- prompt ------------------------------------------------------------------------------------------

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Send the prompt; an empty one lets held prompts go on."""
        if self.take_edited(event):
            pass
        elif event.text:
            self.chat.submit(event.text, event.parts)
            self.transcript.end()
            if self.arrangement.narrow and self.arrangement.tab != "chat":
                self.show_pane("chat")
        elif self.chat.held:
            self.chat.resume_waiting(left=False)
        self.update_state()
        self.offer_budget()

    # -- questions -----------------------------------------------------------------------------------------

    def _at_work(self) -> bool:
        """True while the user is writing a prompt, or is busy elsewhere than in the composer."""
        idle = time.monotonic() - self.composer.typed_at >= GRACE
        return self.composer.at_work or not idle or self.focused is not self.composer

    def on_ask_box_decided(self, event: AskBox.Decided) -> None:
        """The user answered a question."""
        self.chat.answer(event.approval_id, event.choice)
        self.composer.focus()

    def on_ask_box_typed(self, event: AskBox.Typed) -> None:
        """What was typed is no answer: it belongs into the prompt."""
        self.composer.focus()
        self.composer.type_text(event.text)

    def on_ask_box_left(self) -> None:
        """The question is gone."""
        self.composer.focus()

    def action_answer(self, number: int) -> None:
        """Answer the question that is shown with its choice of that number."""
        box = self.query_one(AskBox)
        if box.asked is not None and 0 <= number < len(box.asked.choices):
            box.decide(box.asked.choices[number].name)

    def on_composer_typed(self) -> None:
        """The user types: warm the sandbox."""
        self.chat.typing()

    def on_composer_paged(self, event: Composer.Paged) -> None:
        """Scroll the transcript from the composer."""
        self.transcript.action_scroll_pages(event.pages)

    def on_paste(self, event: events.Paste) -> None:
        """A paste outside of the composer belongs into it."""
        event.stop()
        self.composer.insert_text(event.text)
        self.composer.focus()

    def on_key(self, event: events.Key) -> None:
        """What is typed while a pane is in use belongs into the prompt, unless the key means something there."""
        text = typed_text(event)
        if not text or self.composer.disabled:
            return
        if event.key not in self.active_bindings and self.focused is not self.composer:
            event.stop()
            event.prevent_default()
            self.set_focus(self.composer)  # at once: the next key may mean something in the pane
            self.composer.type_text(text)

    def restore(self, prompt: str) -> None:
        """Put a prompt back that got no answer."""
        self.composer.offer(prompt)

    def action_take_example(self, number: int) -> None:
        """Put an example of the empty transcript into the composer."""
        self.restore(examples(self.settings)[number])
        self.composer.focus()
        self.chat.typing()

    def action_send(self) -> None:
        """Send what is in the composer."""
        self.composer.send_now()

    def action_newline(self) -> None:
        """Insert a newline into the composer."""
        self.composer.action_newline()
        self.composer.focus()

    def action_clear_draft(self) -> None:
        """Clear the composer."""
        self.composer.action_clear_draft()

    # -- getting about ----------------------------------------------------------------------------------------

    def action_escape(self) -> None:
        """Interrupt the running turn; when idle, back to the prompt and the end of the transcript."""
        if self.leave_edit():
            self.update_state()
            return
        if self.chat.interrupt():
            self.status.changed()
            return
        if self.arrangement.narrow:
            self.show_pane("chat")
        elif self.arrangement.maximised:
            self.arrangement.maximised = None
            self._arrange()
        self.transcript.end()
        self.composer.focus()

    def action_end(self) -> None:
        """Go to the end of the transcript and follow it."""
        self.transcript.end()

    # -- the whole ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Take other settings, chosen on the welcome screen."""
        self.settings = settings
        self.chat.default_budget = settings.budget_usd
        self.transcript.scene.expand = settings.expand_tools
        self.query_one("#title", TitleBar).settings = settings
        self.query_one(Hint).show(settings)
        self.update_state()

    def show_closing(self) -> None:
        """Say that the program is about to end."""
        self.status.closing = True
        self.status.changed()
        self.composer.disabled = True
