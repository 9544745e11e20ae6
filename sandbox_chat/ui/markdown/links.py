"""The brackets of inline links: where a label closes, and the target behind it."""

from __future__ import annotations

import re

from .reference import link_target, normal_link

_LABEL = re.compile(
    r"(?:[^\[\]\\`<$!]++|\\[^(\[$]|(?<!`)`(?!`)[^`]++`(?!`)|!(?!\[)"
    r"|!\[[^\[\]\\`<$!&*_~\n]*+\]\([^\x00-\x20\x7f-\uffff()<>\\&\"']++\))*+",
    re.DOTALL,
)
_TARGET = re.compile(
    r"""\(((?:[^\x00-\x20\x7f-\uffff()<>\\&"']++|\([^\x00-\x20\x7f-\uffff()<>\\&"']*\))++)(?: "[^"\\&\n]*+")?\)"""
)
_PARTIAL_TARGET = re.compile(r"""\([^()\s]*(?: (?:"[^"\n]*"?)?)?\Z""")

_DEEPEST = 8
"""Brackets in a label that are followed; more of them are left to the reference parser."""


def label_end(text: str, start: int, end: int) -> tuple[int, bool]:
    """Return where the bracket at ``start`` closes (-1: not known here) and whether brackets stand in the label."""
    depth, at = 1, start + 1
    for _ in range(_DEEPEST):
        at = _LABEL.match(text, at, end).end()  # type: ignore[union-attr]  # it matches nothing, too
        if at >= end:
            return -1, False
        if text[at] == "[":
            depth += 1
        elif text[at] == "]":
            depth -= 1
            if not depth:
                return at, text.find("[", start + 1, at) >= 0
            if text[at + 1 : at + 2] == "(":
                return -1, False
        else:
            return -1, False
        at += 1
    return -1, False


def bracketed_target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return the target that stands in brackets at ``start``, and where they close."""
    match = _TARGET.match(text, start, end)
    if match is not None:
        href = normal_link(match.group(1))
        if href is not None:
            return href, match.end()
    return link_target(text, start, end)


def is_partial_target(text: str, start: int) -> bool:
    """Tell whether a target begins at ``start`` that is still being written."""
    return _PARTIAL_TARGET.match(text, start) is not None
