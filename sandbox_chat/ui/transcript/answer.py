"""An answer of the model in the transcript: Markdown that may still grow, or wait on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sandbox_chat.words import tr

from .blocks import Block, Texts
from .cells import MIN_WIDTH, Row, Run

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.ui.markdown.document import MarkdownDocument

    from .scene import Scene
    from .spill import Ticket

SMALL = 400
"""Characters of a text that is not worth a way to the disk."""


class AnswerBlock(Block):
    """A block of the answer. It is parsed when it is first looked at, and measured only there."""

    kind = "answer"

    def __init__(self, scene: Scene, block_id: str, text: str = "", *, finished: bool = False) -> None:
        super().__init__(scene, block_id)
        self._document = _markdown(text, finished=finished)
        self._ticket: Ticket | None = None
        self._size, self._newlines = len(text), text.count("\n")
        self._width = MIN_WIDTH  # that rows were asked for last

    @property
    def pending(self) -> bool:
        """True while code in sight waits for its colours."""
        return self._document.pending

    @property
    def commands(self) -> tuple[str, ...]:
        """An answer can be saved, and read elsewhere."""
        return ("copy", "save", "edit", "page")

    @property
    def suffix(self) -> str:
        """Answers are Markdown."""
        return ".md"

    @property
    def text(self) -> str:
        """The Markdown source. Blocks while it is read back from disk."""
        return self.fetch()

    def append(self, text: str) -> None:
        """Add a piece."""
        self._document.append(text)
        self._size += len(text)
        self._newlines += text.count("\n")
        self.touch()

    def finish(self, text: str | None = None) -> None:
        """The block is whole; ``text`` replaces what came in pieces."""
        self._document.finish(text)
        if text is not None:
            self._size, self._newlines = len(text), text.count("\n")
        self.touch()

    # -- rows ----------------------------------------------------------------------------------------------

    def estimate(self, width: int) -> int:
        """Return a guess of the height."""
        return (2 + self._newlines + self._size // max(width, 1)) * self.visible

    def height(self, width: int) -> int:
        """Return the number of rows."""
        if not self.visible:
            return 0
        self._width = max(width, MIN_WIDTH)
        if self._ticket is not None:
            return self.estimate(width)
        rows = self._document.height(max(width, MIN_WIDTH))
        return rows + self._lead if rows else 0

    def prepare(self, width: int, row: int, count: int) -> int:
        """Make rows exact, from the content at ``row`` on."""
        if not self.visible or self.absent:
            return max(0, min(row, self.height(width) - 1))
        lead = self._lead
        at = self._document.prepare(max(width, MIN_WIDTH), max(row - lead, 0), count)
        return row if row < lead else at + lead

    def prepare_end(self, width: int, count: int) -> None:
        """Make the last rows exact."""
        if self.visible and not self.absent:
            self._document.prepare_end(max(width, MIN_WIDTH), count)

    def strips(self, width: int, start: int, stop: int) -> Sequence[Strip]:
        """Return rows; of a text that is on disk or not read yet, rows that stand for it until it is there."""
        width = max(width, MIN_WIDTH)
        lead = self._lead
        palette = self.scene.palette
        out = [palette.blank(width)] * (max(0, min(lead, stop) - start))
        if self.absent:
            self.scene.want(self)
            note = palette.strip([Run(tr("transcript.loading"), ("muted",))], width)
            first = max(start, lead)
            out += [note if row == first else palette.blank(width) for row in range(first, stop)]
        elif stop > lead:
            out += self._document.strips(width, palette, max(start - lead, 0), stop - lead)
        return out

    def rows(self, width: int) -> Sequence[Strip]:
        """Return all rows, whatever it costs."""
        self.ensure()
        self.prepare(width, 0, 1 << 30)
        return self.strips(width, 0, self.height(width))

    def row_source(self, width: int, row: int) -> tuple[int, Row] | None:
        """Return what a row was made of."""
        if self.absent or row < self._lead or not self.visible:
            return None
        return self._document.row_source(max(width, MIN_WIDTH), row - self._lead)

    @property
    def _lead(self) -> int:
        return 0 if self.first else 1

    # -- text ----------------------------------------------------------------------------------------------

    def plain(self, part: int) -> str:
        """Return the text of one block of the Markdown as it is read."""
        self.ensure()
        return self._document.plain(part)

    def source(self, part: int, begin: int, end: int) -> str:
        """Return what is copied of one block of the Markdown; see ``Block.source``."""
        self.ensure()
        return self._document.source(part, begin, end)

    @property
    def parts(self) -> int:
        """Number of blocks of the Markdown."""
        self.ensure()
        return len(self._document.leaves)

    def separator(self, part: int) -> str:
        """Return what stands between two blocks of the Markdown: an empty line where the source has one."""
        leaves = self._document.leaves
        return "\n\n" if part + 1 >= len(leaves) or leaves[part + 1].gap else "\n"

    def texts(self) -> Texts:
        """Return what a search reads; parsed where it runs."""
        finished = self._document.finished
        source, ticket, spill = self._document.text, self._ticket, self.scene.spill

        def read(maybe: Callable[[str], bool]) -> Sequence[str]:
            try:
                text = source if ticket is None else spill.read(ticket)
            except OSError:
                return ()
            if not maybe(text):
                return ()
            document = _markdown(text, finished=finished)
            return [document.plain(part) for part in range(len(document.leaves))]

        return read

    # -- memory ----------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Keep only the source of a finished answer."""
        self._document.drop()

    @property
    def weight(self) -> int:
        """Characters that could be put away."""
        away = not self._document.finished or self._ticket is not None or self._size <= SMALL
        return 0 if away else self._size

    @property
    def away(self) -> bool:
        """True while the text is on disk."""
        return self._ticket is not None

    def put_away(self, ticket: Ticket) -> None:
        """The text is on disk now: keep only where."""
        self._ticket = ticket
        self._document = _markdown(finished=True)

    def fetch(self) -> str:
        """Return the text, from disk if it is there. Blocking; in any thread."""
        ticket, document = self._ticket, self._document
        if ticket is None:
            return document.text
        try:
            return self.scene.spill.read(ticket)
        except OSError:
            return tr("transcript.lost")

    @property
    def absent(self) -> bool:
        """True while the text is on disk, or is long and not read yet."""
        return self._ticket is not None or not self._document.ready

    def load(self) -> Callable[[], None]:
        """Fetch the text, and read it if it is long."""
        text = self.fetch()
        read = _markdown(text, finished=True)
        if not read.ready:
            read.read(self._width)

        def take() -> None:
            self._bring_back(text)
            self._document.adopt(read)
            self.touch()

        return take

    def _bring_back(self, text: str) -> None:
        if self._ticket is not None:
            self._ticket = None
            self._document = _markdown(text, finished=True)
            self.touch()

    def ensure(self) -> None:
        """Have the text in memory and read, whatever it costs."""
        if self._ticket is not None:
            self._bring_back(self.fetch())
        if not self._document.ready:
            self.load()()


def _markdown(text: str = "", *, finished: bool = False) -> MarkdownDocument:
    # Imported late: it stands on this package's cells, and the first frame does not need it.
    from sandbox_chat.ui.markdown.document import MarkdownDocument

    return MarkdownDocument(text, finished=finished)
