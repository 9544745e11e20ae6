"""The prompts that wait for the running turn to end, and files on their way, above the composer."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from sandbox_chat.plain import progress_text
from sandbox_chat.ui import formats
from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.words import tr

SHOWN = 3
"""Waiting prompts shown; more are counted."""


class Waiting(Static):
    """One row for each prompt that waits or was not taken yet and for each file on its way, none when there is none."""

    DEFAULT_CSS = """
    Waiting { height: auto; width: 1fr; padding: 0 1; display: none; color: $muted; background: $background; }
    """

    def __init__(self, chat: Chat, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chat = chat
        self._drawn: tuple[object, ...] = ()

    def update_state(self) -> None:
        """Draw the rows again if they changed."""
        waiting, held = self.chat.waiting, self.chat.held
        starting = self.chat.state.phase in ("starting", "connecting")
        early = self.chat.unconfirmed if starting else []
        width = self.screen.size.width - 2
        transfers = [
            tr(
                "waiting.attaching",
                name=transfer.label,
                progress=progress_text(transfer),
                key=key_of("chat.escape"),
            )
            for transfer in self.chat.state.attaching
        ]
        key = (tuple(transfers), tuple(early), tuple(waiting), held, width)
        if key == self._drawn:
            return
        self._drawn = key
        self.display = bool(waiting or early or transfers)
        rows = [Content(formats.fit(text, width)) for text in transfers]
        for label, prompts in (("waiting.early", early), ("waiting.waiting", waiting[:SHOWN])):
            for prompt in prompts:
                rows.append(Content(formats.fit(tr(label, prompt=" ".join(prompt.split())), width)))
        if len(waiting) > SHOWN:
            rows.append(Content(tr("waiting.more", count=len(waiting) - SHOWN)))
        if held:
            keys = {"send": key_of("chat.send_waiting"), "back": key_of("chat.take_back")}
            rows.append(Content.styled(formats.fit(tr("waiting.held", why=held, **keys), width), "$warning"))
        self.update(Content("\n").join(rows))
