"""How the application opens a session that another running program has open: as a copy, to look at it, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import App

from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat, EngineLike
from sandbox_chat.words import tr


class OpensSessions(App[Any]):
    """The part of the application that asks, and opens the session in the way that was chosen."""

    chat: Chat
    settings: Settings
    refused: Exception | None
    opening: dict[str, bool]
    """What the engine is told of how the session is opened: ``fork``, ``read_only``."""

    def _new_engine(self, settings: Settings) -> EngineLike:
        raise NotImplementedError

    def _start(self) -> None:
        raise NotImplementedError

    def _refuse(self, error: Exception) -> None:
        """End because the engine cannot be made; or ask, if the session is open elsewhere."""
        from sandbox_chat.journal.errors import SessionInUse

        if isinstance(error, SessionInUse) and not self.opening:
            from sandbox_chat.ui.screens.in_use import InUseScreen

            self.push_screen(InUseScreen(), lambda way: self._chosen(way, error))
            return
        self.refused = error
        self.exit(2)

    def _chosen(self, way: str | None, error: Exception) -> None:
        if way not in ("fork", "look"):
            self.refused = error
            self.exit(2)
            return
        self.opening = {"fork" if way == "fork" else "read_only": True}
        self._chat_screen().status.say(tr("opening.copying") if way == "fork" else tr("opening.looking"))
        self.run_worker(self._open(), exit_on_error=False)

    async def _open(self) -> None:
        """Make the engine in a thread: copying a session takes a while."""
        try:
            engine = await asyncio.to_thread(self._new_engine, self.settings)
        except Exception as error:
            self._refuse(error)
            return
        self.attach_engine(engine)

    def attach_engine(self, engine: EngineLike) -> None:
        """Use an engine that was just made, and start it."""
        self.chat.attach(engine)
        if engine.read_only:
            self._chat_screen().look_only()
        self._start()

    def _chat_screen(self) -> Any:
        return self.screen_stack[0]
