"""How the blocks of Markdown begin, and which lines do not tell it yet."""

from __future__ import annotations

import re
from functools import lru_cache

from .tree import Align

SPACES = " \t"
MARKS = "-*_=#+~`|: \t"
"""Characters that tell nothing at the end of a line that tells nothing."""

STARTS = frozenset("#>`~<=-_*+[0123456789")
"""Characters that a block other than a paragraph or a table may begin with."""

RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})\Z")
HEADING = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
SETEXT = re.compile(r"(?:=+|-+)[ \t]*\Z")
FENCE = re.compile(r"`{3,}(?!.*`)|~{3,}")
BULLET = re.compile(r"[*+-](?=[ \t]|\Z)")
NUMBER = re.compile(r"(\d{1,9})([.)])(?=[ \t]|\Z)", re.ASCII)
FOOTNOTE = re.compile(r"\[\^([^\]\s]{1,200})\]:[ \t]*")
TASK = re.compile(r"\[([ xX])\](?:[ \t]+|\Z)")

# A line that may still become anything: marks of containers, then marks alone.
_HELD = re.compile(
    r"(?:[ \t>]|[-+*](?=[ \t]|\Z)|\d{1,9}[.)](?=[ \t]|\Z)|\[[ xX]\](?=[ \t]|\Z))*"
    r"(?:[-*_=#+~`|: \t]+|\d{1,9}[.)]?|\[[ xX^]?\]?|</?[A-Za-z]*|<!-?)?\Z",
    re.ASCII,
)
_HELD_FENCE = re.compile(r"[ \t>]*(?:`*|~*)[ \t]*\Z")
HELD_MOST = 1000
"""Characters of an unfinished line up to which it may be held back."""


def held(line: str) -> bool:
    """Tell whether an unfinished line does not show yet what it is."""
    return len(line) <= HELD_MOST and _HELD.match(line) is not None


def held_in_code(line: str) -> bool:
    """Tell whether an unfinished line in a fence may become its end."""
    return len(line) <= HELD_MOST and _HELD_FENCE.match(line) is not None


def heading_text(text: str) -> str:
    """Return a heading's text without the ``#`` at its end."""
    text = text.rstrip(SPACES)
    bare = text.rstrip("#")
    return bare if not bare or bare[-1] in SPACES else text


# -- tables -------------------------------------------------------------------------------------------------

_DELIMITERS = frozenset(" \t>-:|")
_DELIMITER = re.compile(r":?-+:?\Z")
_DELIMITER_ROW = re.compile(r"(?:[|:][-:|\t ]+|-[-:|][-:|\t ]*)\Z")
_BAR = re.compile(r"(?<!\\)\|")


def may_be_delimiters(line: str) -> bool:
    """Tell quickly whether a line, with the marks of its containers, may be the second of a table."""
    return "-" in line and _DELIMITERS.issuperset(line)


def alignments(text: str) -> tuple[Align, ...] | None:
    """Return the columns' alignments of a table's second line, ``None`` when it is none."""
    if _DELIMITER_ROW.match(text) is None:
        return None
    columns = text.split("|")
    found: list[Align] = []
    for index, column in enumerate(columns):
        part = column.strip(SPACES)
        if not part:
            if index in (0, len(columns) - 1):
                continue
            return None
        if _DELIMITER.match(part) is None:
            return None
        right = part[-1] == ":"
        found.append("center" if right and part[0] == ":" else "right" if right else "left")
    return tuple(found)


def table_cells(line: str) -> list[str]:
    """Return the cells of a table's row."""
    cells = line.split("|") if "\\|" not in line else [cell.replace("\\|", "|") for cell in _BAR.split(line)]
    if cells and not cells[0]:
        del cells[0]
    if cells and not cells[-1]:
        del cells[-1]
    return cells


# -- HTML ---------------------------------------------------------------------------------------------------

HTML_PREFIX = 24
"""Characters of a line that decide which of the kinds 1 to 6 of HTML it begins."""


@lru_cache(maxsize=1)
def _html() -> tuple[tuple[re.Pattern[str], re.Pattern[str] | None, bool], ...]:
    # Imported when the first "<" stands at the start of a line: the package is not cheap.
    from markdown_it.rules_block.html_block import HTML_SEQUENCES

    return tuple(
        (begin, None if end.search("") else end, interrupts) for begin, end, interrupts in HTML_SEQUENCES
    )


def html_start(text: str, *, interrupting: bool) -> tuple[int, re.Pattern[str] | None] | None:
    """Return the kind (1 to 7) of HTML block that ``text`` begins and what ends it (``None``: a blank line)."""
    for kind, (begin, end, interrupts) in enumerate(_html(), 1):
        if (interrupts or not interrupting) and begin.search(text):
            return kind, end
    return None


def interrupts(text: str, *, items: bool = True) -> bool:
    """Tell whether a line begins a block that may stand right after a paragraph of another container."""
    if text[0] not in STARTS:
        return False
    return (
        text[0] == ">"
        or any(found.match(text) for found in (HEADING, FENCE, RULE, FOOTNOTE))
        or (items and any(found.match(text) for found in (BULLET, NUMBER)))
        or (text[0] == "<" and html_start(text, interrupting=True) is not None)
    )


def may_change(text: str) -> bool:
    """Tell whether an unfinished line, now text, may still become a footnote or an HTML block of any kind."""
    if text.startswith("[^"):
        return "]" not in text[:-1] and len(text) < HELD_MOST
    if text[0] != "<":
        return False
    from markdown_it.common.html_re import HTML_OPEN_CLOSE_TAG_RE

    if len(text) <= HTML_PREFIX:
        return True
    tag = HTML_OPEN_CLOSE_TAG_RE.match(text)
    return (">" not in text and len(text) < 4 * HELD_MOST) if tag is None else not text[tag.end() :].strip()
