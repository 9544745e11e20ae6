"""Settings about personal data: its kinds, the regions of phone numbers, and patterns of the user's own.

A pattern of the user's is a table ``[[pii_patterns]]`` of ``config.toml``, or one of a JSON list in the environment:
``name`` (what its tokens are called), ``regex`` and, if wanted, ``validator`` (a check of what the regex found). Where the
regex has a group named ``value``, only that group is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

KINDS = ("EMAIL", "IP", "CARD", "SSN", "CN_ID", "PHONE")
"""Kinds of personal data that are known without a pattern of the user's."""
ENGINES = ("builtin", "presidio")
"""What finds personal data."""
VALIDATORS = ("luhn", "iban", "cn_id")
"""Checks that a pattern of the user's may name: cards, bank accounts, Chinese identity numbers."""
REGIONS = ("US", "CN")
"""Regions of phone numbers that are written without a country's number, unless others are set."""
MOST = 50
"""Patterns of the user's at most."""
LONGEST = 1000
"""Characters of a regex at most."""
GROUP = "value"
"""Name of the group of a regex that is replaced, where it has one."""
_NAME = re.compile(r"[A-Z][A-Z0-9_]{1,20}", re.ASCII)
_REGION = re.compile(r"[A-Z]{2}", re.ASCII)
_PARTS = ("name", "regex", "validator")
_FORM = 'must be tables [[pii_patterns]], or a JSON list as [{"name": "STAFF", "regex": "E-[0-9]{6}"}]'


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of the user's: ``name`` is the kind of its tokens, ``validator`` one of ``VALIDATORS`` or empty."""

    name: str
    regex: str
    validator: str = ""


def patterns(value: Any) -> tuple[Pattern, ...]:
    """Read patterns of the user's: a list of tables, or such a list as JSON. Raises ``ValueError`` that says what is wrong."""
    if isinstance(value, str):
        if not value.strip():
            return ()
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"{_FORM}; it is not valid JSON") from None
    if isinstance(value, tuple) and all(isinstance(each, Pattern) for each in value):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError(_FORM)
    if len(value) > MOST:
        raise ValueError(f"must be {MOST} patterns at most")
    found = [_pattern(table, number) for number, table in enumerate(value, 1)]
    names = [each.name for each in found]
    for each in names:
        if names.count(each) > 1:
            raise ValueError(f"must not name {each} twice; join the two with | in one regex")
    return tuple(found)


def regions(value: Any) -> tuple[str, ...]:
    """Read regions of phone numbers: codes of two letters, a list or with commas between."""
    words = value if isinstance(value, list | tuple) else str(value).split(",")
    found = tuple(dict.fromkeys(str(word).strip().upper() for word in words if str(word).strip()))
    if not all(_REGION.fullmatch(word) for word in found):
        raise ValueError("must be codes of countries with two letters, with commas between, as US,CN,GB")
    return found


def compiled(pattern: str) -> Any:
    """Return a regex of the user's in the engine that can be stopped. Raises ``ValueError`` when it is not valid."""
    import regex  # its import is not for those who have no patterns

    try:
        return regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError, MemoryError, ValueError, IndexError) as error:
        raise ValueError(str(error) or "it is too large") from None


def _pattern(table: Mapping[str, Any], number: int) -> Pattern:
    name, regex, validator = (table.get(part, "") for part in _PARTS)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"must give pattern {number} a name of 2 to 21 capital letters, digits and _, as STAFF_ID"
        )
    where = f"must have another regex for {name}"
    if name in KINDS:
        raise ValueError(f"must have another name for {name}: that kind is built in")
    _only(table, name)
    if not isinstance(regex, str) or not regex:
        raise ValueError(f"{where}: it has none; write it as regex = 'E-[0-9]{{6}}'")
    if len(regex) > LONGEST:
        raise ValueError(f"{where}: it is longer than {LONGEST} characters")
    if validator not in ("", *VALIDATORS):
        raise ValueError(f"must have another validator for {name}: one of {', '.join(VALIDATORS)}, or none")
    try:
        program = compiled(regex)
    except ValueError as error:
        raise ValueError(f"{where}: it is not valid ({error})") from None
    try:
        empty = program.search("", timeout=0.5)
    except TimeoutError:
        raise ValueError(f"{where}: it takes too long") from None
    if empty is not None:
        raise ValueError(f"{where}: it also finds nothing at all; replace * by + in it")
    return Pattern(name, regex, str(validator))


def _only(table: Mapping[str, Any], name: str) -> None:
    others: Iterable[str] = (str(key) for key in table if key not in _PARTS)
    for key in others:
        raise ValueError(f"must hold only {', '.join(_PARTS)}, but {name} has {key[:40]!r}")
