"""The composer: where the prompt is written. Enter sends, a pasted text of several lines never does."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.message import Message

from sandbox_chat.settings import Settings
from sandbox_chat.text import from_key
from sandbox_chat.ui.actions import bindings_of, keys_of
from sandbox_chat.ui.history import History
from sandbox_chat.ui.keys import typed_text
from sandbox_chat.ui.slash import parse, unescaped
from sandbox_chat.ui.tokens import Part, outside, recognised, without_escape
from sandbox_chat.ui.widgets.completion import Completion
from sandbox_chat.ui.widgets.key_paste import KeyPasteArea
from sandbox_chat.ui.widgets.pick_list import PickList
from sandbox_chat.words import tr

AT_ONCE = 0.003
"""Seconds between two keys that came in one piece. A command is typed if one of its keys did not."""

TYPED_GAP = 0.5
"""Seconds without typing after which it is told again."""

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
"""What a key such as an arrow sends."""

XTERM_SHIFT_ENTER = "shift+\r"
"""Shift+Enter as xterm reports it."""


class Composer(KeyPasteArea):
    """A text area of one to eight rows that sends on Enter, and drives the list of choices above it.

    A terminal without bracketed paste delivers pasted text as keys: see ``KeyPasteArea``.
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

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("composer")]

    class Submitted(Message):
        """The user sends ``text``; ``parts`` are how it stood here, with the files that were chosen from the list at ``@``."""

        def __init__(self, text: str, parts: Sequence[Part] = ()) -> None:
            super().__init__()
            self.text = text
            self.parts = parts

    class CommandAsked(Message):
        """The user typed or chose a command: ``text`` as it stood there, its ``word``, and what was after it.

        ``parts`` are how the whole of it stood here, with the files that were chosen from the list at ``@``.
        """

        def __init__(self, text: str, word: str, rest: str, parts: Sequence[Part] = ()) -> None:
            super().__init__()
            self.text = text
            self.word = word
            self.rest = rest
            self.parts = parts

    class Typed(Message):
        """The user began to type, or goes on after a pause; ``typed_at`` is the time of the last key."""

    class LeaveAsked(Message):
        """Ctrl+C was pressed on an empty draft."""

    class Said(Message):
        """A word for the user about the draft."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Paged(Message):
        """A page key was pressed: the transcript is to scroll by ``pages``."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    def __init__(
        self, prompts: History, settings: Settings, picks: PickList, *, id: str | None = None
    ) -> None:
        super().__init__(
            prompts,
            keep_delay=settings.draft_delay,
            fold_lines=settings.paste_fold_lines,
            fold_chars=settings.paste_fold_chars,
            placeholder=tr("composer.placeholder"),
            id=id,
        )
        self.completion = Completion(self, picks, settings)
        self._send_keys = frozenset(keys_of("composer.send"))
        self._newline_keys = frozenset((*keys_of("composer.newline"), XTERM_SHIFT_ENTER))
        self.typed_at = float("-inf")
        # Of a draft that begins with a stroke: whether that was typed, and the word after it.
        self._stroke = False
        self._word_typed = False
        self._typed_command = ""  # such a draft, for when it comes back
        self._all_typed = False

    # -- the draft ---------------------------------------------------------------------------------------

    @property
    def draft(self) -> str:
        """The prompt that is being written, also while the history is searched."""
        if self.completion.searching:
            return self.tokens.expand(self.completion.stashed)
        return self.text + "".join(self._held)

    @property
    def at_work(self) -> bool:
        """True while something is being written here."""
        return self.completion.searching or bool(self.document_text)

    @property
    def command_word(self) -> str | None:
        """What was typed after the stroke of a command whose word is not ended yet; ``None`` in a prompt."""
        if not self._stroke or self.document.line_count > 1:
            return None
        line = self.document[0]
        if not line.startswith("/") or " " in line or not (self._word_typed or line == "/"):
            return None
        return line[1:]

    @property
    def elsewhere(self) -> bool:
        """True while something else than the draft stands here: an older prompt, or the words of a search."""
        return self.completion.searching or super().elsewhere

    @property
    def unsent(self) -> str:
        """The prompt that was written and not sent, also while an older one is looked at."""
        return self.prompts.draft if self.prompts.recalling else self.draft

    def _leave_history(self) -> None:
        if not self.completion.searching:  # the words of a search are no draft
            super()._leave_history()

    def _edited(self) -> None:
        if not self.document[0].startswith("/"):
            self._stroke = self._word_typed = False
        elif not self.elsewhere:
            if not self._stroke and self._typed_command and self.text == self._typed_command:
                self._stroke = self._word_typed = True
            if self._stroke and self._word_typed:
                self._typed_command = self.text
        self.completion.update()
        super()._edited()

    def load_text(self, text: str) -> None:
        """Replace the document: by nothing that was typed here."""
        self._all_typed = False
        super().load_text(text)

    def watch_selection(self) -> None:
        """Close the list when the cursor leaves what it is about."""
        if self.is_mounted and self.completion.mode in ("command", "file"):
            self.completion.update()

    # -- keys --------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        character = self._character(event)
        gap, quick = self.time_key(event, character)
        pasted = quick and (character or event.key == "tab")
        if not pasted and self.completion.key(event.key):
            event.stop()
            event.prevent_default()
            return
        if not character:
            return
        # None of these is left to its binding, which runs later: the next key of a paste would overtake.
        event.stop()
        event.prevent_default()
        if not self.paste_key(character, quick=quick):
            self._type(character, together=gap < AT_ONCE)

    def _character(self, event: events.Key) -> str:
        """Return what a key writes: a character, a newline, a carriage return for the key that sends; else nothing."""
        if event.key in self._send_keys:
            return "\r"
        if event.key in self._newline_keys:
            return "\n"
        return typed_text(event)

    def _type(self, character: str, *, together: bool = False) -> None:
        row, column = min(self.selection)
        if not self.document_text:
            self._stroke, self._word_typed = character == "/", False
            self._all_typed = True
        elif together:
            self._all_typed = False
        elif self._stroke:
            self._word_typed = True
        elif character == "/" and (row, column) == (0, 0) and self._all_typed:
            self._stroke = self._word_typed = True
        self.put(outside(from_key(character, self.document[row][:column])))
        self.completion.typed(character)
        self.completion.update()
        self._tell_typed()

    def _tell_typed(self) -> None:
        now = time.monotonic()
        if now - self.typed_at > TYPED_GAP:
            self.post_message(self.Typed())
        self.typed_at = now

    def type_text(self, text: str) -> None:
        """Insert what was typed while something else had the focus."""
        for character in text:
            self._type(character)

    # -- pastes ------------------------------------------------------------------------------------------

    @property
    def together(self) -> bool:
        """True when keys that were kept back are to come into the draft together: not into the words of a search."""
        return not self.completion.searching

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert_text(event.text)

    def insert_text(self, text: str) -> None:
        """Insert pasted text at the cursor, cleaned; it never sends, and is never a command."""
        if self.completion.searching:
            text = " ".join(text[:1000].split())
        if not text:
            return
        if self.command_word is not None:
            self._stroke = False
        if not self.completion.searching:
            self._typed_command = ""
        self._all_typed = False
        folded = len(self.tokens)
        super().insert_text(text)
        if len(self.tokens) > folded:
            self.post_message(self.Said(tr("composer.tab_expands")))
        self._tell_typed()

    # -- actions -----------------------------------------------------------------------------------------

    def action_send(self) -> None:
        """Send the prompt, unless more keys follow at once: then it was a newline of a paste."""
        self.send_soon()

    def send(self) -> None:
        """Send the prompt, or ask for the command that was typed."""
        if self.completion.mode:
            self.completion.cancel()
        parts, text = self.parts, self.text.strip()
        typed = self._stroke and self._word_typed
        command = parse(text) if typed else None
        self._typed_command = ""
        if command is not None:
            self.text = ""
            self.post_message(self.CommandAsked(text, command[0].word, command[1], parts))
            return
        if typed and (plain := unescaped(text)) != text:
            text, parts = plain, without_escape(parts)
        if text:
            self._leave_history()
            self.prompts.add(text)
            self.text = ""
        self.post_message(self.Submitted(text, parts))

    def action_newline(self) -> None:
        """Insert a newline."""
        self.put("\n")

    def action_clear_draft(self) -> None:
        """Copy what is selected; else move the draft to the history; else ask to leave."""
        if self.completion.searching:
            self.completion.cancel()
        elif self.selected_text:
            self.action_copy()
        elif self.text:
            self._leave_history()
            self.prompts.add(self.text)
            self.text = ""
        else:
            self.post_message(self.LeaveAsked())

    def action_page(self, pages: int) -> None:
        """Scroll the transcript: eight rows of prompt need no page keys."""
        self.post_message(self.Paged(pages))

    def action_search(self) -> None:
        """Search the prompts of the history; the draft comes back when nothing is taken."""
        self.focus()
        self.completion.search()

    def action_write_out(self) -> None:
        """Write the long paste out that is beside the cursor."""
        beside = self.paste_beside()
        if beside is None:
            raise SkipAction
        self.write_out(*beside)

    def action_edit(self) -> None:
        """Edit the prompt in the user's editor."""
        self.release()
        self.completion.cancel()
        self.run_worker(self._edit_outside(), group="editor", exclusive=True, exit_on_error=False)

    async def _edit_outside(self) -> None:
        from sandbox_chat.ui.outside import open_in_editor

        parts = self.parts
        edited = await open_in_editor(self.app, self.text, ".md")
        if edited is not None:
            self._leave_history()
            self.load_parts(recognised(edited, parts))
        self.focus()

    # -- from elsewhere ----------------------------------------------------------------------------------

    def write_command(self, text: str, parts: Sequence[Part] = ()) -> None:
        """Write the beginning of a command, as if it had been typed; ``parts`` are how it stood here."""
        self._stroke = self._word_typed = True
        if parts:
            self.tokens.clear()
            text = self.tokens.document(parts)
        self.load_document(text)

    def follow(self, other: Composer) -> None:
        """Take the place of another composer: a command that was typed there is one here when it is offered."""
        self._typed_command = other._typed_command

    def show_search(self, *, searching: bool) -> None:
        """Say that the words of a search are typed here, or a prompt again."""
        self.placeholder = tr("composer.search_placeholder" if searching else "composer.placeholder")
        self.set_class(searching, "-search")

    def take_clicked(self) -> None:
        """Take the choice that was clicked."""
        self.completion.take()
        self.focus()

    def on_blur(self) -> None:
        """Close the list when another part of the screen gets the focus."""
        if self.app.app_focus:
            self.completion.cancel()

    def take_early(self, keys: str) -> None:
        """Take what was typed before the screen was there. One line that ends with Enter is sent."""
        text = _SEQUENCE.sub("", keys).replace("\r\n", "\n").replace("\r", "\n")
        line = text.rstrip("\n")
        if line.strip():
            self.insert_text(line)
            if text.endswith("\n") and "\n" not in line:
                self.send_now()

    def swap(self, parts: list[Part]) -> list[Part]:
        """Put ``parts`` in place of the draft, and return the draft."""
        self.release()
        self.completion.cancel()
        before = self.parts
        if self.prompts.recalling:
            before = self._put_aside
            self.prompts.leave()
        self.load_parts(parts)
        return before

    def offer(self, text: str | Sequence[Part]) -> bool:
        """Put a prompt back that was not answered. Returns false if something else is being written."""
        if self.draft.strip():
            return False
        self.completion.cancel()
        self.load_parts([Part("text", text)] if isinstance(text, str) else list(text))
        return True
