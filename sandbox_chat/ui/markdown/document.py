"""A Markdown document in rows: parsed as it grows, measured and drawn only where somebody looks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox_chat.ui.transcript.cells import Row, Run
from sandbox_chat.ui.transcript.heights import Heights

from .guesses import estimate, guess, may_link
from .margin import Margin, margin, rows_between, shared
from .parser import BlockParser
from .tree import Leaf, LeafKind

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.ui.transcript.palette import Palette

    from .leaves import LeafRows

KEPT_LEAVES = 300
"""Leaves that keep their rows; of those drawn longest ago they are made again when they are asked for."""

KEPT_STRIPS = 600
"""Strips that one leaf keeps, around what was drawn last."""

LARGE = 12_000
"""Characters of a text, or of one leaf of it, that take so long that they are read and laid out in a thread."""

READ_ENDS = 100
"""Rows at both ends of a document that ``read`` lays out."""


@dataclass(slots=True, eq=False)
class _Piece:
    """A leaf and what is known of its rows at the document's width."""

    leaf: Leaf
    kind: LeafKind
    common: int
    """Containers that it shares with the leaf before."""
    above: int
    """Empty rows above it."""
    rows: LeafRows | None = None
    margin: Margin | None = None
    exact: bool = False
    size: int = 0
    """Rows of the leaf without those above it, when ``exact``."""
    strips: dict[int, Strip] | None = None
    """By row of the leaf."""
    gap: Strip | None = None
    version: int = 0
    """Palette of the strips."""


class MarkdownDocument:
    """Markdown that may grow, as rows of the screen.

    Heights are exact for what was measured at the present width and estimates for the rest; ``prepare`` and
    ``prepare_end`` measure. The cost of adding text depends on what is added, not on what is there. A finished
    document is parsed when its rows are asked for.
    """

    def __init__(self, text: str = "", *, finished: bool = False) -> None:
        self._source = [text] if text else []
        self._size = len(text)
        self._waiting: list[str] = []  # what the parser has not seen
        self.finished = finished
        self._parser: BlockParser | None = None
        self._references = 0  # version of the link definitions that rows were made with
        self._pieces: list[_Piece] = []
        self._heights = Heights()
        self._recent: OrderedDict[_Piece, None] = OrderedDict()  # pieces that have rows, the latest last
        self._drawn_last: list[_Piece] = []
        self._width = 0
        self._known: tuple[int, int] | None = None  # width and height while nothing is parsed
        self._ahead: MarkdownDocument | None = None  # the same, read elsewhere, until rows are asked for

    @property
    def text(self) -> str:
        """The source."""
        if len(self._source) > 1:
            self._source = ["".join(self._source)]
        return self._source[0] if self._source else ""

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The blocks that are shown, in their order."""
        parser = self._take()
        return parser.leaves[: len(self._pieces)]

    @property
    def pending(self) -> bool:
        """True while code among the rows drawn last waits for its final colours: draw them again a moment later."""
        return any(
            piece.kind == "code" and getattr(piece.rows, "pending", False) for piece in self._drawn_last
        )

    @property
    def ready(self) -> bool:
        """False while rows cannot be had without reading a long text."""
        return self._parser is not None or self._ahead is not None or not self.finished or self._size <= LARGE

    def read(self, width: int) -> None:
        """Parse, and lay out what takes long. For a thread, while nobody else has the document; then ``adopt`` it."""
        self._at(width)
        for index, piece in enumerate(self._pieces):
            if len(piece.leaf.text) > LARGE or len(piece.leaf.cells) * len(piece.leaf.aligns) > LARGE // 20:
                self._measure(index)
        self.prepare(width, 0, READ_ENDS)
        self.prepare_end(width, READ_ENDS)

    def adopt(self, other: MarkdownDocument) -> None:
        """Take over what ``other``, a finished document of the same text, has read."""
        if not self.ready:
            self._ahead = other

    def append(self, text: str) -> None:
        """Add ``text`` at the end."""
        self._source.append(text)
        self._size += len(text)
        if self._parser is None:
            self._known = None
        else:
            self._waiting.append(text)

    def finish(self, text: str | None = None) -> None:
        """No more will come. ``text`` replaces the whole source if it differs from what was appended."""
        if text is not None and text != self.text:
            self._source, self._size = [text], len(text)
            self._forget()
            self._known = None
        self.finished = True

    def drop_rows(self) -> None:
        """Forget rows and strips. Heights stay known; what is asked for is made again."""
        self._trim(0)

    def drop(self) -> None:
        """Keep only the source of a finished document; it is parsed again when rows are asked for."""
        if not self.finished:
            self.drop_rows()
            return
        self._ahead = None
        if self._parser is not None:
            self._take()
            self._known = (self._width, self._heights.total)
            self._forget()

    # -- rows ----------------------------------------------------------------------------------------------

    def height(self, width: int) -> int:
        """Return the number of rows at ``width``: exact for what was measured, an estimate for the rest."""
        if self._parser is None and self.finished:
            if self._known is None or self._known[0] != width:
                self._known = (width, guess(self.text, width))
            return self._known[1]
        self._at(width)
        return self._heights.total

    def prepare(self, width: int, row: int, count: int) -> int:
        """Make ``count`` rows exact, from the content that stands at ``row`` now. Returns the row at which it stands then.

        Content whose height was an estimate keeps its distance to the end of its block.
        """
        before = self.height(width)
        self._at(width)
        if not self._pieces:
            return 0
        if row and before != self._heights.total:
            row += self._heights.total - before  # nothing was parsed until now
        index, inner = self._heights.find(row)
        old = self._heights[index]
        size = self._measure(index)
        if size != old:
            inner = max(0, size - (old - inner))
        left = count - (size - inner)
        below = index + 1
        while left > 0 and below < len(self._pieces):
            left -= self._measure(below)
            below += 1
        return self._heights.offset(index) + inner

    def prepare_end(self, width: int, count: int) -> None:
        """Make the last ``count`` rows exact."""
        self._at(width)
        index = len(self._pieces) - 1
        while index >= 0 and count > 0:
            count -= self._measure(index)
            index -= 1

    def strips(self, width: int, palette: Palette, start: int, stop: int) -> Sequence[Strip]:
        """Return the rows from ``start`` to ``stop``, each ``width`` cells wide. A row that did not change is the same object."""
        self._at(width)
        out: list[Strip] = []
        self._drawn_last = []
        if not self._pieces or start >= self._heights.total:
            return out
        index, inner = self._heights.find(start)
        while len(out) < stop - start and index < len(self._pieces):
            last = min(self._measure(index), inner + stop - start - len(out))
            if inner < last:
                self._drawn_last.append(self._pieces[index])
                out.extend(self._drawn(self._pieces[index], palette, inner, last))
            index += 1
            inner = 0
        return out

    def row_source(self, width: int, row: int) -> tuple[int, Row]:
        """Return the block that a row belongs to, and its runs. The empty rows above a block are its own."""
        self._at(width)
        if not self._pieces:
            return 0, ()
        index, inner = self._heights.find(row)
        self._measure(index)
        piece = self._pieces[index]
        inner -= piece.above
        if inner < 0:
            return index, self._gap(piece)
        rows = self._body(piece)
        if inner >= len(rows):
            return index, ()
        return index, [*self._before(piece, inner), *rows[inner]]

    def plain(self, index: int) -> str:
        """Return the text of a block as it is read, which the runs' ``at`` count in."""
        self._take()
        return self._rows(self._pieces[index]).plain if index < len(self._pieces) else ""

    def source(self, index: int, begin: int, end: int) -> str:
        """Return what is copied of a block from ``begin`` to ``end`` of its ``plain``: code has its tabs again."""
        from .leaves import CodeLeafRows

        self._take()
        if index >= len(self._pieces):
            return ""
        rows = self._rows(self._pieces[index])
        return rows.source(begin, end) if isinstance(rows, CodeLeafRows) else rows.plain[begin:end]

    # -- measuring -----------------------------------------------------------------------------------------

    def _measure(self, index: int) -> int:
        """Make the height of a block exact. Returns it, with the empty rows above."""
        piece = self._pieces[index]
        if not piece.exact:
            self._body(piece)
            piece.exact = True
            self._heights.set(index, piece.above + piece.size if piece.size else 0)
        return self._heights[index]

    def _body(self, piece: _Piece) -> Sequence[Row]:
        """Return the rows of a leaf, and let go of the strips of those that changed."""
        leaf_rows = self._rows(piece)
        rows = leaf_rows.rows(self._margin(piece).room)
        size = len(rows)
        if piece.strips:
            for row in range(min(leaf_rows.stable, size), max(piece.size, size)):
                piece.strips.pop(row, None)
        piece.size = size
        return rows

    def _rows(self, piece: _Piece) -> LeafRows:
        if piece.rows is None:
            assert self._parser is not None
            piece.rows = _make(piece.leaf, self._parser.references)
            piece.strips = None
            self._recent[piece] = None
            if len(self._recent) > KEPT_LEAVES:
                self._trim(KEPT_LEAVES)
        return piece.rows

    def _trim(self, count: int) -> None:
        """Let all leaves but the ``count`` latest forget their rows. Their heights stay known."""
        while len(self._recent) > count:
            piece, _ = self._recent.popitem(last=False)
            piece.rows = piece.margin = piece.strips = piece.gap = None

    def _margin(self, piece: _Piece) -> Margin:
        if piece.margin is None:
            piece.margin = margin(piece.leaf.path, piece.common, self._width)
        return piece.margin

    def _before(self, piece: _Piece, row: int) -> tuple[Run, ...]:
        found = self._margin(piece)
        return found.rest if row else found.first

    def _gap(self, piece: _Piece) -> tuple[Run, ...]:
        """Return the runs of an empty row above a leaf: the margin of what goes on."""
        return margin(piece.leaf.path[: piece.common], piece.common, self._width).rest

    def _drawn(self, piece: _Piece, palette: Palette, start: int, stop: int) -> Sequence[Strip]:
        """Return strips of a leaf, counted with the empty rows above it."""
        if piece.version != palette.version:
            piece.version, piece.strips, piece.gap = palette.version, None, None
        out: list[Strip] = []
        if start < piece.above:
            if piece.gap is None:
                runs = self._gap(piece)
                piece.gap = palette.strip(runs, self._width) if runs else palette.blank(self._width)
            out.extend([piece.gap] * (min(stop, piece.above) - start))
        first, last = max(start - piece.above, 0), stop - piece.above
        if last <= 0:
            return out
        rows = self._body(piece)
        self._recent.move_to_end(piece)
        if piece.strips is None:
            piece.strips = {}
        elif len(piece.strips) > KEPT_STRIPS:
            piece.strips = {row: strip for row, strip in piece.strips.items() if first <= row < last}
        strips = piece.strips
        fill = self._rows(piece).fill
        for number in range(first, last):
            strip = strips.get(number)
            if strip is None:
                runs = (*self._before(piece, number), *rows[number])
                strip = strips[number] = palette.strip(runs, self._width, fill)
            out.append(strip)
        return out

    # -- keeping up ----------------------------------------------------------------------------------------

    def _at(self, width: int) -> None:
        """Take in what came, and turn to ``width``."""
        self._take()
        if width == self._width:
            return
        self._width = width
        for piece in self._pieces:
            piece.margin = piece.gap = None
            piece.exact = False
            piece.strips = None
        self._heights = Heights([piece.above + estimate(piece.leaf, width) for piece in self._pieces])

    def _take(self) -> BlockParser:
        """Parse what came since."""
        if self._ahead is not None:
            other, self._ahead = self._ahead, None
            self._parser, self._references = other._parser, other._references
            self._pieces, self._heights, self._recent = other._pieces, other._heights, other._recent
            self._width, self._waiting = other._width, []
        parser = self._parser
        if parser is None:
            parser = self._parser = BlockParser()
            parser.feed(self.text)
            self._waiting = []
        elif self._waiting:
            parser.feed("".join(self._waiting))
            self._waiting = []
        elif self.finished == parser.finished:
            return parser
        if self.finished and not parser.finished:
            parser.finish()
        self._follow(parser)
        return parser

    def _follow(self, parser: BlockParser) -> None:
        """Bring the pieces to the parser's leaves."""
        leaves, shown = parser.leaves, parser.shown
        start = min(parser.take_changed(), len(self._pieces), shown)
        if parser.references_version != self._references:
            self._references = parser.references_version
            self._forget_links(start)
        for index in range(start, shown):
            self._set(index, leaves)
        while len(self._pieces) > shown:
            self._recent.pop(self._pieces.pop(), None)
            self._heights.pop()

    def _set(self, index: int, leaves: Sequence[Leaf]) -> None:
        """Take over a leaf that is new or changed."""
        leaf = leaves[index]
        common = above = 0
        if index:
            before = leaves[index - 1]
            common = shared(before.path, leaf.path)
            above = rows_between(before, leaf, common)
        old = self._pieces[index] if index < len(self._pieces) else None
        if old is None or old.leaf is not leaf or old.kind != leaf.kind:
            if old is not None:
                self._recent.pop(old, None)
            piece = _Piece(leaf, leaf.kind, common, above)
            height = above + estimate(leaf, self._width)
            if old is None:
                self._pieces.append(piece)
                self._heights.append(height)
            else:
                self._pieces[index] = piece
                self._heights.set(index, height)
            return
        old.common, old.above = common, above
        if old.margin is not None:
            fresh = margin(leaf.path, common, self._width)
            if fresh != old.margin:
                old.margin, old.strips, old.gap = fresh, None, None
        if old.rows is not None:
            old.rows.update(leaf)
        if old.exact:
            old.exact = False
            self._measure(index)
        else:
            self._heights.set(index, above + estimate(leaf, self._width))

    def _forget_links(self, stop: int) -> None:
        """A link definition came: what may use it, before ``stop``, is read again when it is looked at."""
        for piece in self._pieces[:stop]:
            if piece.rows is not None and may_link(piece.leaf):
                del self._recent[piece]
                piece.rows = None
                piece.exact = False

    def _forget(self) -> None:
        self._parser = self._ahead = None
        self._references = 0
        self._pieces = []
        self._recent.clear()
        self._drawn_last = []
        self._heights = Heights()
        self._waiting = []


def _make(leaf: Leaf, references: Mapping[str, Any]) -> LeafRows:
    from .leaves import leaf_rows

    return leaf_rows(leaf, references)
