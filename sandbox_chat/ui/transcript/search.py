"""Search in a transcript: runs over a snapshot of its texts, so it may run in a thread."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .marks import Hit

if TYPE_CHECKING:
    from .blocks import Block, Texts

MOST_HITS = 2000
"""Places that one search finds at most."""

_MARKUP = re.compile(r"[*_`~\\\[\]|]")
_LINK_ENDS = re.compile(r"\]\((?:[^()\n]|\([^()\n]*\))*\)|\]\[[^\]\n]*\]")


def pattern_of(query: str) -> re.Pattern[str]:
    """Return what finds ``query`` to the letter; small letters find capitals too, unless it has capitals."""
    return re.compile(re.escape(query), 0 if query != query.lower() else re.IGNORECASE)


def may_show(query: str) -> Callable[[str], bool]:
    """Return what tells whether a Markdown source may show ``query``: without its words it cannot.

    Between the letters there may be marks, the targets of links, and signs that are written as entities.
    """
    words = [re.escape(word) for word in re.split(r"[\W_]+", query) if word]
    flags = 0 if query != query.lower() else re.IGNORECASE
    together = re.compile(r"[\W_]*".join(words), flags)
    each = [re.compile(word, flags) for word in words]

    def maybe(source: str) -> bool:
        if not words:
            return True
        if "&" in source:
            source = html.unescape(source)
        if "](" not in source and "][" not in source:
            return together.search(_MARKUP.sub("", source)) is not None
        whole, short = _MARKUP.sub("", source), _MARKUP.sub("", _LINK_ENDS.sub("", source))
        return all(word.search(whole) or word.search(short) for word in each)

    return maybe


def snapshot(blocks: Iterable[Block]) -> list[tuple[int, Texts]]:
    """Return what is needed to search in the blocks, with their numbers."""
    return [(number, block.texts()) for number, block in enumerate(blocks) if block.visible]


def search(
    texts: Sequence[tuple[int, Texts]], query: str, stopped: Callable[[], bool] = lambda: False
) -> tuple[list[Hit], bool]:
    """Return where ``query`` stands, in order, and whether there are more than are returned."""
    pattern = pattern_of(query)
    maybe = may_show(query)
    hits: list[Hit] = []
    for number, parts_of in texts:
        if stopped():
            break
        for part, text in enumerate(parts_of(maybe)):
            for match in pattern.finditer(text):
                if len(hits) >= MOST_HITS:
                    return hits, True
                hits.append(Hit(number, part, match.start(), match.end()))
    return hits, False


def nearest(hits: Sequence[Hit], place: tuple[int, int, int]) -> int:
    """Return the number of the first hit at or behind a place (block, part, offset), else of the last one."""
    for number, hit in enumerate(hits):
        if (hit.block, hit.part, hit.start) >= place:
            return number
    return len(hits) - 1
