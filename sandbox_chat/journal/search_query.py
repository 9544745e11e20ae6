"""What is searched for: words, the beginnings of words, phrases; and where it stands in a text. Pure.

A word is a run of letters and digits, in any case, with or without accents. Scripts that are written without blanks
(Chinese, Japanese, Korean, Thai and others) have a word for each character, so that any part of such a text is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sandbox_chat.text import clean_line

QUERY_LIMIT = 500
"""Characters of a query that count."""
TERMS_LIMIT = 16
"""Words and phrases of a query that count."""
EXCERPT = 160
"""Characters of the text around a place that are shown."""
BEFORE = 40
"""Characters of them before the place."""

APART = "\u200b"
"""Put between the characters of such a script in the index: it belongs to no word and is not seen."""

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Characters of scripts without blanks, for a class of a regular expression."""

_WORD = rf"[^\W_{UNSPACED}]"
_TOKEN = re.compile(rf"[{UNSPACED}]|{_WORD}+")
_LETTER = re.compile(r"[^\W_]")
_BORDER = re.compile(rf"(?<=[{UNSPACED}])(?=[^\W_])|(?<=[^\W_])(?=[{UNSPACED}])")
_ENDS_WHOLE = re.compile(rf"[{UNSPACED}]\W*\Z")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"'})
_PIECE = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')


class _Fold(dict[int, str]):
    """Maps a character to its lower case without accents: always one character for one, so that places stay."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        base = unicodedata.normalize("NFD", character)[0]
        low = base.lower()
        folded = low if len(low) == 1 else base
        if re.match(rf"[{UNSPACED}]", character):
            folded = character  # a syllable of Korean is not its first part
        self[code] = folded
        return folded


_FOLD = _Fold()


def fold(text: str) -> str:
    """Return ``text`` in lower case and without accents, each character in its place."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def apart(text: str) -> str:
    """Return ``text`` with the characters of scripts without blanks kept apart, as the index holds it."""
    if text.isascii():
        return text
    return _BORDER.sub(APART, unicodedata.normalize("NFC", text.replace(APART, "")))


def together(text: str) -> str:
    """Return what ``apart`` was given."""
    return text.replace(APART, "")


@dataclass(frozen=True)
class Term:
    """A word or phrase. ``open``: its last word may go on. ``literal``: it holds no letter and is taken as it stands."""

    text: str
    open: bool = True
    literal: bool = False

    @property
    def match(self) -> str:
        """The term for the index. Whatever is in it, it is text there and no operator."""
        quoted = apart(self.text).replace('"', '""')
        return f'"{quoted}"*' if self.open and not _ENDS_WHOLE.search(self.text) else f'"{quoted}"'

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the term in a folded text."""
        if self.literal:
            return re.compile(re.escape(fold(self.text)))
        tokens = _TOKEN.findall(fold(self.text))
        parts: list[str] = []
        before = False
        for token in tokens:
            single = re.fullmatch(rf"[{UNSPACED}]", token) is not None
            if not parts:
                parts.append("" if single else rf"(?<!{_WORD})")
            else:
                parts.append(r"[\W_]*" if single or before else r"[\W_]+")
            parts.append(re.escape(token))
            before = single
        if not self.open and not before:
            parts.append(rf"(?!{_WORD})")
        return re.compile("".join(parts))

    @cached_property
    def _first(self) -> str:
        folded = fold(self.text)
        return folded if self.literal else next(iter(_TOKEN.findall(folded)), folded)

    def place(self, folded: str) -> int:
        """Return where the term stands first in a folded text, -1 if nowhere."""
        first, start = self._first, 0
        while (
            start := folded.find(first, start)
        ) >= 0:  # much quicker than to let the pattern look at each character
            if self.pattern.match(folded, start):
                return start
            start += 1
        return -1


@dataclass(frozen=True)
class Query:
    """All of its terms must be in a turn."""

    terms: tuple[Term, ...]

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def match(self) -> str:
        """The query for the index; empty when it holds nothing but signs."""
        return " AND ".join(term.match for term in self.terms if not term.literal)

    @property
    def literals(self) -> list[str]:
        """Signs that must stand somewhere in the turn."""
        return [term.text for term in self.terms if term.literal]

    def fits(self, texts: Sequence[str]) -> bool:
        """Whether each term is in one of the texts."""
        folded = [fold(text) for text in texts]
        return all(any(term.place(text) >= 0 for text in folded) for term in self.terms)


def parse(text: str) -> Query:
    """Read what a user typed. Anything is a query: what has no meaning is text."""
    line = clean_line(unicodedata.normalize("NFC", text), QUERY_LIMIT).translate(_QUOTES)
    terms: list[Term] = []
    for found in _PIECE.finditer(line):
        phrase, word = found.groups()
        piece = (word if phrase is None else phrase).strip()
        ended = phrase is not None and found[0].endswith('"') and len(found[0]) > 1
        if not piece:
            continue
        if not _LETTER.search(piece):
            terms.append(Term(piece, open=False, literal=True))
        else:
            terms.append(Term(piece, open=not ended))
    return Query(tuple(dict.fromkeys(terms[:TERMS_LIMIT])))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of text on one line; ``marks`` are the places in it that were searched for: start and end."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def excerpt(query: Query, texts: Sequence[str]) -> tuple[int, Excerpt]:
    """Return which of ``texts`` holds most of what is searched for, and the part around it."""
    best, most, place = 0, 0, 0
    for number, text in enumerate(texts):
        folded = fold(text)
        starts = [start for term in query.terms if (start := term.place(folded)) >= 0]
        if len(starts) > most:
            best, most, place = number, len(starts), min(starts)
    text = texts[best] if texts else ""
    start = max(0, place - BEFORE)
    cut = text[start : start + EXCERPT]
    if start:  # from the next word on
        blank = cut.find(" ", 0, BEFORE // 2)
        cut = cut[blank + 1 :] if blank >= 0 else cut
    line = " ".join(cut.split())
    if start:
        line = f"…{line}"
    if start + EXCERPT < len(text):
        line = f"{line}…"
    folded = fold(line)
    spans = sorted(match.span() for term in query.terms for match in term.pattern.finditer(folded))
    return best, Excerpt(line, _joined(span for span in spans if span[0] < span[1]))


def _joined(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return tuple(out)
