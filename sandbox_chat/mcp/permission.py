"""Whether a tool of another server may be called: what the settings allow, and what the user answers.

A tool that the settings allow is allowed as it was when it was first called: its name, description and schema are
kept, and when one of them is another later, the user is asked again and told what changed.
"""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox_chat.events import Choice
from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.mcp.kept import Damaged, alone, read_json, write_json
from sandbox_chat.settings import Settings
from sandbox_chat.text import bound, clean, clean_line
from sandbox_chat.tools.context import Ask, Question
from sandbox_chat.words.questions import EN

log = logging.getLogger(__name__)

KIND = "mcp_tool"
CHOICES = tuple(
    Choice(name, key, EN[f"mcp_tool_{name}"])
    for name, key in (("once", "o"), ("session", "s"), ("never", "v"), ("no", "n"))
)
"""What can be answered. What holds for the session does so for this one tool as it is now."""
LASTING = ("session", "never")
DETAIL_LIMIT = 200_000
"""Characters of the arguments that can be shown; nobody is asked about what would have to be cut."""
CHANGE_LIMIT = 2_000
"""Characters of what changed in a tool that the question shows."""
REFUSED = (
    "[error] The user did not allow this call. Do not try it again, also not in another way, unless they ask for it: "
    "go on without it, or say what you would need it for."
)
TOO_LONG = (
    "[error] The arguments of this call have {size:,} characters, more than the {limit:,} that can be shown to the user, "
    "who decides about it. The call was not made. Write less at a time."
)
REFUSED_SESSION = (
    "[error] The user does not allow calls of this tool in this session. Do not try it again: go on without it, "
    "or say what you would need it for."
)


class Permission:
    """Decides about calls. ``pins``: file with the tools that the settings allow, as they were when first called."""

    def __init__(self, settings: Settings, pins: Path) -> None:
        self._allowed = frozenset(settings.mcp_allow)
        self._pins = pins
        self._never: set[tuple[str, str]] = set()
        self._held: dict[str, Any] = {}  # of this session, whatever becomes of the file

    async def refusal(
        self,
        config: ServerConfig,
        tool: ToolDefinition,
        arguments: str,
        call_id: str,
        ask: Ask,
        *,
        free: bool = False,
        note: str = "",
    ) -> str:
        """Return why a call may not be made, as a sentence for the model; empty when it may.

        ``arguments`` is the JSON that is sent, for people. ``free``: the settings allow it without asking, as those that
        ``mcp_allow`` names. ``note`` is said with the question.
        """
        if config.place == "sandbox":
            return ""  # what it can reach, code in the sandbox can too
        changed = ""
        if (tool.server, tool.original) in self._never:
            free = False  # the user said never, and a server may not change that by calling itself harmless
        if free or self._is_allowed(config, tool):
            changed = self._changes(tool)
            if not changed:
                return ""
        if len(arguments) > DETAIL_LIMIT:
            return TOO_LONG.format(size=len(arguments), limit=DETAIL_LIMIT)
        answer = await ask(_question(config, tool, arguments, call_id, changed, note=note))
        if answer == "session" and changed:
            self._pin(tool)
        if answer in ("once", "session"):
            return ""
        if answer == "never":
            self._never.add((tool.server, tool.original))
            return REFUSED_SESSION
        return REFUSED

    def _is_allowed(self, config: ServerConfig, tool: ToolDefinition) -> bool:
        servers = {tool.server, config.name}
        tools = {tool.name, tool.original, "*"}
        return not self._allowed.isdisjoint(f"{server}/{name}" for server in servers for name in tools)

    def _changes(self, tool: ToolDefinition) -> str:
        """Return what is another in a tool than when it was first called, empty when nothing is; a new one is kept."""
        try:
            pin = self._held.get(_place(tool)) or _pins(self._pins).get(_place(tool))
        except Damaged as error:
            return EN["mcp_tool_unreadable"].format(reason=error, path=clean(str(self._pins)))
        if pin is None:
            self._pin(tool)
            return ""
        if isinstance(pin, Mapping) and pin.get("fingerprint") == tool.fingerprint:
            self._held[_place(tool)] = pin
            return ""
        return f"{EN['mcp_tool_changed']}\n{bound(_difference(pin, tool), CHANGE_LIMIT)}"

    def _pin(self, tool: ToolDefinition) -> None:
        self._held[_place(tool)] = {"fingerprint": tool.fingerprint, **_said(tool)}
        try:
            with alone(self._pins):  # another program may have pinned another tool meanwhile
                try:
                    pins = _pins(self._pins)
                except Damaged:
                    pins = {}
                pins[_place(tool)] = self._held[_place(tool)]
                write_json(self._pins, {"pins": pins})
        except OSError as error:
            log.warning("what was allowed could not be kept: %s", error.strerror)


def _pins(path: Path) -> dict[str, Any]:
    pins = read_json(path).get("pins", {})
    if not isinstance(pins, dict):
        raise Damaged("it is of another kind")
    return pins


def _place(tool: ToolDefinition) -> str:
    return f"{tool.server}/{tool.name}"


def _said(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.original,
        "description": tool.description,
        "schema": tool.schema,
        "output": tool.output_schema,
        "read_only": tool.read_only,
    }


def _difference(pin: Any, tool: ToolDefinition) -> str:
    before, after = (pin if isinstance(pin, Mapping) else {}), _said(tool)
    lines: list[str] = []
    for name, now in after.items():
        was = before.get(name)
        if was == now:
            continue
        lines.append(f"{name}:")
        changes = list(difflib.unified_diff(_lines(was), _lines(now), lineterm="", n=0))[
            2:
        ]  # without names of files
        lines += [line for line in changes if not line.startswith("@@")]
    return "\n".join(lines) or "its definition"


def _lines(value: Any) -> list[str]:
    return (value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True)).splitlines()


def _question(
    config: ServerConfig, tool: ToolDefinition, arguments: str, call_id: str, changed: str, *, note: str
) -> Question:
    called = EN["mcp_tool_called"].format(name=repr(tool.original)) if tool.original != tool.name else ""
    detail = "\n".join(part for part in (changed, arguments, called, note, _where(config)) if part)
    return Question(
        kind=KIND,
        question=EN["mcp_tool"].format(tool=tool.name, server=clean_line(config.name, 64)),
        detail=clean(detail),
        choices=CHOICES,
        default="no",
        tool_use_id=call_id,
        subject=f"{config.name}/{tool.name} #{tool.fingerprint}",
        lasting=LASTING,
    )


def _where(config: ServerConfig) -> str:
    if config.endpoint is None:
        return EN["mcp_tool_here"]
    return EN["mcp_tool_there"].format(
        host=clean_line(urlsplit(config.endpoint.url).netloc.rpartition("@")[2], 100)
    )
