"""Keeps the prompts that wait on disk, and brings back those that a run left which is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.waiting_file import Left, WaitingFile

T = TypeVar("T")


class Keeping:
    """What waits in ``chat`` is in ``folder`` at any time. ``failed`` is called with a sentence when it cannot be.

    What waited in a session comes back when that is resumed; what waits in others can be fetched. Nothing that comes
    back is sent by itself, and a file is removed only when what was in it is in that of this run. Whoever finds
    something lets go of it before the next one looks.
    """

    def __init__(self, chat: Chat, folder: Path, failed: Callable[[str], None] | None = None) -> None:
        self.file = WaitingFile(folder, failed)
        self._chat = chat
        self._frozen = False
        self._one = asyncio.Lock()
        self._works: set[asyncio.Task[Any]] = set()
        chat.keep = self.keep

    def keep(self, prompts: Sequence[Prompt]) -> None:
        """Keep these prompts, and no others. Returns at once."""
        if not self._frozen:
            engine = self._chat.engine
            self.file.save(Left(engine.session_id if engine is not None else "", tuple(prompts)))

    async def resume(self, session_id: str) -> int:
        """Bring back what waited in a session; returns how many prompts these are."""
        return await self._whole(partial(self._bring, lambda left: left.session_id == session_id))

    async def fetch(self) -> int:
        """Bring here what waits in all sessions that nobody has open; returns how many prompts these are."""
        return await self._whole(partial(self._bring, lambda left: True))

    async def elsewhere(self) -> tuple[int, str]:
        """Return how many prompts wait in sessions that nobody has open, and the id of that session if it is one.

        What waits here as well is not counted.
        """
        return await self._whole(self._count)

    async def _whole(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do one work after the other, each to its end: also when whoever asked for it is gone meanwhile."""

        async def alone() -> T:
            async with self._one:
                return await work()

        task = asyncio.ensure_future(alone())
        self._works.add(task)
        task.add_done_callback(self._works.discard)
        return await asyncio.shield(task)

    async def _count(self) -> tuple[int, str]:
        found = await asyncio.to_thread(self.file.find)
        await asyncio.to_thread(self._let_go, remove=False)
        place = self._chat.queue.place
        waits = {each.id: left.session_id for left in found for each in left.prompts if place(each.id) < 0}
        sessions = set(waits.values())
        return len(waits), sessions.pop() if len(sessions) == 1 else ""

    async def _bring(self, wanted: Callable[[Left], bool]) -> int:
        found = await asyncio.to_thread(self.file.find, wanted)
        prompts = [prompt for left in reversed(found) for prompt in left.prompts]
        count = self._chat.queue.bring(prompts)
        settled = await asyncio.to_thread(self.file.settle)
        kept = settled and not self.file.problem and not self._frozen
        await asyncio.to_thread(self._let_go, remove=kept)
        return count

    def _let_go(self, *, remove: bool) -> None:
        self.file.let_go(remove=remove)

    def freeze(self) -> None:
        """The program is about to end: what waits now is what is kept, whatever becomes of it while it ends."""
        self._frozen = True

    def close(self) -> None:
        """End the writing. Prompts that still wait are found again by a later run."""
        self.freeze()
        self.file.close(keep=self.file.holds)
