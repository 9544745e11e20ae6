"""The same call to the same MCP server through the gateway and without it, in the same run.

    python tests/benchmarks/gateway.py [--rounds N] [--python PATH] [--modes legacy,auto] [--check]

Three ways are taken in turns, so that a machine that slows down slows all: over a pipe to the server, over HTTP to the
server, over HTTP to the gateway, which has the server behind a pipe. HTTP by itself costs the library's client some
milliseconds of processor time for each call, whatever is at its other end, and a server in a sandbox cannot be reached by a
pipe. So the target holds between the two that the client speaks HTTP with, and beside the pipe for a call that does some
work (a log of git). ``--python`` is an interpreter that has mcp-server-time and mcp-server-git. ``--check``: exit code 1
when a ratio is above the target.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from sandbox_chat.gateway import launch

LIMIT = 1.5
TOKEN = "token-of-the-benchmark"
HERE = Path(__file__).resolve().parent
QUICK = HERE.parent / "support" / "gateway_server.py"
SERVERS = HERE / "gateway_servers.py"
WARM = 20


@dataclass(frozen=True)
class Case:
    """A call of a server. ``command`` without a port; ``over_http`` when it takes one."""

    name: str
    command: Sequence[str]
    tool: str
    arguments: dict[str, Any]
    over_http: bool = True
    beside_pipe: bool = False
    """The target holds beside the pipe."""


@dataclass
class Row:
    """Seconds of the calls of one case."""

    name: str
    beside_pipe: bool
    pipe: list[float] = field(default_factory=list)
    http: list[float] = field(default_factory=list)
    gateway: list[float] = field(default_factory=list)

    @property
    def met(self) -> bool:
        """Whether the target is kept, as far as there is one."""
        return not self.beside or statistics.median(self.gateway) <= LIMIT * statistics.median(self.beside)

    @property
    def beside(self) -> list[float]:
        """What the gateway is compared with for the target; empty for nothing."""
        return self.pipe if self.beside_pipe else self.http

    def line(self) -> str:
        """The line of the table."""
        pipe, http, gateway = (
            statistics.median(times) * 1000 if times else 0.0
            for times in (self.pipe, self.http, self.gateway)
        )
        text = f"{self.name:32}{pipe:9.2f}{http:9.2f}{gateway:9.2f}{gateway / pipe:8.2f}×"
        text += f"{gateway / http:8.2f}×" if http else " " * 9
        if self.beside:
            way = "pipe" if self.beside_pipe else "HTTP"
            text += f"  ≤ {LIMIT}× {way} {'ok' if self.met else 'MISSED'}"
        return text + f"   (n={len(self.gateway)})"


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def make_repository(folder: Path) -> None:
    """Make a repository with a few commits."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for number in range(10):
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", f"commit {number}"], check=True)


@asynccontextmanager
async def served(command: Sequence[str]) -> AsyncIterator[str]:
    """The server itself over HTTP: its address."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)])
    try:
        for _ in range(600):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def gateway(command: Sequence[str], folder: Path) -> AsyncIterator[str]:
    """A gateway with the server behind it: its address."""
    running = await asyncio.to_thread(
        launch.start,
        {"the server": {"runCmd": f"exec {' '.join(command)}"}},
        TOKEN,
        port=0,
        host="127.0.0.1",
        token_file=None,
        log_file=folder / "log",
        catalog=None,
        tied=True,
    )
    try:
        yield f"http://127.0.0.1:{running.port}/mcp"
    finally:
        await asyncio.to_thread(running.stop)


async def timed(client: Client, case: Case) -> float:
    """Make one call, which must succeed; return its seconds."""
    started = time.perf_counter()
    result = await client.call_tool(case.tool, case.arguments)
    seconds = time.perf_counter() - started
    assert not result.is_error, result
    return seconds


async def measure(case: Case, rounds: int, mode: Any) -> Row:
    """Call all ways in turns."""
    row = Row(f"{case.name} ({mode})", case.beside_pipe)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        errors = stack.enter_context((folder / "errors").open("w"))
        parameters = StdioServerParameters(command=case.command[0], args=list(case.command[1:]))
        ways = [(row.pipe, await enter(Client(stdio_client(parameters, errlog=errors), mode=mode)))]
        addresses = [(row.gateway, await enter(gateway(case.command, folder)))]
        if case.over_http:
            addresses.append((row.http, await enter(served(case.command))))
        for times, address in addresses:
            http = await enter(httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60))
            ways.append(
                (times, await enter(Client(streamable_http_client(address, http_client=http), mode=mode)))
            )
        for number in range(WARM + rounds):
            for times, client in ways:
                seconds = await timed(client, case)
                if number >= WARM:
                    times.append(seconds)
    return row


async def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument(
        "--python", help="interpreter of an environment with mcp-server-time and mcp-server-git"
    )
    parser.add_argument("--modes", default="legacy,auto", help="handshakes of the protocol, with commas")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    echo = (sys.executable, str(SERVERS), "echo")
    cases = [
        Case("echo, no library", (sys.executable, str(QUICK)), "echo", {"text": "hello"}, over_http=False),
        Case("echo", echo, "echo", {"text": "hello"}),
        Case("100 KB", echo, "big", {"size": 100_000}),
    ]
    if chosen.python:
        zone = {"timezone": "UTC"}
        cases.append(Case("mcp-server-time", (chosen.python, str(SERVERS), "time"), "get_current_time", zone))
        repository = tempfile.mkdtemp(prefix="gateway-benchmark-")
        make_repository(Path(repository))
        command = (chosen.python, "-m", "mcp_server_git", "--repository", repository)
        cases.append(
            Case(
                "mcp-server-git",
                command,
                "git_log",
                {"repo_path": repository},
                over_http=False,
                beside_pipe=True,
            )
        )
    print(f"{'median ms':32}{'pipe':>9}{'HTTP':>9}{'gateway':>9}{'/ pipe':>9}{'/ HTTP':>9}")
    rows: list[Row] = []
    for case in cases:
        for mode in chosen.modes.split(","):
            rows.append(await measure(case, chosen.rounds, mode))
            print(rows[-1].line(), flush=True)
    if chosen.python:
        shutil.rmtree(repository)
    return 1 if chosen.check and not all(row.met for row in rows) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
