"""Warns of credentials that are about to be written down where a variable would do."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sandbox_chat.mcp.entry import Entry
from sandbox_chat.mcp.variables import like_a_credential, masked
from sandbox_chat.mcp_face.said import say
from sandbox_chat.settings import Settings

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry


def warn_of_credentials(settings: Settings, entry: Entry, listed: CatalogEntry | None = None) -> None:
    """Say of each credential in a new server how it is kept out of the file. ``listed`` is its part of the catalogue."""
    for name, value in entry.env.items():
        if like_a_credential(name, value):
            say(
                settings,
                f"{name} looks like a credential. It is written as it is into {entry.path}, and stays in the history of your shell. "
                f"Better set it in the environment and say --env {name}.",
            )
    for name, value in entry.headers.items():
        if like_a_credential(name, value):
            say(
                settings,
                f"The header {name} looks like a credential. It is written as it is into {entry.path}, and stays in the history of "
                f"your shell. Better set a variable in the environment and say --header '{name}: ${{VARIABLE}}'.",
            )
    started = shlex.join(entry.command) or entry.url
    if masked(started) != started:
        say(
            settings,
            f"There seems to be a credential in how {entry.name} is started. It is written as it is into {entry.path}. Better set a "
            "variable in the environment and write '${VARIABLE}' in its place.",
        )
    for name, value in entry.properties.items():
        secret = listed is not None and name in listed.properties and listed.properties[name].secret
        if secret and (masked(str(value)) != str(value) or like_a_credential(name, str(value))):
            say(
                settings,
                f"The property {name} looks like a credential. It is written as it is into {entry.path}, and stays in the history of "
                f"your shell. Better set a variable in the environment and say --property '{name}=${{VARIABLE}}'.",
            )
