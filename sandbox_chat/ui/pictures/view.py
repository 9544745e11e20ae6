"""A widget that shows one picture as large as it fits, or a part of it larger."""

from __future__ import annotations

import asyncio

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sandbox_chat.ui.glyphs import own
from sandbox_chat.ui.private import send
from sandbox_chat.ui.strips import ready_lines
from sandbox_chat.ui.transcript.cells import Run, row_width
from sandbox_chat.ui.transcript.wrap import wrap
from sandbox_chat.words import tr

from .load import WHOLE, PictureError, Window, measure
from .paint import PicturePaint, frame
from .painter import Painter

FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""Steps of enlarging."""
PAN = 0.25
"""Part of what is seen that one step moves."""


class PictureView(Widget):
    """Shows the picture given to ``show`` in the middle of its own size, or a sentence why it cannot.

    Posts ``Drawn`` when what is seen has changed.
    """

    DEFAULT_CSS = """
    PictureView { width: 1fr; height: 1fr; }
    """

    class Drawn(Message):
        """The picture, a part of it, or a sentence in its place is on the screen."""

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
        self._step = 0
        self._centre = (0.5, 0.5)
        self._window: Window = WHOLE
        self._paint: PicturePaint | None = None
        self._message = ""
        self._drawing: asyncio.Task[None] | None = None
        self._ground: object = None

    @property
    def path(self) -> str:
        """The picture that is shown, empty for none."""
        return self._path

    @property
    def message(self) -> str:
        """The sentence that stands in place of the picture, empty when it is drawn."""
        return self._message

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the picture in pixels, zeros while they are not known."""
        return self._pixels

    @property
    def factor(self) -> float:
        """How much larger than the whole picture it is shown."""
        return FACTORS[self._step]

    def show(self, path: str) -> None:
        """Show the whole picture at ``path``, or none for ``""``. The one before stays until it is ready."""
        self._path, self._pixels = path, (0, 0)
        self._step, self._centre = 0, (0.5, 0.5)
        self._prepare()

    def zoom(self, steps: int) -> None:
        """Enlarge by so many steps, or make smaller by negative ones."""
        step = min(max(self._step + steps, 0), len(FACTORS) - 1)
        if step != self._step:
            self._step = step
            if not step:
                self._centre = (0.5, 0.5)
            self._prepare()

    def pan(self, across: int, down: int) -> bool:
        """Move over an enlarged picture by so many steps. Returns false when all of it is seen anyway."""
        if not self._step:
            return False
        left, top, right, bottom = self._window
        x, y = self._centre
        self._centre = (x + across * PAN * (right - left), y + down * PAN * (bottom - top))
        self._prepare()
        return True

    def on_mount(self) -> None:
        """Draw what was set before."""
        self._prepare()

    def on_resize(self, event: events.Resize) -> None:
        """Draw at the new size."""
        del event
        self._prepare()

    def notify_style_update(self) -> None:
        """Draw on the ground of another theme."""
        super().notify_style_update()
        if self.is_mounted and self._ground not in (None, self.rich_style):
            self._prepare()

    def on_unmount(self) -> None:
        """Free what the terminal keeps."""
        if self._drawing is not None:
            self._drawing.cancel()
        self._drop()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of ``crop``. Textual's own way makes new strips of them, without the picture."""
        ready = ready_lines(self, crop, self.background_colors[1])
        return super().render_lines(crop) if ready is None else ready

    def render_line(self, y: int) -> Strip:
        """Return a row: the picture's in the middle, blank around it."""
        width, height = self.size
        style = self.rich_style
        if self._paint is None:
            return self._sentence_row(y, width, height)
        rows = self._paint.rows
        row = y - max(0, (height - len(rows)) // 2)
        if not 0 <= row < len(rows):
            return Strip.blank(width, style)
        left = max(0, (width - self._paint.columns) // 2)
        right = max(0, width - left - self._paint.columns)
        before = [Segment(" " * left, style)] if left else []
        after = [Segment(" " * right, style)] if right else []
        strip = frame(rows[row], before, after, left + self._paint.columns + right, left)
        return strip if strip.cell_length == width else strip.crop(0, width)

    def _sentence_row(self, y: int, width: int, height: int) -> Strip:
        rows = wrap([Run(self._message)], width) if self._message else []
        number = y - max(0, (height - len(rows)) // 2)
        if not 0 <= number < len(rows):
            return Strip.blank(width, self.rich_style)
        text = "".join(run.text for run in rows[number])
        left = " " * max(0, (width - row_width(rows[number])) // 2)
        return Strip([Segment(left + text, self.rich_style)]).adjust_cell_length(width, self.rich_style)

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
        self._ground = ground = self.rich_style
        try:
            if not all(self._pixels):
                self._pixels = await painter.run(lambda: measure(path))
            columns, rows, window = self._place(painter, columns, rows)
            if not columns:
                self._say(tr("pictures.off"))
                return
            paint = await painter.prepare_soon(path, columns, rows, ground, window)
        except PictureError as error:
            self._say(str(error))
            return
        self._drop()
        send(self.app, paint.setup)
        paint.setup = ""
        self._paint, self._message, self._window = paint, "", window
        self.refresh()
        self.post_message(self.Drawn())

    def _place(self, painter: Painter, columns: int, rows: int) -> tuple[int, int, Window]:
        """Return the cells that the picture takes, and the part of it that they show."""
        columns, rows = painter.bounded(columns, rows)
        fitted = painter.size(*self._pixels, columns, rows)
        if not self._step or not fitted[0]:
            return (*fitted, WHOLE)
        wanted = (fitted[0] * self.factor, fitted[1] * self.factor)
        shown = (min(columns, round(wanted[0])), min(rows, round(wanted[1])))
        edges: list[float] = []
        for cells, whole, centre in zip(shown, wanted, self._centre, strict=True):
            part = min(1.0, cells / whole)
            edges.append(min(max(centre - part / 2, 0.0), 1.0 - part))
            edges.append(edges[-1] + part)
        left, right, top, bottom = edges
        self._centre = ((left + right) / 2, (top + bottom) / 2)
        return (*shown, (left, top, right, bottom))

    def _say(self, message: str) -> None:
        self._drop()
        self._message = own(message)
        self.refresh()
        self.post_message(self.Drawn())

    def _drop(self) -> None:
        paint, self._paint = self._paint, None
        if paint is not None and paint.cleanup:
            send(self.app, paint.cleanup)
