"""JSON as servers write it."""

from __future__ import annotations

import re

_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def whole_characters(text: str) -> str:
    """Return JSON text with U+FFFD in the place of every half of a character (a lone surrogate), which nobody can write again."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    # Without its escaped backslashes every backslash begins an escape.
    return _HALF.sub(r"\\ufffd", text.replace("\\\\", "\\u005c"))
