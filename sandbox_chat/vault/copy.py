"""The copy of a text in which values are looked for: same length, other forms of digits and signs made plain, escapes blank.

A place in the copy is the same place in the text.
"""

from __future__ import annotations

import re

from sandbox_chat.vault.tokens import TOKEN

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SPACES = dict.fromkeys([0x00A0, 0x2007, 0x2009, 0x202F, 0x3000], " ")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE63], "-")
PLAIN: dict[int, int | str] = {**_FULL_WIDTH, **_SPACES, **_DASHES}
"""Signs that people write for plain ones, each as one sign."""
# \n and the like in strings of code and JSON, \u4e2d in JSON, colours of terminals: what follows begins a word.
_ESCAPES = re.compile(r"\\u[0-9a-fA-F]{4}|\\[nrtbfv]|\x1b\[[0-9;]{0,20}[A-Za-z]")


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _zero(found: re.Match[str]) -> str:
    return "\0" * len(found[0])


def plain_copy(text: str) -> str:
    """Return the copy of ``text`` to look for values in. Tokens are NUL in it."""
    if not text.isascii():
        text = text.translate(PLAIN)
    if "\\" in text or "\x1b" in text:
        text = _ESCAPES.sub(_blank, text)
    return TOKEN.sub(_zero, text) if "<" in text else text
