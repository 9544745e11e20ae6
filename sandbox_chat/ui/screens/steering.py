"""What the chat's screen does for steering: sending a prompt into the running turn."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.tokens import Part
from sandbox_chat.words import tr

COMMAND = "/steer "


class Steering(PaneScreen):
    """The part of the chat's screen that sends into the running turn, which only the user may order."""

    chat: Chat

    def update_state(self) -> None:
        """Let every part show the present state; the screen does."""
        raise NotImplementedError

    def action_steer(self) -> None:
        """Send what is in the composer into the running turn; when it is empty, begin the command."""
        text, parts = self.composer.text.strip(), self.composer.parts
        if self.chat.queue.editing:
            self.status.say(tr("composer.not_empty"))
        elif not text:
            self.composer.write_command(COMMAND)
            self.composer.focus()
        elif self._steer(text, parts):
            self.composer.prompts.add(text)
            self.composer.text = ""

    def take_steer(self, text: str, parts: Sequence[Part]) -> None:
        """Take what stands after ``/steer``; ``parts`` are how the whole command stood in the composer."""
        if not self._steer(text, parts):
            self.composer.write_command(f"{COMMAND}{text}", parts)

    def _steer(self, text: str, parts: Sequence[Part] = ()) -> bool:
        if not self.chat.steer(text, parts):
            self.status.say(tr("steering.idle"))
            return False
        self.transcript.end()
        self.update_state()
        return True
