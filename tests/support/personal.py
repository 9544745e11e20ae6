"""The corpus of personal data, and how well it is found: precision and recall by exact span and kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox_chat.vault.kinds import FINDERS, Phones, Span, find

FOLDER = Path(__file__).parent.parent / "data" / "pii"
Found = set[tuple[int, int, str]]


def corpus(name: str) -> list[dict[str, Any]]:
    """The strings of one half: ``text``, ``found`` (kind and value, in order) and ``about``."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def builtin(text: str) -> list[Span]:
    """What the builtin search finds."""
    return find(text, [*FINDERS.values(), Phones(("US", "CN"))])


def expected(row: dict[str, Any]) -> Found:
    """The spans of a string's values."""
    spans: Found = set()
    at = 0
    for kind, value in row["found"]:
        start = row["text"].index(value, at)
        at = start + len(value)
        spans.add((start, at, kind))
    return spans


@dataclass
class Score:
    """How well values were found; ``wrong`` holds what was not as it should be."""

    right: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def precision(self, kind: str = "") -> float:
        """Share of what was found that is right."""
        right, false = _of(self.right, kind), _of(self.false, kind)
        return right / (right + false) if right + false else 1.0

    def recall(self, kind: str = "") -> float:
        """Share of what is there that was found."""
        right, missed = _of(self.right, kind), _of(self.missed, kind)
        return right / (right + missed) if right + missed else 1.0


def _of(counts: Counter[str], kind: str) -> int:
    return counts[kind] if kind else counts.total()


def score(rows: Sequence[dict[str, Any]], finder: Callable[[str], list[Span]] = builtin) -> Score:
    """Compare what ``finder`` finds with what is there."""
    result = Score()
    for row in rows:
        want: Found = expected(row)
        got: Found = {(span.start, span.end, span.kind) for span in finder(row["text"])}
        result.right.update(kind for _, _, kind in want & got)
        result.missed.update(kind for _, _, kind in want - got)
        result.false.update(kind for _, _, kind in got - want)
        for mark, spans in (("missed", want - got), ("false", got - want)):
            result.wrong += [
                f"{mark} {kind} {row['text'][start:end]!r} in {row['text']!r}" for start, end, kind in spans
            ]
    return result
