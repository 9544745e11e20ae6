"""Inline Markdown read in one go: an exact subset of what markdown-it reads, and what is settled in it.

The forms of daily use are read here; ``Odd`` is raised at any other, which the reference parser then reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .autolink import math_end
from .balance import Mark, balance, close_open, pair
from .links import bracketed_target, is_partial_target, label_end
from .reference import Node, autolink, entity, html_end, normal_label

HEALED = 400
"""Characters over which an unfinished code span is shown as one."""

_SPECIAL = re.compile(r"\n|\\|`+|\*+|~+|(?<![0-9A-Za-z_])_+|_+(?![0-9A-Za-z_])|!?\[|<|&|\$\$?", re.ASCII)
_BLANKS = re.compile(r"[ \t]*")
_ESCAPABLE = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SPACES = frozenset("\t\n\x0b\x0c\r \xa0\u1680\u202f\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B)
}
_PLAIN_LINK = re.compile(
    r"\[([^\[\]\\`<$!\n*_&~]+)\]\((https?://[a-z0-9.-]+(?:/[A-Za-z0-9._~/?#@!$'*+,;=-]*)?)\)"
)
# One or two stars that can only open, around plain text with a letter or digit at both ends: nothing else matters.
_PLAIN_STARS = re.compile(r"(?<!\*)(\*\*?)((?=[^\W_])[^*_`~\[\]<&\\$!\n]*(?<=[^\W_]))(?=\*)\1(?!\*)")
_STYLES = {1: "emphasis", 2: "strong"}
_OPENS: dict[int, Node] = {size: ("open", style) for size, style in _STYLES.items()}
_CLOSES: dict[int, Node] = {size: ("close", style) for size, style in _STYLES.items()}
_END: Node = ("end",)
_IMAGE = re.compile(r"!\[([^\[\]\\`<$!&*_~\n]*+)\]")
_ENTITY = re.compile(r"&(?:#(?:[xX][0-9A-Fa-f]{1,6}|[0-9]{1,7})|[A-Za-z][A-Za-z0-9]{1,31});")
_ANGLE = re.compile(r"<([^<>]*)>")
# A space between two words, or what ends a part of a sentence in scripts without spaces and no address holds.
_BOUNDARY = re.compile(r"(?<=[^\s]) (?=[^\s])|[。，！？；：、](?=[^\W_])")
_DEPTHS = {"open": 1, "link": 1, "close": -1, "end": -1}


class Odd(Exception):
    """A form that only the reference parser reads, or a text that is not worth it here."""


class Scan:
    """One reading of ``text``.

    ``heal``: the text is still being written, so what it leaves open is shown as it probably will be.
    ``partial``: stop at an odd form instead of raising ``Odd``; then only what is ``settled`` counts.
    """

    def __init__(
        self,
        text: str,
        references: Mapping[str, Any] | None = None,
        *,
        heal: bool = False,
        partial: bool = False,
    ) -> None:
        self.text = text
        self.nodes: list[Node] = []
        self._at: list[int] = []  # where each node begins; -1: not to the letter
        self._references = references or None
        self._heal = heal
        self._partial = partial
        self._open_from = len(text)  # from here on, what follows the text may change how it is read
        self._last_link = text.rfind("](")
        self._depth = 0
        try:
            self._range(0, len(text))
        except Odd:
            if not partial:
                raise

    def settled(self) -> int:
        """Return up to where nothing that may follow changes the reading: a place between two words."""
        depth = 0
        found = 0
        limit = self._open_from
        for node, at in zip(self.nodes, self._at, strict=True):
            if node.__class__ is not str:
                depth += _DEPTHS.get(node[0], 0)
                continue
            if depth or at < 0:
                continue
            if at >= limit:
                break
            for match in _BOUNDARY.finditer(self.text, at, min(at + len(node), limit)):
                found = match.end()
        return found

    # -- reading ---------------------------------------------------------------------------------------

    def _put(self, node: Node, at: int = -1) -> None:
        self.nodes.append(node)
        self._at.append(at)

    def _doubt(self, at: int) -> None:
        if not self._depth:
            self._open_from = min(self._open_from, at)

    def _odd(self, at: int) -> None:
        """An odd form begins at ``at``."""
        if self._partial:
            self._open_from = min(self._open_from, at)
        raise Odd

    def _range(self, pos: int, end: int) -> None:
        text, nodes, ats = self.text, self.nodes, self._at
        search = _SPECIAL.search
        marks: list[Mark] = []
        try:
            while True:
                match = search(text, pos, end)
                if match is None:
                    if pos < end:
                        nodes.append(text[pos:end])
                        ats.append(pos)
                    break
                start, stop = match.span()
                mark = text[start]
                if mark == "\n":
                    piece = text[pos:start].rstrip(" ")
                    if piece:
                        nodes.append(piece)
                        ats.append(pos)
                    nodes.append("\n")
                    ats.append(-1)
                    pos = _BLANKS.match(text, stop, end).end()  # type: ignore[union-attr]  # it matches nothing, too
                    continue
                if start > pos:
                    nodes.append(text[pos:start])
                    ats.append(pos)
                if mark == "*" and stop - start < 3 and (not start or _kind(text[start - 1]) < 2):
                    found = _PLAIN_STARS.match(text, start, end)
                    if found is not None:
                        size = stop - start
                        nodes += (_OPENS[size], found.group(2), _CLOSES[size])
                        ats += (-1, -1, -1)
                        pos = found.end()
                        if pos == len(text):
                            self._doubt(start)
                        continue
                if mark in "*_~":
                    self._run(mark, start, stop, end, marks)
                    pos = stop
                elif mark == "`":
                    pos = self._code(start, stop, end)
                elif mark == "\\":
                    pos = self._escape(start, end)
                elif mark == "[":
                    pos = self._link(start, end)
                elif mark == "!":
                    pos = self._image(start, end)
                elif mark == "<":
                    pos = self._angle(start, end)
                elif mark == "&":
                    pos = self._entity(start, end)
                else:
                    pos = self._math(start, stop, end)
        finally:
            if marks:
                self._apply(marks)

    def _run(self, marker: str, start: int, stop: int, end: int, marks: list[Mark]) -> None:
        size = stop - start
        before = _kind(self.text[start - 1]) if start else 0
        after = _kind(self.text[stop]) if stop < end else 0
        left = after == 2 or (after == 1 and before < 2)
        right = before == 2 or (before == 1 and after < 2)
        if marker == "_":
            can_open = left and (not right or before == 1)
            can_close = right and (not left or after == 1)
        else:
            can_open, can_close = left, right
        # Within a word marks seldom open anything; in scripts without spaces they do.
        only = can_open and (not can_close or not self.text[start - 1].isascii())
        if self._heal and stop == len(self.text) and self._unfinished(marker, size, can_close, marks):
            return
        if stop == len(self.text):
            self._doubt(start)
        if marker == "~":
            if size == 1:
                self._put("~", start)
                return
            if size not in (2, 4):
                self._odd(start)
            for at in range(start, stop, 2):
                marks.append(Mark(marker, 0, len(self.nodes), at, can_open, can_close, only))
                self._put("~~")
        elif can_open or can_close:
            for at in range(start, stop):
                marks.append(Mark(marker, size, len(self.nodes), at, can_open, can_close, only))
                self._put(marker)
        else:
            self._put(self.text[start:stop], start)

    @staticmethod
    def _unfinished(marker: str, size: int, can_close: bool, marks: list[Mark]) -> bool:
        """Tell whether marks at the very end open nothing yet, or are the first of those that will close."""
        if not can_close or (marker == "~" and size == 1):
            return True
        opener = next((mark for mark in reversed(marks) if mark.marker == marker and mark.only), None)
        return opener is not None and opener.length > size

    def _code(self, start: int, stop: int, end: int) -> int:
        text = self.text
        size = stop - start
        if size == 1:
            close = text.find("`", stop, end)
            if 0 <= close < end - 1 and text[close + 1] != "`":
                self._put(("code", code_text(text[stop:close])))
                return close + 1
        found = _ticks(size).search(text, stop, end)
        if found is not None:
            self._put(("code", code_text(text[stop : found.start()])))
            if found.end() == len(text):
                self._doubt(start)
            return found.end()
        self._doubt(start)
        if self._heal and end == len(text) and end - stop <= HEALED:
            rest = text[stop:].rstrip("`")
            if rest.strip():
                self._put(("code", code_text(rest)))
            return end
        self._put(text[start:stop], start)
        return stop

    def _escape(self, start: int, end: int) -> int:
        text = self.text
        if start + 1 >= end:
            self._doubt(start)
            self._put("\\", start)
            return start + 1
        after = text[start + 1]
        if after == "\n":
            self._put("\n")
            return _BLANKS.match(text, start + 2, end).end()  # type: ignore[union-attr]
        if after in "([":
            found = math_end(text, start, end)
            if found > 0:
                self._put(text[start:found])
                return found
            if found < 0:
                self._doubt(start)
                if self._heal:
                    self._put(text[start:end])
                    return end
        self._put(after if after in _ESCAPABLE else "\\" + after)
        return start + 2

    def _math(self, start: int, stop: int, end: int) -> int:
        found = math_end(self.text, start, end)
        if found > 0:
            if found == len(self.text):
                self._doubt(start)
            self._put(self.text[start:found])
            return found
        if found < 0:
            self._doubt(start)
            if self._heal and stop - start > 1:
                stop = end
        self._put(self.text[start:stop], start)
        return stop

    def _entity(self, start: int, end: int) -> int:
        match = _ENTITY.match(self.text, start, end)
        char = entity(match.group()) if match is not None else None
        if match is None or char is None:
            self._put("&", start)
            return start + 1
        self._put(char)
        return match.end()

    def _angle(self, start: int, end: int) -> int:
        text = self.text
        match = _ANGLE.match(text, start, end)
        if match is not None:
            found = autolink(match.group(1))
            if found is not None:
                self._put(("link", found[1]))
                self._put(found[0])
                self._put(_END)
                return match.end()
        if start + 2 < end and (
            text[start + 1] in "!?/" or (text[start + 1].isascii() and text[start + 1].isalpha())
        ):
            stop = html_end(text, start, end)
            if stop:
                self._put(("html", text[start:stop]))
                return stop
        if start + 1 >= end or not text[start + 1].isspace():
            self._doubt(start)
        self._put("<", start)
        return start + 1

    # -- links -----------------------------------------------------------------------------------------

    def _image(self, start: int, end: int) -> int:
        text = self.text
        match = _IMAGE.match(text, start, end)
        if match is not None and text.startswith("(", match.end(), end):
            found = bracketed_target(text, match.end(), end)
            if found is not None:
                self._put(("image", match.group(1), found[0]))
                return found[1]
        if self._references or start < self._last_link:
            self._odd(start)
        self._put("!", start)
        return start + 1

    def _link(self, start: int, end: int) -> int:
        text = self.text
        match = _PLAIN_LINK.match(text, start, end)
        if match is not None:
            self.nodes += (("link", match.group(2)), match.group(1), _END)
            self._at += (-1, -1, -1)
            return match.end()
        close, nested = label_end(text, start, end)
        if close < 0:
            if self._references or start < self._last_link:
                self._odd(start)
            self._doubt(start)
            self._put("[", start)
            return start + 1
        if nested and self._references:
            self._odd(start)  # what stands in the label may be a link by itself
        after = text[close + 1 : close + 2] if close + 1 < end else ""
        target = None
        stop = close + 1
        if after == "(":
            found = bracketed_target(text, close + 1, end)
            if found is not None:
                target, stop = found
            elif self._heal and is_partial_target(text, close + 1):
                target, stop = "", len(text)
            else:
                self._doubt(start)
        elif not after and close + 1 == len(text):
            self._doubt(start)
        if target is None and self._references:
            target, stop = self._by_reference(start, close, end, after)
        if target is None:
            self._put("[", start)
            return start + 1
        if stop == len(text):
            self._doubt(start)
        self._put(("link", target))
        self._depth += 1
        try:
            self._range(start + 1, close)
        finally:
            self._depth -= 1
        self._put(_END)
        return stop

    def _by_reference(self, start: int, close: int, end: int, after: str) -> tuple[str | None, int]:
        if after == "(":
            self._odd(start)
        text, stop = self.text, close + 1
        label = text[start + 1 : close]
        if after == "[":
            second, nested = label_end(text, close + 1, end)
            if second < 0 or nested:
                self._odd(start)
            stop = second + 1
            label = text[close + 2 : second] or label
        found = (self._references or {}).get(normal_label(label))
        return (str(found["href"]) if found else None), stop

    # -- marks of emphasis -----------------------------------------------------------------------------

    def _apply(self, marks: list[Mark]) -> None:
        balance(marks)
        pair(marks, self.nodes)
        for mark in marks:
            if mark.open and mark.end < 0:
                self._doubt(mark.at)
                break
        last = marks[-1]
        if last.at + 1 == len(self.text):
            self._doubt(last.at - last.length + 1)
        if self._heal and not self._depth:
            for node in close_open(marks, self.nodes):
                self._put(node)


def code_text(content: str) -> str:
    """Return what a code span shows."""
    content = content.replace("\n", " ")
    if content[:1] == " " == content[-1:] and content.strip(" "):
        return content[1:-1]
    return content


@lru_cache(maxsize=1024)
def _kind(char: str) -> int:
    """Return 0 for white space, 1 for punctuation, 2 for anything else."""
    if char in _SPACES:
        return 0
    if char in _PUNCTUATION or unicodedata.category(char)[0] in "PS":
        return 1
    return 2


@lru_cache(maxsize=64)
def _ticks(size: int) -> re.Pattern[str]:
    return re.compile(rf"(?<!`)`{{{size}}}(?!`)")
