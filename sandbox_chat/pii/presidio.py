"""Names and other kinds by Microsoft's Presidio, an optional extra: ``pip install 'sandbox-chat[pii]'``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox_chat.settings import ConfigError
from sandbox_chat.pii.kinds import Finder, Span

SCORE = 0.5
"""From which on a finding of its counts."""
LONGEST = 100_000
"""Characters that it is given at once."""
_NOT_USED = ("URL", "DATE_TIME", "NRP")


def presidio_finder() -> Finder:
    """Return what asks Presidio. Raises ``ConfigError`` when it is not installed."""
    try:
        from presidio_analyzer import AnalyzerEngine  # type: ignore[import-not-found,unused-ignore]  # an extra
    except ImportError:
        raise ConfigError(
            "pii_engine: presidio is not installed. Install it with pip install 'sandbox-chat[pii]', or use builtin."
        ) from None
    engine: Any = AnalyzerEngine()

    def find(text: str) -> Iterator[Span]:
        for start in range(0, len(text), LONGEST):
            for found in engine.analyze(text[start : start + LONGEST], language="en"):
                if found.score >= SCORE and found.entity_type not in _NOT_USED:
                    yield Span(start + found.start, start + found.end, found.entity_type[:20])

    return find
