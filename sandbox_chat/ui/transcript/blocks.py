"""The pieces of a transcript. Each knows its text and its rows; none knows Textual's widgets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from .cells import MIN_WIDTH, TAB, Run, fit, fit_row, width_of, wrap
from .scene import PictureKey, Scene
from .stream import MarkdownText

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.events import ImageContent, NoticeLevel


@dataclass(frozen=True, slots=True)
class Action:
    """What Enter or a click on a row means: toggle the block, or open a picture."""

    kind: Literal["toggle", "picture"]
    path: str = ""


class Block:
    """One piece of the transcript: a prompt, an answer, a tool call, a picture, a notice.

    ``rows`` are cached until ``touch`` is called or the width, the palette or the outside changes.
    A block begins with an empty row that separates it from what stands above, unless it is the first.
    """

    kind: ClassVar[str] = "block"
    expandable: ClassVar[bool] = False

    def __init__(self, scene: Scene, block_id: str) -> None:
        self.scene = scene
        self.id = block_id
        self.tool_use_id = ""
        self.first = False
        self.expanded = False
        self.visible = True
        self._revision = 0
        self._key: Hashable = None
        self._rows: Sequence[Strip] = ()

    @property
    def text(self) -> str:
        """The block's text, as it is copied."""
        return ""

    @property
    def live(self) -> bool:
        """True while something in the block moves with time."""
        return False

    @property
    def selectable(self) -> bool:
        """True for blocks that the cursor stops at."""
        return self.expandable

    def touch(self) -> None:
        """The block changed: draw it again when its rows are wanted."""
        self._revision += 1

    def hide(self) -> None:
        """Withdraw the block. It keeps its place and has no rows."""
        self.visible = False
        self.touch()

    def expand(self) -> None:
        """Show everything."""
        if self.expandable and not self.expanded:
            self.expanded = True
            self.touch()

    def collapse(self) -> None:
        """Show only the summary."""
        if self.expanded:
            self.expanded = False
            self.touch()

    def toggle(self) -> None:
        """Expand or collapse."""
        if self.expanded:
            self.collapse()
        else:
            self.expand()

    def rows(self, width: int) -> Sequence[Strip]:
        """Return the rows at ``width`` cells, each exactly that wide."""
        width = max(width, MIN_WIDTH)
        key = (width, self.scene.palette.version, self._revision, self.first, self._outside())
        if key != self._key:
            self._rows = self._all_rows(width)
            self._key = key
        return self._rows

    def height(self, width: int) -> int:
        """Return the number of rows at ``width``; draws them if need be."""
        return len(self.rows(width))

    def estimate(self, width: int) -> int:
        """Return a guess of the height without drawing anything."""
        if not self.visible:
            return 0
        text = self.text
        return 1 + text.count("\n") + len(text) // max(width, 1) + 1

    def action(self, row: int) -> Action | None:
        """Return what Enter or a click on this row of the block does."""
        del row
        return Action("toggle") if self.expandable else None

    def _outside(self) -> Hashable:
        """What else the rows depend on."""
        return None

    def _all_rows(self, width: int) -> Sequence[Strip]:
        if not self.visible:
            return ()
        body = self._draw(width)
        if self.first or not body:
            return body
        return [self.scene.palette.blank(width), *body]

    def _draw(self, width: int) -> Sequence[Strip]:
        raise NotImplementedError

    def _strips(self, rows: Sequence[Sequence[Run]], width: int) -> list[Strip]:
        return [self.scene.palette.strip(row, width) for row in rows]


class PromptBlock(Block):
    """What the user said."""

    kind = "prompt"

    def __init__(self, scene: Scene, block_id: str, prompt: str) -> None:
        super().__init__(scene, block_id)
        self._prompt = prompt.rstrip("\n")

    @property
    def text(self) -> str:
        """The prompt."""
        return self._prompt

    def _draw(self, width: int) -> Sequence[Strip]:
        rows = wrap([Run(self._prompt.replace("\t", TAB), ("prompt",))], width - 2)
        mark, indent = Run("› ", ("prompt-mark",)), Run("  ")
        return self._strips([[mark if not i else indent, *row] for i, row in enumerate(rows)], width)


class AnswerBlock(Block):
    """A block of the answer: Markdown, which may still grow."""

    kind = "answer"

    def __init__(self, scene: Scene, block_id: str, text: str = "", *, finished: bool = False) -> None:
        super().__init__(scene, block_id)
        self.markdown = MarkdownText(text, finished=finished)

    @property
    def text(self) -> str:
        """The Markdown source."""
        return self.markdown.text

    def append(self, text: str) -> None:
        """Add a piece."""
        self.markdown.append(text)
        self.touch()

    def finish(self, text: str | None = None) -> None:
        """The block is whole; ``text`` replaces what came in pieces."""
        self.markdown.finish(text)
        self.touch()

    def _draw(self, width: int) -> Sequence[Strip]:
        return self.markdown.rows(width, self.scene.palette)


class ThinkingBlock(Block):
    """The model's thinking: one dim line, the whole when expanded."""

    kind = "thinking"
    expandable = True

    def __init__(self, scene: Scene, block_id: str) -> None:
        super().__init__(scene, block_id)
        self._text = ""
        self.finished = False

    @property
    def text(self) -> str:
        """The thinking."""
        return self._text

    def append(self, text: str) -> None:
        """Add a piece."""
        self._text += text
        self.touch()

    def finish(self) -> None:
        """No more will come."""
        if not self.finished:
            self.finished = True
            self.touch()

    def estimate(self, width: int) -> int:
        """Return a guess of the height."""
        return super().estimate(width) if self.expanded else 2 * self.visible

    def _draw(self, width: int) -> Sequence[Strip]:
        mark = Run("▾ " if self.expanded else "▸ ", ("muted",))
        label = "thought" if self.finished else "thinking"
        flat = (
            " ".join(self._text[-4000:].split()) if not self.finished else " ".join(self._text[:4000].split())
        )
        if self.expanded:
            body = wrap([Run(self._text.strip().replace("\t", TAB), ("thinking",))], width - 2)
            head = [mark, Run(label, ("muted",))]
            return self._strips([head, *([Run("  "), *row] for row in body)], width)
        room = width - len(label) - 4
        if not self.finished and width_of(flat) > room > 0:
            flat = "…" + flat[-(room - 1) :]  # while it is written, its end is what is new
            while width_of(flat) > room:
                flat = "…" + flat[2:]
        return self._strips(
            [fit_row([mark, Run(f"{label}  ", ("muted",)), Run(flat, ("thinking",))], width)], width
        )


_LEVELS: dict[str, tuple[str, str]] = {
    "info": ("i", "muted"),
    "warning": ("!", "warning"),
    "error": ("✗", "error"),
}


class NoticeBlock(Block):
    """Something that the user should know."""

    kind = "notice"

    def __init__(self, scene: Scene, block_id: str, level: NoticeLevel, text: str) -> None:
        super().__init__(scene, block_id)
        self.level = level
        self._text = text

    @property
    def text(self) -> str:
        """The sentence."""
        return self._text

    def replace(self, text: str) -> None:
        """Say something else in the same place."""
        self._text = text
        self.touch()

    def _draw(self, width: int) -> Sequence[Strip]:
        glyph, style = _LEVELS[self.level]
        rows = wrap(
            [Run(self._text.strip().replace("\t", TAB), (style,) if self.level != "error" else ())], width - 2
        )
        mark = Run(f"{glyph} ", (style,))
        return self._strips([[mark if not i else Run("  "), *row] for i, row in enumerate(rows)], width)


class PictureBlock(Block):
    """A picture of a tool's result with its caption."""

    kind = "picture"

    def __init__(self, scene: Scene, block_id: str, image: ImageContent, name: str) -> None:
        super().__init__(scene, block_id)
        self.image = image
        self.name = name

    @property
    def text(self) -> str:
        """The picture's path."""
        return self.image.path

    @property
    def selectable(self) -> bool:
        """Pictures can be opened, so the cursor stops at them."""
        return self.visible

    def action(self, row: int) -> Action | None:
        """Open the picture."""
        del row
        return Action("picture", self.image.path)

    def key(self, width: int) -> PictureKey | None:
        """Return what is asked of the painter at ``width``; ``None`` when pictures are not drawn."""
        pictures = self.scene.pictures
        if pictures is None:
            return None
        columns, rows = pictures.size(self.image.width, self.image.height, width)
        return PictureKey(self.image.path, columns, rows) if columns and rows else None

    def estimate(self, width: int) -> int:
        """Return the height, which does not depend on whether the picture is ready."""
        key = self.key(width)
        return (2 + (key.rows if key else 0)) * self.visible

    def _outside(self) -> Hashable:
        return self.scene.pictures.version if self.scene.pictures is not None else 0

    def _draw(self, width: int) -> Sequence[Strip]:
        key = self.key(width)
        out: list[Strip] = []
        problem = ""
        if key is not None and self.scene.pictures is not None:
            answer = self.scene.pictures.rows(key)
            if isinstance(answer, str):
                problem = answer
            elif answer is None:
                blank = self.scene.palette.blank(width)
                out = [blank] * key.rows
                note = [Run(" " * min(2, width)), Run(fit("preparing the picture …", width - 2), ("faint",))]
                out[key.rows // 2] = self.scene.palette.strip(note, width)
            else:
                base = self.scene.palette.base
                out = [strip.adjust_cell_length(width, base) for strip in answer]
        size = f" · {self.image.width}×{self.image.height}" if self.image.width else ""
        if problem:
            rows = wrap([Run(f"{self.name}{size}: {problem}", ("warning",))], width)
            return [*out, *self._strips(rows, width)]
        caption = [Run(f"{self.name}{size}", ("muted",)), Run(" · ⏎ zoom", ("faint",))]
        return [*out, *self._strips([fit_row(caption, width)], width)]
