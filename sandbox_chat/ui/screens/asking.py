"""What the chat's screen does for questions to the user and the answers that hold."""

from __future__ import annotations

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen


class Asking(PaneScreen):
    """The part of the chat's screen that shows what is allowed."""

    chat: Chat

    def action_approvals(self) -> None:
        """Show the answers that hold for the session."""
        from sandbox_chat.ui.screens.approvals import ApprovalsScreen

        self.app.push_screen(ApprovalsScreen(self.chat.state, self.chat.forget_answer))
