"""The rows of leaves: one renderer for each kind, which keeps what cannot change when the leaf grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sandbox_chat.text import clean
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.cells import MIN_WIDTH, TAB, Row, Run
from sandbox_chat.ui.transcript.wrap import Wrapped

from .code import CodeLayout, CodeRows
from .inline import GrowingInline
from .table import TableRows
from .tree import Leaf


class LeafRows(Protocol):
    """A leaf as rows of the screen."""

    stable: int
    """How many leading rows of the last ``rows`` are the same as at the call before, at the same width."""
    fill: tuple[str, ...]
    """Styles of the rest of each row."""

    @property
    def plain(self) -> str:
        """What is copied; the runs' ``at`` count in it."""
        ...

    def update(self, leaf: Leaf) -> None:
        """Take the leaf as it is now. Cheap when it only grew."""
        ...

    def rows(self, width: int) -> Sequence[Row]:
        """Return rows of at most ``width`` cells. Valid until the leaf is updated or another width is asked for."""
        ...


def leaf_rows(leaf: Leaf, references: Mapping[str, Any] | None = None) -> LeafRows:
    """Return the rows of a leaf of any kind. ``references`` are the link definitions of the document."""
    if leaf.kind in ("paragraph", "heading"):
        return TextRows(leaf, references)
    if leaf.kind == "code":
        return CodeLeafRows(leaf)
    if leaf.kind == "table":
        return TableRows(leaf, references)
    if leaf.kind == "html":
        return HtmlRows(leaf)
    return RuleRows(leaf)


class TextRows:
    """A paragraph or a heading."""

    fill: tuple[str, ...] = ()

    def __init__(self, leaf: Leaf, references: Mapping[str, Any] | None = None) -> None:
        self.stable = 0
        self._references = references
        self._names = _names(leaf)
        self._inline = GrowingInline(self._names, references)
        self._same = 0  # characters of the plain text that did not change since the last layout
        self._wrapped: Wrapped | None = None
        self._fresh = True
        self.update(leaf)

    @property
    def plain(self) -> str:
        """The text as read: without marks, links by their text."""
        return self._inline.plain

    def update(self, leaf: Leaf) -> None:
        """Take the leaf as it is now."""
        names = _names(leaf)
        if names != self._names:
            self._names = names
            self._inline = GrowingInline(names, self._references)
            self._same = 0
        self._same = min(self._same, self._inline.update(leaf.text, closed=leaf.closed))
        self._fresh = True

    def rows(self, width: int) -> Sequence[Row]:
        """Return the rows of at most ``width`` cells."""
        wrapped = self._wrapped
        if wrapped is None or wrapped.width != width:
            wrapped = self._wrapped = Wrapped(width)
            wrapped.update(self._inline.runs)
            self.stable = 0
        elif self._fresh:
            self.stable = wrapped.update(self._inline.runs, self._same)
        else:
            self.stable = len(wrapped.rows)
        self._fresh = False
        self._same = len(self._inline)
        return wrapped.rows


def _names(leaf: Leaf) -> tuple[str, ...]:
    if leaf.kind == "heading":
        return (f"heading-{min(leaf.level, 3)}",)
    return ("quote",) if any(container.kind == "quote" for container in leaf.path) else ()


class CodeLeafRows:
    """Code, with a margin, on a ground of its own."""

    fill: tuple[str, ...] = ("block",)

    def __init__(self, leaf: Leaf) -> None:
        self.stable = 0
        self._code = CodeRows(leaf.language)
        self._layout: CodeLayout | None = None
        self.update(leaf)

    @property
    def plain(self) -> str:
        """The code."""
        return self._code.text

    def source(self, begin: int, end: int) -> str:
        """Return the code from ``begin`` to ``end`` of ``plain``, with its tabs."""
        return self._code.source(begin, end)

    @property
    def pending(self) -> bool:
        """The final colours are still being made; ``rows`` has them when they are there."""
        return self._code.pending

    def settle(self) -> None:
        """Wait for the final colours."""
        self._code.settle()

    def update(self, leaf: Leaf) -> None:
        """Take the leaf as it is now."""
        if leaf.language != self._code.language:
            self._code = CodeRows(leaf.language)
            self._layout = None
        self._code.update(leaf.text, closed=leaf.closed)

    def rows(self, width: int) -> Sequence[Row]:
        """Return the rows of at most ``width`` cells; each is made when it is taken."""
        changed = self._code.take_changed()
        layout = self._layout
        if layout is None or layout.width != width:
            layout = self._layout = CodeLayout(self._code, width, block=True)
            layout.update(0)
            self.stable = 0
        else:
            self.stable = layout.update(changed)
        return layout


class HtmlRows:
    """HTML, to the letter."""

    fill: tuple[str, ...] = ()

    def __init__(self, leaf: Leaf) -> None:
        self.stable = 0
        self._source = ""
        self._done = 0  # characters of complete lines in it
        self._runs: list[Run] = []  # those of complete lines first
        self._count = 0  # runs of complete lines
        self._same = 0
        self._fresh = True
        self._wrapped: Wrapped | None = None
        self.update(leaf)

    @property
    def plain(self) -> str:
        """The HTML."""
        return "".join([run.text for run in self._runs])

    def update(self, leaf: Leaf) -> None:
        """Take the leaf as it is now."""
        text = leaf.text
        if text == self._source:
            return
        if not text.startswith(self._source):
            self._done, self._count = 0, 0
        del self._runs[self._count :]
        self._same = min(self._same, self._size())
        done = text.rfind("\n") + 1
        if done > self._done:
            self._put(text[self._done : done])
            self._done, self._count = done, len(self._runs)
        self._put(text[done:])
        self._source = text
        self._fresh = True

    def _put(self, text: str) -> None:
        if text:
            self._runs.append(Run(clean(text).replace("\t", TAB), ("html",), "", self._size()))

    def _size(self) -> int:
        return self._runs[-1].at + len(self._runs[-1].text) if self._runs else 0

    def rows(self, width: int) -> Sequence[Row]:
        """Return the rows of at most ``width`` cells."""
        wrapped = self._wrapped
        if wrapped is None or wrapped.width != width:
            wrapped = self._wrapped = Wrapped(width)
            wrapped.update(self._runs)
            self.stable = 0
        else:
            self.stable = wrapped.update(self._runs, self._same) if self._fresh else len(wrapped.rows)
        self._fresh = False
        self._same = self._size()
        return wrapped.rows


class RuleRows:
    """A rule, or nothing: an item or quote without anything in it."""

    fill: tuple[str, ...] = ()
    plain = ""

    def __init__(self, leaf: Leaf) -> None:
        self.stable = 0
        self._rule = leaf.kind == "rule"
        self._width = -1
        self._rows: list[Row] = []

    def update(self, leaf: Leaf) -> None:
        """Take the leaf as it is now."""
        if (leaf.kind == "rule") != self._rule:
            self._rule = leaf.kind == "rule"
            self._width = -1

    def rows(self, width: int) -> Sequence[Row]:
        """Return the one row."""
        if width == self._width:
            self.stable = 1
            return self._rows
        self._width, self.stable = width, 0
        self._rows = [[Run(glyph("line") * max(width, MIN_WIDTH), ("rule",))] if self._rule else []]
        return self._rows
