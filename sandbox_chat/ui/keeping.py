"""Keeps the prompts that wait on disk, and brings back those that a run left which is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.waiting_file import Left, WaitingFile


class Keeping:
    """What waits in ``chat`` is in ``folder`` at any time. ``failed`` is called with a sentence when it cannot be.

    What waited in a session comes back when that is resumed; what waits in others can be fetched. Nothing that comes
    back is sent by itself, and a file is removed only when what was in it is in that of this run.
    """

    def __init__(self, chat: Chat, folder: Path, failed: Callable[[str], None] | None = None) -> None:
        self.file = WaitingFile(folder, failed)
        self._chat = chat
        self._frozen = False
        chat.keep = self.keep

    def keep(self, prompts: Sequence[Prompt]) -> None:
        """Keep these prompts, and no others. Returns at once."""
        if not self._frozen:
            engine = self._chat.engine
            self.file.save(Left(engine.session_id if engine is not None else "", tuple(prompts)))

    async def resume(self, session_id: str) -> int:
        """Bring back what waited in a session; returns how many prompts these are."""
        return await self._bring(lambda left: left.session_id == session_id)

    async def fetch(self) -> int:
        """Bring here what waits in all sessions that nobody has open; returns how many prompts these are."""
        return await self._bring(lambda left: True)

    async def elsewhere(self) -> tuple[int, str]:
        """Return how many prompts wait in sessions that nobody has open, and the id of that session if it is one."""
        found = await asyncio.to_thread(self.file.find)
        await asyncio.to_thread(self._let_go, remove=False)
        sessions = {left.session_id for left in found}
        only = sessions.pop() if len(sessions) == 1 else ""
        return sum(len(left.prompts) for left in found), only

    async def _bring(self, wanted: Callable[[Left], bool]) -> int:
        found = await asyncio.to_thread(self.file.find, wanted)
        prompts = [prompt for left in reversed(found) for prompt in left.prompts]
        count = self._chat.queue.bring(prompts)
        settled = await asyncio.to_thread(self.file.settle)
        await asyncio.to_thread(self._let_go, remove=settled and not self.file.problem)
        return count

    def _let_go(self, *, remove: bool) -> None:
        self.file.let_go(remove=remove)

    def freeze(self) -> None:
        """The program is about to end: what waits now is what is kept, whatever becomes of it while it ends."""
        self._frozen = True

    def close(self) -> None:
        """End the writing. Prompts that still wait are found again by a later run."""
        self.file.close(keep=self.file.holds)
