"""The command palette's entries: every action by name, with its key."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from sandbox_chat.ui.actions import APP_ACTIONS, CHAT_ACTIONS, Action, key_names

COMPOSER_ACTIONS: tuple[Action, ...] = (
    Action("screen.send", "enter", "Send the prompt", "What is in the composer"),
    Action("screen.newline", "alt+enter", "New line in the prompt", "Also shift+⏎ or ^J"),
    Action("screen.clear_draft", "ctrl+c", "Clear the prompt", "It is kept in the history"),
)


class Commands(Provider):
    """Offers the actions of the chat."""

    def _actions(self) -> list[Action]:
        chat = [*COMPOSER_ACTIONS, *CHAT_ACTIONS] if getattr(self.screen, "is_chat", False) else []
        return [*chat, *(action for action in APP_ACTIONS if action.action != "app.palette")]

    async def discover(self) -> Hits:
        """Offer everything before anything is typed."""
        for action in self._actions():
            yield DiscoveryHit(
                action.title, partial(self._run, action), help=f"{key_names(action.keys)}  {action.help}"
            )

    async def search(self, query: str) -> Hits:
        """Offer what fits to the typed words."""
        matcher = self.matcher(query)
        for action in self._actions():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(
                    score,
                    matcher.highlight(action.title),
                    partial(self._run, action),
                    help=f"{key_names(action.keys)}  {action.help}",
                )

    async def _run(self, action: Action) -> None:
        # The palette is still closing: "screen" is to mean the one below it.
        await self.app.run_action(
            action.action, self.screen, namespaces={"app": self.app, "screen": self.screen}
        )
