"""What the chat's screen does for the composer: commands, files that were mentioned, words about the draft."""

from __future__ import annotations

from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.slash import parse
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.words import tr

LONG = 6.0
"""Seconds that a sentence is shown."""


NODES = {"composer": "#composer", "transcript": "#transcript"}
"""The widgets whose actions are commands, by place."""


class Prompting(PaneScreen):
    """The part of the chat's screen that serves the composer."""

    chat: Chat

    async def on_composer_command_asked(self, event: Composer.CommandAsked) -> None:
        """Run a command that was typed or chosen from the list."""
        match event.word:
            case "attach":
                self._attach_named(event.text)
            case "model" if event.rest:
                self.chat.set_model(event.rest)
            case _:
                found = parse(f"/{event.word}")
                if found is not None:
                    place = found[0].action.place
                    node = self if place not in NODES else self.query_one(NODES[place])
                    await self.app.run_action(
                        found[0].action.action, node, namespaces={"app": self.app, "screen": self}
                    )

    def _attach_named(self, text: str) -> None:
        from sandbox_chat.ui import attach

        try:
            command = attach.parse(text)
        except attach.AttachUsage as wrong:
            self.status.say(str(wrong), LONG)
            self.composer.write_command(text)
            return
        if command is not None and not self.chat.attach_file(*command):
            self.status.say(tr("composer.no_session"))
            self.composer.write_command(text)

    def action_attach(self) -> None:
        """Begin the command that attaches a file."""
        if self.composer.draft.strip():
            self.status.say(tr("composer.not_empty"))
            return
        self.composer.write_command("/attach ")
        self.composer.focus()

    def on_pick_list_clicked(self) -> None:
        """Take the choice that was clicked in the list above the composer."""
        self.composer.take_clicked()

    def on_composer_said(self, event: Composer.Said) -> None:
        """Show a word about the draft."""
        self.status.say(event.text, LONG)

    def on_draft_area_too_long(self) -> None:
        """A long paste cannot be written out in the composer."""
        self.status.say(tr("composer.too_long", key=key_of("composer.edit")), LONG)
