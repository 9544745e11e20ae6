"""The unsent prompt on disk, so that it outlives a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from sandbox_chat.text import clean
from sandbox_chat.ui.history import History
from sandbox_chat.ui.own_file import OwnFile
from sandbox_chat.ui.tokens import Part, written
from sandbox_chat.words import tr


def plain_parts(parts: Sequence[Part]) -> list[list[Any]]:
    """Return the pieces of a draft as JSON data."""
    return [[part.kind, part.text, part.shown, part.size] for part in parts]


def read_parts(raw: Any) -> list[Part]:
    """Return the pieces of a draft of JSON data, cleaned. Raises ``ValueError`` or ``TypeError``."""
    parts = []
    for kind, text, shown, size in raw:
        if kind not in ("text", "paste", "file") or not isinstance(text, str):
            raise ValueError("no piece of a draft")
        parts.append(Part(kind, text if kind == "file" else clean(text), clean(str(shown)), int(size)))
    return parts


class Drafts(OwnFile[Sequence[Part]]):
    """Keeps the draft that is being written."""

    thread_name = "draft"

    def encode(self, value: Sequence[Part]) -> Any:
        """Return a draft as JSON data."""
        return plain_parts(value)

    def decode(self, raw: Any) -> Sequence[Part]:
        """Return the draft of JSON data."""
        return read_parts(raw)

    def not_kept(self, folder: str, reason: str) -> str:
        """Return the sentence that says that the draft is not kept."""
        return tr("composer.draft_not_kept", folder=folder, reason=reason)

    def _nothing(self) -> Sequence[Part]:
        return ()

    async def bring(self, offer: Callable[[Sequence[Part]], bool], history: History) -> bool:
        """Offer the newest draft that programs left which are gone; one that is not taken, and older ones, go into ``history``.

        ``offer`` returns whether it was taken, and saved here. A draft on disk is removed only when another file holds it.
        Returns whether one was taken.
        """
        found = await asyncio.to_thread(self.find)
        taken = bool(found) and offer(found[0])
        aside = [(parts, "".join(map(written, parts))) for parts in (found[1:] if taken else found)]
        for _, text in aside:
            history.add(text)
        settled = await asyncio.to_thread(self.settle) and not self.problem
        wrote = await asyncio.to_thread(history.close)
        stays = [parts for parts, text in aside if not (wrote and history.keeps(text))]
        if taken and not settled:
            stays.append(found[0])
        await asyncio.to_thread(self.let_go, remove=True, but=stays)
        return taken
