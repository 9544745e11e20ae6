"""Finds values that are known, also where they are written in another way, in time that grows with the text alone.

The ways: as they are, in the other case, reversed, in a URL's escapes, in base64 at any of the three places, in hexadecimal
digits, and with anything put between their signs. Of what is encrypted or compressed nothing can be found.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

import ahocorasick  # type: ignore[import-not-found,unused-ignore]  # it has no stubs

SHORTEST_SQUEEZED = 7
"""Letters and digits of a value that is looked for with anything between them; shorter ones come about by chance."""
SHORTEST_NUMBER = 10
"""The same, of a value that is digits alone: columns of numbers hold any short one."""
SHORTEST_CODED = 8
"""Signs of a value's base64 or hexadecimal that are looked for."""
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_NOT_SQUEEZED = re.compile(r"[^a-z0-9@\u00c0-\uffff]+")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_NOT_HEX = re.compile(r"0x|\\x|[^0-9a-f]+")
_URL_SAFE = str.maketrans("-_", "+/")
_BETWEEN_LINES = 400  # characters that a hit may be longer than its value times this many


class Hit(NamedTuple):
    """A value was found from ``start`` to ``end``, written as ``how`` says."""

    start: int
    end: int
    token: str
    how: str


class Disguises:
    """What is looked for: each value with its token. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._plain = ahocorasick.Automaton()
        self._coded: dict[str, ahocorasick.Automaton] = {
            how: ahocorasick.Automaton() for how in ("lower", "split", "base64", "hex")
        }
        self._stale = False

    def add(self, value: str, token: str) -> None:
        """Look for a value from now on."""
        self._plain.add_word(value, (len(value), token, "plain"))
        low = value.translate(_LOWER)
        wanted: list[tuple[str, str, str]] = [("lower", low, "plain"), ("lower", low[::-1], "reversed")]
        if (escaped := quote(value, safe="").translate(_LOWER)) != low:
            wanted.append(("lower", escaped, "escaped for a URL"))
        squeezed = _NOT_SQUEEZED.sub("", low)
        if len(squeezed) >= (SHORTEST_NUMBER if squeezed.isdigit() else SHORTEST_SQUEEZED):
            wanted += [("split", squeezed, "split"), ("split", squeezed[::-1], "split and reversed")]
        data = value.encode("utf-8", "replace")
        for shift in range(3):
            word = base64.b64encode(b"\0" * shift + data).decode()
            # Signs at both ends depend on what is beside the value.
            first = (0, 2, 3)[shift]
            last = len(word.rstrip("=")) - (1 if (len(data) + shift) % 3 else 0)
            if last - first >= SHORTEST_CODED:
                wanted.append(("base64", word[first:last], "base64"))
        digits = data.hex()
        if len(digits) >= SHORTEST_CODED:
            wanted.append(("hex", digits, "hexadecimal"))
        for name, needle, how in wanted:
            self._coded[name].add_word(needle, (len(needle), token, how))
        self._stale = True

    def plain(self, text: str) -> Iterator[Hit]:
        """Yield where values stand as they are."""
        self._ready()
        if len(self._plain):
            for last, (size, token, how) in self._plain.iter(text):
                yield Hit(last + 1 - size, last + 1, token, how)

    def all(self, text: str) -> Iterator[Hit]:
        """Yield where values stand in any way."""
        self._ready()
        if not len(self._plain):
            return
        low = text.translate(_LOWER)
        for last, (size, token, how) in self._coded["lower"].iter(low):
            yield Hit(last + 1 - size, last + 1, token, how)
        for name, plain, rest in (
            ("split", low, _NOT_SQUEEZED),
            ("base64", text.translate(_URL_SAFE), _NOT_BASE64),
            ("hex", low, _NOT_HEX),
        ):
            yield from self._without(name, plain, rest)

    def _without(self, name: str, text: str, rest: re.Pattern[str]) -> Iterator[Hit]:
        """Look for values in a text of which ``rest`` is left out; the places are those in the whole text."""
        automaton = self._coded[name]
        squeezed = rest.sub("", text)
        if not len(automaton) or len(squeezed) < SHORTEST_SQUEEZED:
            return
        places: list[int] = []
        for last, (size, token, how) in automaton.iter(squeezed):
            if not places:
                places = _places(text, rest)
            start, end = places[last + 1 - size], places[last] + 1
            if end - start <= size * _BETWEEN_LINES:
                yield Hit(start, end, token, how)

    def _ready(self) -> None:
        if self._stale:
            for each in (self._plain, *self._coded.values()):
                if len(each):
                    each.make_automaton()
            self._stale = False


def _places(text: str, rest: re.Pattern[str]) -> list[int]:
    """Return where each sign that is left stands in the whole text."""
    found: list[int] = []
    at = 0
    for match in rest.finditer(text):
        found += range(at, match.start())
        at = match.end()
    found += range(at, len(text))
    return found


def widest(hits: Iterator[Hit]) -> list[Hit]:
    """Return hits in order that do not overlap, the longer ones of those that do."""
    kept: list[Hit] = []
    for hit in sorted(hits, key=lambda each: (each.start, -each.end)):
        if kept and hit.start < kept[-1].end:
            if hit.end - hit.start > kept[-1].end - kept[-1].start:
                kept[-1] = hit
            continue
        kept.append(hit)
    return kept


Values = Mapping[str, str]
