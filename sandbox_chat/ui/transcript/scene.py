"""What blocks need from outside to draw themselves: colours, time, motion, pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from .palette import Palette
from .spill import Spill

if TYPE_CHECKING:
    from textual.strip import Strip

    from .blocks import Block


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

    def rows(self, key: PictureKey, width: int) -> list[Strip] | None:
        """Return the picture's rows, each ``width`` cells wide, or ``None`` while it is prepared."""

    def problem(self, path: str) -> str:
        """Return the sentence why a picture cannot be drawn; empty if it can, or it is not known yet."""


def _now() -> datetime:
    return datetime.now(UTC)


def _fetch(block: Block) -> None:
    block.ensure()


@dataclass(slots=True)
class Scene:
    """Shared by all blocks of a transcript; its fields change, the blocks look at them when they draw."""

    palette: Palette = field(default_factory=Palette)
    pictures: Pictures | None = None
    motion: bool = True
    """False: nothing moves."""
    expand: str = "never"
    """Which tool calls open when they end: ``never``, ``failed`` or ``always``."""
    tick: int = 0
    """Frame of the spinners."""
    now: Callable[[], datetime] = _now
    spill: Spill = field(default_factory=Spill)
    """Where texts wait that were put away."""
    want: Callable[[Block], None] = _fetch
    """A block's text is on disk and is to be seen: bring it back soon."""
