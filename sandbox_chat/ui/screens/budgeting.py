"""What the chat's screen does for the budget: asking for it, and taking it as a typed command."""

from __future__ import annotations

from sandbox_chat.prices import read_budget
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.words import tr


class Budgeting(PaneScreen):
    """The part of the chat's screen that handles the session's budget."""

    chat: Chat

    def action_budget(self) -> None:
        """Ask what the session may cost."""
        from sandbox_chat.ui.screens.budget import BudgetScreen

        chat = self.chat
        if chat.state.demo or chat.engine is None:
            self.status.say(tr("budget.demo" if chat.state.demo else "budget.no_session"))
            return
        known, unknown = chat.state.cost

        def chosen(limit: float | None) -> None:
            if limit is not None:
                chat.set_budget(limit)

        screen = BudgetScreen(chat.limit, known, unknown=bool(unknown), waiting=len(chat.waiting))
        self.app.push_screen(screen, chosen)

    def take_budget(self, typed: str) -> None:
        """Take the sum that stands after ``/budget``."""
        if self.chat.state.demo or self.chat.engine is None:
            self.action_budget()
            return
        try:
            self.chat.set_budget(read_budget(typed))
        except ValueError:
            self.status.say(tr("budget.wrong"))
            self.composer.write_command(f"/budget {typed}")

    def offer_budget(self) -> bool:
        """Ask for a larger budget if prompts are held for it; returns whether it was asked."""
        if self.chat.held and self.chat.held_for_budget and not self.chat.busy:
            self.action_budget()
            return True
        return False
