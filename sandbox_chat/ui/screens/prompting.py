"""What the chat's screen does for the composer: commands, files that were mentioned, words about the draft."""

from __future__ import annotations

from sandbox_chat.ui.actions import NODES, key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.screens.branching import Branching
from sandbox_chat.ui.screens.budgeting import Budgeting
from sandbox_chat.ui.screens.controlling import Controlling
from sandbox_chat.ui.screens.exporting import Exporting
from sandbox_chat.ui.screens.finding import Finding
from sandbox_chat.ui.screens.steering import Steering
from sandbox_chat.ui.slash import parse
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.words import tr

LONG = 6.0
"""Seconds that a sentence is shown."""


class Prompting(Budgeting, Controlling, Branching, Steering, Finding, Exporting):
    """The part of the chat's screen that serves the composer."""

    chat: Chat

    async def on_composer_command_asked(self, event: Composer.CommandAsked) -> None:
        """Run a command that was typed or chosen from the list."""
        takes = {
            "budget": self.take_budget,
            "model": self.take_model,
            "effort": self.take_effort,
            "thinking": self.take_thinking,
            "compact": self.take_compact,
            "resume": self.take_resume,
            "fork": self.take_fork,
            "rewind": self.take_rewind,
            "rename": self.rename_session,
        }
        if event.word == "attach":
            self._attach_named(event.text)
        elif event.word == "export":
            self.export_session(event.rest, event.text)
        elif event.rest and event.word == "steer":
            self.take_steer(event.rest, event.parts)
        elif event.rest and event.word in takes:
            takes[event.word](event.rest)
        elif (found := parse(f"/{event.word}")) is not None:
            action = found[0].action
            node = self.query_one(NODES[action.place]) if action.place in NODES else self
            await self.app.run_action(action.action, node, namespaces={"app": self.app, "screen": self})

    def give_back(self, prompt: Prompt) -> bool:
        """Put a prompt back that got no answer. Returns false when another one is being written: then it waits."""
        return self.composer.offer(prompt.draft)

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
