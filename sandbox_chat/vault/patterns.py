"""Patterns of the user's own: a name, a regular expression, and a check of what it finds."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sandbox_chat.vault import checks
from sandbox_chat.vault.kinds import Finder, Span

if TYPE_CHECKING:
    from sandbox_chat.values import Pattern

log = logging.getLogger(__name__)

SECONDS = 1.0
"""Seconds that one pattern may take for one text; what it had not found by then stays in it."""
CHECKS = {
    "": lambda _text: True,
    "luhn": checks.luhn,
    "card": checks.card,
    "ssn": checks.ssn,
    "cn_id": checks.cn_id,
}


def user_finders(patterns: Sequence[Pattern]) -> list[Finder]:
    """Return what finds the values of the user's patterns."""
    return [_Own(pattern) for pattern in patterns]


class _Own:
    """One pattern. It may be written so that it never ends: then it is stopped in that text, and the log says so."""

    def __init__(self, pattern: Pattern) -> None:
        import regex

        self._name = pattern.name
        self._pattern = regex.compile(pattern.regex)
        self._check = CHECKS[pattern.validator]

    def __call__(self, text: str) -> Iterator[Span]:
        try:
            for match in self._pattern.finditer(text, timeout=SECONDS):
                if match.end() > match.start() and self._check(match.group()):
                    yield Span(match.start(), match.end(), self._name)
        except TimeoutError:
            log.warning("the pattern %s of pii_patterns took too long and was stopped", self._name)
