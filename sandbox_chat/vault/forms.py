"""The forms in which a value is looked for: as it is, without what stands between its signs, turned round.

All forms of a vault are found in one pass over a text, whatever their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import ahocorasick  # type: ignore[import-not-found,unused-ignore]  # it has no stubs

JUNK = re.compile(r"[\W_]+")
"""What a bare form leaves out: all but letters and digits."""
SPACE = re.compile(r"\s+")
"""What a tight form leaves out."""
SHORTEST_LETTERS, SHORTEST_DIGITS, SHORTEST_TIGHT = 8, 9, 5
"""Signs of the shortest form that is looked for: of letters and digits, of digits only, with its punctuation."""
LONGEST = 400
"""Signs of a value by which it is looked for, at most."""
ALONE = 8
"""Signs of a value below which it counts only where it is no part of a word: it could stand in any."""
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SPACES = dict.fromkeys([0x00A0, 0x2007, 0x2009, 0x202F, 0x3000], " ")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE63], "-")
_PLAIN: dict[int, int | str] = {**_FULL_WIDTH, **_SPACES, **_DASHES}


def small(text: str) -> str:
    """Return a text in small letters, with plain signs for the others that people write for them. The length may change."""
    return (text if text.isascii() else text.translate(_PLAIN)).lower()


def squeezed(text: str, left_out: re.Pattern[str]) -> str:
    """Return a small text without what is left out."""
    return left_out.sub("", small(text))


def places(text: str, left_out: re.Pattern[str]) -> list[int]:
    """Return for each sign of the squeezed text where it stands in the text."""
    if text.isascii():
        found: list[int] = []
        at = 0
        for gap in left_out.finditer(text):
            found += range(at, gap.start())
            at = gap.end()
        return [*found, *range(at, len(text))]
    return [
        place for place, sign in enumerate(text) for each in small(sign) if left_out.fullmatch(each) is None
    ]


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether what stands there is no part of a longer word or number."""
    sides = ((text[start - 1 : start] if start else "", text[start]), (text[end : end + 1], text[end - 1]))
    return not any(out.isalnum() and out.isascii() and edge.isalnum() for out, edge in sides)


class Forms:
    """Texts to look for, each with its token. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._automaton = ahocorasick.Automaton()
        self._stale = False

    def __len__(self) -> int:
        return len(self._automaton)

    def add(self, form: str, token: str, *, turned: bool = False) -> None:
        """Look for ``form`` too. The first token of a form stays."""
        if form and form not in self._automaton:
            self._automaton.add_word(form, (len(form), token, turned))
            self._stale = True

    def search(self, text: str) -> Iterator[tuple[int, int, str, bool]]:
        """Yield start, end, token of each place, and whether it is turned round. Places may lie over one another."""
        if self._stale:
            self._automaton.make_automaton()
            self._stale = False
        if len(self._automaton):
            for last, (size, token, turned) in self._automaton.iter(text):
                yield last + 1 - size, last + 1, token, turned


class Known:
    """All values of a vault: ``plain``, ``bare`` (letters and digits only), ``tight`` (without white space)."""

    def __init__(self) -> None:
        self.plain, self.bare, self.tight = Forms(), Forms(), Forms()
        self.tokens: set[str] = set()
        self.ascii = True

    def add(self, value: str, token: str) -> None:
        """Look for a value from now on."""
        self.tokens.add(token)
        self.plain.add(value, token)
        writings = [value]
        if not value.isascii():
            self.ascii = False
            writings.append(value.encode("utf-8", "replace").decode("latin-1"))  # so it is read out of base64
        for writing in writings:
            bare = squeezed(writing, JUNK)[:LONGEST]
            for form in (bare, _national(token, bare)):
                if len(form) >= (SHORTEST_DIGITS if form.isdigit() else SHORTEST_LETTERS):
                    self.bare.add(form, token)
                    self.bare.add(form[::-1], token, turned=True)
            tight = squeezed(writing, SPACE)[:LONGEST]
            if len(bare) < SHORTEST_DIGITS and len(tight) >= SHORTEST_TIGHT:
                self.tight.add(tight, token)
                self.tight.add(tight[::-1], token, turned=True)


def _national(token: str, digits: str) -> str:
    """Return the digits of a phone number without the number of its country, which say as much."""
    if token.startswith("<PHONE:"):
        for country in ("0086", "86", "001", "1"):
            if digits.startswith(country) and len(digits) - len(country) in (10, 11):
                return digits[len(country) :]
    return ""
