"""``${VAR}`` and ``${VAR:-default}`` in the texts of a server (``$${`` is a literal ``${``), and which values are not shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]{0,1000})\}")
"""A variable, or the sign for a literal ``${``, which has no group."""
_KNOWN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.ASCII | re.DOTALL)

_NAMED_LIKE_CREDENTIALS = re.compile(
    r"(?:^|[^a-z])(?:auth|authorization|key|apikey|token|secret|pass|password|passwd|pwd|cookie|credentials?|dsn|uri|pat)(?:$|[^a-z])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LIKE_CREDENTIALS = re.compile(
    r"\b(?:sk-|gh[opsu]_|github_pat_|glpat-|xox[a-z]-|e2b_|AKIA|eyJ)[A-Za-z0-9_.=-]{8,}", re.ASCII
)
_OF_AN_ADDRESS = re.compile(r"(://[^\s/@:]{0,200}:)([^\s/@]{1,500})(?=@)")
_OF_AN_OPTION = re.compile(
    r"(--?[A-Za-z-]{0,30}(?:token|key|secret|password|passwd|auth)[A-Za-z-]{0,30}[ =])([A-Za-z0-9_+/.=-]{8,})",
    re.ASCII | re.IGNORECASE,
)
_OF_A_SCHEME = re.compile(r"(\b(?:bearer|basic|token) +)([A-Za-z0-9_+/.~=-]{8,})", re.ASCII | re.IGNORECASE)
_LONG_AND_RANDOM = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9_+/=-]{24,}", re.ASCII)

HIDDEN = "[secret]"
_AWAY = "\0"
"""Stands for a variable while a text is masked: no text of a server holds it."""
SHORTEST = 4
"""Characters of the shortest value that is hidden: shorter ones stand in every other word."""


class Unset(Exception):
    """A text cannot be filled in: ``variable`` is not set, or ``text`` is not understood (then ``variable`` is empty)."""

    def __init__(self, variable: str, text: str = "") -> None:
        super().__init__(variable or text)
        self.variable = variable
        self.text = text


def references(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the variables that ``text`` names, each with its default. What is not understood is passed over."""
    for found in _REFERENCE.finditer(text):
        if known := _KNOWN.fullmatch(found[1] or ""):
            yield known[1], known[2]


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` with the variables of ``environ`` filled in, once: their values are not looked at again.

    A default stands for a variable that is not set or empty. Raises ``Unset``.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] is None:
            return "${"
        known = _KNOWN.fullmatch(found[1])
        if known is None:
            raise Unset("", found[0])
        default = known[2]
        if default is not None:
            return environ.get(known[1]) or default
        if known[1] not in environ:
            raise Unset(known[1])
        return environ[known[1]]

    return _REFERENCE.sub(value, text)


def expand_all(value: Any, environ: Mapping[str, str]) -> Any:
    """Return JSON data with the variables in all its texts filled in; names stay. Raises ``Unset``."""
    if isinstance(value, str):
        return expand(value, environ)
    if isinstance(value, Mapping):
        return {name: expand_all(each, environ) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [expand_all(each, environ) for each in value]
    return value


def like_a_credential(name: str, value: str) -> bool:
    """Is that a credential, by its name or by its looks? A text that only names variables is none."""
    rest = _REFERENCE.sub(lambda found: found[0] if found[1] is None else "", value)
    named = rest == value and bool(_NAMED_LIKE_CREDENTIALS.search(_CAMEL.sub("_", name).replace("_", " ")))
    value = rest
    return bool(value.strip()) and bool(
        named
        or _LIKE_CREDENTIALS.search(value)
        or _OF_AN_ADDRESS.search(value)
        or _LONG_AND_RANDOM.fullmatch(value.strip())
    )


def worth_hiding(name: str, value: str) -> bool:
    """Is the value of that variable to be kept out of logs and messages?"""
    return len(value) >= SHORTEST and like_a_credential(name, value)


def masked(text: str) -> str:
    """Return ``text`` (a command, an address) with what looks like a credential in it replaced, variables never."""
    text, variables = _away(text)
    return _put_back(_marked(text), variables)


def masked_address(url: str) -> str:
    """Return an address as ``masked`` does; in its query the names too tell what is a credential."""
    text, variables = _away(url)
    base, mark, query = text.partition("?")
    parts = []
    for part in query.split("&"):
        name, sign, value = part.partition("=") if "=" in part else ("", "", part)
        secret = like_a_credential(unquote_plus(name), value)
        parts.append(_marked(name) + sign + (_without(value) if secret else _marked(value)))
    return _put_back(_marked(base) + mark + "&".join(parts), variables)


def hidden(value: str) -> str:
    """Return a credential as it is shown: the variables that it names, and nothing of the rest."""
    text, variables = _away(value)
    return _put_back(_without(text), variables)


def _away(text: str) -> tuple[str, list[str]]:
    """Return ``text`` with ``_AWAY`` in the place of each variable, and these as they are shown."""
    variables: list[str] = []

    def put(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        name, sign, default = found[1].partition(":-")
        variables.append(f"${{{name}{sign}{_marked(default)}}}")
        return _AWAY

    return _REFERENCE.sub(put, text.replace(_AWAY, "\ufffd")), variables


def _put_back(text: str, variables: list[str]) -> str:
    first, *rest = text.split(_AWAY)
    return first + "".join(variable + piece for variable, piece in zip(variables, rest, strict=True))


def _marked(text: str) -> str:
    for kind in (_OF_AN_ADDRESS, _OF_A_SCHEME, _OF_AN_OPTION):
        text = kind.sub(lambda found: found[1] + _without(found[2]), text)
    return _LIKE_CREDENTIALS.sub(HIDDEN, text)


def _without(text: str) -> str:
    return _AWAY.join(HIDDEN if piece else "" for piece in text.split(_AWAY))
