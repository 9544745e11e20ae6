"""Names, addresses and texts of MCP servers: which can be, and why others cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
TAKEN = ("sandbox", "gateway", "off")
"""Names that mean something else here."""
UNFIT = "must not hold control characters"
"""What is wrong with a text that ``is_unfit``."""
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def is_unfit(text: str) -> bool:
    """Return whether a command, an argument or a variable holds what none can mean: control characters but tabs and line ends, half characters."""
    return _UNFIT.search(text) is not None


def strings(value: Any) -> Iterator[str]:
    """Yield all texts in JSON data, names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


def name_problem(name: str) -> str:
    """Return why a server cannot have this name, empty when it can."""
    if name.lower() in TAKEN:
        return "that name has a meaning of its own here"
    if not NAME.fullmatch(name):
        return (
            "a name has at most 64 letters, digits and signs of _ . - and begins with a letter, a digit or _"
        )
    return ""


def url_problem(url: str, *, insecure: bool) -> str:
    """Return why a server cannot be reached at this address, empty when it can."""
    from urllib.parse import urlsplit

    form = "must be an address such as https://host/mcp"
    if not url.isascii() or any(sign.isspace() or not sign.isprintable() for sign in url):
        return f"{form}, of plain letters, digits and signs"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return form
    if parts.scheme not in ("http", "https") or not host:
        return form
    if "@" in parts.netloc:
        return "must not hold a user name or password; give a header instead"
    if parts.fragment:
        return "must not hold a #"
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        return (
            "is not encrypted (http), so that whoever is on the way reads your credential; use https, or say "
            'that it may be: "insecure": true beside it in the file, --insecure with mcp add'
        )
    return ""


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
