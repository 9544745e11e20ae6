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


class Gallery:
    """Answers blocks at once with what is ready and makes the rest.

    ``moving``: the view moves now, so pictures that are costly to send again and again (sixel) are shown
    in a cheaper form.
    """

    def __init__(
        self, painter: Painter, *, ground: Style, send: Callable[[str], None], ready: Callable[[str], None]
    ) -> None:
        """``send`` writes to the terminal; ``ready`` is called with a path when its picture can be drawn."""
        self.painter = painter
        self.version = 0
        self._ground = ground
        self._send = send
        self._ready = ready
        self._moving = False
        self._paints: OrderedDict[PictureKey, PicturePaint | str] = OrderedDict()
        self._tasks: dict[PictureKey, asyncio.Task[None]] = {}

    @property
    def heavy(self) -> bool:
        """True when drawing a picture again costs so much that it is shown in a cheaper form while moving."""
        return self.painter.mode == "sixel"

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

    def rows(self, key: PictureKey) -> list[Strip] | str | None:
        """Return the rows, a sentence, or ``None`` and make the picture."""
        paint = self._paints.get(key)
        if paint is None:
            if key not in self._tasks:
                self._tasks[key] = asyncio.get_running_loop().create_task(self._make(key))
            return None
        self._paints.move_to_end(key)
        if isinstance(paint, str):
            return paint
        return paint.quick_rows if self._moving and paint.quick_rows else paint.rows

    def close(self) -> None:
        """Stop making pictures and free those that the terminal keeps."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        for paint in self._paints.values():
            self._free(paint)
        self._paints.clear()

    async def _make(self, key: PictureKey) -> None:
        result: PicturePaint | str
        try:
            result = await self.painter.prepare_soon(key.path, key.columns, key.rows, self._ground)
        except PictureError as error:
            result = str(error)
        self._tasks.pop(key, None)
        if not isinstance(result, str) and result.setup:
            self._send(result.setup)
        self._paints[key] = result
        while len(self._paints) > KEPT:
            self._free(self._paints.popitem(last=False)[1])
        self.version += 1
        self._ready(key.path)

    def _free(self, paint: PicturePaint | str) -> None:
        if not isinstance(paint, str) and paint.cleanup:
            self._send(paint.cleanup)
