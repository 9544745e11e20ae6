"""``sandbox-chat mcp serve`` as clients meet it: over stdio, over HTTP, or line by line."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from support.program import PROGRAM, environment, wait_until

PATIENCE = 120.0
"""Seconds that anything may take on a busy machine before a test gives up."""
INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def text_of(result: Any) -> str:
    """The text blocks of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def pictures_of(result: Any) -> list[types.ImageContent]:
    """The pictures of a result."""
    return [block for block in result.content if isinstance(block, types.ImageContent)]


@asynccontextmanager
async def stdio(home: Path, *arguments: str, mode: str = "legacy", **options: Any) -> AsyncIterator[Client]:
    """A client of a server of its own. What the server says on stderr must be nothing."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    parameters = StdioServerParameters(
        command=PROGRAM[0],
        args=[*PROGRAM[1:], "mcp", "serve", *arguments],
        env=environment(home, options.pop("env", None)),
        cwd=work,
    )
    with tempfile.TemporaryFile() as said:
        async with Client(stdio_client(parameters, errlog=said), mode=mode, **options) as client:  # type: ignore[arg-type]
            yield client
        said.seek(0)
        assert said.read() == b""


class Lines:
    """A server spoken to line by line, so that the process itself is in hand."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._id = 0

    def send(self, method: str, params: dict[str, Any] | None = None, *, request: bool = True) -> int:
        """Send a message; returns its id."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if request:
            self._id += 1
            message["id"] = self._id
        self.raw(json.dumps(message).encode())
        return self._id

    def raw(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for the next message. Every line must be one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def begin(self, version: str = "2024-11-05") -> dict[str, Any]:
        """Do the handshake; returns the server's part of it."""
        params = {**INITIALIZE["params"], "protocolVersion": version}
        self.send("initialize", params)
        answer = self.receive()
        self.send("notifications/initialized", request=False)
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and wait for its result."""
        wanted = self.send("tools/call", {"name": tool, "arguments": arguments})
        while (message := self.receive()).get("id") != wanted:
            pass
        result: dict[str, Any] = message["result"]
        return result


@contextmanager
def lines(home: Path, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Lines]:
    """A server with pipes; killed at the end if it still runs."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        [*PROGRAM, "mcp", "serve", *arguments],
        env=environment(home, env),
        cwd=work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Lines(process)
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Http:
    """A server over HTTP: its address, the token's file, what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said
        found: re.Match[str] = wait_until(
            lambda: re.search(r"Serving at (\S+); the token is in (\S+)", self.said), PATIENCE, "the address"
        )
        self.url = found[1]
        self.token_file = Path(found[2])

    @property
    def said(self) -> str:
        """All of stderr so far."""
        return self._said.read_text(encoding="utf-8")

    @property
    def token(self) -> str:
        """The token."""
        return self.token_file.read_text(encoding="ascii").strip()

    @asynccontextmanager
    async def client(self, *, mode: str = "legacy", query: str = "", **options: Any) -> AsyncIterator[Client]:
        """A client of it."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            create_mcp_http_client(headers) as http,
            Client(
                streamable_http_client(self.url + query, http_client=http), mode=mode, **options
            ) as client,
        ):
            yield client

    def end(self) -> int:
        """Ask it to end and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@contextmanager
def http(home: Path, *arguments: str, where: str = "0", env: dict[str, str] | None = None) -> Iterator[Http]:
    """A server over HTTP on a free port; killed at the end if it still runs."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    said = home / "said.txt"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [*PROGRAM, "mcp", "serve", "--http", where, *arguments],
            env=environment(home, env),
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            yield Http(process, said)
        finally:
            process.kill()
            out, _ = process.communicate()
            assert out == b""
