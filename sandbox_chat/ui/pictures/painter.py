"""Pictures by path and size → what is drawn, in a thread, kept while it is used."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from rich.style import Style

from .load import PictureError, load
from .paint import PicturePaint
from .terminal import Mode, TerminalInfo

DEFAULT_CELL = (10, 20)
"""Pixels of a cell when the terminal does not tell; only the ratio matters for half-cells."""
KEPT = 16
"""Paints kept in memory: about what one long look at a session needs."""
MAX_COLUMNS = 250
"""Widest picture in cells: as many as kitty's placeholders and a sensible sixel row can have."""


class Painter:
    """Makes pictures drawable in one terminal. ``prepare`` blocks and may be called from any thread."""

    def __init__(
        self,
        mode: Mode,
        info: TerminalInfo | None = None,
        *,
        max_pixels: int = 50_000_000,
        max_rows: int = 24,
        symbols: bool = True,
    ) -> None:
        """``max_rows`` bounds the height in the transcript; ``symbols`` allows sharper signs than half-cells."""
        info = info or TerminalInfo()
        self.mode = mode
        self.cell = info.cell if all(info.cell) else DEFAULT_CELL
        self.max_pixels = max_pixels
        self.max_rows = max_rows
        self.symbols = symbols
        self._numbers = itertools.count(secrets.randbelow(0x7FFF) + 1 << 8)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, int, int], PicturePaint] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None

    def size(self, width: int, height: int, max_columns: int, max_rows: int = 0) -> tuple[int, int]:
        """Return the columns and rows for a picture of ``width`` × ``height`` pixels.

        It is not stretched beyond its own pixels, except in symbols, which have far fewer than the screen. ``max_rows`` 0 means the bound of the transcript. Zeros: not drawn.
        """
        if self.mode == "off" or width < 1 or height < 1 or max_columns < 1:
            return (0, 0)
        max_columns = min(max_columns, MAX_COLUMNS)
        max_rows = min(max_rows or self.max_rows, MAX_COLUMNS)
        cell_width, cell_height = self.cell
        scale = min(max_columns * cell_width / width, max_rows * cell_height / height)
        # A symbol shows a few pixels only: pictures may grow to be read, small ones not to the whole screen.
        scale = min(scale, 1.0 if self.mode in ("kitty", "sixel") else 3.0)
        columns = min(max_columns, max(1, round(width * scale / cell_width)))
        rows = min(max_rows, max(1, round(height * scale / cell_height)))
        return (columns, rows)

    def prepare(self, path: str, columns: int, rows: int, ground: Style | None = None) -> PicturePaint:
        """Return the picture at ``path`` in exactly ``columns`` × ``rows`` cells. Raises ``PictureError``.

        ``ground`` is the style of the cells under a sixel or kitty picture.
        """
        ground = ground or Style.null()
        key = (path, columns, rows, hash(ground))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        paint = self._paint(path, columns, rows, ground)
        if self.mode != "kitty":  # a kitty picture belongs to the widget that sent it and frees it
            with self._lock:
                self._kept[key] = paint
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return paint

    async def prepare_soon(
        self, path: str, columns: int, rows: int, ground: Style | None = None
    ) -> PicturePaint:
        """The same, in the painter's own thread. Raises ``PictureError``."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="pictures")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self.prepare, path, columns, rows, ground)

    def close(self) -> None:
        """End the thread. What it does now is finished first, without waiting for it."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _paint(self, path: str, columns: int, rows: int, ground: Style) -> PicturePaint:
        if self.mode == "off" or columns < 1 or rows < 1:
            raise PictureError("Pictures are switched off.")
        from . import encode

        cell_width, cell_height = self.cell
        pixels = (columns * cell_width, rows * cell_height)
        if self.mode == "kitty":
            image = load(path, max_pixels=self.max_pixels, box=pixels)
            number = next(self._numbers) & 0xFFFFFF or 1
            return encode.kitty_paint(image, columns, rows, number, ground)
        if self.mode == "sixel":
            image = load(path, max_pixels=self.max_pixels, box=pixels)
            quick = encode.half_rows(image.resize((columns, 2 * rows)), columns, rows)
            return PicturePaint(
                columns, encode.sixel_rows(image, columns, rows, self.cell, ground), quick_rows=quick
            )
        if self.symbols:
            box = (columns * encode.SYMBOL_PIXELS[0], rows * encode.SYMBOL_PIXELS[1])
            image = load(path, max_pixels=self.max_pixels, box=box, columns=columns)
            try:
                return PicturePaint(columns, encode.symbol_rows(image, columns, rows))
            except (ImportError, OSError, AttributeError, ValueError):
                self.symbols = False  # no chafa for this platform: half-cells serve
        image = load(path, max_pixels=self.max_pixels, box=(columns, 2 * rows), columns=columns)
        return PicturePaint(columns, encode.half_rows(image, columns, rows))
