"""What the chat's screen does for the prompts that wait: editing, moving, removing, sending them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events, on

from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.history import History
from sandbox_chat.ui.keeping import Keeping
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.screens.budgeting import Budgeting
from sandbox_chat.ui.tokens import Part
from sandbox_chat.ui.widgets.composer import Composer
from sandbox_chat.ui.widgets.waiting import Waiting
from sandbox_chat.words import tr, tr_count

LONG = 6.0
"""Seconds that a sentence is shown."""


class Queueing(Budgeting):
    """The part of the chat's screen that serves the queue.

    A prompt that is edited stands in the composer; the draft that was there is put aside and comes back.
    """

    chat: Chat
    history: History
    _keeping: Keeping | None = None
    _draft_aside: Sequence[Part] = ()
    _draft_keep: Callable[[Sequence[Part]], None] | None = None

    @property
    def waiting(self) -> Waiting:
        """The rows of the prompts that wait."""
        return self.query_one(Waiting)

    def update_state(self) -> None:
        """Let every part show the present state; the screen does."""
        raise NotImplementedError

    # -- actions -----------------------------------------------------------------------------------------

    def action_queue(self) -> None:
        """Go to the prompts that wait, or fetch those that other sessions left."""
        if len(self.chat.queue):
            self.waiting.open()
        elif self.waiting.elsewhere and self._keeping is not None:
            self.run_worker(self._fetch(self._keeping), group="fetch", exclusive=True, exit_on_error=False)
        else:
            self.status.say(tr("waiting.none"))

    def action_resume_waiting(self) -> None:
        """Let waiting prompts go on."""
        if not self.chat.resume_waiting() and not self.offer_budget():
            self.status.say(tr("waiting.soon" if self.chat.waiting else "waiting.none"))
        self.update_state()

    def action_queue_command(self, command: str) -> None:
        """Do what was clicked below the list."""
        self._queue_command(command, self.waiting.chosen)

    def on_waiting_asked(self, event: Waiting.Asked) -> None:
        """Do what a key in the list asks for."""
        self._queue_command(event.command, event.prompt_id)

    def _queue_command(self, command: str, prompt_id: str) -> None:
        match command:
            case "edit":
                self._edit_waiting(prompt_id)
            case "remove":
                self._remove_waiting(prompt_id)
            case "up":
                self.chat.move(prompt_id, -1)
            case "down":
                self.chat.move(prompt_id, 1)
            case "send":
                self.action_resume_waiting()
            case "list":
                self.action_queue()
            case _:
                self.composer.focus()
        self.update_state()

    def _remove_waiting(self, prompt_id: str) -> None:
        if prompt_id and prompt_id == self.chat.queue.editing:
            self.leave_edit()
        if (prompt := self.chat.remove(prompt_id)) is not None:
            self._removed(prompt)

    def _removed(self, prompt: Prompt) -> None:
        self.history.add(prompt.text)
        self.status.say(tr("waiting.removed", key=key_of("composer.search")), LONG)

    # -- editing -----------------------------------------------------------------------------------------

    def _edit_waiting(self, prompt_id: str) -> None:
        if self.chat.queue.editing:
            if self.chat.queue.editing == prompt_id:
                self.composer.focus()
            else:
                self.status.say(tr("waiting.busy", key=key_of("chat.escape")), LONG)
            return
        if (prompt := self.chat.queue.edit(prompt_id)) is None:
            return
        composer = self.composer
        self._draft_aside, self._draft_keep = composer.swap(prompt.draft), composer.keep
        composer.keep = self._keep_both
        composer.keep_now()
        composer.focus()

    def _keep_both(self, parts: Sequence[Part]) -> None:
        """Keep what is being edited together with the draft that was put aside: neither is lost in a crash."""
        if self._draft_keep is not None:
            between = [Part("text", "\n\n")] if self._draft_aside and parts else []
            self._draft_keep([*self._draft_aside, *between, *parts])

    @on(Composer.CommandAsked)
    def _command_typed(self) -> None:
        """A command was typed in place of the prompt that is being edited: that stays as it was."""
        if self.leave_edit():
            self.update_state()

    def take_edited(self, event: Composer.Submitted) -> bool:
        """Put the prompt that was sent from the composer back in its place. Returns false when none is being edited."""
        editing = self.chat.queue.editing
        if not editing:
            return False
        self._end_edit()
        if event.text:
            self.chat.put_back(event.parts)
            self.status.say(tr("waiting.saved"))
        elif (prompt := self.chat.remove(editing)) is not None:
            self._removed(prompt)
        return True

    def leave_edit(self, *, keep: bool = False) -> bool:
        """Leave the prompt that is being edited as it was, or with ``keep`` as it is now. Returns false when none is.

        What was written is in the history then.
        """
        prompt = self.chat.queue.find(self.chat.queue.editing)
        if prompt is None:
            return False
        parts = self._end_edit()
        text = Prompt.of(parts).text
        if text and text != prompt.text and not keep:
            self.history.add(text)
        self.chat.put_back(parts if keep and text else None)
        self.status.say(tr("waiting.unchanged"))
        return True

    def _end_edit(self) -> list[Part]:
        """Bring the draft back that was put aside, and return what was edited."""
        composer = self.composer
        composer.keep, self._draft_keep = self._draft_keep, None
        edited = composer.swap(list(self._draft_aside))
        self._draft_aside = ()
        composer.keep_now()
        return edited

    # -- what other runs left ----------------------------------------------------------------------------

    async def take_left(self, keeping: Keeping, session_id: str | None) -> None:
        """Bring back what waited when the session was last open; of what other sessions left, only tell.

        ``session_id`` is ``None`` for a new session.
        """
        self._keeping = keeping
        if session_id is not None:
            self._say_back(await keeping.resume(session_id))
        else:
            self.waiting.elsewhere, self.waiting.session = await keeping.elsewhere()
        self.update_state()

    @on(events.ScreenResume)
    def _count_elsewhere(self) -> None:
        """What lay over the chat is gone, perhaps the list of sessions, in which one was deleted: count again."""
        if self._keeping is not None and self.waiting.elsewhere and not self.chat.state.turns:
            self.run_worker(self.take_left(self._keeping, None), exit_on_error=False)

    async def _fetch(self, keeping: Keeping) -> None:
        self._say_back(await keeping.fetch())
        self.waiting.elsewhere, self.waiting.session = await keeping.elsewhere()
        self.update_state()
        if len(self.chat.queue):
            self.waiting.open()
        else:
            self.status.say(tr("waiting.none"))

    def _say_back(self, count: int) -> None:
        if count:
            self.status.say(tr_count("waiting.back", count, key=key_of("chat.send_waiting")), LONG)
