"""How code finds tools: lists, details, and a search, over the definitions of all servers that are on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox_chat.guest.calls import arguments_of, python_name
from sandbox_chat.mcp.base import ToolDefinition
from sandbox_chat.text import clean_line

DETAILS = ("names", "summary", "full")
FIRST_LINE = 160
"""Characters of a tool's first line."""
MOST_WORDS = 40
"""Words of a query that count."""
MOST = 1000
"""Tools that one search gives at most."""
_WORD = re.compile(r"[^\W_]+")
_IN_NAME, _WHOLE, _IN_TEXT = 6, 4, 1  # what a word of the query counts
_PREFIXES = ("mcp__",)
_KINDS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def name_of(tool: ToolDefinition) -> str:
    """Return the name that code calls a tool by."""
    return f"{tool.server}__{tool.name}"


def find(tools: Sequence[ToolDefinition], name: str) -> ToolDefinition | None:
    """Return the tool of a name: ``server__tool``, as the agent writes it, or with a dot or a slash."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    for tool in tools:
        if name in (name_of(tool), f"{tool.server}.{tool.name}", f"{tool.server}/{tool.name}"):
            return tool
    return next(
        (tool for tool in tools if name == f"{python_name(tool.server)}__{python_name(tool.name)}"), None
    )


def listed(tools: Sequence[ToolDefinition], detail: str) -> list[Any]:
    """Return tools as ``list_mcp_tools`` gives them."""
    if detail == "names":
        return [name_of(tool) for tool in tools]
    if detail == "summary":
        return [{"name": name_of(tool), "about": first_line(tool)} for tool in tools]
    return [details(tool) for tool in tools]


def details(tool: ToolDefinition) -> dict[str, Any]:
    """Return all of a tool that code may want to know."""
    found: dict[str, Any] = {
        "name": name_of(tool),
        "call": f"from tools.{python_name(tool.server)} import {python_name(tool.name)}",
        "signature": signature(tool),
        "description": tool.description,
        "schema": dict(tool.schema),
        "read_only": tool.read_only,
    }
    if tool.output_schema is not None:
        found["output_schema"] = dict(tool.output_schema)
    return found


def stubs(tools: Sequence[ToolDefinition]) -> list[dict[str, Any]]:
    """Return what the module of a server makes its functions of."""
    return [
        {
            "tool": tool.name,
            "name": name_of(tool),
            "description": tool.description,
            "schema": dict(tool.schema),
        }
        for tool in tools
    ]


def first_line(tool: ToolDefinition) -> str:
    """Return the first line of a tool's description."""
    lines = tool.description.strip().splitlines()
    return clean_line(lines[0], FIRST_LINE) if lines else ""


def signature(tool: ToolDefinition) -> str:
    """Return a tool's signature in Python, for messages."""
    properties, needed, names = arguments_of(dict(tool.schema))
    words = []
    for written, name in names.items():
        about = properties[name]
        kind = about.get("type") if isinstance(about, Mapping) else None
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), None)
        word = f"{written}: {_KINDS.get(str(kind), 'Any')}"
        words.append(word if name in needed else f"{word} = …")
    return f"{python_name(tool.name)}({', '.join(words)})"


def search(tools: Sequence[ToolDefinition], query: str, limit: int = MOST) -> list[ToolDefinition]:
    """Return the tools that fit a query, the best first; those that fit alike in their order."""
    words = [word.lower() for word in _WORD.findall(query)][:MOST_WORDS]
    if not words:
        return list(tools[:limit])
    rated = [(-rate, number) for number, tool in enumerate(tools) if (rate := _rate(tool, words))]
    return [tools[number] for _, number in sorted(rated)[: max(limit, 0)]]


def _rate(tool: ToolDefinition, words: Sequence[str]) -> int:
    name = [word.lower() for word in _WORD.findall(f"{tool.server} {tool.name} {tool.original}")]
    text = tool.description.lower()
    rate = 0
    for word in words:
        if any(word in part for part in name):
            rate += _IN_NAME + (_WHOLE if word in name else 0)
        if word in text:
            rate += _IN_TEXT
    return rate
