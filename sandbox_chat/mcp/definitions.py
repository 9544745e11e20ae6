"""The tools that a server tells of, as they are offered: what cannot be offered is left out, and that is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox_chat.mcp.base import ToolDefinition
from sandbox_chat.mcp.names import tool_names
from sandbox_chat.mcp.schemas import SchemaError, offered
from sandbox_chat.text import clean, clean_line

TOOLS_LIMIT = 500
"""Tools of one server that are offered at most."""
DESCRIPTION_LIMIT = 10_000
"""Characters of a tool's description that the model gets."""
TOTAL_LIMIT = 500_000
"""Characters of all that one server's tools say of themselves: it goes to the model with each request."""
NAME_LIMIT = 500
"""Characters of a server's own name of a tool."""
CUT = " […]"


def definitions(
    server: str, listed: Iterable[Any], scrub: Callable[[str], str] = str
) -> tuple[list[ToolDefinition], list[str]]:
    """Return the tools of a list as it came from the server, and a sentence about each that is not offered.

    ``server`` is the server's name as the model knows it. ``scrub`` takes its credentials out of a text: what tools say
    of themselves goes to the model and into files.
    """
    found: list[tuple[str, str, dict[str, Any], Mapping[str, Any]]] = []
    notes: list[str] = []
    seen: set[str] = set()
    total = 0
    for number, tool in enumerate(listed):
        if len(found) >= TOOLS_LIMIT:
            notes.append(f"Only its first {TOOLS_LIMIT} tools are offered.")
            break
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not name or len(name) > NAME_LIMIT:
            notes.append(f"Its tool number {number + 1} is not offered: it has no name that can be used.")
            continue
        assert isinstance(tool, Mapping)
        said = clean_line(name, 60)
        if name in seen:
            notes.append(f"It has more than one tool {said}; only the first is offered.")
            continue
        seen.add(name)
        if _needs_tasks(tool):
            notes.append(f"Its tool {said} is not offered: it can only be called as a task of the protocol.")
            continue
        try:
            schema = _without(offered(tool.get("inputSchema")), scrub)
        except SchemaError as error:
            notes.append(f"Its tool {said} is not offered: {clean_line(str(error))}.")
            continue
        except Exception:  # whatever a stranger's schema makes the check do costs that tool only
            notes.append(f"Its tool {said} is not offered: its schema cannot be read.")
            continue
        description = _description(tool, scrub)
        total += len(description) + len(json.dumps(schema, default=str))
        if total > TOTAL_LIMIT:
            notes.append(
                f"Its tools from {said} on are not offered: together they say more than {TOTAL_LIMIT:,} characters."
            )
            break
        found.append((name, description, schema, tool))
    names = tool_names(server, [name for name, *_ in found])
    tools = [
        ToolDefinition(
            server=server,
            name=names[name],
            original=name,
            description=description,
            schema=schema,
            output_schema=_without(_output_schema(tool), scrub),
            read_only=_read_only(tool),
        )
        for name, description, schema, tool in found
    ]
    return tools, notes


def _without(value: Any, scrub: Callable[[str], str]) -> Any:
    """Return a schema with ``scrub`` done to its texts; names stay, calls need them."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {name: _without(each, scrub) for name, each in value.items()}
    return [_without(each, scrub) for each in value] if isinstance(value, list) else value


def _description(tool: Mapping[str, Any], scrub: Callable[[str], str]) -> str:
    given = tool.get("description")
    text = scrub(clean(given)) if isinstance(given, str) else ""
    title = tool.get("title")
    if not text and isinstance(title, str):
        text = clean_line(scrub(title))
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - len(CUT)] + CUT


def _output_schema(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    schema = tool.get("outputSchema")
    return schema if isinstance(schema, Mapping) and schema else None


def _read_only(tool: Mapping[str, Any]) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, Mapping) and hints.get("readOnlyHint") is True


def _needs_tasks(tool: Mapping[str, Any]) -> bool:
    execution = tool.get("execution")
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"
