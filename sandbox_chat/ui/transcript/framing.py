"""The rows of the screen around a transcript's rows: the cursor's mark, the bar, what is laid over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment

from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.pictures.paint import frame
from sandbox_chat.ui.strips import overlaid

from .marks import Span
from .scene import Scene

if TYPE_CHECKING:
    from textual.strip import Strip

GUTTER = 2
"""Cells at the left: the mark of what is selected, and air."""
EDGE = 2
"""Cells at the right: air and the bar that shows the place."""


class Framing:
    """Puts rows between gutter and bar. The same row gives the same object, so that only what differs is drawn."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._framed: dict[tuple[int, int, int], tuple[Strip, Strip]] = {}
        self._marked: dict[tuple[int, tuple[tuple[Span, ...], ...]], tuple[Strip, Strip]] = {}

    def clear(self) -> None:
        """Forget all rows: the width or the colours are others."""
        self._framed.clear()
        self._marked.clear()

    def overlaid(self, strip: Strip, layers: Sequence[Sequence[Span]]) -> Strip:
        """Return a row with its marks, the uppermost last."""
        if not layers:
            return strip
        key = (id(strip), tuple(map(tuple, layers)))
        kept = self._marked.get(key)
        if kept is not None and kept[0] is strip:
            return kept[1]
        shown = strip
        for layer in layers:
            shown = overlaid(shown, layer)
        if len(self._marked) > 512:
            self._marked.clear()
        self._marked[key] = (strip, shown)
        return shown

    def framed(self, strip: Strip, width: int, mark: int, thumb: tuple[int, int], y: int) -> Strip:
        """Return a row of ``width`` cells with the mark at its left and the bar at its right."""
        bar = 0 if thumb == (0, 0) else 2 if thumb[0] <= y < thumb[1] else 1
        key = (id(strip), mark, bar)
        kept = self._framed.get(key)
        if kept is not None and kept[0] is strip:
            return kept[1]
        style = self._scene.palette.style
        left = Segment(f"{glyph('mark')} ", style(("selected",))) if mark else Segment("  ", style(()))
        right = [Segment("  ", style(()))]
        if bar:
            part = "thumb" if bar == 2 else "bar"
            right = [Segment(" ", style(())), Segment(glyph(f"scroll-{part}"), style((part,)))]
        framed = frame(strip, [left], right, width + GUTTER + EDGE, GUTTER)
        if len(self._framed) > 2048:
            self._framed.clear()
        self._framed[key] = (strip, framed)
        return framed


def thumb(height: int, total: int, top: int, max_top: int) -> tuple[int, int]:
    """Return the first and the last row (exclusive) of the bar's thumb; (0, 0) when all is seen."""
    if total <= height or height <= 0:
        return (0, 0)
    size = max(1, round(height * height / total))
    start = round((height - size) * top / max(1, max_top))
    return (start, start + size)
