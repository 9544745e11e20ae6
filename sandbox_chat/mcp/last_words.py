"""What a program that ended wrote last, without the lines that say nothing about the reason."""

from __future__ import annotations

import re

LINES = 6
_NOISE = re.compile(
    r"at .+"  # a stack of JavaScript stands behind its error
    r"|\^+"
    r"|throw .+"
    r"|[\]\[{}(),;\s]+"
    r"|code: '\w+',?"
    r"|requireStack: .*"
    r"|node:internal/.*"
    r"|Node\.js v[\d.]+"
    r"|npm (notice|warn|WARN)\b.*"
    r"|npm (error|ERR!)( code \w+| [A-Z\d]+)?"
    r"|npm (error|ERR!) (404 (Note that you can also|tarball, folder)|A complete log of this run).*"
)


def last_words(text: str) -> list[str]:
    """Return the last lines of ``text`` that say something; when none does, the last ones as they are."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ([line for line in lines if not _NOISE.fullmatch(line)] or lines)[-LINES:]
