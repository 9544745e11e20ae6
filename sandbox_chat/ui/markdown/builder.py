"""The tree that the block parser builds: open containers, the open leaf, and what a line can take back of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import starts
from .definitions import Scan, scan
from .line import Line
from .state import Frame, LeafFields, Mode, Open, Saved
from .tree import Container, Leaf, LeafKind

MAX_EMPTY_CELLS = 0x10000
"""Cells that may be missing in the rows of one table before it ends, as in markdown-it."""

TRIM = " \t\n\v\f\r\xa0\u1680\u202f\u205f\u3000\u2028\u2029" + "".join(map(chr, range(0x2000, 0x200B)))


class TreeBuilder:
    """Leaves and containers, and the ways to add to them."""

    def __init__(self) -> None:
        self._leaves: list[Leaf] = []
        self._references: dict[str, dict[str, Any]] = {}
        self.references_version = 0
        """Grows when a link definition was found or taken back."""
        self._stack: list[Frame] = []
        self._open = Open()
        self._line_number = 0
        self._blank = False  # the line before was blank,
        self._blank_depth = 0  # seen from containers that stand at least this deep
        self._spare: dict[int, Leaf] = {}  # leaves taken back, to be used again
        self._changed = 0
        self._added: list[str] = []  # text that is still to be added to the open leaf
        self._newline = "\n"  # what code's lines end with; nothing while the line is unfinished

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The leaves so far; the last one may be open."""
        return self._leaves

    @property
    def references(self) -> Mapping[str, dict[str, Any]]:
        """Link definitions by their normalised label: ``href`` and ``title``, as markdown-it keeps them."""
        return self._references

    def take_changed(self) -> int:
        """Return the index of the first leaf that may have changed since the last call."""
        changed, self._changed = self._changed, len(self._leaves)
        return min(changed, len(self._leaves))

    # -- containers and leaves ---------------------------------------------------------------------------------

    def _last(self) -> Leaf:
        """Return the open leaf, about to change."""
        self._changed = min(self._changed, len(self._leaves) - 1)
        return self._leaves[-1]

    def _parent(self) -> Container | None:
        return self._stack[-1].container if self._stack else None

    def _push(self, container: Container, *, indent: int = 0) -> None:
        self._fill()
        self._stack.append(Frame(container, indent))

    def _fill(self) -> None:
        """Something begins in the innermost container."""
        if not self._stack:
            return
        frame = self._stack[-1]
        if (
            frame.container.kind == "item"
            and frame.filled
            and self._blank
            and self._blank_depth <= len(self._stack)
        ):
            parent = frame.container.parent
            assert parent is not None
            parent.loose = True
        frame.filled = True

    def _begin(self, kind: LeafKind, mode: Mode) -> Leaf:
        self._fill()
        leaf = self._add(kind)
        self._open = Open(mode)
        return leaf

    def _add(self, kind: LeafKind) -> Leaf:
        leaves, path = self._leaves, tuple(frame.container for frame in self._stack)
        if leaves and leaves[-1].kind == "empty":
            old = leaves[-1].path
            if len(old) <= len(path) and old[-1] is path[len(old) - 1]:
                leaves.pop()
        self._changed = min(self._changed, len(leaves))
        leaf = self._spare.pop(len(leaves), None)
        if leaf is None or leaf.kind != kind or len(leaf.path) != len(path):
            leaf = Leaf(kind)
        else:
            leaf.text, leaf.level, leaf.info, leaf.fenced, leaf.closed, leaf.aligns = (
                "",
                0,
                "",
                False,
                False,
                (),
            )
            leaf.cells.clear()
        leaf.path, leaf.gap, leaf.line = path, self._blank, self._line_number
        leaves.append(leaf)
        return leaf

    def _show_empty(self) -> None:
        """A container without anything in it is shown by an empty leaf."""
        if not self._stack or self._open.mode:
            return
        container, depth = self._stack[-1].container, len(self._stack)
        if container.kind == "list":
            return
        last = self._leaves[-1].path if self._leaves else ()
        if len(last) < depth or last[depth - 1] is not container:
            self._add("empty").closed = True

    def _close(self, depth: int) -> None:
        """Close containers deeper than ``depth``, and the open leaf if it stands in one of them."""
        if depth < len(self._stack):
            self._close_leaf()
            self._show_empty()
            del self._stack[depth:]

    def _close_leaf(self) -> None:
        now = self._open
        if not now.mode:
            return
        self._apply()
        if now.mode == "paragraph":
            self._finish_paragraph()
        if self._open.mode:
            leaf = self._last()
            leaf.closed = True
            self._open = Open()

    def _finish_paragraph(self) -> None:
        while self._open.candidate:
            found = scan(self._open.raw)
            if found.state == "no" or found.end < 0:
                break
            self._define(found)
        if self._open.mode:
            self._last().text = self._open.raw.strip(TRIM)

    # -- lines of an open leaf ---------------------------------------------------------------------------------

    def _text(self, line: Line) -> None:
        """The line is text: of the open paragraph or table, or of a new paragraph."""
        now = self._open
        if now.mode == "paragraph":
            text = line.text[line.next :]
            if now.task and not now.raw and not self._added:
                now.task += "\n"
            self._added.extend(("\n", text) if now.raw or self._added else (text,))
        elif now.mode == "table" and self._row(line.text[line.next :]):
            return
        else:
            self._paragraph(line.text[line.next :])

    def _apply(self) -> None:
        """Add to the open leaf what its lines have brought: not line by line, which would copy it every time."""
        if not self._added:
            return
        text = "".join(self._added)
        self._added.clear()
        leaf = self._last()
        if self._open.mode == "paragraph":
            self._open.raw += text
            leaf.text = self._open.raw.rstrip(TRIM)
        else:
            leaf.text += text

    def _paragraph(self, text: str) -> None:
        self._close_leaf()
        if self._stack and self._stack[-1].container.kind == "list":
            self._stack.pop()
        frame = self._stack[-1] if self._stack else None
        fresh = frame is not None and frame.line == self._line_number
        leaf = self._begin("paragraph", "paragraph")
        task = starts.TASK.match(text) if fresh and text[0] == "[" else None
        if task is not None:
            leaf.path[-1].task = "open" if task.group(1) == " " else "done"
            text = text[task.end() :]
            self._open.task = task.group()
        self._open.raw = text
        self._open.candidate = task is None and text[0] == "["
        leaf.text = text.strip(TRIM)

    def _row(self, text: str) -> bool:
        leaf = self._last()
        cells = starts.table_cells(text.strip(TRIM))
        columns = len(leaf.aligns)
        missing = self._open.missing + columns - len(cells)
        if missing > MAX_EMPTY_CELLS:
            return False
        self._open.missing = missing
        row = [cell.strip(TRIM) for cell in cells[:columns]]
        row.extend([""] * (columns - len(row)))
        leaf.cells.append(tuple(row))
        return True

    def _code(self, line: Line) -> None:
        """A line in a fence."""
        now = self._open
        if line.indent < 4 and not line.blank and line.text[line.next] == now.fence[0]:
            text = line.text[line.next :].rstrip(starts.SPACES)
            if len(text) >= len(now.fence) and text == now.fence[0] * len(text):
                self._close_leaf()
                return
        line.indented(now.offset)
        self._added.extend((line.rest(), self._newline))

    def _html(self, line: Line) -> None:
        text = line.rest()
        self._added.extend(("\n", text) if self._leaves[-1].text or self._added else (text,))
        end = self._open.end
        if end is not None and end.search(text):
            self._close_leaf()

    # -- definitions -------------------------------------------------------------------------------------------

    def _settle(self, line: Line) -> None:
        """Before ``line`` is read: take whole definitions from the start of the open paragraph."""
        self._apply()
        while self._open.candidate:
            found = scan(self._open.raw)
            if found.state == "open" and not self._is_item(line):
                return
            if found.state in ("no", "open"):
                self._open.candidate = False
            elif found.end >= len(self._open.raw) and not found.titled and line.text[line.next] in "\"'(":
                return  # it may be the title
            else:
                self._define(found)

    @staticmethod
    def _is_item(line: Line) -> bool:
        """Tell whether the line looks like a list's item, which no definition goes on with."""
        if line.indent >= 4:
            return False
        text, at = line.text, line.next
        return starts.BULLET.match(text, at) is not None or starts.NUMBER.match(text, at) is not None

    def _defines(self, text: str) -> bool:
        """Tell whether ``text`` is the target that the definition at the open paragraph's start lacks."""
        return (
            self._open.candidate
            and starts.RULE.match(text) is None
            and scan(f"{self._open.raw}\n{text}").state == "whole"
        )

    def _define(self, found: Scan) -> None:
        """Add a definition and take its lines from the open paragraph."""
        if found.label not in self._references:
            self._references[found.label] = {"href": found.href, "title": found.title}
            self.references_version += 1
        rest = self._open.raw[found.end + 1 :]
        if rest:
            self._open.raw = rest
            self._open.candidate = rest[0] == "["
            self._last().text = rest.strip(TRIM)
        else:
            self._leaves.pop()
            self._changed = min(self._changed, len(self._leaves))
            self._open = Open()

    # -- taking back -------------------------------------------------------------------------------------------

    def _save(self) -> Saved:
        self._apply()
        leaf = self._leaves[-1] if self._leaves else None
        fields = _fields(leaf) if leaf is not None else None
        return Saved(
            tuple((frame, frame.filled, frame.count) for frame in self._stack),
            tuple((frame.container.loose, frame.container.task) for frame in self._stack),
            self._open.copy(),
            len(self._leaves),
            leaf,
            fields,
            (self._blank, self._blank_depth),
            self._line_number,
            len(self._references),
        )

    def _restore(self, saved: Saved) -> None:
        self._added.clear()
        self._stack = [frame for frame, _, _ in saved.stack]
        for (frame, filled, count), (loose, task) in zip(saved.stack, saved.containers, strict=True):
            frame.filled, frame.count = filled, count
            frame.container.loose, frame.container.task = loose, task
        self._open = saved.open.copy()
        leaves, leaf = self._leaves, saved.leaf
        start = max(saved.count - 1, 0)
        kept = saved.fields is not None and len(leaves) > start and leaves[start] is leaf
        for index in range(start + kept, len(leaves)):
            self._spare[index] = leaves[index]
        del leaves[start:]
        if leaf is not None and saved.fields is not None:
            kept = kept and _fields(leaf) == saved.fields
            leaf.kind, leaf.text, leaf.level, leaf.closed, leaf.path, cells = saved.fields
            del leaf.cells[cells:]
            leaves.append(leaf)
        self._changed = min(self._changed, start + kept)
        self._blank, self._blank_depth = saved.blank
        self._line_number = saved.line_number
        if len(self._references) > saved.references:
            for label in list(self._references)[saved.references :]:
                del self._references[label]
            self.references_version += 1


def _fields(leaf: Leaf) -> LeafFields:
    return leaf.kind, leaf.text, leaf.level, leaf.closed, leaf.path, len(leaf.cells)
