"""The pieces of a transcript. Each knows its text and its rows; none knows Textual's widgets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr

from .cells import MIN_WIDTH, TAB, Row, Run, fit_row, width_of
from .scene import Scene
from .wrap import wrap

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.events import NoticeLevel

    from .spill import Ticket


Texts = Callable[[Callable[[str], bool]], Sequence[str]]
"""Gives the parts of a block's plain text for a search, in any thread. Given is a function that tells whether a Markdown
source may show what is searched for; one that cannot need not be read."""


@dataclass(frozen=True, slots=True)
class Action:
    """What Enter or a click on a row means: toggle the block, or open a picture."""

    kind: Literal["toggle", "picture"]
    path: str = ""


class Line(NamedTuple):
    """A row of a block before it is coloured.

    ``part`` is the piece of the block's plain text that the runs' ``at`` count in, -1 for none; ``fill`` are the
    styles of the rest of the row.
    """

    row: Row
    part: int = -1
    fill: tuple[str, ...] = ()


class Block:
    """One piece of the transcript: a prompt, an answer, a tool call, a picture, a notice.

    A block begins with an empty row that separates it from what stands above, unless it is the first. A simple block
    gives all its rows in ``_lines`` or ``_draw``, which are kept until ``touch`` is called or the width, the palette
    or the outside changes. A large one may be measured in part: it overrides ``height``, ``prepare``, ``prepare_end``,
    ``strips`` and ``row_source``, and its height is then an estimate where nobody looked yet.
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
        self.revision = 0
        self._key: Hashable = None
        self._rows: Sequence[Strip] = ()
        self._kept_lines: Sequence[Line] = ()

    @property
    def text(self) -> str:
        """The block's text, as it is copied."""
        return ""

    @property
    def live(self) -> bool:
        """True while something in the block moves with time."""
        return False

    @property
    def pending(self) -> bool:
        """True while rows in sight are still to change by themselves, as when a thread makes their colours."""
        return False

    @property
    def selectable(self) -> bool:
        """True for blocks that the cursor stops at."""
        return self.visible

    @property
    def commands(self) -> tuple[str, ...]:
        """What can be done with the block: ``copy``, ``open``, ``save``, ``rerun``, ``edit``, ``page``."""
        return ("copy",)

    @property
    def path(self) -> str:
        """A file that the block shows, empty for none."""
        return ""

    @property
    def again(self) -> str:
        """A prompt that asks for the same once more, empty for none."""
        return ""

    @property
    def suffix(self) -> str:
        """How the name of a file ends that the block's text is written to."""
        return ".txt"

    def touch(self) -> None:
        """The block changed: draw it again when its rows are wanted."""
        self.revision += 1

    def forget(self) -> None:
        """Let go of all that can be made again from the source: rows and strips."""
        self._key = None
        self._rows = ()
        self._kept_lines = ()

    @property
    def weight(self) -> int:
        """Characters of a text that could be put away on disk, 0 for none."""
        return 0

    @property
    def away(self) -> bool:
        """True while the text is on disk."""
        return False

    def put_away(self, ticket: Ticket) -> None:
        """The text that ``fetch`` gave is on disk now: keep only where."""

    def fetch(self) -> str:
        """Return the text, from disk if it is there. Blocking; in any thread."""
        return self.text

    @property
    def absent(self) -> bool:
        """True while rows that say so stand for the text: it is on disk, or takes long to read."""
        return False

    def load(self) -> Callable[[], None]:
        """Get what is ``absent``, in any thread; what is returned is to be called on the loop. Blocking."""
        return lambda: None

    def ensure(self) -> None:
        """Have the text in memory. Blocking."""

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

    # -- rows ------------------------------------------------------------------------------------------

    def rows(self, width: int) -> Sequence[Strip]:
        """Return all rows at ``width`` cells, each exactly that wide."""
        width = max(width, MIN_WIDTH)
        key = (width, self.scene.palette.version, self.revision, self.first, self._outside())
        if key != self._key:
            self._kept_lines = ()
            self._rows = self._all_rows(width)
            self._key = key
        return self._rows

    def height(self, width: int) -> int:
        """Return the number of rows at ``width``: exact where it was prepared, an estimate for the rest."""
        return len(self.rows(width))

    def prepare(self, width: int, row: int, count: int) -> int:
        """Make ``count`` rows exact, from the content that stands at ``row`` now. Returns the row at which it stands then."""
        del count
        return max(0, min(row, self.height(width) - 1))

    def prepare_end(self, width: int, count: int) -> None:
        """Make the last ``count`` rows exact."""
        del count
        self.rows(width)

    def strips(self, width: int, start: int, stop: int) -> Sequence[Strip]:
        """Return the rows from ``start`` to ``stop``, which were prepared; the same object for a row that did not change."""
        return self.rows(width)[start:stop]

    def row_source(self, width: int, row: int) -> tuple[int, Row] | None:
        """Return what a row was made of: which part of the plain text, and its runs. ``None``: nothing to copy."""
        count = len(self.rows(width))
        lines = self._kept_lines
        number = row - (count - len(lines))
        if 0 <= number < len(lines) and lines[number].part >= 0:
            return lines[number].part, lines[number].row
        return None

    def plain(self, part: int) -> str:
        """Return a part of the text as it is read, which the runs' ``at`` count in."""
        del part
        return self.text

    def source(self, part: int, begin: int, end: int) -> str:
        """Return what is copied of a part of the plain text, from ``begin`` to ``end``: code has its tabs again."""
        return self.plain(part)[begin:end]

    @property
    def parts(self) -> int:
        """Number of parts of the plain text."""
        return 1

    def texts(self) -> Texts:
        """Return what a search reads."""
        parts = [self.plain(part) for part in range(self.parts)]
        return lambda maybe: parts

    def separator(self, part: int) -> str:
        """Return what stands between a part and the one after it when both are copied."""
        del part
        return "\n"

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
        """Draw all rows; a block that can be copied in parts gives ``_lines`` instead."""
        self._kept_lines = self._lines(width)
        strip = self.scene.palette.strip
        return [strip(line.row, width, line.fill) for line in self._kept_lines]

    def _lines(self, width: int) -> Sequence[Line]:
        """Return all rows before they are coloured."""
        raise NotImplementedError


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

    @property
    def commands(self) -> tuple[str, ...]:
        """A prompt can be asked again."""
        return ("copy", "rerun", "edit")

    @property
    def again(self) -> str:
        """The prompt."""
        return self._prompt

    def plain(self, part: int) -> str:
        """Return the prompt as it is shown."""
        del part
        return self._prompt.replace("\t", TAB)

    def _lines(self, width: int) -> Sequence[Line]:
        rows = wrap([Run(self.plain(0), ("prompt",), at=0)], width - 2)
        mark, indent = Run(f"{glyph('prompt')} ", ("prompt-mark",)), Run("  ")
        return [Line([mark if not i else indent, *row], 0) for i, row in enumerate(rows)]


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

    def plain(self, part: int) -> str:
        """Return the thinking as it is shown."""
        del part
        return self._text.strip().replace("\t", TAB)

    def _lines(self, width: int) -> Sequence[Line]:
        mark = Run(f"{glyph('open' if self.expanded else 'folded')} ", ("muted",))
        label = tr("transcript.thought" if self.finished else "transcript.thinking")
        flat = (
            " ".join(self._text[-4000:].split()) if not self.finished else " ".join(self._text[:4000].split())
        )
        if self.expanded:
            body = wrap([Run(self.plain(0), ("thinking",), at=0)], width - 2)
            head = Line([mark, Run(label, ("muted",))])
            return [head, *(Line([Run("  "), *row], 0) for row in body)]
        room = width - width_of(label) - 4
        if not self.finished and width_of(flat) > room > 0:
            flat = glyph("ellipsis") + flat[-(room - 1) :]  # while it is written, its end is what is new
            while width_of(flat) > room:
                flat = glyph("ellipsis") + flat[2:]
        return [Line(fit_row([mark, Run(f"{label}  ", ("muted",)), Run(flat, ("thinking",))], width))]


_LEVELS: dict[str, tuple[str, str]] = {
    "info": ("info", "muted"),
    "warning": ("warning", "warning"),
    "error": ("failed", "error"),
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

    def plain(self, part: int) -> str:
        """Return the sentence as it is shown."""
        del part
        return self._text.strip().replace("\t", TAB)

    def _lines(self, width: int) -> Sequence[Line]:
        sign, style = _LEVELS[self.level]
        rows = wrap([Run(self.plain(0), (style,) if self.level != "error" else (), at=0)], width - 2)
        mark = Run(f"{glyph(sign)} ", (style,))
        return [Line([mark if not i else Run("  "), *row], 0) for i, row in enumerate(rows)]
