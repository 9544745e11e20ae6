"""Link definitions (``[label]: target "title"``) at the start of a paragraph."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.)*)\]", re.DOTALL)
_LABEL_OPEN = re.compile(r"\[(?:[^\[\]\\]|\\.)*\\?\Z", re.DOTALL)
_HIDDEN = re.compile(r"\[[^\]\n]{0,200}(?:\](?::|\Z)|\Z)")
_MOST = 4000
"""Characters of a definition that is not whole: a longer one is a paragraph."""


class Scan(NamedTuple):
    """What the start of a paragraph says.

    ``open``: a definition that more lines may complete. ``whole``: it ends at ``end`` (the newline or the end of the
    text); ``titled`` tells that no title can follow. An open title after a whole line has its ``end`` too: without
    the title it is a definition.
    """

    state: Literal["no", "open", "whole"]
    label: str = ""
    href: str = ""
    title: str = ""
    end: int = -1
    titled: bool = False


_NO = Scan("no")


def hidden(text: str) -> bool:
    """Tell whether the start of an unfinished paragraph looks like a definition."""
    return _HIDDEN.match(text) is not None


def scan(text: str) -> Scan:
    """Read one definition at the start of ``text``, the lines of a paragraph."""
    label = _LABEL.match(text)
    if label is None:
        return Scan("open") if len(text) < _MOST and _LABEL_OPEN.match(text) else _NO
    if text[label.end() : label.end() + 1] != ":":
        return _NO
    from markdown_it.common.normalize_url import normalizeLink, validateLink
    from markdown_it.common.utils import normalizeReference
    from markdown_it.helpers import parseLinkDestination

    place = _skip(text, label.end() + 1)
    if place >= len(text):
        return Scan("open") if len(text) < _MOST else _NO
    target = parseLinkDestination(text, place, len(text))
    if not target.ok:
        return _NO
    href = normalizeLink(target.str)
    key = normalizeReference(label.group(1))
    if not validateLink(href) or not key:
        return _NO
    after = _skip(text, target.pos)
    newline = text.find("\n", target.pos, after)
    if after >= len(text):
        return Scan("whole", key, href, "", len(text))
    plain = Scan("whole", key, href, "", newline) if newline >= 0 else _NO
    return _title(text, target.pos, after, plain, Scan("whole", key, href))


def _title(text: str, start: int, place: int, plain: Scan, found: Scan) -> Scan:
    """Read the title at ``place``. ``plain`` is the answer when there is none."""
    from markdown_it.helpers import parseLinkTitle

    if place == start:
        return plain
    title = parseLinkTitle(text, place, len(text))
    if title.can_continue:
        if len(text) >= _MOST:
            return plain
        return Scan("open", found.label, found.href, "", plain.end)
    if not title.ok:
        return plain
    end = text.find("\n", title.pos)
    end = len(text) if end < 0 else end
    if text[title.pos : end].strip(" \t"):
        return plain if title.str else _NO
    return Scan("whole", found.label, found.href, title.str, end, titled=True)


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\n":
        place += 1
    return place
