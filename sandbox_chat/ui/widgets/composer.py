"""The composer: where the prompt is written. Enter sends, a pasted text of several lines never does."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import TextArea

from sandbox_chat.text import clean
from sandbox_chat.ui.history import History

BURST_GAP = 0.01
"""Seconds between two keys below which they were not typed by a person: a paste without brackets."""

SEND_DELAY = 0.015
"""Seconds that Enter waits for more keys of such a paste before it sends; nobody notices them."""

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
"""What a key such as an arrow sends."""

NEWLINE_KEYS = frozenset({"alt+enter", "shift+enter", "ctrl+j", "shift+\r"})
"""Keys that insert a newline; the last is Shift+Enter as xterm reports it."""


class Composer(TextArea):
    """A text area of one to eight rows that sends on Enter.

    A terminal without bracketed paste delivers pasted text as keys. An Enter in the midst of keys
    that come quicker than anyone types is a newline of such a text, and not the wish to send.
    """

    DEFAULT_CSS = """
    Composer {
        height: auto; min-height: 1; max-height: 8; width: 1fr;
        border: none; padding: 0; background: transparent;
        scrollbar-size-vertical: 1;
        &:focus { border: none; }
        & .text-area--cursor-line { background: transparent; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send the prompt"),
        Binding("alt+enter,shift+enter,ctrl+j", "newline", "New line"),
        Binding("ctrl+c", "clear_draft", "Clear (kept in the history); twice quits"),
        Binding("pageup", "page(-1)", "Scroll the transcript up", show=False),
        Binding("pagedown", "page(1)", "Scroll the transcript down", show=False),
    ]

    class Submitted(Message):
        """The user sends ``text``."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Typed(Message):
        """The user began to type a prompt."""

    class LeaveAsked(Message):
        """Ctrl+C was pressed on an empty draft."""

    class Paged(Message):
        """A page key was pressed: the transcript is to scroll by ``pages``."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    def __init__(self, prompts: History, *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder=Content(placeholder),
            highlight_cursor_line=False,
        )
        self.prompts = prompts
        self.cursor_blink = False
        self._key_time = 0.0
        self._in_paste = False
        self._enter_time: float | None = None

    # -- keys --------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        quick = event.time - self._key_time < BURST_GAP
        self._key_time = event.time
        if self._enter_time is not None:
            if quick:
                self._in_paste = True
                self._enter_time = None
                self._put("\n")
            else:
                self._send_now()
        if not quick:
            self._in_paste = False
        # These two are not left to their bindings, which run later: the next key of a paste would overtake.
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if quick and self._in_paste:
                self._put("\n")
            else:
                self.action_send()
            return
        if event.key in NEWLINE_KEYS:
            event.stop()
            event.prevent_default()
            self._put("\n")
            self._in_paste = self._in_paste or quick
            return
        if event.is_printable:
            self.prompts.leave()
            self.post_message(self.Typed())

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text(event.text)

    def insert_text(self, text: str) -> None:
        """Insert pasted text at the cursor, cleaned; it never sends."""
        text = clean(text.replace("\r\n", "\n").replace("\r", "\n"))
        if text:
            self.prompts.leave()
            self._put(text)
            self.post_message(self.Typed())

    def _put(self, text: str) -> None:
        result = self.replace(text, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    # -- actions -----------------------------------------------------------------------------------------

    def action_send(self) -> None:
        """Send the prompt, unless more keys follow at once: then it was a newline of a paste."""
        self._enter_time = self._key_time
        self.set_timer(SEND_DELAY, self._send_now)

    def send_now(self) -> None:
        """Send the prompt at once."""
        self._enter_time = self._key_time
        self._send_now()

    def _send_now(self) -> None:
        if self._enter_time is None:
            return
        self._enter_time = None
        text = self.text.strip()
        if text:
            self.prompts.add(text)
            self.text = ""
        self.post_message(self.Submitted(text))

    def action_newline(self) -> None:
        """Insert a newline."""
        self._put("\n")

    def action_clear_draft(self) -> None:
        """Copy what is selected; else move the draft to the history; else ask to leave."""
        if self.selected_text:
            self.action_copy()
        elif self.text:
            self.prompts.add(self.text)
            self.text = ""
        else:
            self.post_message(self.LeaveAsked())

    def action_page(self, pages: int) -> None:
        """Scroll the transcript: eight rows of prompt need no page keys."""
        self.post_message(self.Paged(pages))

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; on the first row, to the prompt before."""
        if not select and self.navigator.is_first_wrapped_line(self.selection.end):
            self._recall(self.prompts.back(self.text))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; on the last row, to the prompt after."""
        if not select and self.navigator.is_last_wrapped_line(self.selection.end):
            self._recall(self.prompts.forward())
        else:
            super().action_cursor_down(select)

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.text = text
            self.move_cursor(self.document.end)

    def take_early(self, keys: str) -> None:
        """Take what was typed before the screen was there. One line that ends with Enter is sent."""
        text = _SEQUENCE.sub("", keys).replace("\r\n", "\n").replace("\r", "\n")
        line = text.rstrip("\n")
        if line.strip():
            self.insert_text(line)
            if text.endswith("\n") and "\n" not in line:
                self.send_now()

    def offer(self, text: str) -> None:
        """Put a prompt back that was not answered, if nothing else is being written."""
        if not self.text.strip():
            self.text = text
            self.move_cursor(self.document.end)
