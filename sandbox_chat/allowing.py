"""What ``run --allow`` lets happen without being asked, where nobody is there to answer. Pure.

``overwrite``: a downloaded file may replace one of its name. ``mcp``: every tool of the MCP servers that are on;
``mcp:SERVER`` those of one server, ``mcp:SERVER/TOOL`` one of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sandbox_chat.events import ApprovalRequested

_MCP = re.compile(r"mcp(?::[A-Za-z0-9_.-]+(?:/[^\s/]+)?)?")
_ANSWERS = {"overwrite": "replace", "mcp_tool": "once"}
"""The answer that is given to a kind of question when it is allowed."""


def check(word: str) -> str:
    """Return ``word`` if ``--allow`` may name it. Raises ``ValueError`` with a sentence."""
    if word == "overwrite" or _MCP.fullmatch(word):
        return word
    raise ValueError("must be overwrite, mcp, mcp:SERVER or mcp:SERVER/TOOL")


def answer(asked: ApprovalRequested, allow: Collection[str]) -> str:
    """Return the answer that ``allow`` gives to a question, empty when it gives none."""
    return _ANSWERS[asked.kind] if asked.kind in _ANSWERS and not set(allow).isdisjoint(_words(asked)) else ""


def option(asked: ApprovalRequested) -> str:
    """Return the word for ``--allow`` that would allow what is asked, the narrowest one; empty when there is none."""
    words = _words(asked)
    return words[-1] if words else ""


def _words(asked: ApprovalRequested) -> list[str]:
    """The words that allow what is asked, the widest first."""
    if asked.kind == "overwrite":
        return ["overwrite"]
    if asked.kind == "mcp_tool":
        tool = asked.subject.partition(" ")[0]
        server = tool.partition("/")[0]
        return ["mcp", f"mcp:{server}", f"mcp:{tool}"]
    return []
