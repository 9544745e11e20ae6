"""The prompts that wait for the running turn to end, and files on their way, above the composer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widget import Widget

from sandbox_chat.plain import progress_text
from sandbox_chat.ui import formats
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.glyphs import glyph, own
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.words import tr, tr_count

SHOWN = 3
"""Waiting prompts that are seen at once; while the list is in use up to a third of the screen."""
MOST = 12
"""Waiting prompts that are seen at once at most."""
ID_SHOWN = 8
"""Characters of a session's id that name it."""
PREVIEW = 600
"""Characters of a prompt's beginning that its row is made of."""

Piece = tuple[str, str]
"""A word below the list and the command that a click on it gives, empty for none."""


class Waiting(Widget, can_focus=True):
    """One row for each prompt that waits or was not taken yet and for each file on its way, none when there is none.

    With the focus it is a list with a cursor. Posts ``Asked`` for what is to be done, and ``Left``.
    ``elsewhere`` is how many prompts wait that other sessions left, ``session`` the only one of these.
    """

    DEFAULT_CSS = """
    Waiting { height: auto; width: 1fr; padding: 0 1; display: none; color: $muted; background: $background; }
    Waiting { link-style: none; link-color: $foreground; link-style-hover: underline; }
    Waiting:focus { background: $panel; }
    """

    FOCUS_ON_CLICK = False
    """With the focus the rows stand elsewhere: a click takes it when it is known what was clicked."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("queue")]

    class Asked(Message):
        """Something is to be done with a prompt: ``edit``, ``remove``, ``up``, ``down``; or ``send``, ``leave``, ``list``."""

        def __init__(self, command: str, prompt_id: str) -> None:
            super().__init__()
            self.command = command
            self.prompt_id = prompt_id

    def __init__(self, chat: Chat, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chat = chat
        self.chosen = ""
        self.elsewhere = 0
        self.session = ""
        self._place = 0  # of the chosen prompt, for when it is gone
        self._top = 0
        self._first = 0  # row of the first prompt that is seen
        self._drawn: tuple[object, ...] = ()
        self._rows: list[Content] = []

    # -- what is shown -----------------------------------------------------------------------------------

    def update_state(self) -> None:
        """Draw the rows again if they changed."""
        queue = self.chat.queue
        if self.chosen and queue.place(self.chosen) < 0:
            prompts = list(queue)
            self.chosen = prompts[min(self._place, len(prompts) - 1)].id if prompts else ""
        self._place = max(0, queue.place(self.chosen))
        if self.has_focus and not len(queue):
            self.post_message(self.Asked("leave", ""))
        key = (
            self._transfers(),
            self._early(),
            queue.revision,
            queue.held,
            self.chosen,
            self.elsewhere and not self.chat.state.turns,
            self.has_focus,
            self.screen.size,
        )
        if key == self._drawn:
            return
        self._drawn = key
        self._rows = self._lines(max(0, self.screen.size.width - 2))
        self.display = bool(self._rows)
        self.refresh(layout=True)

    def _transfers(self) -> tuple[str, ...]:
        stop = key_of("chat.escape")
        return tuple(
            tr("waiting.attaching", name=transfer.label, progress=progress_text(transfer), key=stop)
            for transfer in self.chat.state.attaching
        )

    def _early(self) -> tuple[str, ...]:
        starting = self.chat.state.phase == "connecting"
        early = self.chat.unconfirmed if starting else []
        return tuple(tr("waiting.early", prompt=preview(prompt)) for prompt in early)

    def _lines(self, width: int) -> list[Content]:
        """Return all rows in at most ``width`` cells."""
        rows = [Content(formats.fit(text, width)) for text in (*self._transfers(), *self._early())]
        if self.elsewhere and not self.chat.state.turns:
            words = tr_count("waiting.elsewhere", self.elsewhere, key=key_of("chat.queue"))
            resume = tr("waiting.resume", session=self.session[:ID_SHOWN]) if self.session else ""
            rows.append(_words([(words, "list"), (resume, "")], width, "$accent"))
        self._first = len(rows)
        prompts = list(self.chat.queue)
        if not prompts:
            return rows
        shown = self._window(len(prompts))
        digits = len(str(len(prompts)))
        count = tr_count("waiting.count", len(prompts))
        note = own(tr("waiting.count_keys", count=count, key=key_of("chat.queue")))
        for place in shown:
            right = note if place == shown.start and not self.has_focus else ""
            rows.append(self._row(place, prompts[place], digits, right, width))
        if len(shown) < len(prompts) and not self.has_focus:
            rows.append(Content(formats.fit(tr("waiting.more", count=len(prompts) - len(shown)), width)))
        return rows + self._below(len(prompts), width)

    def _window(self, count: int) -> range:
        """Return which prompts are seen: with the focus those around the cursor, else the first ones."""
        if not self.has_focus:
            last = max(SHOWN, self.chat.queue.place(self.chat.queue.editing) + 1)
            return range(max(0, last - SHOWN), min(last, count))
        room = min(MOST, max(SHOWN, self.screen.size.height // 3), count)
        self._top = max(0, min(self._top, self._place, count - room))
        self._top = max(self._top, self._place - room + 1)
        return range(self._top, self._top + room)

    def _row(self, place: int, prompt: Prompt, digits: int, right: str, width: int) -> Content:
        queue = self.chat.queue
        chosen = self.has_focus and prompt.id == self.chosen
        if prompt.id == queue.editing:
            right = tr("waiting.edited")
        elif prompt.left:
            right = right or tr("waiting.left")
        right = formats.fit(right, width // 2)
        mark = glyph("prompt") if chosen else " " if self.has_focus else glyph("later")
        head = f"{mark} {place + 1:>{digits}} "
        gap = 2 if right else 0
        text = formats.fit(head + preview(prompt.text), width - Content(right).cell_length - gap)
        style = "bold $primary" if chosen else "$accent" if prompt.id == queue.editing else ""
        space = " " * max(0, width - Content(text).cell_length - Content(right).cell_length)
        return Content.assemble((text, style), space, (right, "$faint" if not chosen else ""))

    def _below(self, count: int, width: int) -> list[Content]:
        """Return the rows under the prompts: why they are held, and what can be done."""
        queue = self.chat.queue
        rows: list[Content] = []
        send = own(tr("waiting.send_on", key=key_of("chat.send_waiting")))
        if queue.editing:
            place = queue.place(queue.editing) + 1
            leave = tr("waiting.editing_leave", key=key_of("chat.escape"))
            words = [tr("waiting.editing", place=place), tr("waiting.editing_save"), leave]
            rows.append(_words([(word, "") for word in words], width, "$accent"))
        elif queue.held or queue.left:
            why = tr("waiting.held", why=queue.held) if queue.held else tr("waiting.held_left")
            pieces: list[Piece] = [(why, "")]
            if not self.has_focus:
                pieces += [(send, "send"), (tr("waiting.list", key=key_of("chat.queue")), "list")]
            rows.append(_words(pieces, width, "$warning"))
        if self.has_focus:
            stopped = bool(queue.held or queue.left)
            keys: list[Piece] = [(f"{self._place + 1}/{count}", "")]
            if stopped:
                keys.append((f"{key_of('queue.take')} {tr('waiting.key_send')}", "send"))
            for name, command in (("edit", "edit"), ("delete", "remove"), ("up", "up"), ("down", "down")):
                keys.append((f"{key_of(f'queue.{name}')} {tr(f'waiting.key_{name}')}".strip(), command))
            keys.append((f"{key_of('queue.leave')} {tr('waiting.key_leave')}", "leave"))
            rows.append(_words(keys, width, "$muted"))
        return rows

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Return the rows that are needed."""
        del container, viewport, width
        return len(self._rows)

    def render(self) -> Content:
        """Draw the rows."""
        return Content("\n").join(self._rows)

    # -- the cursor --------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the keys, with the cursor on the newest prompt if it was on none."""
        prompts = list(self.chat.queue)
        if prompts and self.chat.queue.place(self.chosen) < 0:
            self.chosen = prompts[-1].id
        self.focus()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show or hide the cursor."""
        super().watch_has_focus(has_focus)
        if not self.is_attached:
            return
        prompts = list(self.chat.queue)
        if prompts and self.chat.queue.place(self.chosen) < 0:
            self.chosen = prompts[0].id
        self.update_state()

    def action_step(self, by: int) -> None:
        """Move the cursor by so many prompts."""
        prompts = list(self.chat.queue)
        if prompts:
            self.chosen = prompts[max(0, min(self._place + by, len(prompts) - 1))].id
            self.update_state()

    def action_ask(self, command: str) -> None:
        """Ask for something to be done with the chosen prompt."""
        self.post_message(self.Asked(command, self.chosen))

    def action_take(self) -> None:
        """Send the prompts on when they are held; else edit the chosen one."""
        queue = self.chat.queue
        self.action_ask("send" if queue.held or queue.left else "edit")

    def on_click(self, event: events.Click) -> None:
        """Choose the prompt that was clicked."""
        offset = event.get_content_offset(self)
        if offset is None or "@click" in event.style.meta:
            return
        shown = self._window(len(self.chat.queue))
        place = offset.y - self._first
        if 0 <= place < len(shown):
            event.stop()
            self.chosen = list(self.chat.queue)[shown[place]].id
            self.focus()
            self.update_state()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the cursor down."""
        event.stop()
        self.action_step(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move the cursor up."""
        event.stop()
        self.action_step(-1)


def preview(prompt: str) -> str:
    """Return the beginning of a prompt on one line."""
    return " ".join(prompt[:PREVIEW].split())


def _words(pieces: Sequence[Piece], width: int, style: str) -> Content:
    """Return words with dots between them in at most ``width`` cells. Those that give a command when clicked stay whole."""
    dot = f" {glyph('dot')} "
    row = Content()
    for text, command in pieces:
        if not text:
            continue
        between = dot if row else ""
        room = width - row.cell_length - len(between)
        word = own(text)
        if room < Content(word).cell_length:
            word = "" if row else formats.fit(word, room)
        if not word:
            break
        click = Style.from_meta({"@click": f"screen.queue_command('{command}')"}) if command else ""
        row = Content.assemble(row, between, (word, click))
    return Content.assemble(row).stylize_before(style)
