"""What the cloud knows of one sandbox, and the program that is it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import secrets
import shutil
import signal
import socket
import string
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import psutil

import sandbox_chat.gateway

GUEST = Path(__file__).parent / "guest"
START_LIMIT = 120.0
"""Seconds within which a sandbox has to listen."""


@cache
def namespaces() -> tuple[str, ...] | None:
    """The command that gives a process a mount and a pid namespace of its own; None where it is refused."""
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
    as_root = ("unshare", "--user", "--map-root-user", *own[1:])
    for command in (own,) if os.geteuid() == 0 else (as_root,):
        try:
            tried = subprocess.run(
                [*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=30
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if tried.returncode == 0:
            return command
    return None


class Guest:
    """The processes of one sandbox."""

    def __init__(
        self, folder: Path, options: dict[str, Any], *, mcp: bool = False, servers: Path | None = None
    ) -> None:
        self.folder = folder
        self._servers = "" if servers is None else str(servers)
        self.gateway_port = free_port() if mcp else 0
        """Where its gateway to MCP servers listens on this machine, once it is started; 0: it has none."""
        self._options = {**options, "gateway_port": self.gateway_port}
        self._process: asyncio.subprocess.Process | None = None
        self.client: httpx.AsyncClient | None = None

    async def start(self) -> None:
        (self.folder / "ns").mkdir(parents=True)
        isolation = namespaces()
        plan = {
            "box": str(self.folder),
            "code": str(GUEST),
            "prefix": sys.prefix,
            "base": sys.base_prefix,
            "gateway": str(Path(sandbox_chat.gateway.__file__).parent) if self.gateway_port else "",
            "servers": self._servers,
            "isolated": isolation is not None,
            "options": self._options,
        }
        with (self.folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(isolation or ()),
                sys.executable,
                "-B",
                str(GUEST / "boot.py"),
                json.dumps(plan),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        said = await asyncio.wait_for(self._process.stdout.readline(), START_LIMIT)
        if said != b"ready\n":
            raise RuntimeError(f"the sandbox did not start: {(self.folder / 'log').read_text()[-4000:]}")
        transport = httpx.AsyncHTTPTransport(
            uds=str(self.folder / "guest.sock"), limits=httpx.Limits(max_connections=None)
        )
        self.client = httpx.AsyncClient(transport=transport, timeout=None, trust_env=False)

    async def init(self, token: str, envs: dict[str, str]) -> None:
        assert self.client is not None
        answer = await self.client.post("http://init/init", json={"token": token, "envs": envs})
        answer.raise_for_status()

    def _all(self) -> list[psutil.Process]:
        if self._process is None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self._process.pid)
            return [*top.children(recursive=True), top]
        return []

    def pause(self, number: int = signal.SIGSTOP) -> None:
        """Freeze everything (or let it go on: SIGCONT)."""
        for process in self._all()[:-1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    async def end(self) -> None:
        """Kill everything and wait for it."""
        if self._process is not None:
            # The first process of a pid namespace takes all others with it.
            processes = self._all()
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            await self._process.wait()
            async with asyncio.timeout(START_LIMIT):
                while any(runs(process) for process in processes):
                    await asyncio.sleep(0.005)
        if self.client is not None:
            with contextlib.suppress(Exception):
                await self.client.aclose()
        shutil.rmtree(self.folder, ignore_errors=True)


def runs(process: psutil.Process) -> bool:
    """Whether it is more than a zombie."""
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def new_id() -> str:
    return "i" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(19))


@dataclass
class Record:
    """One live sandbox, as the control API tells of it. Times are seconds of the cloud's clock (epoch)."""

    template: str
    timeout: float
    started_at: float
    end_at: float
    metadata: dict[str, str] = field(default_factory=dict)
    envs: dict[str, str] = field(default_factory=dict)
    internet: bool | None = None
    auto_pause: bool = False
    state: str = "running"
    id: str = field(default_factory=new_id)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    request: dict[str, Any] = field(default_factory=dict)
    """The body that it was created with."""
    guest: Guest | None = None

    def created(self, version: str, domain: str) -> dict[str, Any]:
        """The answer to create and connect."""
        return {
            "sandboxID": self.id,
            "templateID": self.template,
            "clientID": "test",
            "envdVersion": version,
            "envdAccessToken": self.token,
            "domain": domain,
        }

    def listed(self, version: str) -> dict[str, Any]:
        return {
            "sandboxID": self.id,
            "templateID": self.template,
            "alias": self.template,
            "clientID": "test",
            "startedAt": moment(self.started_at),
            "endAt": moment(self.end_at),
            "cpuCount": 2,
            "memoryMB": 1024,
            "diskSizeMB": 2048,
            "metadata": self.metadata,
            "state": self.state,
            "envdVersion": version,
        }

    def detail(self, version: str, domain: str) -> dict[str, Any]:
        return {
            **self.listed(version),
            "envdAccessToken": self.token,
            "domain": domain,
            "allowInternetAccess": self.internet,
            "lifecycle": {"autoResume": False, "onTimeout": "pause" if self.auto_pause else "kill"},
        }


def moment(seconds: float) -> str:
    return (
        datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )
