"""Cleaning and bounding of text from outside: model, tools, files, paste, names.

Text passes here once, at the border, before it becomes an event or a widget's content. Afterwards
it holds no byte that can act on a terminal: what could is made visible, not dropped, so that a
reader sees what was there.
"""

from __future__ import annotations

import re

# Colour and weight changes of a terminal (SGR). They only decorate and are dropped from output.
_SGR = re.compile(r"(?:\x1b\[|\x9b)[0-9;:]*m")
_NEWLINES = re.compile(r"\r\n|\x85|\u2028|\u2029")

_VISIBLE: dict[int, str] = {
    code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)
}
_VISIBLE[0x7F] = "\u2421"
_VISIBLE.update({code: f"<{code:02X}>" for code in range(0x80, 0xA0)})
# Marks that reorder or hide text (bidi embeddings, overrides, isolates, invisible operators, tags).
_VISIBLE.update(
    {
        code: f"<U+{code:04X}>"
        for code in (
            0x061C,
            0x200E,
            0x200F,
            *range(0x202A, 0x202F),
            *range(0x2060, 0x2070),
            0xFEFF,
            0x00AD,
            0x180E,
        )
    }
)
_VISIBLE.update({code: f"<U+{code:04X}>" for code in range(0xE0000, 0xE0080)})
_VISIBLE.update(dict.fromkeys(range(0xD800, 0xE000), "\ufffd"))
_SUSPECT = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\\ud800-\\udfff\U000e0000-\U000e007f]"
)
_VISIBLE[0x200B] = "<U+200B>"


def clean(text: str) -> str:
    """Return ``text`` with everything that could act on a terminal made visible.

    Newlines of all kinds become ``\\n``; tabs stay; a lone carriage return becomes a visible sign;
    colour sequences (SGR) vanish; other control bytes, C1 bytes, bidi marks and invisible characters
    are shown as signs or as ``<U+202E>``; lone surrogates become U+FFFD.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _NEWLINES.sub("\n", _SGR.sub("", text))
    return text.translate(_VISIBLE).replace("\r", "\u240d")


def clean_output(text: str) -> str:
    """Return output of a program cleaned like ``clean``, with progress lines settled.

    A carriage return goes back to the line's start, so only what was last written there remains.
    """
    if "\r" in text:
        text = _SGR.sub("", text).replace("\r\n", "\n")  # colours take no room on a line
        text = "\n".join(_settle(line) for line in text.split("\n"))
    return clean(text)


def _settle(line: str) -> str:
    """What a terminal shows of ``line``: from the last part backwards, each adds only what sticks out."""
    pieces: list[str] = []
    width = 0
    for part in reversed(line.split("\r")):
        if len(part) > width:
            pieces.append(part[width:])
            width = len(part)
    return "".join(pieces)


def clean_line(text: str, limit: int = 200) -> str:
    """Return ``text`` cleaned as a single line of at most ``limit`` characters: for titles and names."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def bound(text: str, limit: int, *, what: str = "characters") -> str:
    """Return ``text`` cut to about ``limit`` characters: its head and its tail around a line that says what was cut."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit:,} {what} cut out of {len(text):,} …]\n{text[len(text) - tail :]}"


def bound_tail(text: str, limit: int, *, what: str = "characters") -> str:
    """Return the last ``limit`` characters of ``text`` after a line that says what was cut."""
    if len(text) <= limit:
        return text
    return f"[… {len(text) - limit:,} {what} cut out of {len(text):,} …]\n{text[len(text) - limit :]}"
