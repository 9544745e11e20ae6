"""A line of Markdown under a cursor that counts columns: a tab reaches to the next multiple of four."""

from __future__ import annotations

import re

_BLANKS = re.compile(r"[ \t]*")
_TAB = 4


class Line:
    """One line without its newline.

    ``look`` finds the first character that is no blank: its place ``next``, the width ``indent`` of the blanks before
    it, and ``blank`` when there is none. A tab may be consumed in part; the rest of it counts as spaces.
    """

    __slots__ = ("_column", "_looked", "_part", "blank", "indent", "next", "only", "place", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self._column = 0
        self._looked = -1  # the place from which ``look`` looked
        self._part = False  # the tab at ``place`` is consumed in part
        self.next = 0
        self.indent = 0
        self.blank = False
        self.only: dict[
            str, int
        ] = {}  # by character: where the part of the line begins that holds nothing else

    def look(self) -> None:
        """Find the next character that is no blank."""
        text, start = self.text, self.place
        if start == self._looked:
            return
        self._looked = start
        if start < len(text) and text[start] not in " \t":
            self.next, self.indent, self.blank = start, 0, False
            return
        found = _BLANKS.match(text, start)
        end = found.end() if found else start
        self.indent = end - start
        if self.indent and "\t" in text[start:end]:
            column = self._column
            for char in text[start:end]:
                column += _TAB - column % _TAB if char == "\t" else 1
            self.indent = column - self._column
        self.next = end
        self.blank = end >= len(text)

    def go(self) -> None:
        """Move to the next character that is no blank, as ``look`` found it."""
        self._column += self.indent
        self.place = self._looked = self.next
        self._part = False
        self.indent = 0

    def skip(self, count: int) -> None:
        """Move over ``count`` characters that are no blanks."""
        self.place += count
        self._column += count
        self._part = False

    def quote(self) -> None:
        """Move over the ``>`` that ``look`` found, and one column of blanks after it."""
        self.go()
        self.skip(1)
        self.indented(1)

    def indented(self, columns: int) -> None:
        """Move over at most ``columns`` columns of blanks."""
        self._looked = -1
        text = self.text
        while columns > 0 and self.place < len(text):
            char = text[self.place]
            if char == "\t":
                reach = _TAB - self._column % _TAB
                step = min(columns, reach)
                self._part = reach > columns
                self._column += step
                self.place += not self._part
                columns -= step
            elif char == " ":
                self._part = False
                self._column += 1
                self.place += 1
                columns -= 1
            else:
                return

    def is_rule(self, char: str) -> bool:
        """Tell whether from ``next`` on there are only blanks and at least three of ``char``."""
        start = self.only.get(char)
        if start is None:
            start = self.only[char] = len(self.text.rstrip(f"{char} \t"))
        return start <= self.next and self.text.count(char, self.next) >= 3

    def rest(self) -> str:
        """Return what stands from the cursor on; the rest of a tab as spaces."""
        if self._part:
            return " " * (_TAB - self._column % _TAB) + self.text[self.place + 1 :]
        return self.text[self.place :] if self.place else self.text
