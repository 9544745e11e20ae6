"""What the chat's screen does for questions to the user and the answers that hold."""

from __future__ import annotations

import asyncio

from sandbox_chat.ui import tooltext
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.panes import PaneScreen
from sandbox_chat.words import tr

SAID = 6.0
"""Seconds that a remark stays."""


class Asking(PaneScreen):
    """The part of the chat's screen that shows what is allowed, and what tokens stand for."""

    chat: Chat

    def action_approvals(self) -> None:
        """Show the answers that hold for the session."""
        from sandbox_chat.ui.screens.approvals import ApprovalsScreen

        self.app.push_screen(ApprovalsScreen(self.chat.state, self.chat.forget_answer))

    def action_real_values(self) -> None:
        """Show what the tokens of personal data stand for."""
        self.run_worker(self._real_values(self._shown_text()), exclusive=True, group="values")

    def _shown_text(self) -> str:
        """Return the text of the item in use: the call of the tools pane, the item under the cursor, or the last answer."""
        if self.focused is not None and self.tool_pane in self.focused.ancestors_with_self:
            call = self.tool_pane.call
            return tooltext.whole_text(call) if call is not None else ""
        block = self.transcript.selected or self.transcript.last_answer
        return block.text if block is not None else ""

    async def _real_values(self, text: str) -> None:
        from sandbox_chat.ui.screens.real_values import RealValuesScreen

        engine = self.chat.engine
        values = await asyncio.to_thread(engine.real_values) if engine is not None else None
        if values:
            self.app.push_screen(RealValuesScreen(text, values))
        else:
            self.status.say(tr("values.not_hidden" if values is None else "values.none"), SAID)
