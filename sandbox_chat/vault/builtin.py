"""The built-in engine: the patterns of this room, one after the other, each on what the earlier ones left.

The order: patterns of the user's, e-mail, IP addresses, Chinese identity numbers, cards, social security numbers, phones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sandbox_chat.settings import Settings
from sandbox_chat.vault import own
from sandbox_chat.vault.addresses import find_addresses
from sandbox_chat.vault.copy import plain_copy
from sandbox_chat.vault.engine import Span, Taken
from sandbox_chat.vault.mail import find_mail
from sandbox_chat.vault.numbers import find_cards, find_cn_ids, find_social
from sandbox_chat.vault.phones import Phones
from sandbox_chat.personal import KINDS, REGIONS

Finder = Callable[[str], Iterable[tuple[int, int]]]


class Builtin:
    """Finds the kinds of personal data that the settings name, and what the user's patterns describe."""

    def __init__(self, settings: Settings) -> None:
        self.kinds = settings.pii_kinds or KINDS
        finders: dict[str, Finder] = {
            "EMAIL": find_mail,
            "IP": find_addresses,
            "CN_ID": find_cn_ids,
            "CARD": find_cards,
            "SSN": find_social,
            "PHONE": Phones(settings.pii_regions or REGIONS).find,
        }
        self._own = own.make(settings.pii_patterns)
        self._finders = [(kind, find) for kind, find in finders.items() if kind in self.kinds]

    def find(self, text: str) -> Sequence[Span]:
        """Return the values in ``text`` in their order."""
        copy = plain_copy(text)
        taken = Taken()
        for each in self._own:
            self._take(taken, each.kind, each.find, copy)
            copy = taken.blank(copy)
        numbers = sum(map(copy.count, "0123456789")) >= 7
        for kind, find in self._finders:
            if (kind == "EMAIL" and "@" not in copy and "%40" not in copy) or (kind != "EMAIL" and not numbers):
                if kind != "IP" or ":" not in copy:
                    if not (kind == "IP" and "." in copy):
                        continue
            before = len(taken.spans)
            self._take(taken, kind, find, copy)
            if len(taken.spans) > before:
                copy = taken.blank(copy)
        return sorted(taken.spans)

    def _take(self, taken: Taken, kind: str, find: Finder, copy: str) -> None:
        end = 0
        for start, stop in sorted(find(copy), key=lambda place: (place[0], -place[1])):
            if start >= end:
                taken.spans.append(Span(start, stop, kind))
                end = stop
