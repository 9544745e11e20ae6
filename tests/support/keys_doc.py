"""Writes the table of the keys from the actions themselves: ``python tests/support/keys_doc.py`` for the README."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sandbox_chat import words
from sandbox_chat.ui.actions import key_names, of
from sandbox_chat.ui.screens.help import PLACES
from sandbox_chat.words import tr


def _rows() -> Iterator[str]:
    for place in PLACES:
        actions = of(place)
        if not actions:
            continue
        yield f"\n**{tr(f'actions.place.{place}')}**\n\n| key | name | what it does |\n|---|---|---|\n"
        for item in actions:
            keys = key_names(item.keys).replace("|", "\\|")
            about = item.title if item.help == item.title else f"{item.title}. {item.help}."
            yield f"| {keys} | `{item.name}` | {about} |\n"


def table() -> str:
    """Return all actions as Markdown tables, one for each place, in English."""
    before = words.language()
    words.use("en")
    try:
        return "".join(_rows()).lstrip("\n")
    finally:
        words.use(before)


if __name__ == "__main__":
    sys.stdout.write(table())
