"""Finds values that are known, also where they are written in another way, in time that grows with the text alone.

The ways: as they are, in the other case, reversed, with anything put between their signs, without their punctuation, with the
escapes of a URL, of code or of HTML, in base64 wherever it begins, in hexadecimal digits, and these one in the other to a
depth. Of what is encrypted, compressed or counted otherwise nothing can be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sandbox_chat.vault.forms import ALONE, JUNK, SPACE, Known, places, squeezed, stands_alone
from sandbox_chat.vault.views import Back, views

DEPTH = 3
"""How many writings may lie one in the other."""
_LIKE_A_TOKEN = re.compile(r"<[A-Z][A-Z0-9_]{1,20}:[a-z2-9]{8,16}>")
_MOST = 2000  # places of one text; beyond them it is a game


class Hit(NamedTuple):
    """A value was found from ``start`` to ``end``, written as ``how`` says."""

    start: int
    end: int
    token: str
    how: str


class Disguises:
    """What is looked for: each value with its token. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._known = Known()

    def add(self, value: str, token: str) -> None:
        """Look for a value from now on."""
        self._known.add(value, token)

    def plain(self, text: str) -> Iterator[Hit]:
        """Yield where values stand as they are. A short one counts only where it is no part of a word."""
        for start, end, token, _ in self._known.plain.search(text):
            if end - start >= ALONE or stands_alone(text, start, end):
                yield Hit(start, end, token, "plain")

    def all(self, text: str) -> Iterator[Hit]:
        """Yield where values stand in any way."""
        if not self._known.tokens:
            return
        yield from self.plain(text)
        # Tokens between the signs of a value are nothing but signs between. In one that is not ours something may be written.
        ours = _LIKE_A_TOKEN.sub(self._blank, text)
        count = 0
        for each in dict.fromkeys((ours, _LIKE_A_TOKEN.sub(_spaces, ours))):
            for hit in self._look(each, _same, (), 0):
                yield hit
                count += 1
                if count >= _MOST:
                    return

    def _blank(self, found: re.Match[str]) -> str:
        return _spaces(found) if found[0] in self._known.tokens else found[0]

    def _look(self, text: str, back: Back, how: tuple[str, ...], depth: int) -> Iterator[Hit]:
        for start, end, token, turned in self._searched(text):
            words = (*how, "reversed") if turned else how
            yield Hit(*back(start, end), token, ", ".join(words) or _in_place(text, start, end))
        if depth < DEPTH:
            for word, view, there in views(text, plain=self._known.ascii):
                yield from self._look(view, _after(there, back), (*how, word), depth + 1)

    def _searched(self, text: str) -> Iterator[tuple[int, int, str, bool]]:
        for forms, left_out, alone in ((self._known.bare, JUNK, False), (self._known.tight, SPACE, True)):
            if not len(forms):
                continue
            where: list[int] = []
            for start, end, token, turned in forms.search(squeezed(text, left_out)):
                where = where or places(text, left_out)
                first, last = where[start], where[end - 1] + 1
                if not alone or stands_alone(text, first, last):
                    yield first, last, token, turned


def _same(start: int, end: int) -> tuple[int, int]:
    return start, end


def _after(there: Back, back: Back) -> Back:
    return lambda start, end: back(*there(start, end))


def _spaces(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _in_place(text: str, start: int, end: int) -> str:
    return "split" if JUNK.search(text, start, end) else "in another form"


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
