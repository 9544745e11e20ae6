"""What the block parser must know to go on, and to take a line back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from .tree import Container, Leaf, LeafKind

Mode = Literal["", "paragraph", "fence", "indented", "html", "table"]

LeafFields = tuple[LeafKind, str, int, bool, tuple[Container, ...], int]
"""Of a leaf: kind, text, level, closed, path, number of rows."""


@dataclass(slots=True)
class Frame:
    """An open container. ``indent``: columns that its lines are indented by."""

    container: Container
    indent: int = 0
    filled: bool = False  # item: something stands in it
    count: int = 0  # list: items so far
    line: int = -1  # item: the line that it begins on


@dataclass(slots=True)
class Open:
    """The open leaf, as it must be known to go on with it."""

    mode: Mode = ""
    raw: str = ""  # paragraph: its lines, the last one with its trailing blanks
    blanks: list[str] = field(default_factory=list)  # indented: blank lines that belong to it if code follows
    candidate: bool = False  # paragraph: it may begin with a link definition
    task: str = ""  # paragraph: the task's mark that was cut off
    fence: str = ""
    offset: int = 0  # fence: columns that it is indented by
    end: re.Pattern[str] | None = None  # HTML: what ends it
    html: int = 0  # HTML: its kind, 1 to 7
    missing: int = 0  # table: cells that were added

    def copy(self) -> Open:
        """Return an object of its own with the same values."""
        return Open(
            self.mode,
            self.raw,
            list(self.blanks),
            self.candidate,
            self.task,
            self.fence,
            self.offset,
            self.end,
            self.html,
            self.missing,
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """The parser before a line: what a line can change is the open blocks and the last leaf."""

    stack: tuple[tuple[Frame, bool, int], ...]
    containers: tuple[tuple[bool, str], ...]
    open: Open
    count: int
    leaf: Leaf | None
    fields: LeafFields | None
    blank: tuple[bool, int]
    line_number: int
    references: int
