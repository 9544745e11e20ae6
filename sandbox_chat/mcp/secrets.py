"""Which of a server's variables and headers are credentials, to be kept out of its results. Pure.

Out of messages and logs all of them are kept (``ServerConfig.secrets``); a result may well hold the host or the folder
that a server was given.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

from sandbox_chat.mcp.base import ServerConfig

SHORTEST = 6
"""Characters of the shortest value that is taken out of a result: a shorter one occurs by chance."""
_NAMED = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD|AUTH|CREDENTIAL|COOKIE|SIGNATURE|DSN|_URI|_URL|CONNECTION", re.IGNORECASE
)
_PLAIN = re.compile(r"https?://[^@]*|(?:true|false|yes|no|on|off|\d+)", re.IGNORECASE)


def credentials(config: ServerConfig) -> list[str]:
    """Return the credentials of a server, the longest first, passwords within addresses too."""
    headers = config.endpoint.headers if config.endpoint is not None else {}
    named = [value.reveal() for name, value in config.env.items() if _NAMED.search(name)]
    given = [*named, *(value.reveal() for name, value in headers.items() if name.lower() != "host")]
    found = {value for value in given if not _PLAIN.fullmatch(value)}
    found |= {value.reveal() for value in config.hidden}
    for value in [*given, *config.command]:
        found |= _passwords(value)
    found |= {
        value.partition(" ")[2].strip() for value in found if value.lower().startswith(("bearer ", "basic "))
    }
    return sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True)


def scrubbed(text: str, values: list[str]) -> str:
    """Return a text with ``[secret]`` in the place of each of ``values``."""
    for value in values:
        for form in _written(value):
            text = text.replace(form, "[secret]")
    return text


@lru_cache(maxsize=1000)
def _written(value: str) -> tuple[str, ...]:
    """How a value is written: as it is, in JSON, in an address."""
    in_json = (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    in_address = (quote(value, safe=safe, errors="replace") for safe in ("/", ""))
    return tuple(dict.fromkeys((value, *in_json, *in_address)))


def _passwords(value: str) -> set[str]:
    if "://" not in value or "@" not in value:
        return set()
    try:
        password = urlsplit(value).password
    except ValueError:
        return set()
    return {password, unquote(password)} if password else set()
