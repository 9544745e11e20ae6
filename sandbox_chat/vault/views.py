"""Other ways to read a text: with its URL escapes, its escapes of code, its hexadecimal digits or its base64 undone.

A view is another text and the way back from its places to those of the text. What takes time for each sign is done only
when a way back is asked for.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from sandbox_chat.vault.forms import SHORTEST_TIGHT

Back = Callable[[int, int], tuple[int, int]]
"""From start and end in a view to those in the text."""
View = tuple[str, str, Back]
"""What was undone, the text that came out, the way back."""
SHORTEST_READ = SHORTEST_TIGHT
"""Bytes in a row that can be read; fewer come about by chance everywhere."""
_NOT_HEX = re.compile(r"0[xX](?=[0-9a-fA-F]{2})|\\x|[^0-9a-fA-F]+")
_DUMP = re.compile(r"^[0-9a-fA-F]{6,16}:?[ \t]|  [^\n]*$|\t[^\n]*$", re.MULTILINE)
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9]+")
_NOT_BASE64_FULL = re.compile(r"[^A-Za-z0-9+/_-]+")
_URL_SAFE = str.maketrans("-_", "+/")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_ESCAPE = re.compile(
    r"\\u00([0-9A-Fa-f]{2})|\\x([0-9A-Fa-f]{2})|&#[xX]0{0,4}([0-9A-Fa-f]{2});|&#0{0,4}(\d{2,3});"
)
_DECIMAL = 4  # the group of _ESCAPE that holds a decimal number
_READ = re.compile(rb"[\t\n\r\x20-\x7e]{%d,}" % SHORTEST_READ)
_READ_TOO = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]{%d,}" % SHORTEST_READ)


def views(text: str, *, plain: bool) -> Iterator[View]:
    """Yield the other ways to read ``text``. ``plain``: what is looked for is plain ASCII."""
    if "%" in text and _PERCENT.search(text):
        yield _undone("escaped for a URL", text, _PERCENT)
    if ("\\" in text or "&#" in text) and _ESCAPE.search(text):
        yield _undone("escaped", text, _ESCAPE)
    yield from _hexadecimal(text, plain)
    yield from _base64(text, plain)


def _undone(how: str, text: str, pattern: re.Pattern[str]) -> View:
    """Return the text with each code replaced by the sign that it is for."""
    parts: list[str] = []
    starts, there = [0], [0]  # from a place in the view on: where it is in the text
    at = size = 0
    for found in pattern.finditer(text):
        digits = next(group for group in found.groups() if group)
        base = 10 if found.lastindex == _DECIMAL else 16
        parts += [text[at : found.start()], chr(int(digits, base))]
        size += found.start() - at
        starts += [size, size + 1]
        there += [found.start(), found.end()]
        size += 1
        at = found.end()
    parts.append(text[at:])

    def place(at: int) -> int:
        index = bisect_right(starts, at) - 1
        return there[index] + at - starts[index]

    return how, "".join(parts), lambda start, end: (place(start), max(place(end - 1) + 1, place(end)))


def _hexadecimal(text: str, plain: bool) -> Iterator[View]:
    texts = [text]
    if "\n" in text and _DUMP.search(text):  # the columns beside the digits of a dump hold digits, too
        texts.append(_DUMP.sub(lambda found: " " * len(found[0]), text))
    for each in texts:
        kept = _NOT_HEX.sub("", each)
        for offset in (0, 1):
            digits = kept[offset : offset + (len(kept) - offset) // 2 * 2]
            read = _readable(bytes.fromhex(digits), plain)
            if read is not None:
                yield "hexadecimal", read[0], _way(each, _NOT_HEX, read[1], offset, 2)


def _base64(text: str, plain: bool) -> Iterator[View]:
    for pattern in [_NOT_BASE64] if plain else [_NOT_BASE64, _NOT_BASE64_FULL]:
        kept = pattern.sub("", text).translate(_URL_SAFE)
        for offset in range(4):
            signs = kept[offset:]
            if len(signs) % 4 == 1:
                signs = signs[:-1]
            read = _readable(base64.b64decode(signs + "=" * (-len(signs) % 4)), plain)
            if read is not None:
                yield "base64", read[0], _way(text, pattern, read[1], offset, 4 / 3)


def _readable(data: bytes, plain: bool) -> tuple[str, list[tuple[int, int]]] | None:
    """Return what can be read in bytes, a line for each part, and where each begins: in the view, in the bytes."""
    parts: list[str] = []
    begins: list[tuple[int, int]] = []
    size = 0
    for found in (_READ if plain else _READ_TOO).finditer(data):
        begins.append((size, found.start()))
        parts.append(found[0].decode("latin-1"))
        size += len(parts[-1]) + 1
    return ("\n".join(parts), begins) if parts else None


def _way(
    text: str, left_out: re.Pattern[str], begins: list[tuple[int, int]], offset: int, each: float
) -> Back:
    """Return the way back from coded bytes: ``each`` of them takes so many signs, from ``offset`` on."""
    starts = [start for start, _ in begins]
    kept: list[int] = []

    def byte(at: int) -> int:
        index = bisect_right(starts, at) - 1
        return begins[index][1] + at - starts[index]

    def back(start: int, end: int) -> tuple[int, int]:
        if not kept:
            at = 0
            for gap in left_out.finditer(text):
                kept.extend(range(at, gap.start()))
                at = gap.end()
            kept.extend(range(at, len(text)))
        first = offset + int(byte(start) * each)
        last = offset + int((byte(end - 1) + 1) * each - 0.01)
        return kept[first], kept[min(last, len(kept) - 1)] + 1

    return back
