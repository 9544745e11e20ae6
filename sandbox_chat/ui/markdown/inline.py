"""Markdown inside a paragraph → runs of styled text. markdown-it-py is the reference; common forms take a short way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from sandbox_chat.text import clean
from sandbox_chat.ui.transcript.cells import TAB, Run

from . import autolink
from .marks import Odd, Scan
from .reference import Node, reference_nodes

_CACHED = 300
"""Characters up to which the outcome is kept: cells are drawn again and again, paragraphs once."""

OPEN_LIMIT = 1_200
"""Characters of an open paragraph that may stay in doubt; beyond, they are taken as they read now until it closes."""

_LOOK = 64

_PLAIN = re.compile(r"[^\\`*_~\[\]<>&!$\n]*\Z")


def inline_runs(
    text: str, names: tuple[str, ...] = (), references: Mapping[str, Any] | None = None
) -> tuple[Run, ...]:
    """Return the runs of a paragraph's Markdown, laid over the styles ``names``.

    Their texts stand one after the other at their ``at``, from 0. ``references`` are the link definitions of the
    document, as the block parser found them. A single newline breaks the row: models write it on purpose.
    """
    if _PLAIN.match(text) and not autolink.may_hold(text):
        return (Run(clean(text).replace("\t", TAB), names, "", 0),) if text else ()
    if references or len(text) > _CACHED:
        return tuple(runs_of(read(clean(text), references), names))
    return _cached(text, names)


@lru_cache(maxsize=4096)
def _cached(text: str, names: tuple[str, ...]) -> tuple[Run, ...]:
    return tuple(runs_of(read(clean(text)), names))


def read(text: str, references: Mapping[str, Any] | None = None) -> list[Node]:
    """Return what ``text`` says: by the short way, or by the reference parser where that does not know a form."""
    try:
        return Scan(text, references).nodes
    except Odd:
        return reference_nodes(text, references)


def runs_of(nodes: Iterable[Node], names: tuple[str, ...] = (), at: int = 0) -> list[Run]:
    """Return the runs of ``nodes``; ``at`` is the offset of the first in the plain text."""
    out: list[Run] = []
    stack = list(names)
    style = names
    href = ""
    texts: list[str] = []

    def put(text: str, style: tuple[str, ...], href: str = "") -> None:
        nonlocal at
        # Character references (&#x202e;) are resolved after the text was cleaned at the border.
        text = clean(text)
        if "\t" in text:
            text = text.replace("\t", TAB)
        if text:
            out.append(Run(text, style, href, at))
            at += len(text)

    def flush() -> None:
        text = "".join(texts)
        texts.clear()
        if href or not autolink.may_hold(text):
            put(text, style, href)
            return
        for part, name, target in autolink.split(clean(text)):
            put(part, (*style, name) if name else style, target)

    for node in nodes:
        if isinstance(node, str):
            texts.append(node)
            continue
        if texts:
            flush()
        kind = node[0]
        if kind == "code":
            put(node[1], (*style, "code"), href)
        elif kind == "open":
            stack.append(node[1])
            style = tuple(stack)
        elif kind == "link":
            href = clean(node[1])
            stack.append("link")
            style = tuple(stack)
        elif kind == "html":
            put(node[1], (*style, "html"), href)
        elif kind == "image":
            target = clean(node[2])
            put(f"[{node[1] or target}]", (*style, "link"), href or target)
        else:
            if kind == "end":
                href = ""
            _drop(stack, "link" if kind == "end" else node[1])
            style = tuple(stack)
    if texts:
        flush()
    return out


def _drop(stack: list[str], name: str) -> None:
    for index in range(len(stack) - 1, -1, -1):
        if stack[index] == name:
            del stack[index]
            return


# -- paragraphs that grow --------------------------------------------------------------------------------


class GrowingInline:
    """The runs of a paragraph that may still grow: what nothing can change any more is read once.

    ``runs`` are all runs, their texts one after the other at their ``at``. When the paragraph has closed they are
    those of its whole text read at once.
    """

    def __init__(self, names: tuple[str, ...] = (), references: Mapping[str, Any] | None = None) -> None:
        self.runs: list[Run] = []
        self._names = names
        self._references = references
        self._text = ""
        self._closed = False
        self._size = 0  # characters at the beginning that are read for good
        self._count = 0  # runs of it
        self._proven = (
            0,
            0,
        )  # source and runs up to which nothing can change; more was read when it grew too long

    @property
    def plain(self) -> str:
        """The text as read."""
        return "".join([run.text for run in self.runs])

    def __len__(self) -> int:
        return self._end(len(self.runs))

    def update(self, text: str, *, closed: bool) -> int:
        """Take the whole text as it is now. Returns up to which offset of the plain text nothing changed."""
        if text == self._text and closed == self._closed:
            return self._end(len(self.runs))
        if not self._goes_on(text, closed):
            self._size, self._count, self._proven = 0, 0, (0, 0)
        self._text, self._closed = text, closed
        same = self._count
        if closed:
            size, count = self._proven
            same = min(same, count)
            self._tail(
                count, runs_of(read(clean(text[size:]), self._references), self._names, self._end(count))
            )
            return self._end(same)
        self._freeze(text)
        tail = clean(text[self._size :])
        try:
            nodes = Scan(tail, self._references, heal=True).nodes
        except Odd:
            nodes = reference_nodes(tail, self._references)
        self._tail(self._count, runs_of(nodes, self._names, self._end(self._count)))
        return self._end(same)

    def _goes_on(self, text: str, closed: bool) -> bool:
        """Tell whether ``text`` begins with what is read for good. While it grows a look at the end of that must do."""
        size = self._size
        known = self._text
        if closed:
            return text[:size] == known[:size]
        near = max(size - _LOOK, 0)
        low = min(size, _LOOK)
        return len(text) >= size and text[:low] == known[:low] and text[near:size] == known[near:size]

    def _freeze(self, text: str) -> None:
        tail = text[self._size :]
        size = Scan(tail, self._references, partial=True).settled() if clean(tail) == tail else 0
        proven = size > 0
        if not proven:
            if len(tail) < OPEN_LIMIT:
                return
            size = tail.rfind(" ", OPEN_LIMIT // 2) + 1 or len(tail)
        head = tail[:size]
        fresh = runs_of(read(head, self._references), self._names, self._end(self._count))
        self._tail(self._count, fresh)
        if proven and self._proven == (self._size, self._count):
            self._proven = (self._size + size, len(self.runs))
        self._size += size
        self._count = len(self.runs)

    def _tail(self, count: int, runs: list[Run]) -> None:
        del self.runs[count:]
        self.runs.extend(runs)

    def _end(self, count: int) -> int:
        if not count:
            return 0
        last = self.runs[count - 1]
        return last.at + len(last.text)
