"""Text that acts on a terminal, and how to find it."""

from __future__ import annotations

import re

ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""C0 but tab and newline, DEL, C1, and marks that reorder or hide text."""
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b]52;c;aGk=\x07\x9b31m\x1bP1$r\x1b\\\u202egnp.exe\u2066\x00\x7f\r\x08"
"""Escape sequences of most kinds."""
