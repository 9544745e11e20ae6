"""What is known of an MCP server as lines of words, the same in every face."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox_chat.events import ServerChanged, ServerTool
from sandbox_chat.words import tr, tr_count

DESCRIPTION = 2_000
"""Characters of a tool's description that are shown."""


def server_line(server: ServerChanged) -> str:
    """Return a server on one line: name, state, place, and how many tools it has."""
    return tr(
        "servers.line",
        name=server.name,
        state=tr(f"servers.state_{server.state}"),
        place=tr(f"servers.place_{server.place}"),
        tools=tools_words(server),
    )


def server_lines(server: ServerChanged) -> Iterator[str]:
    """Yield all that is known of a server."""
    yield server_line(server)
    if words := about(server):
        yield from words.splitlines()
    if server.log:
        yield tr("servers.log", path=server.log)
    for tool in server.tools:
        yield ""
        yield f"{tool.name}  {original(tool)}".rstrip()
        yield from (f"  {line}" for line in tool.description[:DESCRIPTION].splitlines())


def tools_words(server: ServerChanged) -> str:
    """Return how many tools a server has, as far as that is known."""
    if not server.tools and server.state != "ready":
        return tr("servers.tools_unknown")
    return tr_count("servers.tools", len(server.tools))


def about(server: ServerChanged) -> str:
    """Return why a server is in its state, or what follows from it; empty when there is nothing to say."""
    if server.text:
        return server.text
    return tr(f"servers.about_{server.state}") if server.state in ("idle", "lost", "off") else ""


def original(tool: ServerTool) -> str:
    """Return what the server itself calls a tool; empty when that is its name here."""
    return "" if tool.original == tool.name else tr("servers.original", name=tool.original)
