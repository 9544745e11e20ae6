"""What a key writes."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.events import Key


def typed_text(event: Key) -> str:
    """Return the character that a key writes; empty for a key that only does something.

    Textual calls a character printable as Python does, which leaves out all spaces but one (that of Chinese and
    Japanese input methods too), joiners, and whatever is newer than this Python's tables.
    """
    character = event.character or ""
    if event.is_printable:
        return character
    return character if character and unicodedata.category(character[0]) != "Cc" else ""
