"""Pictures by path and size → what is drawn, in a thread, kept while it is used."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rich.style import Style

from sandbox_chat.ui.work_thread import WorkThread
from sandbox_chat.words import tr

from .load import WHOLE, PictureError, Window, bold_lines, load
from .paint import PicturePaint
from .terminal import Mode, TerminalInfo

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

DEFAULT_CELL = (10, 20)
"""Pixels of a cell when the terminal does not tell; only the ratio matters for characters."""
KEPT_BYTES = 8_000_000
"""Paints kept in memory beside those that are shown: about what one long look at a session needs."""
MAX_COLUMNS = 250
"""Widest picture in cells: as many as kitty's placeholders and a sensible sixel row can have."""
MAX_GROWTH = 3.0
"""A picture in characters has at most so many times its pixels: a few of them make one cell, but it is to be read."""
GRAPHICS: frozenset[Mode] = frozenset({"kitty", "sixel", "iterm"})
"""Modes that draw pixels."""
HEAVY: frozenset[Mode] = frozenset({"sixel", "iterm"})
"""Modes that send the picture again whenever a row of it is drawn."""


class Painter:
    """Makes pictures drawable in one terminal. ``prepare`` blocks and may be called from any thread.

    ``cell`` is the size of a cell in pixels; a font of another size changes it.
    """

    def __init__(
        self,
        mode: Mode,
        info: TerminalInfo | None = None,
        *,
        max_pixels: int = 50_000_000,
        max_rows: int = 24,
    ) -> None:
        """``max_rows`` bounds the height in the transcript."""
        info = info or TerminalInfo()
        self.mode = mode
        self.cell = info.cell if all(info.cell) else DEFAULT_CELL
        self.max_pixels = max_pixels
        self.max_rows = max_rows
        self._chafa = True
        self._numbers = itertools.count(secrets.randbelow(0x7FFF) + 1 << 8)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], PicturePaint] = OrderedDict()
        self._kept_bytes = 0
        self._thread = WorkThread("pictures")

    @property
    def heavy(self) -> bool:
        """True when drawing a picture again costs so much that it is shown in a cheaper form while it moves."""
        return self.mode in HEAVY

    def size(self, width: int, height: int, max_columns: int, max_rows: int = 0) -> tuple[int, int]:
        """Return the columns and rows for a picture of ``width`` × ``height`` pixels.

        It is not stretched beyond its own pixels, except in characters. ``max_rows`` 0 means the bound of the
        transcript. Zeros: not drawn.
        """
        if self.mode == "off" or width < 1 or height < 1 or max_columns < 1:
            return (0, 0)
        max_columns = min(max_columns, MAX_COLUMNS)
        max_rows = min(max_rows or self.max_rows, MAX_COLUMNS)
        cell_width, cell_height = self.cell
        scale = min(max_columns * cell_width / width, max_rows * cell_height / height)
        scale = min(scale, 1.0 if self.mode in GRAPHICS else MAX_GROWTH)
        columns = min(max_columns, max(1, round(width * scale / cell_width)))
        rows = min(max_rows, max(1, round(height * scale / cell_height)))
        return (columns, rows)

    def bounded(self, columns: int, rows: int) -> tuple[int, int]:
        """Return a size that can be drawn, at most as large."""
        return (min(columns, MAX_COLUMNS), min(rows, MAX_COLUMNS))

    def prepare(
        self, path: str, columns: int, rows: int, ground: Style | None = None, window: Window = WHOLE
    ) -> PicturePaint:
        """Return the picture at ``path``, or its part in ``window``, in exactly ``columns`` × ``rows`` cells.

        ``ground`` is the style of the cells under a picture of pixels, and of ASCII signs. Raises ``PictureError``.
        """
        ground = ground or Style.null()
        key = (path, columns, rows, hash(ground), window, self.cell)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        try:
            paint = self._paint(path, columns, rows, ground, window)
        except PictureError:
            raise
        except Exception as error:  # whatever an encoder makes of odd sizes or of too little memory
            raise PictureError(tr("pictures.not_drawn", kind=type(error).__name__)) from None
        if self.mode != "kitty":  # a kitty picture belongs to the widget that sent it and frees it
            self._keep(key, paint)
        return paint

    async def prepare_soon(
        self, path: str, columns: int, rows: int, ground: Style | None = None, window: Window = WHOLE
    ) -> PicturePaint:
        """The same, in the painter's own thread: one picture at a time. Raises ``PictureError``."""
        return await self.run(partial(self.prepare, path, columns, rows, ground, window))

    async def run(self, work: Callable[[], T]) -> T:
        """Do something else with a picture's file in the painter's own thread."""
        return await self._thread.run(work)

    def close(self) -> None:
        """End the thread. What it does now is finished first, without waiting for it."""
        self._thread.close()

    def _keep(self, key: tuple[object, ...], paint: PicturePaint) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._kept_bytes += paint.weight - (before.weight if before is not None else 0)
            self._kept[key] = paint
            while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= self._kept.popitem(last=False)[1].weight

    def _paint(self, path: str, columns: int, rows: int, ground: Style, window: Window) -> PicturePaint:
        if self.mode == "off" or columns < 1 or rows < 1:
            raise PictureError(tr("pictures.switched_off"))
        under = ground.bgcolor.get_truecolor() if ground.bgcolor is not None else (255, 255, 255)
        read = partial(
            load, path, max_pixels=self.max_pixels, window=window, ground=(under[0], under[1], under[2])
        )
        if self.mode in GRAPHICS:
            return self._graphics(read, columns, rows, ground)
        from . import characters

        if self.mode == "ascii":
            across, down = characters.ASCII_PIXELS
            image = read(box=(columns * across, rows * down), columns=columns)
            return PicturePaint(columns, characters.ascii_rows(image, columns, rows, ground))
        if self.mode != "half" and self._chafa:
            across, down = characters.SYMBOL_PIXELS
            image = read(box=(columns * across, rows * down), columns=columns)
            try:
                strips = characters.symbol_rows(image, columns, rows, sharp=self.mode == "sharp")
                return PicturePaint(columns, strips)
            except (ImportError, OSError, AttributeError, ValueError):
                self._chafa = False  # no chafa for this platform: half-cells serve
        image = read(box=(columns, 2 * rows), columns=columns)
        return PicturePaint(columns, characters.half_rows(image, columns, rows))

    def _graphics(self, read: partial[Image], columns: int, rows: int, ground: Style) -> PicturePaint:
        from . import protocols
        from .characters import half_rows

        cell = self.cell
        image = read(box=(columns * cell[0], rows * cell[1]))
        if self.mode == "kitty":
            number = next(self._numbers) & 0xFFFFFF or 1
            return protocols.kitty_paint(image, columns, rows, number, ground)
        encode = protocols.sixel_rows if self.mode == "sixel" else protocols.iterm_rows
        quick = half_rows(bold_lines(image, columns).resize((columns, 2 * rows)), columns, rows)
        return PicturePaint(columns, encode(image, columns, rows, cell, ground), quick_rows=quick)
