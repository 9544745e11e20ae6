"""All texts of the interface, in every language that it speaks.

A text has a key ``room.name``; the module of that room in this package holds ``EN`` and ``ZH``, two tables with the
same keys and the same ``{placeholders}``. ``tr`` finds the text in the language that is set. What the agent, the
sandbox and the journal say is recorded with the session, so it is English and does not come from here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache

LANGUAGES = ("en", "zh")
"""Languages that there are texts for."""

_current = "en"
_signs: Callable[[str], str] | None = None


def use(language: str, signs: Callable[[str], str] | None = None) -> None:
    """Speak ``language`` from now on; an unknown one is English. ``signs`` writes the signs of a text for this terminal."""
    global _current, _signs  # noqa: PLW0603 - one program speaks one language
    _current = language if language in LANGUAGES else "en"
    _signs = signs


def language() -> str:
    """Return the language that is spoken."""
    return _current


def choose(setting: str, environment: Mapping[str, str]) -> str:
    """Return the language for the value of the setting ``language``; ``auto`` asks ``LC_ALL``, ``LC_MESSAGES``, ``LANG``."""
    if setting in LANGUAGES:
        return setting
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def tr(key: str, /, **values: object) -> str:
    """Return the text of ``key`` with ``values`` put into its placeholders. A missing key is a fault of the program."""
    room, _, name = key.partition(".")
    english, chinese = _tables(room)
    text = chinese[name] if _current == "zh" else english[name]
    if _signs is not None:
        text = _signs(text)
    return text.format(**values) if values else text


def tr_count(key: str, count: int, /, **values: object) -> str:
    """Return the text of ``key.one`` or ``key.many`` for ``count`` things; ``{count}`` is the number."""
    return tr(f"{key}.{'one' if count == 1 else 'many'}", count=f"{count:,}", **values)


@lru_cache(maxsize=64)
def _tables(room: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    module = importlib.import_module(f"sandbox_chat.words.{room}")
    return module.EN, module.ZH
