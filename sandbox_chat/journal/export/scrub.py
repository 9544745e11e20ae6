"""Takes out of a text what is nobody else's: credentials by their shapes, and who and where the user is.

What is taken out is replaced by a mark that can be seen, and counted. Pictures are not looked at.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SECRET, HOME, USER, HOST = "[secret]", "[home]", "[user]", "[host]"

LEAST_SECRET = 4
"""Characters that a credential of the settings has at least to be looked for."""
LEAST_NAME = 3
"""The same for the user's and the computer's name."""
_COMMON = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "guest",
        "test",
        "dev",
        "home",
        "name",
        "host",
        "local",
        "localhost",
        "ubuntu",
        "debian",
        "node",
        "app",
        "runner",
        "docker",
        "vagrant",
        "pi",
        "python",
        "data",
        "work",
        "demo",
        "me",
        "tmp",
        "none",
        "main",
        "the",
        "and",
        "for",
        "you",
    ]
)
"""Names that are words: taking them out would take much else with them, and they tell of nobody."""

_SHAPES = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----[\s\S]*?
        (?:-----END\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{16,}                         # Anthropic, OpenAI and those that followed
      | gh[opusr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
      | hf_[A-Za-z0-9]{20,} | e2b_[A-Za-z0-9]{16,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,}
      | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,} | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | do[op]_v1_[a-f0-9]{40,} | dckr_pat_[A-Za-z0-9_-]{16,}
      | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])
      | eyJ[A-Za-z0-9_-]{8,8000}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*   # a JSON Web Token, bounded where many may begin
    )
    """,
    re.VERBOSE,
)
_BEARER = re.compile(
    r"(?P<before>\b(?:bearer|basic|token)\s+)(?P<value>[A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE
)
_ADDRESS = re.compile(
    r"(?P<before>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@'\"<>]{0,200}:)(?P<value>[^\s/@'\"<>]{1,500})(?=@)"
)
_KEY = (
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|auth[_-]?key|credentials?)(?:_?(?:id|key|value))?"
)
"""Names of what holds a credential."""
_NAMED = re.compile(
    r"""
    (?P<before>
        """
    + _KEY
    + r"""(?![A-Za-z])
        \\?["']?\]?[ \t]{0,5}(?::[ \t]{0,3}(?:str|bytes|Any|Secret|SecretStr|Optional\[str\]|str\ \|\ None)[ \t]{0,3}=|:|=>?)[ \t]{0,5}
    )
    (?:
        (?P<quote>\\?["'])(?P<quoted>(?:(?!(?P=quote)).){1,500}?)(?P=quote)
      | (?P<value>[^\s"'`,;&|<>(){}\[\]\\$]{4,500}+)(?![(\[])
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HOLDS = re.compile(rf"[\w-]*{_KEY}", re.IGNORECASE)
_NO_VALUE = re.compile(
    r"(?:none|null|nil|true|false|undefined|str|int|bytes|bool|any|optional|secret|string|required|missing|"
    r"\*{3,}|x{3,}|\.{3,}|…|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)",
    re.IGNORECASE,
)
"""What stands in the place of a value and is none: a word of the language, a name with dots."""
_SPENT = re.compile(r"[\d_.,]+")
"""A number: of tokens that were used, say. It is a value of a password only."""
_PASSWORD = re.compile(r"pass|pwd", re.IGNORECASE)


class Scrubber:
    """Replaces what it knows of in texts. ``counts`` says how often, by mark."""

    def __init__(
        self, *, secrets: Iterable[str] = (), homes: Iterable[str] = (), user: str = "", host: str = ""
    ) -> None:
        self.active = True
        self.counts: dict[str, int] = {}
        known = sorted({each for each in secrets if len(each) >= LEAST_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, known))) if known else None
        places = sorted(
            {home.rstrip("/\\") for home in homes if len(home.rstrip("/\\")) > 1}, key=len, reverse=True
        )
        slugs = {place.replace("/", "-") for place in places if place.count("/") > 1}
        self._homes = (
            re.compile("|".join(rf"{re.escape(place)}(?![A-Za-z0-9])" for place in [*places, *sorted(slugs)]))
            if places
            else None
        )
        self._user = _word(user)
        self._host = _word(host)

    @classmethod
    def none(cls) -> Scrubber:
        """Return one that changes nothing."""
        scrubber = cls()
        scrubber.active = False
        return scrubber

    @classmethod
    def of_here(cls, secrets: Iterable[str]) -> Scrubber:
        """Return one that knows the user and the computer that the program runs on, and the credentials ``secrets``."""
        import getpass
        import os
        import socket

        homes = {os.environ.get("HOME", "")}
        with contextlib.suppress(OSError, RuntimeError):
            homes |= {str(Path.home()), str(Path.home().resolve())}
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):
            user = ""
        try:
            host = socket.gethostname()
        except OSError:
            host = ""
        return cls(secrets=secrets, homes=homes, user=user, host=host)

    def __call__(self, text: str) -> str:
        """Return ``text`` without what was found in it."""
        if not self.active or not text:
            return text
        if self._secrets is not None:
            text = self._swap(self._secrets, text, SECRET)
        text = self._swap(_SHAPES, text, SECRET)
        text = _BEARER.sub(self._value, text)
        text = _ADDRESS.sub(self._value, text)
        text = _NAMED.sub(self._named, text)
        for pattern, mark in ((self._homes, HOME), (self._user, USER), (self._host, HOST)):
            if pattern is not None:
                text = self._swap(pattern, text, mark)
        return text

    def data(self, value: Any) -> Any:
        """Return JSON data with every text in it scrubbed, names too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(key)): self._entry(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(inner) for inner in value]
        return value

    def _entry(self, name: str, value: Any) -> Any:
        """Scrub a value by its name too: ``{"password": "…"}``."""
        if self.active and isinstance(value, str) and _HOLDS.fullmatch(name) and _is_value(name, value):
            self.counts[SECRET] = self.counts.get(SECRET, 0) + 1
            return SECRET
        return self.data(value)

    def _swap(self, pattern: re.Pattern[str], text: str, mark: str) -> str:
        text, count = pattern.subn(mark, text)
        if count:
            self.counts[mark] = self.counts.get(mark, 0) + count
        return text

    def _value(self, match: re.Match[str]) -> str:
        if match["value"] in (SECRET, SECRET[1:-1]):
            return match[0]
        self.counts[SECRET] = self.counts.get(SECRET, 0) + 1
        return match["before"] + SECRET

    def _named(self, match: re.Match[str]) -> str:
        quoted = match["quoted"] is not None
        value = match["quoted"] if quoted else match["value"]
        if value == SECRET or not (_is_value(match["before"], value) or (quoted and "." in value)):
            return match[0]
        self.counts[SECRET] = self.counts.get(SECRET, 0) + 1
        quote = match["quote"] if quoted else ""
        return f"{match['before']}{quote}{SECRET}{quote}"


def _is_value(name: str, value: str) -> bool:
    """Whether what a name of a credential is given may be one."""
    if not value.strip() or (_SPENT.fullmatch(value) and not _PASSWORD.search(name)):
        return False
    return value != SECRET and _NO_VALUE.fullmatch(value) is None


def _word(name: str) -> re.Pattern[str] | None:
    """Return a pattern for a name as a word; for a host's with its domain also the name alone."""
    short = name.partition(".")[0]
    names = sorted({each for each in (name, short) if len(each) >= LEAST_NAME}, key=len, reverse=True)
    names = [each for each in names if each.lower() not in _COMMON and not each.isdigit()]
    if not names:
        return None
    return re.compile(
        rf"(?<![\w.-])(?:{'|'.join(map(re.escape, names))})(?![\w-])|(?<=@)(?:{'|'.join(map(re.escape, names))})\b"
    )
