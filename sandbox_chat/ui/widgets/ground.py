"""Containers that show nothing but their ground, and hand out the same rows until they change.

Textual draws every widget that a changed region touches, those behind others too: a screenful of empty rows for
each container at each frame. Here they are drawn once for a size and a style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.geometry import Region, Size
from textual.strip import Strip

if TYPE_CHECKING:
    from textual.widget import Widget as Base
else:
    Base = (
        object  # Textual takes the looks of a class from its first base that is a widget; this must not be it
    )

MOST = 16
"""Regions kept for each container: a few come again and again."""


class Ground(Base):
    """To be inherited before a container's class."""

    _kept_size = Size(0, 0)
    _kept: dict[Region, list[Strip]] | None = None

    def notify_style_update(self) -> None:
        """Forget the rows: the colours or the frame may be others."""
        super().notify_style_update()
        self._kept = None

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of ``crop``, the same ones as before while nothing changed."""
        if self._kept is None or self._kept_size != self.size or len(self._kept) >= MOST:
            self._kept, self._kept_size = {}, self.size
        rows = self._kept.get(crop)
        if rows is None:
            rows = self._kept[crop] = super().render_lines(crop)
        return rows


class GroundRow(Ground, Horizontal):
    """A row of widgets."""


class GroundColumn(Ground, Vertical):
    """A column of widgets."""
