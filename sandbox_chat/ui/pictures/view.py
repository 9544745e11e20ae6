"""A widget that shows one picture as large as it fits."""

from __future__ import annotations

import asyncio

from rich.segment import Segment
from textual import events
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from sandbox_chat.ui.private import send

from .load import PictureError, measure
from .paint import PicturePaint, frame
from .painter import Painter


class PictureView(Widget):
    """Shows the picture given to ``show`` in the middle of its own size, or a sentence why it cannot."""

    DEFAULT_CSS = """
    PictureView { width: 1fr; height: 1fr; }
    """

    def __init__(
        self,
        painter: Painter | None = None,
        *,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._painter = painter
        self._path = ""
        self._pixels = (0, 0)
        self._paint: PicturePaint | None = None
        self._message = ""
        self._drawing: asyncio.Task[None] | None = None

    @property
    def path(self) -> str:
        """The picture that is shown, empty for none."""
        return self._path

    @property
    def message(self) -> str:
        """The sentence that stands in place of the picture, empty when it is drawn."""
        return self._message

    def set_painter(self, painter: Painter) -> None:
        """Draw with another painter."""
        self._painter = painter
        self._prepare()

    def show(self, path: str, width: int = 0, height: int = 0) -> None:
        """Show the picture at ``path`` (``""`` for none) of ``width`` × ``height`` pixels, if known."""
        self._path, self._pixels = path, (width, height)
        self._drop()
        self._prepare()

    def on_mount(self) -> None:
        """Draw what was set before."""
        self._prepare()

    def on_resize(self, event: events.Resize) -> None:
        """Draw at the new size."""
        del event
        self._prepare()

    def on_unmount(self) -> None:
        """Free what the terminal keeps."""
        if self._drawing is not None:
            self._drawing.cancel()
        self._drop()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of ``crop``. Textual's own way makes new strips of them, without the picture."""
        styles = self.styles
        if styles.gutter != (0, 0, 0, 0) or styles.tint.a or self.opacity != 1.0:
            return super().render_lines(crop)
        background = self.background_colors[1]
        filters = [item for item in self.get_line_filters() if not isinstance(item, ANSIToTruecolor)]
        rows = []
        for y in crop.line_range:
            strip = self.render_line(y)
            for item in filters:
                strip = strip.apply_filter(item, background)
            rows.append(strip)
        if crop.column_span != (0, self.size.width):
            rows = [strip.crop(*crop.column_span) for strip in rows]
        return rows

    def render_line(self, y: int) -> Strip:
        """Return a row: the picture's in the middle, blank around it."""
        width, height = self.size
        style = self.rich_style
        if self._paint is None:
            if self._message and y == height // 2:
                text = self._message[: max(width - 2, 0)]
                return Strip([Segment(text.center(width), style)]).adjust_cell_length(width, style)
            return Strip.blank(width, style)
        rows = self._paint.rows
        row = y - max(0, (height - len(rows)) // 2)
        if not 0 <= row < len(rows):
            return Strip.blank(width, style)
        left = max(0, (width - self._paint.columns) // 2)
        right = max(0, width - left - self._paint.columns)
        before = [Segment(" " * left, style)] if left else []
        after = [Segment(" " * right, style)] if right else []
        return frame(rows[row], before, after, left + self._paint.columns + right, left)

    def _prepare(self) -> None:
        if self._drawing is not None:
            self._drawing.cancel()
            self._drawing = None
        if not self.is_mounted or not self.size.area:
            return
        if self._painter is None or not self._path:
            self._say("")
            return
        self._drawing = asyncio.create_task(self._draw(self._painter, self._path))

    async def _draw(self, painter: Painter, path: str) -> None:
        columns, rows = self.size
        try:
            width, height = self._pixels if all(self._pixels) else await asyncio.to_thread(measure, path)
            columns, rows = painter.size(width, height, columns, rows)
            if not columns:
                self._say("Pictures are switched off. The file is on the disk.")
                return
            paint = await painter.prepare_soon(path, columns, rows, self.rich_style)
        except PictureError as error:
            self._say(str(error))
            return
        self._drop()
        send(self.app, paint.setup)
        self._paint, self._message = paint, ""
        self.refresh()

    def _say(self, message: str) -> None:
        self._drop()
        self._message = message
        self.refresh()

    def _drop(self) -> None:
        paint, self._paint = self._paint, None
        if paint is not None and paint.cleanup:
            send(self.app, paint.cleanup)
