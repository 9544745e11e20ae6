"""Names of servers and tools as the model may use them: unique, of plain letters, not too long. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

FULL_LIMIT = 64
"""Characters of a tool's full name at most: what endpoints take."""
SERVER_LIMIT = 24
"""Characters of a server's name at most, so that its tools keep most of theirs."""
TAKEN = frozenset({"sandbox"})
"""Names of servers that are the program's own."""
PREFIX = "mcp__"
BETWEEN = "__"
_HASH = 6
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RUNS = re.compile(r"__+")


def server_names(names: Iterable[str]) -> list[str]:
    """Return for each server the name that the model knows it by.

    No such name holds two underscores in a row or ends with one, so that a full name has one reading.
    """
    found: list[str] = []
    wanted = [(name, _server(name)) for name in names]
    plain = [name for name, clean in wanted if name == clean]
    for name, clean in wanted:
        others = {*TAKEN, *found, *(plain if name != clean else ())}
        found.append(_apart(clean, name, others, SERVER_LIMIT))
    return found


def tool_names(server: str, originals: Iterable[str]) -> dict[str, str]:
    """Return for each of a server's tools, by its own name, the one that the model knows it by, in their order.

    A name that is fit as it is stays so, whatever else the server offers. ``server`` is a name of ``server_names``.
    """
    limit = FULL_LIMIT - len(PREFIX) - len(server) - len(BETWEEN)
    names = list(dict.fromkeys(originals))
    fit = {name for name in names if name == _clean(name, "tool") and len(name) <= limit}
    found: dict[str, str] = {}
    for name in names:
        if name in fit:
            found[name] = name
        else:
            found[name] = _apart(_clean(name, "tool"), name, {*fit, *found.values()}, limit)
    return found


def full_name(server: str, tool: str) -> str:
    """Return the name that the agent calls a tool by."""
    return f"{PREFIX}{server}{BETWEEN}{tool}"


def _server(name: str) -> str:
    return _RUNS.sub("_", _clean(name, "server")).strip("_") or "server"


def _clean(name: str, instead: str) -> str:
    clean = _UNSAFE.sub("_", name)
    return clean if clean.strip("_-") else instead


def _apart(clean: str, name: str, others: Collection[str], limit: int) -> str:
    """Return ``clean``, cut and with a part of the name's hash where that is needed to tell it from others."""
    if len(clean) <= limit and clean not in others:
        return clean
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(_HASH, len(digest)):
        short = clean[: limit - length - 1].rstrip("_")
        found = f"{short}_{digest[:length]}" if short else digest[:length]
        if found not in others:
            return found
    return digest[:limit]
