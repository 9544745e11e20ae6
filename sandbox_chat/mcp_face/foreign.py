"""Servers of a file that somebody else wrote: what nobody could judge is refused, all else is shown whole before the user agrees."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sandbox_chat.mcp.entry import SHOWN_LIMIT, Entry, wrong
from sandbox_chat.mcp.variables import like_a_credential, masked
from sandbox_chat.mcp_face.said import risk_of, show
from sandbox_chat.settings import ConfigError
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry

_UNCUT = 10 * SHOWN_LIMIT
"""More than what is fit to be judged ever has, with the signs that stand for credentials."""


def fit_to_judge(entry: Entry) -> Entry:
    """Return ``entry``. Raises ``ConfigError`` for one that is too long, holds what would not be shown, or names no variable."""
    told = (
        entry.whole(),
        entry.cwd,
        *entry.env,
        *entry.env.values(),
        *entry.headers,
        *entry.headers.values(),
    )
    if sum(len(word) + 1 for word in told) > SHOWN_LIMIT:
        raise ConfigError(
            f"What the server {entry.name} in {entry.path} runs is longer than {SHOWN_LIMIT:,} characters, too long to be judged by "
            "eye. If you know it, add it by hand."
        )
    if place := _unseen(entry):
        said = (
            "holds what looks like a credential, which is not shown, so you could not judge what is run. Write ${NAME} there in its "
            "place, or, if you know the server, add it by hand"
        )
        raise ConfigError(wrong(entry.name, entry.path, place, said))
    entry.check_variables()
    return entry


def show_foreign(entry: Entry, raw: Mapping[str, Any], listed: CatalogEntry | None) -> None:
    """Show what a server of another file would run: the whole of it, but for credentials, and each variable that it takes."""
    show(f"{entry.name}:")
    show(tr("mcp_face.about.speaks" if entry.url else "mcp_face.about.runs", how=entry.how(_UNCUT)))
    if raw.get("cwd"):
        show(tr("mcp_face.about.folder", folder=clean_line(str(raw["cwd"]), _UNCUT)))
    if listed is not None:
        show(tr("mcp_face.about.risk", risk=risk_of(listed)))
    if given := entry.given(_UNCUT):
        show(tr("mcp_face.about.gets", given=", ".join(given)))
    if names := entry.variables():
        show(tr("mcp_face.about.takes", names=", ".join(names)))


def _unseen(entry: Entry) -> str:
    """Return the place of what is masked although it tells what is run; empty when nothing is.

    Values in the query of an address, headers, and variables whose names tell that they are credentials may be masked.
    """
    places = {
        "command": shlex.join(entry.command),
        "url": entry.url.partition("?")[0],
        "properties": entry.whole() if entry.catalogue else "",
        **{f"env.{name}": value for name, value in entry.env.items() if not like_a_credential(name, "x")},
    }
    return next((place for place, text in places.items() if masked(text) != text), "")
