"""The unsent prompt on disk, so that it outlives a crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox_chat.text import clean
from sandbox_chat.ui.own_file import OwnFile
from sandbox_chat.ui.tokens import Part
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

    def recover(self) -> list[list[Part]]:
        """Return the drafts that programs left which are gone, newest first, and remove them. Blocking; never raises."""
        found = [list(parts) for parts in self.find()]
        self.let_go(remove=True)
        return found
