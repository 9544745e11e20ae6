"""``sandbox-chat mcp serve`` driven by the official client's version 1, in an environment of its own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.program import PROGRAM, environment
from support.serving import PATIENCE, http

CLIENT = """
import asyncio, json, sys
from contextlib import AsyncExitStack

import mcp
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

FIGURE = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('/tmp/a.png'); plt.show(); kept = 41"

async def main(how):
    async with AsyncExitStack() as stack:
        if "url" in how:
            streams = await stack.enter_async_context(streamablehttp_client(how["url"], headers=how["headers"]))
        else:
            streams = await stack.enter_async_context(stdio_client(StdioServerParameters(**how)))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        begun = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        told = []
        async def tell(progress, total, message):
            told.append(progress)
        shown = await session.call_tool("run_code", {"code": FIGURE})
        seen = await session.call_tool("read_image", {"path": "/tmp/a.png"})
        kept = await session.call_tool("run_code", {"code": "import time; time.sleep(2.5); kept + 1"}, progress_callback=tell)
        print(json.dumps({
            "protocol": begun.protocolVersion, "server": begun.serverInfo.name, "tools": tools,
            "shown": [block.type for block in shown.content], "seen": [block.type for block in seen.content],
            "kept": kept.content[0].text, "told": len(told),
        }))

asyncio.run(main(json.loads(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def older() -> Path:
    """The interpreter of an environment with version 1 of the library, made once and kept for later runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sandbox-chat-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"mcp-1-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, timeout=300)
            subprocess.run([str(python), "-m", "pip", "install", "-q", "mcp<2"], check=True, timeout=600)
            (folder / "ready").touch()
    return python


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_version_1_of_the_client(tmp_path: Path, older: Path, transport: str) -> None:
    def run(how: dict[str, object]) -> None:
        done = subprocess.run(
            [str(older), "-c", CLIENT, json.dumps(how)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["protocol"] == "2025-11-25"
        assert found["server"] == "sandbox" and len(found["tools"]) == 6
        assert "image" in found["shown"] and "image" in found["seen"]
        assert "42" in found["kept"] and found["told"] >= 1

    if transport == "stdio":
        run(
            {
                "command": PROGRAM[0],
                "args": [*PROGRAM[1:], "mcp", "serve"],
                "env": environment(tmp_path / "home"),
            }
        )
    else:
        with http(tmp_path / "home") as server:
            run({"url": server.url, "headers": {"Authorization": f"Bearer {server.token}"}})
