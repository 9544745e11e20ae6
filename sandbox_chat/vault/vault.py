"""The vault of a session: which token stands for which value."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox_chat.settings import Secret, Settings
from sandbox_chat.vault import kinds
from sandbox_chat.vault.disguise import Disguises, Hit, widest
from sandbox_chat.vault.kinds import Finder, Phones
from sandbox_chat.vault.patterns import user_finders

TOKEN = re.compile(r"<([A-Z][A-Z0-9_]{1,20}):([a-z2-7]{10})>")
"""A token: the kind, and ten random signs."""
_SIGNS = "abcdefghijklmnopqrstuvwxyz234567"
_SIZE = 10
LONGEST_LINE = 4096
"""Characters of an unfinished line of live output that are held back at most."""
WHOLE_NUMBERS = 7
"""Digits from which on a whole number among JSON data is looked at."""
LONGEST_WORD = 65_536
"""The same without a sign at which no value goes on."""
_GAP = re.compile(r"[^\w@.+%()/:'-]")
_DEEPEST = 200
_MOST_DIGITS = 25
TOO_DEEP = "[nested too deeply]"
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A value was on its way out: its kind, how it was written, and its token."""

    kind: str
    how: str
    token: str


class Vault:
    """The values of a session and their tokens, in memory only. Any thread.

    The same spelling has the same token within a vault; another spelling of the same number has another one, so that what
    is put back is exactly what was there. Tokens are random and say nothing but the kind.
    """

    def __init__(self, settings: Settings) -> None:
        self._lock = threading.RLock()
        self._tokens: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._disguises = Disguises()
        chosen = [kind for kind in kinds.KINDS if kind in settings.pii_kinds]
        finders: dict[str, Finder] = {**kinds.FINDERS, "PHONE": Phones(settings.pii_regions)}
        self._finders = [*user_finders(settings.pii_patterns), *(finders[kind] for kind in chosen)]
        if settings.pii_engine == "presidio":
            from sandbox_chat.vault.presidio import presidio_finder

            self._finders.append(presidio_finder())

    def __repr__(self) -> str:
        return f"Vault({len(self._values)} values)"

    @property
    def count(self) -> int:
        """How many values it holds."""
        return len(self._values)

    def tokens(self) -> Mapping[str, int]:
        """Return how many values of each kind it holds."""
        with self._lock:
            return Counter(token[1:].partition(":")[0] for token in self._values)

    def values(self) -> Mapping[str, str]:
        """Return what each token stands for, in the order in which they were made: for the user's eyes only."""
        with self._lock:
            return dict(self._values)

    # -- text ------------------------------------------------------------------------------------------

    def hide(self, text: str) -> str:
        """Return a text with tokens in place of personal data, and of all values that the vault knows."""
        with self._lock:
            taken = self._taken(text)
            found: list[Hit] = []
            for span in kinds.find(text, self._finders, taken):
                value = text[span.start : span.end]
                found.append(Hit(span.start, span.end, self._token(value, span.kind), "new"))
            known = [hit for hit in self._disguises.plain(text) if not _within(hit, taken)]
            return _replaced(text, widest(iter([*found, *known])))

    def guard(self, text: str) -> tuple[str, list[Finding]]:
        """Return what ``hide`` does, with the values of the vault that are written in another way replaced too, and what those were."""
        with self._lock:
            # Before new values are looked for: what is reversed would be taken for one.
            taken = self._taken(text)
            hits = widest(hit for hit in self._disguises.all(text) if not _touches(hit, taken))
            findings = [Finding(_kind(hit.token), hit.how, hit.token) for hit in hits if hit.how != "plain"]
            once = self.hide(_replaced(text, hits))
            # And after it, as one that has just become known may stand there in another way too.
            taken = self._taken(once)
            more = widest(hit for hit in self._disguises.all(once) if not _touches(hit, taken))
            findings += [Finding(_kind(hit.token), hit.how, hit.token) for hit in more]
            return _replaced(once, more), findings

    def _taken(self, text: str) -> list[tuple[int, int]]:
        """Return where tokens of this vault stand; what only looks like one is text like any other."""
        return [match.span() for match in TOKEN.finditer(text) if match.group() in self._values]

    def reveal(self, text: str) -> str:
        """Return a text with the values in place of the tokens of this vault; other tokens stay."""
        with self._lock:
            return TOKEN.sub(lambda match: self._values.get(match.group(), match.group()), text)

    def stream(self) -> Stream:
        """Return what hides personal data in text that comes in pieces."""
        return Stream(self)

    # -- JSON ------------------------------------------------------------------------------------------

    def hide_json(self, value: Any) -> Any:
        """Return JSON data with ``hide`` done to every text and long whole number in it."""
        return _mapped(value, self.hide)

    def guard_json(self, value: Any) -> tuple[Any, list[Finding]]:
        """Return JSON data with ``guard`` done to every text and long whole number in it, and what was found."""
        findings: list[Finding] = []

        def guarded(text: str) -> str:
            found, more = self.guard(text)
            findings.extend(more)
            return found

        return _mapped(value, guarded), findings

    def reveal_json(self, value: Any) -> Any:
        """Return JSON data with ``reveal`` done to every text in it."""
        return _mapped(value, self.reveal, numbers=False)

    # -- the values ------------------------------------------------------------------------------------

    def _token(self, value: str, kind: str) -> str:
        token = self._tokens.get(value)
        if token is None:
            while token is None or token in self._values:
                token = f"<{kind}:{''.join(secrets.choice(_SIGNS) for _ in range(_SIZE))}>"
            self._tokens[value] = token
            self._values[token] = value
            self._disguises.add(value, token)
        return token

    def export_encrypted(self, passphrase: Secret) -> bytes:
        """Return the values, encrypted; see ``keeping.py``."""
        from sandbox_chat.vault.keeping import seal

        with self._lock:
            return seal(dict(self._values), passphrase)

    def take_encrypted(self, data: bytes, passphrase: Secret) -> None:
        """Take values in that ``export_encrypted`` gave. Raises ``keeping.CannotOpen``."""
        from sandbox_chat.vault.keeping import unseal

        self.take(unseal(data, passphrase))

    def take(self, values: Mapping[str, str]) -> None:
        """Take values in, by their tokens; what is no token, or is known already, is left out."""
        with self._lock:
            for token, value in values.items():
                if TOKEN.fullmatch(token) and value not in self._tokens and token not in self._values:
                    self._tokens[value], self._values[token] = token, value
                    self._disguises.add(value, token)


class Stream:
    """Hides personal data in text that comes in pieces: an unfinished line is held back. One thread at a time."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._rest = ""

    def feed(self, text: str) -> str:
        """Take a piece, and return what may be shown now."""
        whole = self._rest + text
        end = max(whole.rfind("\n"), whole.rfind("\r")) + 1
        if len(whole) - end > LONGEST_LINE:
            gap = max((match.end() for match in _GAP.finditer(whole, end)), default=0)
            if gap or len(whole) - end > LONGEST_WORD:
                end = gap or len(whole)
        self._rest = whole[end:]
        return self._vault.guard(whole[:end])[0] if end else ""

    def close(self) -> str:
        """Return what was held back."""
        rest, self._rest = self._rest, ""
        return self._vault.guard(rest)[0] if rest else ""


def _kind(token: str) -> str:
    return token[1:].partition(":")[0]


def _within(hit: Hit, taken: list[tuple[int, int]]) -> bool:
    return any(start < hit.end and hit.start < end for start, end in taken)


def _touches(hit: Hit, taken: list[tuple[int, int]]) -> bool:
    """Whether a hit is about the signs of a token itself, and not about something around it."""
    return any(start <= hit.start and hit.end <= end for start, end in taken)


def _replaced(text: str, hits: list[Hit]) -> str:
    parts, at = [], 0
    for hit in hits:
        parts += [text[at : hit.start], hit.token]
        at = hit.end
    return "".join([*parts, text[at:]])


def _named(name: str, value: str, change: Callable[[str], str]) -> str:
    """Return a text of an object, changed with its name before it: that may tell what it is."""
    before = f"{name}: "
    if len(before) < _LONGEST_NAME:
        changed = change(before + value)
        if changed.startswith(before):
            return changed[len(before) :]
    return change(value)


def _mapped(value: Any, change: Callable[[str], str], *, numbers: bool = True, depth: int = 0) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        text = _number_text(value) if numbers else ""
        changed = change(text) if text else text
        return value if changed == text else changed
    if depth > _DEEPEST:  # nothing is put back there, and what is hidden is hidden in the text of it
        return change(_as_text(value)) if numbers else value
    if isinstance(value, Mapping):
        found: dict[Any, Any] = {}
        for name, each in value.items():
            key = _free(change(name), found) if isinstance(name, str) else name
            found[key] = _member(name, each, change, numbers=numbers, depth=depth)
        return found
    if isinstance(value, list | tuple):
        return [_mapped(each, change, numbers=numbers, depth=depth + 1) for each in value]
    return value


def _member(name: Any, value: Any, change: Callable[[str], str], *, numbers: bool, depth: int) -> Any:
    """Return a value of an object, changed."""
    if numbers and isinstance(name, str):
        if isinstance(value, str):
            return _named(name, value, change)
        if isinstance(value, int | float) and not isinstance(value, bool) and (text := _number_text(value)):
            changed = _named(name, text, change)
            return value if changed == text else changed
    return _mapped(value, change, numbers=numbers, depth=depth + 1)


def _number_text(value: float) -> str:
    """Return a long whole number as it is written; empty for others."""
    try:
        whole = int(value)
    except (ValueError, OverflowError):  # not a number, or without end
        return ""
    return str(whole) if whole == value and 10**WHOLE_NUMBERS <= abs(whole) < 10**_MOST_DIGITS else ""


def _free(name: str, taken: Mapping[Any, Any]) -> str:
    """Return a name that no other member has: two that have become alike stay two."""
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name} ({number})", number + 1
    return unique


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP
