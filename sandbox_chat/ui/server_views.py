"""How an MCP server is shown: its state as a sign and a word, and all that is known of it as rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox_chat.events import ServerChanged, ServerState
from sandbox_chat.server_text import DESCRIPTION, about, original
from sandbox_chat.ui.formats import fit
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.cells import TAB, Row, Run
from sandbox_chat.ui.transcript.wrap import wrap
from sandbox_chat.words import tr

STATES: dict[ServerState, tuple[str, str]] = {
    "idle": ("off", "$muted"),
    "starting": ("starting", "$warning"),
    "ready": ("on", "$success"),
    "failed": ("failed", "$error"),
    "lost": ("warning", "$warning"),
    "off": ("interrupted", "$muted"),
}
"""Name of the sign and colour of each state; with its word, so that neither has to be seen."""
TROUBLE: tuple[ServerState, ...] = ("failed", "lost")
"""States that the user is to know of."""
TOLD = 20
"""Cells of a server's name in the title line."""

_WHY: dict[ServerState, tuple[str, ...]] = {"failed": ("error",), "lost": ("warning",)}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the title line says of servers that failed or were lost: a sign, its colour, and a few words."""

    sign: str
    colour: str
    words: str


def trouble(servers: Mapping[str, ServerChanged]) -> Trouble | None:
    """Return what is wrong with the servers, in a few words; ``None`` when nothing is."""
    found = [server for server in servers.values() if server.state in TROUBLE]
    if not found:
        return None
    worst = next((server for server in found if server.state == "failed"), found[0])
    sign, colour = STATES[worst.state]
    if len(found) > 1:
        words = tr("servers.trouble", count=len(found))
    else:
        words = tr(f"servers.{worst.state}", name=fit(worst.name, TOLD))
    return Trouble(glyph(sign), colour, words)


def rows(server: ServerChanged, width: int) -> list[Row]:
    """Return what is known of a server beside its name and state, in rows of ``width`` cells."""
    out: list[Row] = []
    if words := about(server):
        out += _wrapped(words, width, _WHY.get(server.state, ()))
    out += _wrapped(tr("servers.transport", transport=server.transport), width, ("muted",))
    if server.log:
        out += _wrapped(tr("servers.log", path=server.log), width, ("muted",))
    for tool in server.tools:
        name = [Run(tool.name, ("tool",))]
        if called := original(tool):
            name.append(Run(f"  {called}", ("muted",)))
        out += [[], *wrap(name, width)]
        if description := tool.description[:DESCRIPTION].strip():
            out += [[Run("  "), *row] for row in _wrapped(description, width - 2, ("muted",))]
    return out


def _wrapped(words: str, width: int, names: tuple[str, ...]) -> list[list[Run]]:
    return wrap([Run(words.replace("\t", TAB), names)], max(2, width))
