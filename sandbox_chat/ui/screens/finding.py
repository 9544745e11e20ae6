"""What the chat's screen does with sessions: their list, another title, and the way to a turn."""

from __future__ import annotations

from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.words import tr


class Finding(PaneScreen):
    """The part of the chat's screen that finds again."""

    chat: Chat
    settings: Settings

    def action_sessions(self) -> None:
        """Show the list of sessions, and open what is chosen."""
        from sandbox_chat.ui.screens.sessions import SessionsScreen

        engine = self.chat.engine
        present = engine.session_id if engine is not None else ""
        self.app.push_screen(SessionsScreen(self.settings.data_path, present, self.chat.rename), self._chosen)

    def _chosen(self, place: tuple[str, int | None] | None) -> None:
        from sandbox_chat.ui.switching import Switching

        self.composer.focus()
        if place is not None and isinstance(self.app, Switching):
            self.app.open_session(*place)

    def action_rename_session(self) -> None:
        """Ask for another title of this session."""
        from sandbox_chat.ui.screens.rename import RenameScreen

        self.app.push_screen(RenameScreen(self.chat.state.title), self.rename_session)

    def rename_session(self, title: str | None) -> None:
        """Give this session another title; ``None`` changes nothing."""
        if title is not None:
            self.chat.rename(title)
            shown = title or self.chat.state.made_title or tr("sessions.no_prompt")
            self.status.say(tr("sessions.renamed", title=shown), 4.0)

    def show_turn(self, number: int) -> None:
        """Scroll to the turn of this number, from 1."""
        if self.arrangement.narrow and self.arrangement.tab != "chat":
            self.show_pane("chat")
        self.transcript.show_turn(number)
