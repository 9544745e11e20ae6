"""A picture in the transcript."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_chat.text import clean_line
from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.glyphs import own
from sandbox_chat.ui.pictures.alternative import picture_text
from sandbox_chat.words import tr

from .blocks import Action, Block
from .cells import MIN_WIDTH, Row, Run, fit, fit_row, width_of
from .scene import PictureKey, Scene
from .wrap import wrap

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.events import ImageContent


_KEYS = (("zoom", "transcript.open"), ("open", "transcript.open_elsewhere"), ("save", "transcript.save"))
"""What the caption offers, and the actions whose keys do it."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the block is laid out: a blank row, the rows of the picture, and the words below it."""

    blank: int
    key: PictureKey | None
    words: tuple[Row, ...]
    strips: tuple[Strip, ...]
    waiting: tuple[Strip, ...]
    """What stands in the picture's place while it is prepared."""

    @property
    def rows(self) -> int:
        return self.key.rows if self.key is not None else 0

    @property
    def height(self) -> int:
        return self.blank + self.rows + len(self.words)


class PictureBlock(Block):
    """A picture of a tool's result with its caption. It keeps no rows of the picture; the gallery does.

    Where pictures are not drawn, words tell what and where it is.
    """

    kind = "picture"

    def __init__(self, scene: Scene, block_id: str, image: ImageContent, name: str) -> None:
        super().__init__(scene, block_id)
        self.image = image
        self.name = name
        self._plan: _Plan | None = None
        self._planned: Hashable = None

    @property
    def text(self) -> str:
        """The picture's path."""
        return self.image.path

    @property
    def path(self) -> str:
        """The picture's file."""
        return self.image.path

    @property
    def selectable(self) -> bool:
        """Pictures can be opened, so the cursor stops at them."""
        return self.visible

    @property
    def commands(self) -> tuple[str, ...]:
        """Its path can be copied, the file opened and saved."""
        return ("copy", "open", "save")

    def action(self, row: int) -> Action | None:
        """Open the picture."""
        del row
        return Action("picture", self.image.path)

    def key(self, width: int) -> PictureKey | None:
        """Return what is asked of the painter at ``width``; ``None`` when the picture is not drawn."""
        pictures = self.scene.pictures
        if pictures is None or pictures.problem(self.image.path):
            return None
        columns, rows = pictures.size(self.image.width, self.image.height, width)
        return PictureKey(self.image.path, columns, rows) if columns and rows else None

    def forget(self) -> None:
        """Let go of the words."""
        super().forget()
        self._plan = None

    def estimate(self, width: int) -> int:
        """Return the height, which does not depend on whether the picture is ready."""
        return self.height(width)

    def height(self, width: int) -> int:
        """Return the number of rows, which is exact from the start."""
        return self._planned_at(width).height if self.visible else 0

    def prepare_end(self, width: int, count: int) -> None:
        """There is nothing to measure."""
        del width, count

    def rows(self, width: int) -> Sequence[Strip]:
        """Return all rows."""
        return self.strips(width, 0, self.height(width))

    def strips(self, width: int, start: int, stop: int) -> Sequence[Strip]:
        """Return some rows; those of the picture come from the gallery, or are blank until it is ready."""
        if not self.visible:
            return ()
        width = max(width, MIN_WIDTH)
        plan = self._planned_at(width)
        out: list[Strip] = []
        if plan.blank:
            out.append(self.scene.palette.blank(width))
        picture: Sequence[Strip] = ()
        if plan.key is not None and start < plan.blank + plan.rows and self.scene.pictures is not None:
            picture = self.scene.pictures.rows(plan.key, width) or plan.waiting
        elif plan.key is not None:
            picture = plan.waiting
        return [*out, *picture, *plan.strips][start:stop]

    def row_source(self, width: int, row: int) -> tuple[int, Row] | None:
        """Return the words of a row below the picture."""
        plan = self._planned_at(width)
        number = row - plan.blank - plan.rows
        return (0, plan.words[number]) if 0 <= number < len(plan.words) else None

    def plain(self, part: int) -> str:
        """Return the words below the picture."""
        del part
        return self._words()

    def _words(self) -> str:
        pictures = self.scene.pictures
        if pictures is None or not (self.image.width and self.image.height):
            return picture_text(self.image, self.name)
        name = f"{clean_line(self.name)}{self._size()}"
        problem = pictures.problem(self.image.path)
        return f"{name}: {problem}" if problem else name

    def _size(self) -> str:
        if not self.image.width:
            return ""
        return own(f" · {self.image.width}×{self.image.height}")

    def _planned_at(self, width: int) -> _Plan:
        width = max(width, MIN_WIDTH)
        key = self.key(width)
        words = self._words()
        palette = self.scene.palette
        state = (width, key, words, self.first, palette.version)
        if self._plan is None or state != self._planned:
            rows = self._caption(width) if key is not None else self._sentence(width, words)
            waiting: tuple[Strip, ...] = ()
            if key is not None:
                note = [
                    Run(" " * min(2, width)),
                    Run(fit(own(tr("pictures.preparing")), width - 2), ("muted",)),
                ]
                blanks = [palette.blank(width)] * key.rows
                blanks[key.rows // 2] = palette.strip(note, width)
                waiting = tuple(blanks)
            strips = tuple(palette.strip(row, width) for row in rows)
            self._plan = _Plan(0 if self.first else 1, key, tuple(rows), strips, waiting)
            self._planned = state
        return self._plan

    def _sentence(self, width: int, words: str) -> list[Row]:
        problem = self.scene.pictures is not None and self.scene.pictures.problem(self.image.path)
        return list(wrap([Run(words, ("warning" if problem else "muted",), at=0)], width))

    def _caption(self, width: int) -> list[Row]:
        """Return name, size and keys in one row. What does not fit goes: keys first, then the size, then the name's start."""
        name, size = clean_line(self.name), self._size()
        keys = [own(tr(f"pictures.{name}", key=key)) for name, action in _KEYS if (key := key_of(action))]
        for count in range(len(keys), -1, -1):
            hint = own(" · ") + "  ".join(keys[:count]) if count else ""
            if width_of(name + size + hint) <= width:
                return [[Run(name + size, ("muted",), at=0), Run(hint, ("muted",))]]
        return [fit_row([Run(name, ("muted",), at=0)], width)]
