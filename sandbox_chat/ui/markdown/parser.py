"""Markdown's blocks, a line at a time: every complete line is read once, the unfinished last one provisionally.

The structure is that of CommonMark with GitHub's tables, task lists and footnotes. What markdown-it-py makes of a
text is the reference; nesting deeper than ``reader.MAX_DEPTH`` stays text.
"""

from __future__ import annotations

from . import starts
from .builder import TRIM
from .definitions import hidden
from .reader import LineReader
from .state import Saved

_LONG_HEAD = 500
"""Characters of a paragraph of one line that is held back as the likely head of a table."""


class BlockParser(LineReader):
    """Reads a text that grows into ``leaves``.

    ``feed`` may be called with any pieces; the outcome after ``finish`` does not depend on how the text was cut.
    """

    def __init__(self) -> None:
        super().__init__()
        self.finished = False
        self._pieces: list[str] = []  # the unfinished last line
        self._carriage = False  # the text so far ends with \r: a \n after it belongs to it
        self._undo: Saved | None = None  # the state before the unfinished line, if it was read
        self._held = False  # the unfinished line does not show yet what it is
        self._growing = False  # what is added to the unfinished line is added to the last leaf
        self._before: tuple[Saved, str] | None = None  # the line before, which may be a table's head

    @property
    def shown(self) -> int:
        """Number of leaves to show: the last one may look like a definition or a table's head and wait."""
        count = len(self._leaves)
        if count and not self.finished and self._open.mode == "paragraph" and not self._open.task:
            raw = self._open.raw
            head = raw.startswith("|") and len(raw) < _LONG_HEAD and "\n" not in raw
            if head or (self._open.candidate and hidden(raw)):
                return count - 1
        return count

    def feed(self, text: str) -> None:
        """Add ``text`` at the end."""
        if self._carriage and text:
            text = text[1:] if text[0] == "\n" else text
            self._carriage = False
        if "\r" in text:
            self._carriage = text[-1] == "\r"
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if "\0" in text:
            text = text.replace("\0", "\ufffd")
        *lines, last = text.split("\n")
        for number, line in enumerate(lines, 1):
            if self._pieces:
                self._pieces.append(line)
                line = "".join(self._pieces)  # noqa: PLW2901
                self._pieces = []
            self._complete(line, lines[number] if number < len(lines) else None)
        self._apply()
        if last:
            self._extend(last)

    def finish(self) -> None:
        """No more will come."""
        if self._pieces:
            line = "".join(self._pieces)
            self._pieces = []
            self._complete(line, None)
        self._close(0)
        self._close_leaf()
        self.finished = True
        self._before = None

    # -- lines -------------------------------------------------------------------------------------------------

    def _complete(self, line: str, following: str | None) -> None:
        """Read a complete line. ``following`` is the one after it, if that is complete too."""
        self._roll_back()
        self._held = False
        before, self._before = self._before, None
        if before is not None and starts.may_be_delimiters(line):
            self._restore(before[0])
            self._ahead = line
            self._read(before[1])
            taken, self._ahead = self._ahead is None, None
            if taken:
                self._line_number += 2
                self._spare.clear()
                return
            self._line_number += 1
        in_code = self._open.mode in ("fence", "html") and not self._stack
        may_be_head = following is None or starts.may_be_delimiters(following)
        saved = self._save() if "|" in line and may_be_head and not in_code else None
        self._read(line)
        if saved is not None:
            self._before = (saved, line)
        self._spare.clear()
        self._line_number += 1

    def _extend(self, piece: str) -> None:
        self._pieces.append(piece)
        if self._growing:
            self._grow(piece)
            return
        if self._held and (self._open.mode == "table" or not piece.strip(starts.MARKS)):
            return
        line = "".join(self._pieces)
        self._pieces = [line]
        self._roll_back()
        mode = self._open.mode
        self._held = mode == "table" or (
            starts.held_in_code(line) if mode in ("fence", "html") else starts.held(line)
        )
        if self._held:
            return
        self._undo = self._save()
        self._newline = ""
        self._read(line)
        self._apply()
        self._newline = "\n"
        self._growing = self._settled(line)

    def _settled(self, line: str) -> bool:
        """Tell whether more characters of this unfinished line can only be added to the last leaf."""
        now = self._open
        if now.mode == "paragraph":
            text = now.raw.rpartition("\n")[2].lstrip()
            return bool(text) and not now.candidate and not starts.may_change(text)
        new = self._undo is None or self._undo.count != len(self._leaves) or self._undo.open.mode != now.mode
        if now.mode == "fence":
            return not new and bool(line.strip())
        if now.mode == "html":
            return not new or (now.html < 7 and len(line.strip(" \t>")) > starts.HTML_PREFIX)
        return now.mode == "indented" and bool(line.strip())

    def _grow(self, piece: str) -> None:
        leaf, now = self._leaves[-1], self._open
        if now.mode == "paragraph":
            now.raw += piece
            leaf.text = now.raw.rstrip(TRIM) if piece[-1] in TRIM else now.raw
        else:
            leaf.text += piece
        self._changed = min(self._changed, len(self._leaves) - 1)

    def _roll_back(self) -> None:
        """Take back what the unfinished line has brought."""
        if self._undo is not None:
            self._restore(self._undo)
            self._undo = None
        self._growing = False
