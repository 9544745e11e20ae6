"""The command palette's entries: every action by name, with its key."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from sandbox_chat.ui.actions import NODES, Action, all_actions, names_of

PLACES = ("composer", "chat", "transcript", "app")
"""The places whose actions it offers over the chat, in this order."""


class Commands(Provider):
    """Offers the actions of the chat."""

    def _actions(self) -> list[Action]:
        places = list(PLACES) if getattr(self.screen, "is_chat", False) else ["app"]
        listed = [item for item in all_actions().values() if item.listed and item.place in places]
        return sorted(listed, key=lambda item: places.index(item.place))

    async def discover(self) -> Hits:
        """Offer everything before anything is typed."""
        for action in self._actions():
            yield DiscoveryHit(action.title, partial(self._run, action), help=_about(action))

    async def search(self, query: str) -> Hits:
        """Offer what fits to the typed words."""
        matcher = self.matcher(query)
        for action in self._actions():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(
                    score, matcher.highlight(action.title), partial(self._run, action), help=_about(action)
                )

    async def _run(self, action: Action) -> None:
        # The palette is still closing: "screen" is to mean the one below it.
        node = self.screen.query_one(NODES[action.place]) if action.place in NODES else self.screen
        await self.app.run_action(action.action, node, namespaces={"app": self.app, "screen": self.screen})


def _about(action: Action) -> str:
    return f"{names_of(action.name)}  {action.help}"
