"""What the chat's screen does for other sessions: a new one, an earlier one, and branches of this one."""

from __future__ import annotations

import asyncio

from sandbox_chat.settings import Settings
from sandbox_chat.text import clean_line
from sandbox_chat.ui.calls import Turn
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.choose import ChooseScreen, Offer
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.ui.switching import Switching
from sandbox_chat.words import tr

LONG = 6.0
"""Seconds that a sentence is shown."""
SHORT = 200
"""Characters of a prompt that are shown in the list."""


class Branching(PaneScreen):
    """The part of the chat's screen that leads to other sessions."""

    chat: Chat
    settings: Settings

    def action_new_session(self) -> None:
        """Begin another session; this one is kept."""
        if isinstance(self.app, Switching):
            self.app.open_session(None)

    def take_resume(self, typed: str) -> None:
        """Open the session whose id is, or begins with, what stands after ``/resume``."""
        self.run_worker(self._resume(typed), group="branch", exclusive=True, exit_on_error=False)

    async def _resume(self, typed: str) -> None:
        from sandbox_chat.journal.errors import SessionAmbiguous, SessionError, SessionNotFound
        from sandbox_chat.journal.index import resolve

        try:
            found = await asyncio.to_thread(resolve, self.settings.data_path / "sessions", typed)
        except SessionError as error:
            shown = clean_line(typed, 60)
            words = str(error)
            if isinstance(error, SessionAmbiguous):
                words = tr("sessions.several", id=shown, some=", ".join(error.fits))
            elif isinstance(error, SessionNotFound):
                words = tr("sessions.unknown", id=shown)
            self.status.say(words, LONG)
            self.composer.write_command(f"/resume {typed}")
            return
        if isinstance(self.app, Switching):
            self.app.open_session(found)

    # -- branches ----------------------------------------------------------------------------------------

    def action_fork(self) -> None:
        """Go on in a branch of this session, from its last turn."""
        self.take_fork("")

    def take_fork(self, typed: str) -> None:
        """Go on in a branch that begins after the turn whose number stands after ``/fork``; else after the last one."""
        ended = self._ended()
        if ended is None:
            return
        if not ended:
            self.status.say(tr("controls.fork_nothing"), LONG)
            return
        turn = ended[-1]
        if typed:
            chosen = self._numbered(typed, f"/fork {typed}")
            if chosen is None:
                return
            turn = chosen
        self._branch(turn, tr("controls.forked"), remember=bool(typed))

    def action_rewind(self) -> None:
        """Ask for a turn to go back to: its prompt can be edited, and a branch begins there."""
        ended = self._ended()
        if ended is None:
            return
        if not ended:
            self.status.say(tr("controls.fork_nothing"), LONG)
            return
        if self.composer.draft.strip():
            self.status.say(tr("composer.not_empty"), LONG)
            return
        turns = self.chat.state.turns
        offers = [
            Offer(turn.id, f"{number}  {clean_line(turn.prompt, SHORT)}")
            for number, turn in reversed(list(enumerate(turns, 1)))
        ]
        screen = ChooseScreen(tr("controls.rewind"), offers, placeholder=tr("controls.rewind_type"))
        self.app.push_screen(screen, self._rewind_to)

    def take_rewind(self, typed: str) -> None:
        """Go back to the turn whose number stands after ``/rewind``."""
        if self._ended() is not None and (turn := self._numbered(typed, f"/rewind {typed}")) is not None:
            self._rewind_to(turn.id)

    def _rewind_to(self, turn_id: str | None) -> None:
        turns = self.chat.state.turns
        place = next((number for number, turn in enumerate(turns) if turn.id == turn_id), None)
        self.composer.focus()
        if place is None:
            return
        self.composer.offer(turns[place].prompt)  # a draft goes along into the other session
        before = [turn for turn in turns[:place] if turn.ended]
        words = tr("controls.rewound", number=place + 1)
        if before:
            self._branch(before[-1], words)
        elif isinstance(self.app, Switching):
            self.app.open_session(None)
            self.app.notify(words, markup=False)

    def _branch(self, after: Turn, words: str, *, remember: bool = False) -> None:
        self.status.say(tr("controls.forking"), LONG)
        making = self._make_branch(after, words, remember)
        self.run_worker(making, group="branch", exclusive=True, exit_on_error=False)

    async def _make_branch(self, after: Turn, words: str, remember: bool) -> None:
        from sandbox_chat.engine_branch import branch
        from sandbox_chat.journal.errors import SessionError

        session_id = self.chat.state.session_id
        try:
            made = await asyncio.to_thread(
                branch, self.settings, session_id, after_turn=after.id, remember=remember
            )
        except (SessionError, OSError) as error:
            self.status.say(clean_line(str(error)), LONG)
            return
        if isinstance(self.app, Switching):
            self.app.open_session(made)
            self.app.notify(words, markup=False)

    # -- helpers -----------------------------------------------------------------------------------------

    def _ended(self) -> list[Turn] | None:
        """Return the turns that have ended; say why, and return ``None``, where no branch can be made now."""
        if self.chat.engine is None or not self.chat.state.session_id:
            self.status.say(tr("controls.no_session"), LONG)
        elif self.chat.busy:
            self.status.say(tr("controls.fork_busy"), LONG)
        elif self.chat.state.partial:
            self.status.say(tr("controls.loading"), LONG)
        else:
            return [turn for turn in self.chat.state.turns if turn.ended]
        return None

    def _numbered(self, typed: str, command: str) -> Turn | None:
        turns = self.chat.state.turns
        if typed.isascii() and typed.isdigit() and 1 <= int(typed[:9]) <= len(turns):
            return turns[int(typed[:9]) - 1]
        words = tr("controls.fork_wrong", number=clean_line(typed, 20), last=len(turns))
        self.status.say(words if turns else tr("controls.fork_nothing"), LONG)
        self.composer.write_command(command)
        return None
