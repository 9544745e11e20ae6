"""One line of Markdown: which open blocks it goes on with, and which it begins."""

from __future__ import annotations

import re

from . import starts
from .builder import TRIM, TreeBuilder
from .line import Line
from .state import Frame, Open
from .tree import Align, Container

MAX_DEPTH = 60
"""Containers in each other; a list and its item are two."""


class LineReader(TreeBuilder):
    """Reads lines into the tree."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead: str | None = (
            None  # the line after the one that is read, when it may make it a table's head
        )

    def _read(self, text: str) -> None:
        """Read one line in the present state."""
        line = Line(text)
        depth, quoted = self._match(line, len(self._stack))
        line.look()
        whole = depth == len(self._stack)
        if whole and self._goes_on(line, quoted):
            return
        if self._open.candidate and not line.blank:
            self._settle(line)
        lazy = not whole and self._open.mode == "paragraph"
        started = self._starts(line, depth, lazy)
        if started is None:
            self._blank = False
        elif line.blank:
            if not started:
                if whole and self._stack and self._stack[-1].container.kind == "list":
                    self._stack.pop()  # markdown-it: two blank lines after an empty item end the list
                self._close(depth)
            self._blank, self._blank_depth = not started, quoted
        else:
            if not started and not lazy:
                self._close(depth)
            self._text(line)
            self._blank = False
        self._show_empty()

    def _match(self, line: Line, most: int) -> tuple[int, int]:
        """Move over the marks of the open containers. Returns how many go on, and how deep the last ``>`` stands."""
        depth = quoted = 0
        for frame in self._stack[:most]:
            kind = frame.container.kind
            if kind != "list":
                line.look()
                if kind == "quote":
                    if line.blank or line.text[line.next] != ">":
                        break
                    line.quote()
                    quoted = depth + 1
                elif line.blank:
                    if not frame.filled:
                        break
                    line.indented(frame.indent)
                elif line.indent >= frame.indent:
                    line.indented(frame.indent)
                else:
                    break
            depth += 1
        return depth, quoted

    def _goes_on(self, line: Line, quoted: int) -> bool:
        """Give the line to the open leaf, if it takes it whatever it says. Otherwise close what it ends."""
        now = self._open
        if now.mode == "fence":
            self._code(line)
        elif now.mode == "html" and not (line.blank and now.end is None):
            self._html(line)
        elif now.mode == "indented" and (line.blank or line.indent >= 4):
            line.indented(4)
            if line.blank:
                now.blanks.append(line.rest() + "\n")
                self._blank, self._blank_depth = True, quoted
                return True
            self._added.extend((*now.blanks, line.rest(), self._newline))
            now.blanks.clear()
        else:
            if now.mode in ("html", "indented") or line.blank:
                self._close_leaf()
            return False
        self._blank, self._blank_depth = line.blank, quoted
        return True

    # -- beginnings --------------------------------------------------------------------------------------------

    def _starts(self, line: Line, depth: int, lazy: bool) -> bool | None:
        """Open all blocks that begin on this line. ``None``: one of them has taken the line whole."""
        started = False
        # markdown-it measures the indent of a line that an open item does not reach from the item's text on, and
        # that of one that two quotes do not reach not at all.
        missed = [frame.container.kind for frame in self._stack[depth:]] if lazy else []
        outdented = missed[:1] == ["item"]
        deep = missed.count("quote") > 1
        while True:
            line.look()
            if line.blank:
                return started
            paragraph = self._open.mode == "paragraph"
            if line.indent >= 4:
                text = line.text[line.next :]
                if paragraph and not ((outdented or deep) and starts.interrupts(text, items=deep)):
                    return started
                self._prepare(depth, started)
                line.indented(4)
                self._begin("code", "indented").text = line.rest() + self._newline
                return None
            if self._ahead is not None:
                if outdented and not started and self._head(line, len(self._stack)) is not None:
                    self._close(depth)
                    lazy = outdented = False
                    continue
                if (not lazy or starts.interrupts(line.text[line.next :])) and self._table(
                    line, depth, started
                ):
                    return None
            char = line.text[line.next]
            if char not in starts.STARTS:
                return started
            found = self._container(line, char, depth, started) if len(self._stack) < MAX_DEPTH else False
            if found:
                started, lazy = True, False
                continue
            if self._leaf(line, char, depth, started, lazy):
                return None
            if len(self._stack) < MAX_DEPTH and self._item(line, char, depth, started):
                started, lazy = True, False
                continue
            return started

    def _prepare(self, depth: int, started: bool, *, item: bool = False) -> None:
        """A block begins: close what does not hold it."""
        if not started:
            self._close(depth)
        self._close_leaf()
        if not item and self._stack and self._stack[-1].container.kind == "list":
            self._stack.pop()

    def _container(self, line: Line, char: str, depth: int, started: bool) -> bool:
        if char == ">":
            self._prepare(depth, started)
            self._push(Container("quote", self._parent()))
            line.quote()
            return True
        if char == "[":
            match = starts.FOOTNOTE.match(line.text, line.next)
            if match is not None:
                self._prepare(depth, started)
                self._push(Container("footnote", self._parent(), label=match.group(1)), indent=4)
                line.go()
                line.skip(match.end() - line.next)
                return True
        return False

    def _leaf(self, line: Line, char: str, depth: int, started: bool, lazy: bool) -> bool:
        """Open a leaf that its first line names: heading, fence, HTML, rule; or make a heading of a paragraph."""
        text = line.text[line.next :] if line.next else line.text
        paragraph = self._open.mode == "paragraph" and not started
        if char == "#":
            return self._heading(text, depth, started)
        if char in "`~":
            return self._fence(line, text, depth, started)
        if char == "<":
            inside = paragraph or (self._open.mode == "table" and not started)
            html = starts.html_start(text, interrupting=inside)
            if html is None:
                return False
            self._prepare(depth, started)
            self._begin("html", "html")
            self._open.html, self._open.end = html
            self._html(line)
            return True
        if char in "=-" and paragraph and not lazy and starts.SETEXT.match(text) and not self._defines(text):
            self._underline(1 if char == "=" else 2)
            return True
        if char in "*-_" and line.is_rule(char):
            self._prepare(depth, started)
            self._begin("rule", "")
            self._close_leaf()
            return True
        return False

    def _heading(self, text: str, depth: int, started: bool) -> bool:
        match = starts.HEADING.match(text)
        if match is None:
            return False
        self._prepare(depth, started)
        leaf = self._begin("heading", "")
        leaf.level = len(match.group(1))
        leaf.text = starts.heading_text(text[match.end() :]).strip(TRIM)
        self._close_leaf()
        return True

    def _fence(self, line: Line, text: str, depth: int, started: bool) -> bool:
        match = starts.FENCE.match(text)
        if match is None:
            return False
        self._prepare(depth, started)
        leaf = self._begin("code", "fence")
        leaf.fenced, leaf.info = True, text[match.end() :]
        self._open.fence, self._open.offset = match.group(), line.indent
        return True

    def _underline(self, level: int) -> None:
        """The open paragraph is a heading."""
        self._apply()
        now, leaf = self._open, self._last()
        if now.task:
            leaf.path[-1].task = ""
        leaf.kind, leaf.level = "heading", level
        leaf.text = (now.task + now.raw).strip(TRIM)
        leaf.closed = True
        self._open = Open()

    def _item(self, line: Line, char: str, depth: int, started: bool) -> bool:
        """Open a list's item, and the list if it is its first."""
        match = (starts.NUMBER if char.isdigit() else starts.BULLET).match(line.text, line.next)
        if match is None:
            return False
        ordered = char.isdigit()
        number = int(match.group(1)) if ordered else 1
        delimiter = match.group(2) if ordered else char
        interrupts = self._open.mode == "paragraph" and not started and depth == len(self._stack)
        if interrupts and (number != 1 or not line.text[match.end() :].strip(starts.SPACES)):
            return False
        self._prepare(depth, started, item=True)
        kept = bool(self._stack) and self._stack[-1].container.kind == "list"
        if kept and self._marker(line, self._stack[-1]) is None:
            self._stack.pop()
            kept = False
        if not kept:
            self._push(Container("list", self._parent(), ordered=ordered, start=number, delimiter=delimiter))
        elif self._blank and self._blank_depth <= len(self._stack):
            self._stack[-1].container.loose = True
        home = self._stack[-1]
        before = line.indent
        line.go()
        line.skip(match.end() - line.next)
        line.look()
        size = match.end() - match.start()
        wide = 1 <= line.indent <= 4 and not line.blank
        padding = size + (line.indent if wide else 1)
        line.indented(padding - size)
        self._push(
            Container("item", home.container, ordered=ordered, start=home.container.start + home.count, delimiter=delimiter),
            indent=before + padding,
        )  # fmt: skip
        self._stack[-1].line = self._line_number
        home.count += 1
        return True

    @staticmethod
    def _marker(line: Line, home: Frame) -> re.Match[str] | None:
        """Return the mark of an item of the list ``home``."""
        found = (starts.NUMBER if home.container.ordered else starts.BULLET).match(line.text, line.next)
        return found if found is not None and found.group()[-1] == home.container.delimiter else None

    def _table(self, line: Line, depth: int, started: bool) -> bool:
        """Open a table, if this line and the one ahead are its first two."""
        frame = self._stack[depth - 1] if depth and not started else None
        if frame is not None and frame.container.kind == "list" and self._marker(line, frame) is not None:
            return False  # an item of the open list
        found = self._head(line, len(self._stack) if started else depth)
        if found is None or self._open.mode == "table":
            return False
        self._prepare(depth, started)
        leaf = self._begin("table", "table")
        leaf.aligns = found[0]
        leaf.cells.append(found[1])
        self._ahead = None
        return True

    def _head(self, line: Line, depth: int) -> tuple[tuple[Align, ...], tuple[str, ...]] | None:
        """Return alignments and head cells, if ``line`` and the one ahead begin a table in ``depth`` containers."""
        assert self._ahead is not None
        following = Line(self._ahead)
        if self._match(following, depth)[0] != depth:
            return None
        following.look()
        head = line.text[line.next :].strip(TRIM)
        if following.blank or following.indent >= 4 or "|" not in head:
            return None
        aligns = starts.alignments(following.text[following.next :])
        cells = starts.table_cells(head)
        if aligns is None or not cells or len(cells) != len(aligns):
            return None
        return aligns, tuple(cell.strip(TRIM) for cell in cells)
