"""The check of the catalogue of MCP servers: each is installed, started, and called where that is possible here.

Each server is installed as ``sandbox-chat mcp add`` does it, under a folder that is kept for the next time
(``SANDBOX_CHAT_TEST_MCP_CACHE``), and spoken to by the program's own connection. Databases and browser are real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.catalogue_trials import TRIALS, Place, Trial, place

from sandbox_chat.mcp import catalog, install
from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.catalog import CatalogEntry, Checked
from sandbox_chat.mcp.connection import Connection
from sandbox_chat.settings import ConfigError, Settings

CACHE = "SANDBOX_CHAT_TEST_MCP_CACHE"
SETTLE = 0.7
"""Seconds between two looks at a list of tools."""
SETTINGS = Settings(mcp_start_timeout=120, mcp_call_timeout=120)


def cache() -> Path:
    """The folder that is kept: a data folder."""
    return Path(os.environ.get(CACHE) or Path(tempfile.gettempdir()) / "sandbox-chat-test-mcp")


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found of one server. ``trouble``: why it is not as it should be, empty if it is."""

    name: str
    checked: Checked
    trouble: str = ""


def check(entry: CatalogEntry, trial: Trial, there: Place, data: Path) -> Finding:
    """Install a server, start it and call it."""
    try:
        environ = {**os.environ, **trial.environ(there)}
        wanted = (entry.version, [*entry.requires, *entry.instead.values()])
        told = install.program.record(entry, data)
        if install.installed(entry, data, environ) is None or wanted != (told["version"], told["requires"]):
            install.install(entry, data, lambda _line: None, environ=environ)
        return asyncio.run(_started(entry, trial, there, data, environ))
    except (McpError, ConfigError) as error:
        return Finding(entry.name, Checked(reason=trial.reason), str(error))


async def _started(
    entry: CatalogEntry, trial: Trial, there: Place, data: Path, environ: dict[str, str]
) -> Finding:
    config = entry.config(trial.properties(there), environ, data)
    config = dataclasses.replace(config, cwd=there.folder)
    connection = Connection(config, SETTINGS, there.folder / f"{entry.name}.log")
    await connection.open()
    try:
        await _settled(connection)
        tools = [tool.original for tool in connection.tools]
        size = sum(len(json.dumps(_defined(tool), ensure_ascii=False)) for tool in connection.tools)
        notes = tuple(connection.notes)
        found = Checked(tools=tuple(tools), size=size, notes=notes, reason=trial.reason)
        if not trial.calls:
            return Finding(entry.name, found, "" if tools else "it has no tools")
        said = ""
        for name, arguments in trial.calls:
            answer = await connection.call(name, _filled(arguments, there))
            said = "\n".join(getattr(part, "text", type(part).__name__) for part in answer.content)
        called = trial.calls[-1][0]
        if trial.expects not in said:
            return Finding(entry.name, found, f"{called} answered: {said[:300]}")
        return Finding(entry.name, dataclasses.replace(found, called=called, found=trial.expects))
    finally:
        await connection.close()


async def _settled(connection: Connection) -> None:
    """Wait until the list of tools stays as it is: some servers add to it when they know what the client can do."""
    before: list[Any] = []
    while before != connection.tools:
        before = connection.tools
        await asyncio.sleep(SETTLE)
        await connection.refresh()


def _defined(tool: Any) -> dict[str, Any]:
    return {"name": tool.original, "description": tool.description, "inputSchema": tool.schema}


def _filled(arguments: dict[str, Any], there: Place) -> dict[str, Any]:
    """Arguments with the places of this run in them."""
    words = json.dumps(arguments)
    for name, value in there.words().items():
        words = words.replace("{" + name + "}", json.dumps(value)[1:-1])
    filled: dict[str, Any] = json.loads(words)
    return filled


def run(names: list[str], data: Path, say: Callable[[str], object] = str) -> list[Finding]:
    """Check the servers of these names, one after the other; ``say`` gets a line of a table for each."""
    entries = catalog.load()
    findings = []
    with contextlib.ExitStack() as stack:
        there = stack.enter_context(place([name for name in names if name in TRIALS]))
        for name in names:
            trial = TRIALS[name]
            missing = there.missing.get(trial.needs, "")
            if missing:
                findings.append(Finding(name, Checked(), missing))
            else:
                findings.append(check(entries[name], trial, there, data))
            say(row(findings[-1]))
    return findings


def row(finding: Finding) -> str:
    """One line of the table."""
    checked = finding.checked
    started = f"{len(checked.tools)} tools" if checked.started else "no"
    called = f"{checked.called}: {checked.found}" if checked.answered else "no"
    return f"| {finding.name} | {started} | {called} | {finding.trouble or checked.reason or '–'} |"


def write(findings: list[Finding]) -> None:
    """Put what was found into the catalogue's file."""
    data = json.loads(catalog.FILE.read_text(encoding="utf-8"))
    for finding in findings:
        told = {key: value for key, value in dataclasses.asdict(finding.checked).items() if value}
        data["servers"][finding.name]["checked"] = told
    catalog.FILE.write_text(formed(data), encoding="utf-8")


def formed(data: dict[str, Any]) -> str:
    """The catalogue as it stands in its file: one line for each thing that is told of a server."""
    servers = []
    for name, told in data["servers"].items():
        lines = [
            f"   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()
        ]
        servers.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return '{\n "format": ' + str(data["format"]) + ',\n "servers": {\n' + ",\n".join(servers) + "\n }\n}\n"
