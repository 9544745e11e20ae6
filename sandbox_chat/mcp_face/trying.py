"""Starts MCP servers to see whether they work: how long one takes, which tools it has, and what its log says."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.mcp.config import Known, look, not_taken, program_problem, similar
from sandbox_chat.mcp_face.said import say, show
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.words import tr, tr_count

if TYPE_CHECKING:
    from sandbox_chat.mcp.base import ServerConfig, ToolDefinition

OK, FAILED = 0, 1
TAIL = 4000
"""Bytes of the end of a log that are shown."""
TOGETHER = 4
"""Servers that are started at the same time."""
LINE = 160
"""Characters of a tool's description that are shown."""


@dataclass(slots=True)
class Tried:
    """How the start of a server went. ``reason`` is empty when it went well; ``notes`` say what of its tools is not offered."""

    name: str
    log: Path
    seconds: float = 0.0
    tools: list[ToolDefinition] = field(default_factory=list)
    notes: Sequence[str] = ()
    reason: str = ""
    secrets: Sequence[str] = ()

    def scrub(self, text: str) -> str:
        """Return ``text`` without the credentials of this server."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= 4:
                text = text.replace(secret, "[secret]")
        return text


def test(settings: Settings, name: str, environ: Mapping[str, str], folder: Path) -> int:
    """Start a server and list its tools; return the exit code. Raises ``ConfigError`` when it cannot even be tried."""
    known = find(settings, name, environ, folder)
    config = known.config(environ, settings.data_path)
    if problem := program_problem(config, environ):
        raise ConfigError(f"The MCP server {name} cannot be started: {problem}.")
    [tried] = asyncio.run(_try_all([config], settings))
    seconds = f"{tried.seconds:.1f}"
    if tried.reason:
        show(tr("mcp_face.failed", name=name, seconds=seconds, reason=tried.reason))
        _show_log(tried)
        return FAILED
    show(tr_count("mcp_face.ready", len(tried.tools), name=name, seconds=seconds))
    _show_tools(tried)
    for note in tried.notes:
        say(settings, note)
    return OK


def tools(settings: Settings, name: str, environ: Mapping[str, str], folder: Path, *, as_json: bool) -> int:
    """Print the tools of one server, or of all that are on; return the exit code: 1 when one of them failed."""
    survey = look(settings, environ, folder)
    chosen = [find(settings, name, environ, folder)] if name else survey.on()
    configs: list[ServerConfig] = []
    failed = False
    for known in chosen:
        try:
            configs.append(known.config(environ, settings.data_path))
        except ConfigError as error:
            if name:
                raise
            failed = True
            say(settings, str(error))
    found = asyncio.run(_try_all(configs, settings)) if configs else []
    for tried in found:
        for note in tried.notes:
            say(settings, f"{tried.name}: {note}")
        if tried.reason:
            failed = True
            say(
                settings,
                tr("mcp_face.failed", name=tried.name, seconds=f"{tried.seconds:.1f}", reason=tried.reason),
            )
    if as_json:
        listed = [_json(tool, tried) for tried in found for tool in tried.tools]
        sys.stdout.write(json.dumps(listed, indent=1) + "\n")
        sys.stdout.flush()
        return FAILED if failed else OK
    if not chosen:
        show(tr("mcp_face.none_on"))
    for tried in found:
        if not tried.reason:
            show(tried.name)
            _show_tools(tried)
    return FAILED if failed else OK


def find(settings: Settings, name: str, environ: Mapping[str, str], folder: Path) -> Known:
    """Return the server of that name, whether it is on or not. Raises ``ConfigError`` with what was probably meant."""
    survey = look(settings, environ, folder)
    known = survey.servers.get(name)
    if known is not None:
        return known
    left = [each.name for each in not_taken(settings, folder, [])]
    shown = clean_line(name, 60)
    if name in left:
        raise ConfigError(
            f"The server {shown} is only in .mcp.json of this folder, so it is not started. Take it over with: "
            f"sandbox-chat mcp add --from .mcp.json {shown}"
        )
    raise ConfigError(
        f"There is no MCP server {shown!r}.{similar(name, survey.servers)} See: sandbox-chat mcp list"
    )


async def _try_all(configs: Sequence[ServerConfig], settings: Settings) -> list[Tried]:
    room = asyncio.Semaphore(TOGETHER)

    async def one(config: ServerConfig) -> Tried:
        async with room:
            return await _try(config, settings)

    return list(await asyncio.gather(*(one(config) for config in configs)))


async def _try(config: ServerConfig, settings: Settings) -> Tried:
    """Start one server, take its tools, and end it."""
    from sandbox_chat.mcp.base import McpError
    from sandbox_chat.mcp.connection import Connection

    log = settings.data_path / "logs" / "mcp" / f"{config.name}.log"
    tried = Tried(config.name, log, secrets=config.secrets())
    connection = Connection(config, settings, log)
    start = time.monotonic()
    try:
        await connection.open()
        tried.tools, tried.notes = list(connection.tools), list(connection.notes)
    except McpError as error:
        tried.reason = tried.scrub(settings.scrub(clean_line(str(error), 1000)))
    finally:
        tried.seconds = time.monotonic() - start
        await connection.close()
    return tried


def _show_tools(tried: Tried) -> None:
    if not tried.tools:
        show("  " + tr("mcp_face.no_tools"))
    for tool in tried.tools:
        first = next((line for line in tool.description.splitlines() if line.strip()), "")
        original = f" ({clean_line(tool.original, 80)})" if tool.original != tool.name else ""
        said = clean_line(tried.scrub(first), LINE)
        show(f"  {tool.name}{original}" + (f"  {said}" if said else ""))


def _show_log(tried: Tried) -> None:
    try:
        with tried.log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL))
            tail = file.read(TAIL).decode("utf-8", "replace").strip()
    except OSError:
        tail = ""
    if not tail:
        show(tr("mcp_face.no_log"))
        return
    show(tr("mcp_face.log", path=tried.log))
    show("\n".join(f"  {line}" for line in clean(tried.scrub(tail)).splitlines()))


def _json(tool: ToolDefinition, tried: Tried) -> dict[str, Any]:
    return {
        "server": tool.server,
        "name": tool.name,
        "original": clean(tool.original),
        "full_name": tool.full_name,
        "description": clean(tried.scrub(tool.description)),
        "input_schema": dict(tool.schema),
        "fingerprint": tool.fingerprint,
    }
