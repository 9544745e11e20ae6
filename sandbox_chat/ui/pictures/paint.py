"""A picture ready to be drawn: one strip for each row of cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as TextualColor
from textual.filter import ANSIToTruecolor, DimFilter, LineFilter
from textual.strip import Strip

from sandbox_chat.ui.guard import Guard

_SEGMENT_BYTES = 500
"""Of a segment with its text, its share of a style, and of the row as it is written."""


@dataclass(slots=True)
class PicturePaint:
    """A picture at one size. ``rows`` are ``columns`` cells wide.

    ``setup`` is sent to the terminal once before the rows are drawn and ``cleanup`` when they are no
    longer needed (kitty keeps the picture). ``quick_rows`` are cheaper rows to show while the
    view moves, empty if ``rows`` are cheap themselves.
    """

    columns: int
    rows: list[Strip]
    quick_rows: list[Strip] = field(default_factory=list)
    setup: str = ""
    cleanup: str = ""
    weight: int = 0
    """Bytes that it takes in memory, about."""

    def __post_init__(self) -> None:
        """Weigh it: some hundred bytes for each change of colour, and the text of the pictures."""
        for strip in (*self.rows, *self.quick_rows):
            self.weight += _SEGMENT_BYTES * len(list(strip))
            if isinstance(strip, GraphicStrip):
                self.weight += 2 * strip.graphic_size
        self.weight += len(self.setup)


class GraphicStrip(Strip):
    """A row of blank cells with a piece of a picture (a sixel sequence) on top.

    Textual sees blank cells. Whenever a row is cut, because something lies over it or it is dimmed,
    plain blank cells are left; only the whole row draws the picture.
    """

    __slots__ = ["_at", "_drawn", "_graphic"]

    def __init__(self, segments: Iterable[Segment], cell_length: int, graphic: str, at: int) -> None:
        """``graphic`` is drawn ``at`` cells to the right of the row's beginning."""
        super().__init__(segments, cell_length)
        self._graphic = graphic
        self._at = at
        self._drawn: str | None = None

    @property
    def graphic_size(self) -> int:
        """Characters of the picture's sequence."""
        return len(self._graphic)

    def framed(
        self, left: Sequence[Segment], right: Sequence[Segment], width: int, shift: int
    ) -> GraphicStrip:
        """Return the row between other segments; ``left`` takes ``shift`` cells and all ``width``."""
        return GraphicStrip([*left, *self, *right], width, self._graphic, self._at + shift)

    def render(self, console: Console) -> str:
        """Return the cells, then the picture on top of them; the cursor ends behind the cells."""
        if self._drawn is None:
            cells = super().render(console)
            forward = f"\x1b[{self._at}C" if self._at else ""
            # The cursor is saved before the cells, so that a pending wrap at the right edge does no harm.
            self._drawn = f"\x1b7{cells}\x1b8{forward}{self._graphic}\x1b8\x1b[{self.cell_length}C"
        return self._drawn

    def apply_filter(self, filter: LineFilter, background: TextualColor) -> Strip:
        """Filters that translate colours of text, or look at it, leave the picture; others (no colour) remove it."""
        if isinstance(filter, ANSIToTruecolor | DimFilter | Guard):
            return self
        return super().apply_filter(filter, background)

    def adjust_cell_length(self, cell_length: int, style: Style | None = None) -> Strip:
        """A wider row keeps the picture."""
        extra = cell_length - self.cell_length
        if extra > 0:
            return GraphicStrip([*self, Segment(" " * extra, style)], cell_length, self._graphic, self._at)
        return super().adjust_cell_length(cell_length, style)


def frame(strip: Strip, left: Sequence[Segment], right: Sequence[Segment], width: int, shift: int) -> Strip:
    """Return ``strip`` between other segments, a picture's row still drawing its picture."""
    if isinstance(strip, GraphicStrip):
        return strip.framed(left, right, width, shift)
    return Strip([*left, *strip, *right], width)


def rgb_style(fg: tuple[int, int, int] | None, bg: tuple[int, int, int] | None) -> Style:
    """Return a style of two colours."""
    return Style(
        color=Color.from_rgb(*fg) if fg is not None else None,
        bgcolor=Color.from_rgb(*bg) if bg is not None else None,
    )
