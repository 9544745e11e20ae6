"""What stands in plain text and is more than that: bare addresses, references of footnotes, formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STOP = '\\s<>"`\\\\|^{}\\u3000-\\u303f\\uff01-\\uff0f\\uff1a-\\uff20\\u2018-\\u201f'
_FOUND = re.compile(
    rf"(?<![A-Za-z0-9_])(?:https?://[^{_STOP}]{{1,2000}}|www\.[A-Za-z0-9][^{_STOP}]{{1,2000}})"
    r"|(?<![A-Za-z0-9._+/:-])[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"
    r"|\[\^[^\[\]\s^]{1,100}\]"
)
_TRAILING = re.compile(r"[?!.,:;*_~'\[\]]+\Z")
_HOST = re.compile(r"(?:https?://)?[^\s/?#.:@]|(?:https?://)[^\s/?#]*@")

MATH_LINE = 500
"""Characters up to which a formula within a line is looked for."""

MATH_BLOCK = 3_000
"""Characters up to which a formula between ``$$`` or ``\\[`` and ``\\]`` is looked for."""

_SIGNS = re.compile(r"[\\^_{}=+<>*|/-]")
_SHORT = re.compile(r"\s*\S{1,12}\s*\Z")


def may_hold(text: str) -> bool:
    """Tell whether ``split`` may find anything in ``text``."""
    return "://" in text or "@" in text or "www." in text or "[^" in text


def split(text: str) -> Iterator[tuple[str, str, str]]:
    """Cut ``text`` into ``(text, style, link's target)``: addresses and references of footnotes have a style."""
    done = 0
    for match in _FOUND.finditer(text):
        found = match.group()
        if found[0] == "[":
            style, target = "footnote", ""
        else:
            address = _trimmed(found)
            if address is None:
                continue
            found, style, target = address, "link", _target(address)
        if match.start() > done:
            yield text[done : match.start()], "", ""
        yield found, style, target
        done = match.start() + len(found)
    if done < len(text):
        yield text[done:], "", ""


def _trimmed(found: str) -> str | None:
    """Return an address without what belongs to the sentence around it, ``None`` when nothing is left."""
    while True:
        short = _TRAILING.sub("", found)
        if short.endswith(")") and short.count(")") > short.count("("):
            short = short[:-1]
        if short == found:
            break
        found = short
    if "://" in found or found.startswith("www."):
        return found if _HOST.match(found) else None
    return None if found[-1] in "-_" else found


def _target(found: str) -> str:
    if "://" in found:
        return found
    return f"http://{found}" if found.startswith("www.") else f"mailto:{found}"


def math_end(text: str, start: int, end: int) -> int:
    """Return where the formula ends that begins at ``start`` with ``$``, ``$$``, ``\\(`` or ``\\[``.

    0: none begins there. -1: none is found, but text that follows ``end`` could still make one.
    """
    opening = text[start : start + 2]
    if opening in ("$$", "\\[", "\\("):
        closing = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}[opening]
        limit = MATH_LINE if opening == "\\(" else MATH_BLOCK
        found = text.find(closing, start + 2, min(start + 2 + limit, end))
        if found < 0:
            return -1 if end - start < limit else 0
        body = text[start + 2 : found]
        if not body.strip() or "`" in body:
            return 0
        if opening != "$$" and not _formula(body):
            return 0
        return found + 2
    if start + 1 >= end:
        return -1
    if text[start + 1].isspace():
        return 0
    found = text.find("$", start + 1, min(start + 1 + MATH_LINE, end))
    line = text.find("\n", start + 1, found if found >= 0 else end)
    if line >= 0:
        return 0
    if found < 0:
        return -1 if end - start < MATH_LINE else 0
    if found + 1 < end and (text[found + 1].isdigit() or text[found + 1] == "$"):
        return 0
    body = text[start + 1 : found]
    if body[-1:].isspace() or "`" in body or "](" in body or not _formula(body):
        return 0
    return found + 1 if found + 1 < end or body else -1


def _formula(body: str) -> bool:
    """Tell whether ``body`` is clearly mathematics: it holds a sign of it, or one short word."""
    return any(char.isalnum() for char in body) and (
        _SIGNS.search(body) is not None or _SHORT.match(body) is not None
    )
