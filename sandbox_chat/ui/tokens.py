"""Tokens of a draft: a long paste or a mentioned file that stands in the text as one thing. Pure.

In the composer's document a token is its label between two marks. The marks are code points that Unicode
keeps for a program's own use, one cell wide, and are drawn as brackets; in text from outside they are made visible,
so a text that only looks like a token is never one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sandbox_chat.plain import size_text
from sandbox_chat.text import clean, clean_line
from sandbox_chat.words import tr

PASTE, PASTE_END, FILE, FILE_END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
_MARKS = re.compile("[\ufdd0-\ufdd3]")
_SPAN = re.compile("[\ufdd0\ufdd2]([^\ufdd0-\ufdd3\n]*)[\ufdd1\ufdd3]")
_SHOWN = str.maketrans({PASTE: "[", PASTE_END: "]", FILE: "@", FILE_END: ")"})
NAME_WIDTH = 48
"""Characters of a mentioned file's path that are shown; the end of a longer one."""

SLICE = 20_000
"""Characters that are cleaned in one go."""

Kind = Literal["text", "paste", "file"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a draft: text as it is written, a long paste, or the path of a mentioned file with its size in bytes.

    ``shown`` is how a file is called in the prompt.
    """

    kind: Kind
    text: str
    shown: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """A token's place in a line: columns from ``start`` up to ``end``."""

    start: int
    end: int
    kind: Kind
    label: str


def outside(text: str) -> str:
    """Return text from outside with the marks of tokens made visible."""
    return _MARKS.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def clean_slowly(text: str) -> str:
    """Return a long text cleaned, on a thread: others get their turn at the processor in between."""
    pieces = []
    place = 0
    while place < len(text):
        end = text.find("\n", place + SLICE) + 1
        if not 0 < end <= place + 2 * SLICE:
            end = place + SLICE
        pieces.append(clean(text[place:end]))
        place = end
        time.sleep(0)
    return "".join(pieces)


def shown(line: str) -> str:
    """Return a line of the document as it is drawn; no character's place changes."""
    return line.translate(_SHOWN)


def spans(line: str) -> list[Span]:
    """Return the tokens of a line of the document."""
    if _MARKS.search(line) is None:
        return []
    return [
        Span(found.start(), found.end(), "paste" if found[0][0] == PASTE else "file", found[1])
        for found in _SPAN.finditer(line)
    ]


def span_at(line: str, column: int) -> Span | None:
    """Return the token that holds ``column`` strictly inside."""
    return next((span for span in spans(line) if span.start < column < span.end), None)


class Tokens:
    """What the tokens of one draft stand for."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._raw: set[str] = set()
        self._pastes = 0

    def clear(self) -> None:
        """Forget all tokens."""
        self._parts.clear()
        self._raw.clear()
        self._pastes = 0

    def __len__(self) -> int:
        return len(self._parts)

    def fold(self, text: str, *, raw: bool = False) -> str:
        """Return the token of a long text, for the document. A ``raw`` one is cleaned before it is used: see ``settle``."""
        self._pastes += 1
        lines = text.count("\n") + 1
        key = "composer.pasted_lines" if lines > 1 else "composer.pasted_characters"
        label = tr(key, number=self._pastes, lines=f"{lines:,}", characters=f"{len(text):,}")
        self._parts[label] = Part("paste", text)
        if raw:
            self._raw.add(label)
        return f"{PASTE}{label}{PASTE_END}"

    @property
    def raw(self) -> list[tuple[str, str]]:
        """Labels and texts of the long pastes that are not cleaned yet."""
        return [(label, self._parts[label].text) for label in self._raw]

    def settle(self, label: str, raw: str, cleaned: str) -> None:
        """Take the cleaned text of a long paste, if it is still wanted."""
        if label in self._raw and self._parts[label].text is raw:
            self._raw.discard(label)
            self._parts[label] = Part("paste", cleaned)

    def _part(self, label: str) -> Part | None:
        if label in self._raw:
            self.settle(label, self._parts[label].text, clean(self._parts[label].text))
        return self._parts.get(label)

    def mention(self, path: str, name: str, size: int) -> str:
        """Return the token of the file ``path``, which is called ``name`` in the prompt."""
        part = Part("file", path, name, size)
        short = outside(clean_line(name, 4096))
        if len(short) > NAME_WIDTH:
            short = "…" + short[-NAME_WIDTH:]
        label, number = f"{short} ({size_text(size)}", 1
        while self._parts.get(label, part) != part:
            number += 1
            label = f"{short} #{number} ({size_text(size)}"
        self._parts[label] = part
        return f"{FILE}{label}{FILE_END}"

    def part(self, span: Span) -> Part:
        """Return what a token stands for."""
        part = self._part(span.label)
        assert part is not None
        return part

    def parts(self, document: str) -> list[Part]:
        """Return the pieces of a document, in order."""
        found: list[Part] = []
        place = 0
        for match in _SPAN.finditer(document):
            part = self._part(match[1])
            if part is None:
                continue
            if match.start() > place:
                found.append(Part("text", shown(document[place : match.start()])))
            found.append(part)
            place = match.end()
        if place < len(document):
            found.append(Part("text", shown(document[place:])))
        return found

    def document(self, parts: Iterable[Part]) -> str:
        """Return the document that consists of ``parts``."""
        pieces = []
        for part in parts:
            if part.kind == "paste":
                pieces.append(self.fold(clean(part.text)))
            elif part.kind == "file":
                pieces.append(self.mention(part.text, part.shown, part.size))
            else:
                pieces.append(outside(clean(part.text)))
        return "".join(pieces)

    def expand(self, document: str) -> str:
        """Return the text that a document stands for: what is sent."""
        if _MARKS.search(document) is None:
            return document
        return "".join(written(part) for part in self.parts(document))


def written(part: Part) -> str:
    """Return a part as it is written out in a prompt."""
    if part.kind != "file":
        return part.text
    name = clean_line(part.shown, 4096)
    return f'@"{name}"' if " " in name else f"@{name}"


def files(parts: Sequence[Part]) -> list[str]:
    """Return the paths of the mentioned files, each once."""
    return list(dict.fromkeys(part.text for part in parts if part.kind == "file"))


def without_escape(parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a prompt that begins with two strokes, without the first one."""
    first, *rest = parts
    return [replace(first, text=first.text.lstrip()[1:]), *rest]


def recognised(text: str, before: Sequence[Part]) -> list[Part]:
    """Return the parts of a text that was edited elsewhere: the files that were mentioned ``before`` still are where they are named."""
    mentioned = {written(part): part for part in before if part.kind == "file"}
    if not mentioned:
        return [Part("text", text)] if text else []
    names = "|".join(re.escape(name) for name in sorted(mentioned, key=len, reverse=True))
    pieces = re.split(rf"(?<!\S)({names})(?!\S)", text)
    return [mentioned.get(piece, Part("text", piece)) for piece in pieces if piece]
