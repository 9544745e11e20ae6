"""A Python environment with version 1 of the ``mcp`` library, made once and kept for later runs.

Run by its interpreter, this file is a client of that version: ``old_mcp.py URL TOKEN`` prints what it saw as JSON.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any


@cache
def python() -> Path:
    """The interpreter of the environment; makes it when it is not there yet."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sandbox-chat-tests")
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"mcp-1-{sys.version_info.major}.{sys.version_info.minor}"
    with (base / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=300)
            install = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "mcp<2"]
            subprocess.run(install, check=True, timeout=600)
            (folder / "ready").touch()
    return folder / "bin/python"


async def look(url: str, token: str) -> dict[str, Any]:
    """Use every part of a gateway with the small server ``a`` behind it."""
    from mcp import ClientSession, McpError  # type: ignore[attr-defined] - of version 1
    from mcp.client.streamable_http import streamablehttp_client  # type: ignore[attr-defined] - of version 1

    seen: dict[str, Any] = {"progress": []}

    async def note(value: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([value, total, message])

    async with (
        streamablehttp_client(url, headers={"Authorization": f"Bearer {token}"}) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        begun: Any = await session.initialize()
        seen["server"] = [begun.serverInfo.name, begun.protocolVersion]
        listed: Any = await session.list_tools()
        seen["tools"] = {tool.name: tool.inputSchema for tool in listed.tools}
        for tool, given in (("echo", {"text": "ü" * 10}), ("picture", {}), ("structured", {}), ("fault", {})):
            result = await session.call_tool(tool, given)
            seen[tool] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        seen["params"] = json.loads((await session.call_tool("params", {"a": [None]})).content[0].text)
        seen["big"] = len((await session.call_tool("big", {"size": 3_000_000})).content[0].text)
        await session.call_tool("slow", {"steps": 3, "pause": 0.02}, progress_callback=note)
        seen["errors"] = []
        for tool in ("refusal", "nothing", "crash"):
            try:
                await session.call_tool(tool, {})
            except McpError as error:
                seen["errors"].append([error.error.code, error.error.message, error.error.data])
        seen["after"] = (await session.call_tool("echo", {"text": "again"})).content[0].text
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(look(*sys.argv[1:3]))))
