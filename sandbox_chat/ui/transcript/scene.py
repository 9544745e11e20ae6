"""What blocks need from outside to draw themselves: colours, time, motion, pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from .palette import Palette

if TYPE_CHECKING:
    from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class PictureKey:
    """A picture at a size: what is asked of the painter."""

    path: str
    columns: int
    rows: int


class Pictures(Protocol):
    """Where blocks get pictures from. Never waits: what is not ready yet is asked for and comes later."""

    version: int
    """Grows when what ``rows`` answers may have changed."""

    def size(self, width: int, height: int, columns: int) -> tuple[int, int]:
        """Return columns and rows for a picture of ``width`` × ``height`` pixels in ``columns`` cells; 0 rows: not drawn."""

    def rows(self, key: PictureKey) -> list[Strip] | str | None:
        """Return the picture's rows, a sentence why it cannot be drawn, or ``None`` while it is prepared."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Scene:
    """Shared by all blocks of a transcript; its fields change, the blocks look at them when they draw."""

    palette: Palette = field(default_factory=Palette)
    pictures: Pictures | None = None
    motion: bool = True
    """False: nothing moves."""
    tick: int = 0
    """Frame of the spinners."""
    now: Callable[[], datetime] = _now
