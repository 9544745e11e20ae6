"""Rows of the screen that are ready as they are: handed to Textual without being made again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


def ready_lines(widget: Widget, crop: Region, background: Color) -> list[Strip] | None:
    """Return the rows of ``crop`` from ``widget.render_line``.

    ``None`` when the widget is tinted or framed: then Textual's own way is needed, which makes new rows of them.
    """
    styles = widget.styles
    if styles.gutter != (0, 0, 0, 0) or styles.tint.a or widget.opacity != 1.0 or styles.text_opacity != 1.0:
        return None
    rows = [widget.render_line(y) for y in crop.line_range]
    for item in widget.get_line_filters():
        if not isinstance(item, ANSIToTruecolor):
            rows = [row.apply_filter(item, background) for row in rows]
    if crop.column_span != (0, widget.size.width):
        rows = [row.crop(*crop.column_span) for row in rows]
    return rows


def overlaid(strip: Strip, spans: Sequence[tuple[int, int, Style]]) -> Strip:
    """Return ``strip`` with styles laid over spans of cells (start, end), which do not overlap and are in order."""
    cuts: list[int] = []
    styles: list[Style | None] = []
    for start, end, style in spans:
        cuts += [start, end]
        styles += [None, style]
    cuts.append(strip.cell_length)
    styles.append(None)
    out: list[Segment] = []
    for piece, over in zip(Segment.divide(strip, cuts), styles, strict=False):
        out.extend(piece if over is None else Segment.apply_style(piece, post_style=over))
    return Strip(out, strip.cell_length)
