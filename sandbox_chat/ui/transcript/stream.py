"""Markdown that grows: blocks that are complete are parsed and drawn once, only the open end again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .code import CodeRows
from .markdown import Node, parse
from .render import Renderer

if TYPE_CHECKING:
    from textual.strip import Strip

    from .palette import Palette

_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
_MARKS_ONLY = re.compile(r"[ \t]*(?:[-*_=#>+~`|:]+|\d{1,9}[.)]?)[ \t]*\Z")
_FENCE_MARKS = re.compile(r" {0,3}(?:`+|~+)[ \t]*\Z")


class MarkdownText:
    """A Markdown document that is appended to.

    Blocks before the last one are frozen: what follows cannot change them any more. Items of a list are
    frozen one by one. An open fence at the top level takes new lines without the parser. The outcome
    after ``finish`` does not depend on how the text was cut into pieces.
    """

    def __init__(self, text: str = "", *, finished: bool = False) -> None:
        self._source = text
        self._tail_at = 0  # where the part begins that is parsed again
        self._frozen: list[Node] = []
        self._tail: list[Node] = []
        self._references: dict[str, Any] = {}
        self._parsed = -1  # length of the source that nodes were made from
        self.finished = False
        self._numbers: tuple[bool, str, int] | None = (
            None  # the list that goes on: ordered, mark, next number
        )
        self._codes: dict[int, CodeRows] = {}  # highlighting of the tail's fences, by line
        self._key: tuple[int, int] = (0, 0)
        self._drawn: list[Strip] = []
        self._drawn_nodes = 0
        self._rows: list[Strip] | None = None
        if finished:
            self.finish()

    @property
    def text(self) -> str:
        """The source."""
        return self._source

    def append(self, text: str) -> None:
        """Add ``text`` at the end."""
        self._source += text
        self._rows = None

    def finish(self, text: str | None = None) -> None:
        """No more will come. ``text`` replaces the whole source if it differs from what was appended."""
        if text is not None and text != self._source:
            self._restart(text)
        self.finished = True
        self._parsed = -1
        self._rows = None

    def _restart(self, text: str) -> None:
        self._source = text
        self._tail_at = 0
        self._frozen, self._tail = [], []
        self._numbers = None
        self._codes = {}
        self._drawn, self._drawn_nodes = [], 0

    def rows(self, width: int, palette: Palette) -> list[Strip]:
        """Return all rows at ``width``. Cached until the text, the width or the palette changes."""
        key = (width, palette.version)
        if self._rows is not None and key == self._key:
            return self._rows
        self._parse()
        if key != self._key:
            self._key, self._drawn, self._drawn_nodes = key, [], 0
        if self._drawn_nodes < len(self._frozen):
            renderer = Renderer(width, palette, references=self._references)
            fresh = self._frozen[self._drawn_nodes :]
            self._drawn.extend(renderer.blocks(fresh, first=self._drawn_nodes == 0))
            self._drawn_nodes = len(self._frozen)
        renderer = Renderer(
            width,
            palette,
            references=self._references,
            code_of=None if self.finished else self._code_of,
            open_end=not self.finished,
        )
        tail = renderer.blocks(self._tail, first=not self._frozen)
        self._rows = [*self._drawn, *tail]
        return self._rows

    def _code_of(self, node: Node) -> CodeRows:
        code = self._codes.get(node.start)
        if code is None or code.language != node.language:
            code = self._codes[node.start] = CodeRows(node.language)
        return code

    # -- parsing ---------------------------------------------------------------------------------------

    def _parse(self) -> None:
        if self._parsed == len(self._source):
            return
        self._parsed = len(self._source)
        if self.finished and _DEFINITION.search(self._source):
            # A link may be defined after its use: only the whole text tells.
            self._restart(self._source)
            self._tail, self._references = parse(self._source)
            return
        if not self.finished and self._grow_fence():
            return
        text = self._source[self._tail_at :]
        nodes, references = parse(text if self.finished else _hold_back(text))
        self._references.update(references)
        self._join_list(nodes)
        self._freeze(nodes, text)

    def _grow_fence(self) -> bool:
        """If the tail is one open fence, take the new lines straight into it."""
        if len(self._tail) != 1:
            return False
        node = self._tail[0]
        if node.kind != "fence" or node.closed:
            return False
        text = self._source[self._tail_at :]
        opening, newline, body = text.partition("\n")
        marks = re.match(r" {0,3}(`{3,}|~{3,})", opening)
        if marks is None or not newline or opening[0] == " ":
            return False
        info = opening[marks.end() :].split()
        if (info[0] if info else "") != node.language:
            return False  # the language was still being written
        mark = re.escape(marks.group(1)[0]) + "{" + str(len(marks.group(1))) + ",}"
        new = body[max(body.rfind("\n", 0, len(node.content)), 0) :]
        if re.search(rf"(?:^|\n) {{0,3}}{mark}", new):
            return False
        last = body.rfind("\n") + 1
        node.content = body[:last] if _FENCE_MARKS.match(body, last) else body
        return True

    def _join_list(self, nodes: list[Node]) -> None:
        """A list whose first items are frozen goes on with its number."""
        if self._numbers is None or not nodes or nodes[0].kind != "list":
            return
        ordered, mark, number = self._numbers
        node = nodes[0]
        if node.ordered == ordered and node.mark == mark:
            node.continued = True
            node.number = number
            source = self._source[: self._tail_at]
            lines = source[:-1].rpartition("\n")[2]
            node.children[0].gap = not lines.strip()

    def _freeze(self, nodes: list[Node], text: str) -> None:
        """Freeze all blocks that a complete line after them has closed."""
        if self.finished:
            self._tail = nodes
            return
        complete = text.count("\n")
        count = 0
        while count + 1 < len(nodes) and nodes[count + 1].start < complete:
            count += 1
        last = nodes[count] if count < len(nodes) else None
        frozen = nodes[:count]
        cut = last.start if last is not None and count else 0
        if last is not None and last.kind == "list":
            items = last.children
            closed = 0
            while closed + 1 < len(items) and items[closed + 1].start < complete:
                closed += 1
            if closed:
                head = Node(
                    "list", last.start, items[closed].start, ordered=last.ordered, number=last.number,
                    mark=last.mark, continued=last.continued, children=items[:closed],
                )  # fmt: skip
                frozen = [*frozen, head]
                self._numbers = (last.ordered, last.mark, last.number + closed)
                cut = items[closed].start
                last.children = items[closed:]
                last.number += closed
                last.continued = True
            elif count:
                self._numbers = None
        elif count:
            self._numbers = None
        if not frozen:
            self._tail = nodes
            return
        self._frozen.extend(frozen)
        self._tail = nodes[count:]
        self._tail_at += _offset(text, cut)
        for node in self._tail:
            _shift(node, -cut)
        self._codes = {}


def _offset(text: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def _shift(node: Node, lines: int) -> None:
    node.start += lines
    node.end += lines
    for child in node.children:
        _shift(child, lines)


def _hold_back(text: str) -> str:
    """Return ``text`` without a last line that holds only marks: what they mean is not known yet."""
    head, _, last = text.rpartition("\n")
    if last and _MARKS_ONLY.match(last):
        return head
    return text
