"""The values that settings hold: secrets, and how each kind is read from text and checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHOWN_LIMIT = 80  # characters of a wrong value that a message repeats

# An address with a password or a key in it, a key in the wrong place, anything long and random.
_LIKE_A_CREDENTIAL = re.compile(r"[@?#]|\bsk-|\be2b_|[A-Za-z0-9_+-]{20,}", re.ASCII)


class ConfigError(Exception):
    """A setting is wrong. The message names the setting, where it was found, and what is right."""


class Secret:
    """A credential. Never printed: ``str`` and ``repr`` show only that it is set. ``reveal`` unwraps it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value. Only the CLI child's environment and the sandbox client may call this."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(set)" if self._value else "Secret(empty)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled or copied to other processes")


class Servers(Mapping[str, Mapping[str, Any]]):
    """MCP servers by name, each with its properties, which may hold credentials: only the names are printed."""

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._found = dict(found or {})

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._found)))

    def __repr__(self) -> str:
        return f"Servers({', '.join(self._found)})"

    def __str__(self) -> str:
        return ",".join(self._found)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of personal data of the user's own; see ``patterns``."""

    name: str
    regex: str
    validator: str = ""


# --- readers: each takes a raw value and returns the checked one, or raises ``ValueError`` ----------------


def text(value: Any) -> str:
    """Read one line of text. Control bytes and broken characters are refused: they are never meant."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    word = value.strip()
    if any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 or 0xD800 <= ord(sign) < 0xE000 for sign in word):
        raise ValueError("must be plain text without control characters")
    return word


def secret(value: Any) -> Secret:
    """Read a credential. It goes into an HTTP header, so it is one word of plain ASCII."""
    word = text(value)
    if not word.isascii() or " " in word:
        raise ValueError("must be one word of plain letters, digits and signs; copy it again")
    return Secret(word)


def flag(value: Any) -> bool:
    """Read true or false, in the words that people use for them."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("must be true or false")


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers from ``low`` to ``high``."""

    def read(value: Any) -> int:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = int(str(value).strip().replace("_", ""))
        except ValueError:
            raise ValueError(f"must be a whole number from {low} to {high}") from None
        if not low <= number <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return number

    return read


def number(low: float, high: float) -> Callable[[Any], float]:
    """Return a reader of numbers from ``low`` to ``high``."""

    def read(value: Any) -> float:
        try:
            if isinstance(value, bool):
                raise ValueError
            found = float(str(value).strip())
        except ValueError:
            raise ValueError(f"must be a number from {low:g} to {high:g}") from None
        if not low <= found <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return found

    return read


def one_of(*choices: str) -> Callable[[Any], str]:
    """Return a reader of one of some words."""

    def read(value: Any) -> str:
        word = str(value).strip().lower()
        if word not in choices:
            near = difflib.get_close_matches(word, choices, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"must be one of {', '.join(choices)}{hint}")
        return word

    return read


def thinking(value: Any) -> str:
    """Read how the model may think: ``on``, ``off``, or a number of tokens from 1024."""
    word = str(value).strip().lower().replace("_", "")
    if word in ("on", "off"):
        return word
    if (
        isinstance(value, bool)
        or not word.isascii()
        or not word.isdigit()
        or not 1024 <= int(word) <= 1_000_000
    ):
        raise ValueError("must be on, off, or a number of tokens from 1024 to 1000000")
    return str(int(word))


def some_of(*choices: str) -> Callable[[Any], tuple[str, ...]]:
    """Return a reader of any of some words: a list, or text with commas. The case of the words does not matter."""
    by_lower = {choice.lower(): choice for choice in choices}

    def read(value: Any) -> tuple[str, ...]:
        words = value if isinstance(value, list | tuple) else str(value).split(",")
        chosen = [str(word).strip().lower() for word in words]
        for word in chosen:
            if word and word not in by_lower:
                raise ValueError(f"must hold only {', '.join(choices)}, with commas")
        return tuple(choice for lower, choice in by_lower.items() if lower in chosen)

    return read


def url(value: Any) -> str:
    """Read the address of a server; the slash at its end is dropped."""
    address = text(value).rstrip("/")
    if not address:
        return ""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        port_ok = False
    if (
        not port_ok
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or any(c.isspace() for c in address)
    ):
        raise ValueError("must be a URL such as https://gateway.example.com (http or https, with a host)")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password; put the token into ANTHROPIC_AUTH_TOKEN")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path, without ? or #")
    return address


def domain(value: Any) -> str:
    """Read the name of a domain, with a port if need be."""
    name = text(value).rstrip("/")
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:\d{1,5})?", name, re.ASCII):
        raise ValueError("must be a name such as cloud.example.com, without https:// and without a path")
    return name


def path(value: Any) -> Path | None:
    """Read a path; ``~`` is the home folder. ``None`` when empty."""
    name = text(value)
    if not name:
        return None
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ValueError("names a home folder that is not known") from None


def shown(value: Any) -> str:
    """Return a wrong value for a message, short, and without what could be a credential in it."""
    word = str(value)
    if _LIKE_A_CREDENTIAL.search(word):
        return ""
    cut = word if len(word) <= _SHOWN_LIMIT else word[: _SHOWN_LIMIT - 1] + "…"
    return f" It is {cut!r}."


def words(value: Any) -> tuple[str, ...]:
    """Read words with commas between, or a list of them. Repeated ones count once."""
    listed = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(dict.fromkeys(word for each in listed if (word := text(each))))


def servers(value: Any) -> Servers:
    """Read MCP servers: names with commas between, a JSON object of name and properties, or such an object."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[", '"')):
        import json

        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"is not valid JSON ({error})") from None
        if not isinstance(value, dict):
            raise ValueError('must be a JSON object of servers, as {"time": {}}')
    if isinstance(value, dict):
        for name, properties in value.items():
            if not isinstance(properties, dict | None):
                raise ValueError(f"must give an object of properties for the server {shorten(name)}, as {{}}")
        return Servers({str(name): dict(properties or {}) for name, properties in value.items()})
    return Servers({name: {} for name in words(value)})


def regions(value: Any) -> tuple[str, ...]:
    """Read countries, two letters each."""
    found = tuple(word.upper() for word in words(value))
    for word in found:
        if not re.fullmatch("[A-Z]{2}", word):
            raise ValueError(
                f"must hold countries of two letters, such as US,CN, and {shorten(word)} is none"
            )
    return found


VALIDATORS = ("", "luhn", "card", "ssn", "cn_id")


def patterns(value: Any) -> tuple[Pattern, ...]:
    """Read patterns: a list of objects with ``name``, ``regex`` and, if need be, ``validator``, or the same as JSON."""
    if isinstance(value, str):
        import json

        if not value.strip():
            return ()
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"must be a list in JSON, and is none ({error})") from None
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list, as [{"name": "STAFF", "regex": "E-[0-9]{6}"}]')
    return tuple(each if isinstance(each, Pattern) else _pattern(each) for each in value)


def _pattern(value: Any) -> Pattern:
    if not isinstance(value, dict) or not {"name", "regex"} <= set(value) <= {"name", "regex", "validator"}:
        raise ValueError("must hold objects with name, regex and, if need be, validator")
    name, expression, validator = value["name"], value["regex"], value.get("validator", "")
    if not isinstance(name, str) or not re.fullmatch("[A-Z][A-Z0-9_]{1,20}", name):
        raise ValueError(
            f"must have names of 2 to 21 capital letters, digits and _, not {shorten(str(name))}"
        )
    if validator not in VALIDATORS:
        raise ValueError(f"must have a validator in {name} that is one of {', '.join(VALIDATORS[1:])}")
    try:
        matches_nothing = re.compile(expression).match("") is not None
    except (re.error, TypeError, RecursionError) as error:
        raise ValueError(
            f"must have a regular expression in {name}, and what is there is none ({error})"
        ) from None
    if matches_nothing:
        raise ValueError(f"must have a regular expression in {name} that does not match an empty text")
    return Pattern(name, expression, validator)


def shorten(name: str) -> str:
    """Return a name for a message: printable, and not long."""
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain if len(plain) <= 40 else plain[:39] + "…"
