"""Markdown nodes → rows of the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cells import TAB, Run, row_width, wrap
from .code import CodeRows
from .inline import heal, inline_runs
from .table import Table

if TYPE_CHECKING:
    from textual.strip import Strip

    from .markdown import Node
    from .palette import Palette

CodeOf = Callable[["Node"], CodeRows]

_BULLETS = ("•", "◦", "▪")
_TASKS = {"open": "☐", "done": "☑"}
_LEAST = 8
"""Width below which nesting no longer moves text to the right."""


class Renderer:
    """Turns nodes into strips of one width in one palette. ``code_of`` keeps the highlighting of fences."""

    def __init__(
        self,
        width: int,
        palette: Palette,
        *,
        references: Mapping[str, Any] | None = None,
        code_of: CodeOf | None = None,
        open_end: bool = False,
    ) -> None:
        """``open_end``: the last paragraph is still being written, so what it leaves open is closed."""
        self.width = width
        self.palette = palette
        self.references = references
        self.code_of = code_of or _fresh_code
        self.open_end = open_end
        self.out: list[Strip] = []

    def blocks(self, nodes: Sequence[Node], *, first: bool = True) -> list[Strip]:
        """Return the rows of top-level nodes; ``first``: nothing stands before them, so no empty row."""
        for index, node in enumerate(nodes):
            if not (first and index == 0) and not (node.kind == "list" and node.continued):
                self.out.append(self.palette.blank(self.width))
            last = self.open_end and index == len(nodes) - 1
            self._node(node, (), (), last, 0)
        return self.out

    def _emit(self, rows: Sequence[Sequence[Run]], first: tuple[Run, ...], rest: tuple[Run, ...]) -> None:
        for index, row in enumerate(rows):
            prefix = first if index == 0 else rest
            self.out.append(self.palette.strip([*prefix, *row], self.width))

    def _room(self, prefix: tuple[Run, ...]) -> int:
        return max(self.width - row_width(prefix), 2)

    def _inline(self, text: str, names: tuple[str, ...] = ()) -> tuple[Run, ...]:
        return inline_runs(text, names, self.references)

    def _node(
        self, node: Node, first: tuple[Run, ...], rest: tuple[Run, ...], last: bool, depth: int
    ) -> None:
        room = self._room(rest)
        if node.kind == "paragraph":
            text = heal(node.content) if last else node.content
            self._emit(wrap(self._inline(text, _quoted(rest)), room), first, rest)
        elif node.kind == "heading":
            self._emit(
                wrap(self._inline(node.content, (f"heading-{min(node.level, 3)}",)), room), first, rest
            )
        elif node.kind == "fence":
            self._fence(node, first, rest)
        elif node.kind == "list":
            self._list(node, first, rest, last, depth)
        elif node.kind == "quote":
            bar = Run("▎ ", ("quote-bar",))
            self._children(node.children, (*first, bar), (*rest, bar), last, depth)
        elif node.kind == "table":
            self._emit(Table(node.cells, node.aligns, self.references).rows(room), first, rest)
        elif node.kind == "rule":
            self._emit([[Run("─" * room, ("rule",))]], first, rest)
        elif node.kind == "html":
            lines = [Run(node.content.replace("\t", TAB), ("html",))]
            self._emit(wrap(lines, room), first, rest)

    def _fence(self, node: Node, first: tuple[Run, ...], rest: tuple[Run, ...]) -> None:
        code = self.code_of(node)
        code.update(node.content, closed=node.closed)
        strips = code.strips(self.width, self.palette, rest)
        if first == rest or not strips:
            self.out.extend(strips)
            return
        # The first row of a list item that begins with code carries the item's mark instead of blanks.
        cut = row_width(rest)
        head = self.palette.strip(first, cut)
        joined = type(strips[0])([*head, *strips[0].crop(cut, self.width)], self.width)
        self.out.append(joined)
        self.out.extend(strips[1:])

    def _list(
        self, node: Node, first: tuple[Run, ...], rest: tuple[Run, ...], last: bool, depth: int
    ) -> None:
        for index, item in enumerate(node.children):
            # The indent depends on the item alone, so that a list may be drawn in parts.
            size = max(4, len(str(node.number + index)) + 2) if node.ordered else 2
            if item.gap and (index or node.continued):
                self.out.append(self.palette.strip(rest, self.width))
            if item.task:
                mark = f"{_TASKS[item.task]} "
            elif node.ordered:
                mark = f"{node.number + index}. "
            else:
                mark = _BULLETS[min(depth, len(_BULLETS) - 1)] + " "
            head = (*(first if index == 0 else rest), Run(mark.rjust(size), ("bullet",)))
            indent = () if self._room(rest) - size < _LEAST else (Run(" " * size),)
            is_last = last and index == len(node.children) - 1
            self._children(item.children, head, (*rest, *indent), is_last, depth + 1)

    def _children(
        self, children: Sequence[Node], first: tuple[Run, ...], rest: tuple[Run, ...], last: bool, depth: int
    ) -> None:
        if not children:
            self._emit([[]], first, rest)
        for index, child in enumerate(children):
            if index:
                tight = child.kind == "list" or (child.kind == "fence" and depth > 0)
                if not tight:
                    self.out.append(self.palette.strip(rest, self.width))
            self._node(child, first if index == 0 else rest, rest, last and index == len(children) - 1, depth)


def _quoted(prefix: tuple[Run, ...]) -> tuple[str, ...]:
    return ("quote",) if any("quote-bar" in run.names for run in prefix) else ()


def _fresh_code(node: Node) -> CodeRows:
    return CodeRows(node.language)
