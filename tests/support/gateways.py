"""A gateway as the command line starts it, for tests: in a folder of its own, and ended for certain."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import psutil
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SERVER = Path(__file__).with_name("gateway_server.py")
PROGRAM = (sys.executable, "-m", "sandbox_chat.gateway")
TOKEN = "token-4f8ca1d2"
MARK = "GATEWAY_TEST_MARK"


def quick(*options: str, python: str = sys.executable) -> str:
    """The shell command of the small server, with its options."""
    return shlex.join(["exec", python, str(SERVER), *options]).replace("'exec'", "exec")


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Gateway:
    """A gateway that is started by ``start``. ``folder`` holds its token file and its log."""

    def __init__(self, folder: Path, program: tuple[str, ...] = PROGRAM) -> None:
        self.folder = folder
        self.program = program
        self.port = free_port()
        self.token_file = folder / "run" / ".token"
        self.log_file = folder / "gateway.log"
        self.mark = uuid.uuid4().hex
        self.pid = 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "GATEWAY_ACCESS_TOKEN": TOKEN,
            MARK: self.mark,
        }

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def log(self) -> str:
        """The log so far."""
        return self.log_file.read_text("utf-8", "replace") if self.log_file.exists() else ""

    def arguments(self, config: Any, *more: str) -> list[str]:
        """The command line."""
        text = config if isinstance(config, str) else json.dumps(config)
        options = {
            "--config": text,
            "--port": str(self.port),
            "--host": "127.0.0.1",
            "--token-file": str(self.token_file),
            "--log-file": str(self.log_file),
            "--clones": str(self.folder / "clones"),
            "--catalog": str(self.folder / "catalog.json"),
        }
        for option in options:
            if option in more:
                options = {name: value for name, value in options.items() if name != option}
        if "--config-file" in more:
            del options["--config"]
        return [*self.program, *(part for pair in options.items() for part in pair), *more]

    def start(
        self, config: Any, *more: str, environment: Mapping[str, str] | None = None, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        done = subprocess.run(
            self.arguments(config, *more),
            env={**self.environment, **(environment or {})},
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        found = re.search(r"\(process (\d+)\)", done.stdout)
        self.pid = int(found[1]) if found else 0
        return done

    def started(self, config: Any, *more: str) -> None:
        """Run the command, which must succeed."""
        done = self.start(config, *more)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr, self.log)

    def processes(self) -> list[psutil.Process]:
        """All processes that this gateway started, wherever they went."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def gone(self, limit: float = 15.0) -> bool:
        """Wait until none of its processes is left; ``False`` when ``limit`` seconds are over."""
        deadline = time.monotonic() + limit
        while self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def stop(self) -> None:
        """End it, and whatever is left of it."""
        if self.pid:
            with contextlib.suppress(psutil.Error):
                psutil.Process(self.pid).terminate()
            self.gone()
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()

    @contextlib.asynccontextmanager
    async def client(self, mode: str = "auto", token: str = TOKEN) -> AsyncIterator[Client]:
        """The library's client of the endpoint."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            # Handshakes before 2026 get results as events, of which the library takes 1 MB unless told otherwise.
            Client(  # type: ignore[arg-type]
                streamable_http_client(self.url, http_client=http, max_sse_event_size=None), mode=mode
            ) as client,
        ):
            yield client

    async def text(self, client: Client, tool: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool and return the text of its answer."""
        result = await client.call_tool(tool, dict(arguments or {}))
        content = result.content[0]
        assert content.type == "text"
        return content.text


@contextlib.contextmanager
def a_gateway(folder: Path, program: tuple[str, ...] = PROGRAM) -> Iterator[Gateway]:
    """A gateway that is not started yet, and is ended with the context."""
    gateway = Gateway(folder, program)
    try:
        yield gateway
    finally:
        gateway.stop()
