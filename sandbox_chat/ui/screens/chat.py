"""The chat's screen: lays out transcript, tools, cost, composer and status, and passes events to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from sandbox_chat.events import Event, ImageContent
from sandbox_chat.settings import Settings
from sandbox_chat.ui import formats
from sandbox_chat.ui.actions import CHAT_ACTIONS
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.history import History
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.ui.widgets.ask import GRACE, AskBox
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.ui.widgets.cost import CostPane
from sandbox_chat.ui.widgets.hint import Hint, Unseen, examples
from sandbox_chat.ui.widgets.splitter import Splitter
from sandbox_chat.ui.widgets.status import StatusBar
from sandbox_chat.ui.widgets.tabs import TabRow
from sandbox_chat.ui.widgets.title import TitleBar
from sandbox_chat.ui.widgets.tool_pane import ToolPane
from sandbox_chat.ui.widgets.waiting import Waiting

TICK = 0.1
"""Seconds between two frames of what is alive."""

STILL_TICK = 1.0
"""The same with reduced motion: only the seconds go on."""


class ChatScreen(PaneScreen):
    """The main screen. ``deliver`` takes the engine's events on the terminal's loop."""

    is_chat = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            item.keys, item.action.removeprefix("screen."), item.title, show=False, priority=item.priority
        )
        for item in CHAT_ACTIONS
    ]

    def __init__(
        self,
        settings: Settings,
        chat: Chat,
        history: History,
        images: Images,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(settings.tabs_below)
        self.settings = settings
        self.chat = chat
        self.history = history
        self.images = images
        self._clock = clock
        self._frame = 0
        self._typed_at = float("-inf")

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        yield TitleBar(self.settings, self.chat.state, id="title")
        yield TabRow([("chat", "Chat"), ("tools", "Tools"), ("cost", "Cost")], id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="chat"):
                yield Hint(self.settings, id="hint")
                yield TranscriptView(motion=not self.settings.reduced_motion, beat=False, id="transcript")
                yield Unseen(id="unseen")
            yield Splitter(id="splitter")
            with Vertical(id="side"):
                yield ToolPane(
                    self.chat.state, self._clock, self.images.make_view, self.images.show, id="tool-pane"
                )
                yield CostPane(self.chat.state, id="cost-pane")
        yield AskBox(self.chat.state, self._at_work, id="ask")
        yield Waiting(self.chat, id="waiting")
        with Horizontal(id="prompt"):
            yield Static(Content("›"), id="prompt-sign")
            yield Composer(self.history, placeholder="Type a prompt", id="composer")
        yield StatusBar(self.chat, self._clock, still=self.settings.reduced_motion, id="status")

    def on_mount(self) -> None:
        """Wire the transcript and start the clock."""
        self.transcript.scene.now = self._clock
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
        self.transcript.feed(batch)
        self.update_state()

    def update_state(self) -> None:
        """Let every part show the present state."""
        state = self.chat.state
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
        return (
            self.chat.busy
            or bool(self.chat.state.attaching)
            or self.chat.state.phase in ("starting", "connecting")
        )

    def _tick(self) -> None:
        self._frame += 1
        self.status.tick()
        spinner = "" if self.settings.reduced_motion else formats.SPINNER[self._frame % len(formats.SPINNER)]
        self.tool_pane.tick(spinner)
        self.transcript.spin()  # in the same frame: two of them would cost twice
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

    def on_tool_pane_picture_opened(self, event: ToolPane.PictureOpened) -> None:
        """Show a picture large."""
        self.images.open(self.app, event.path)

    def on_transcript_view_picture_opened(self, event: TranscriptView.PictureOpened) -> None:
        """Show a picture large."""
        self.images.open(self.app, str(event.path))

    def on_transcript_view_link_opened(self, event: TranscriptView.LinkOpened) -> None:
        """Show where a link leads before it is opened: its words may say something else."""
        from sandbox_chat.ui.screens.link import LinkScreen

        self.app.push_screen(LinkScreen(event.href))

    def action_step_tool(self, by: int) -> None:
        """Choose the call before or after."""
        self.tool_pane.step(by)

    def action_open_picture(self) -> None:
        """Show the picture of the chosen call, or else the newest one, large."""
        call = self.tool_pane.call
        pictures: list[ImageContent] = list(call.images) if call else []
        if not pictures:
            pictures = [image for tool in self.chat.state.tools.values() for image in tool.images]
        if pictures:
            self.images.open(self.app, pictures[-1].path)
        else:
            self.status.say("There is no picture yet.")

    # -- prompt ------------------------------------------------------------------------------------------

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Send the prompt; an empty one lets held prompts go on."""
        if event.text and self._attach_file(event.text):
            pass
        elif event.text:
            self.chat.submit(event.text)
            self.transcript.end()
            if self.arrangement.narrow and self.arrangement.tab != "chat":
                self.show_pane("chat")
        elif self.chat.held:
            self.chat.resume_waiting()
        self.update_state()

    def _attach_file(self, text: str) -> bool:
        """Attach the file that ``text`` names, if it is such a command and no prompt."""
        from sandbox_chat.ui.attach import AttachUsage, parse

        try:
            command = parse(text)
        except AttachUsage as wrong:
            self.status.say(str(wrong), 6.0)
            self.composer.offer(text)
            return True
        if command is None:
            return False
        if not self.chat.attach_file(*command):
            self.status.say("There is no session to attach it to.")
            self.composer.offer(text)
        return True

    def action_attach(self) -> None:
        """Begin the command that attaches a file."""
        if self.composer.text.strip():
            self.status.say("The composer is not empty.")
            return
        self.restore("/attach ")
        self.composer.focus()

    # -- questions -----------------------------------------------------------------------------------------

    def _at_work(self) -> bool:
        """True while the user is writing a prompt, or is busy elsewhere than in the composer."""
        idle = time.monotonic() - self._typed_at >= GRACE
        return bool(self.composer.text) or not idle or self.focused is not self.composer

    def on_ask_box_decided(self, event: AskBox.Decided) -> None:
        """The user answered a question."""
        self.chat.answer(event.approval_id, event.choice)
        self.composer.focus()

    def on_ask_box_typed(self, event: AskBox.Typed) -> None:
        """What was typed is no answer: it belongs into the prompt."""
        self.composer.focus()
        self.composer.insert_text(event.text)

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
        self._typed_at = time.monotonic()
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
        if not event.is_printable or event.character is None or self.composer.disabled:
            return
        if event.key not in self.active_bindings and self.focused is not self.composer:
            event.stop()
            event.prevent_default()
            self.set_focus(self.composer)  # at once: the next key may mean something in the pane
            self.composer.insert_text(event.character)

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

    def action_resume_waiting(self) -> None:
        """Let waiting prompts go on."""
        if not self.chat.resume_waiting():
            self.status.say(
                "No prompt waits." if not self.chat.waiting else "They go on when this turn ends."
            )
        self.update_state()

    def action_take_back(self) -> None:
        """Put the newest waiting prompt back into the composer."""
        if self.composer.text.strip():
            self.status.say("The composer is not empty.")
        elif prompt := self.chat.take_back():
            self.restore(prompt)
        else:
            self.status.say("No prompt waits.")
        self.update_state()

    # -- getting about ----------------------------------------------------------------------------------------

    def action_escape(self) -> None:
        """Interrupt the running turn; when idle, back to the prompt and the end of the transcript."""
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

    def action_change_model(self) -> None:
        """Ask for another model."""
        from sandbox_chat.ui.screens.model import ModelScreen

        if self.chat.state.demo or self.settings.demo:
            self.status.say("The demo has no model to choose.")
            return

        def chosen(name: str | None) -> None:
            if name:
                self.chat.set_model(name)
                self.update_state()

        self.app.push_screen(ModelScreen(self.chat.state.model or self.settings.model), chosen)

    # -- the whole ---------------------------------------------------------------------------------------

    def use(self, settings: Settings) -> None:
        """Take other settings, chosen on the welcome screen."""
        self.settings = settings
        self.query_one("#title", TitleBar).settings = settings
        self.query_one(Hint).show(settings)
        self.update_state()

    def show_closing(self) -> None:
        """Say that the program is about to end."""
        self.status.closing = True
        self.status.changed()
        self.composer.disabled = True
