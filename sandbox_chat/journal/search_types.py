"""What a search over the sessions returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox_chat.journal.search_query import Excerpt

PLACES = 3
"""Places of one session that are shown; all are counted."""
LIMIT = 50
"""Sessions that are found at most."""

Stop = Callable[[], bool]
"""Asked now and then whether to stop."""
Told = Callable[[int, int], None]
"""Told how many of how many sessions have been read."""


@dataclass(frozen=True, slots=True)
class Place:
    """A turn (from 1; 0 is the title) in which something was found, in which kind of text, and the text around it."""

    turn: int
    kind: str
    excerpt: Excerpt

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"turn": self.turn, "kind": self.kind, "text": self.excerpt.text, "marks": self.excerpt.marks}


@dataclass(frozen=True, slots=True)
class Match:
    """A session in which something was found: in how many turns, and the first places in it."""

    session_id: str
    turns: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Sessions, the one used last first. ``more``: there are others. ``indexed``: the index was used."""

    matches: tuple[Match, ...] = ()
    more: bool = False
    indexed: bool = True
