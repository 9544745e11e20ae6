"""Pictures for a transcript: asked for by blocks while they draw, made in a thread, freed at the end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox_chat.ui.pictures import PictureError

from .scene import PictureKey

if TYPE_CHECKING:
    from rich.style import Style
    from textual.strip import Strip

    from sandbox_chat.ui.pictures import Painter, PicturePaint

KEPT = 24
"""Pictures kept ready; those seen longest ago are freed and made again when they are scrolled to."""
KEPT_BYTES = 12_000_000
"""Memory that they take together, at most, unless those that are seen at once take more."""
WAITING = 24
"""Pictures that wait to be made; of more, those asked for longest ago are given up until they are seen again."""


class _Hung:
    """A picture that can be drawn, and its rows at the width of the view."""

    __slots__ = ("paint", "quick", "rows", "width")

    def __init__(self, paint: PicturePaint) -> None:
        self.paint = paint
        self.width = -1
        self.rows: list[Strip] = []
        self.quick: list[Strip] = []

    def at(self, width: int, ground: Style, *, quick: bool) -> list[Strip]:
        if width != self.width:
            self.width = width
            self.rows = [strip.adjust_cell_length(width, ground) for strip in self.paint.rows]
            self.quick = [strip.adjust_cell_length(width, ground) for strip in self.paint.quick_rows]
        return self.quick if quick and self.quick else self.rows


class Gallery:
    """Answers blocks at once with what is ready and makes the rest that is in sight, what was asked for last first.

    ``moving``: the view moves now, so pictures that are costly to send again and again (sixel) are shown
    in a cheaper form.
    """

    def __init__(
        self, painter: Painter, *, ground: Style, send: Callable[[str], None], ready: Callable[[str], None]
    ) -> None:
        """``send`` writes to the terminal; ``ready`` is called with a path when its picture can be drawn, or never will."""
        self.painter = painter
        self.version = 0
        self._ground = ground
        self._send = send
        self._ready = ready
        self._moving = False
        self._cell = painter.cell
        self._hung: OrderedDict[PictureKey, _Hung] = OrderedDict()
        self._weight = 0
        self._asked: set[PictureKey] = set()
        self._wanted: OrderedDict[PictureKey, None] = OrderedDict()
        self._problems: dict[str, str] = {}
        self._work: asyncio.Task[None] | None = None

    @property
    def heavy(self) -> bool:
        """True when drawing a picture again costs so much that it is shown in a cheaper form while moving."""
        return self.painter.heavy

    @property
    def moving(self) -> bool:
        """Whether the view moves now."""
        return self._moving

    @moving.setter
    def moving(self, value: bool) -> None:
        if value != self._moving and self.heavy:
            self._moving = value
            self.version += 1

    def size(self, width: int, height: int, columns: int) -> tuple[int, int]:
        """Return columns and rows for a picture in a view of ``columns`` cells."""
        return self.painter.size(width, height, columns)

    def problem(self, path: str) -> str:
        """Return the sentence why a picture cannot be drawn; empty if it can, or it is not known yet."""
        return self._problems.get(path, "")

    def rows(self, key: PictureKey, width: int) -> list[Strip] | None:
        """Return the rows, each ``width`` cells wide, or ``None`` and make the picture."""
        if self.painter.cell != self._cell:  # a font of another size: what was made does not fit its cells
            self._cell = self.painter.cell
            self._free_all()
        self._asked.add(key)
        hung = self._hung.get(key)
        if hung is not None:
            self._hung.move_to_end(key)
            return hung.at(width, self._ground, quick=self._moving)
        if key.path not in self._problems:
            for other in [other for other in self._wanted if other.path == key.path]:
                del self._wanted[other]  # of a width that the view had before
            self._wanted[key] = None
            while len(self._wanted) > WAITING:
                self._wanted.popitem(last=False)
            if self._work is None:
                self._work = asyncio.get_running_loop().create_task(self._make_all())
        return None

    def close(self) -> None:
        """Stop making pictures and free those that the terminal keeps."""
        if self._work is not None:
            self._work.cancel()
            self._work = None
        self._wanted.clear()
        self._free_all()

    async def _make_all(self) -> None:
        while self._wanted:
            key = self._wanted.popitem()[0]
            if key not in self._hung:
                await self._make(key)
        self._work = None

    async def _make(self, key: PictureKey) -> None:
        cell = self.painter.cell
        try:
            paint = await self.painter.prepare_soon(key.path, key.columns, key.rows, self._ground)
        except PictureError as error:
            self._problems[key.path] = str(error)
        else:
            self._send(paint.setup)
            paint.setup = ""
            if cell == self._cell:
                self._hang(key, paint)
            else:
                self._send(paint.cleanup)  # the font changed meanwhile; it is asked for again
        self.version += 1
        self._asked.clear()  # what is seen is asked for again now
        self._ready(key.path)
        for passed in [passed for passed in self._wanted if passed not in self._asked]:
            del self._wanted[passed]

    def _hang(self, key: PictureKey, paint: PicturePaint) -> None:
        for other in [other for other in self._hung if other.path == key.path and other not in self._asked]:
            self._free(other)  # of another size, from before
        self._hung[key] = _Hung(paint)
        self._weight += paint.weight
        for other in list(self._hung):
            if len(self._hung) <= KEPT and self._weight <= KEPT_BYTES:
                break
            if other not in self._asked:
                self._free(other)

    def _free(self, key: PictureKey) -> None:
        paint = self._hung.pop(key).paint
        self._weight -= paint.weight
        self._send(paint.cleanup)

    def _free_all(self) -> None:
        for key in list(self._hung):
            self._free(key)
