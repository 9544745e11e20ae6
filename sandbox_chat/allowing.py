"""What ``run --allow`` lets happen without being asked, where nobody is there to answer. Pure.

``overwrite``: a downloaded file may replace one of its name. ``mcp``: every tool of the MCP servers that are on;
``mcp:SERVER`` those of one server, ``mcp:SERVER/TOOL`` one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sandbox_chat.events import ApprovalRequested, ServerChanged
from sandbox_chat.text import clean_line

_MCP = re.compile(r"mcp(?::[A-Za-z0-9_.-]+(?:/[^\s/]+)?)?")
_ANSWERS = {"overwrite": "replace", "mcp_tool": "once"}
"""The answer that is given to a kind of question when it is allowed."""


def check(word: str) -> str:
    """Return ``word`` if ``--allow`` may name it. Raises ``ValueError`` with a sentence."""
    if word == "overwrite" or _MCP.fullmatch(word):
        return word
    raise ValueError("must be overwrite, mcp, mcp:SERVER or mcp:SERVER/TOOL")


def problem(allow: Collection[str], on: Collection[str]) -> str:
    """Return a sentence about a word that names an MCP server that is not among those that are ``on``; empty when none does."""
    for word in allow:
        server = _named(word)[0]
        if not server or server in on:
            continue
        said = (
            f"--allow {clean_line(word, 200)}: there is no MCP server {clean_line(server, 64)} in this chat"
        )
        if not on:
            return (
                f"{said}, for none is on. Switch it on with --mcp NAME (see: sandbox-chat mcp list); without one, only "
                "overwrite can be allowed."
            )
        names = ", ".join(clean_line(name, 64) for name in on)
        return (
            f"{said}. What can be allowed: overwrite, mcp, and mcp:SERVER or mcp:SERVER/TOOL of the servers "
            f"that are on, which are {names}. See: sandbox-chat mcp list"
        )
    return ""


class UnknownTools:
    """Finds the words of ``allow`` that name a tool which its server turns out not to have.

    ``on`` are the names of the servers that are on, in their order.
    """

    def __init__(self, allow: Collection[str], on: Sequence[str]) -> None:
        from sandbox_chat.mcp.names import server_names

        self._words = {word: _named(word) for word in allow if _named(word)[1]}
        self._servers = dict(zip(server_names(on), on, strict=True))

    def take(self, event: ServerChanged) -> list[str]:
        """Return a sentence for each word that is found to allow nothing now; each word comes once."""
        if event.state != "ready" and not event.tools:
            return []  # they are not known yet
        server = self._servers.get(event.name, event.name)
        tools = [tool.name for tool in event.tools]
        found = [word for word, (name, tool) in self._words.items() if name == server and tool not in tools]
        there = clean_line(", ".join(tools) or "none", 2000)
        for word in found:
            del self._words[word]
        return [
            f"--allow {clean_line(word, 200)} allows nothing: the MCP server {clean_line(server, 64)} has no such tool. "
            f"Its tools: {there}."
            for word in found
        ]


def answer(asked: ApprovalRequested, allow: Collection[str]) -> str:
    """Return the answer that ``allow`` gives to a question, empty when it gives none."""
    return _ANSWERS[asked.kind] if asked.kind in _ANSWERS and not set(allow).isdisjoint(_words(asked)) else ""


def option(asked: ApprovalRequested) -> str:
    """Return the word for ``--allow`` that would allow what is asked, the narrowest one; empty when there is none."""
    words = _words(asked)
    return words[-1] if words else ""


def _named(word: str) -> tuple[str, str]:
    """Return the server and the tool that a word names, empty where it names none."""
    server, _, tool = word.removeprefix("mcp:").partition("/") if word.startswith("mcp:") else ("", "", "")
    return server, tool


def _words(asked: ApprovalRequested) -> list[str]:
    """The words that allow what is asked, the widest first."""
    if asked.kind == "overwrite":
        return ["overwrite"]
    if asked.kind == "mcp_tool":
        tool = asked.subject.partition(" ")[0]
        server = tool.partition("/")[0]
        return ["mcp", f"mcp:{server}", f"mcp:{tool}"]
    return []
