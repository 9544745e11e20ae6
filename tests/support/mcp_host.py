"""The MCP servers of a session in tests, without an agent: what is told, asked, saved and shown is recorded.

async with hosted(tmp_path, way("good")) as h:
    outcome = await h.call("echo", text="hi")
    h.of(ServerChanged)
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from sandbox_chat.events import Event, FileContent, ImageContent, Notice, ServerChanged
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.mcp.host import Servers
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.tools.context import CallContext, Question, ToolOutcome

E = TypeVar("E", bound=Event)
BAD = Path(__file__).with_name("bad_mcp_server.py")
SECRET = "s3cr3t-token-of-the-server"
PATIENCE = 60.0


def way(name: str = "good", *, server: str = "bad", **more: Any) -> ServerConfig:
    """A server that misbehaves in a way (see ``bad_mcp_server.py``)."""
    env = {"BAD_TOKEN": Secret(SECRET), **{key: Secret(value) for key, value in more.pop("env", {}).items()}}
    return ServerConfig(name=server, command=(sys.executable, str(BAD), name), env=env, **more)


def config_file(folder: Path, *configs: ServerConfig) -> Path:
    """Write programs into a file in the form of ``.mcp.json``, for the setting ``mcp_config``."""
    servers = {
        each.name: {
            "command": each.command[0],
            "args": list(each.command[1:]),
            "env": {name: value.reveal() for name, value in each.env.items()},
        }
        for each in configs
    }
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    path.chmod(0o600)
    return path


@dataclass
class Hosted:
    """Servers under test. ``answers`` are given to questions in turn, then their default; or by a function."""

    servers: Servers
    settings: Settings
    events: list[Event] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    on_question: Callable[[Question], str] | None = None
    questions: list[Question] = field(default_factory=list)
    started: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    finished: list[tuple[str, ToolOutcome, int]] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    context: CallContext = field(init=False)

    def of(self, kind: type[E]) -> list[E]:
        """The events of a type, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def states(self) -> list[str]:
        """The states that were told, without repetitions."""
        found = [event.state for event in self.of(ServerChanged)]
        return [state for number, state in enumerate(found) if number == 0 or found[number - 1] != state]

    @property
    def notices(self) -> str:
        """All notices."""
        return "\n".join(event.text for event in self.of(Notice))

    async def call(self, tool: str, server: str = "bad", /, **arguments: Any) -> ToolOutcome:
        """Call a tool."""
        return await self.servers.call(server, tool, arguments, f"call-{len(self.started) + 1}")

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def ask(self, question: Question) -> str:
        """Answer a question."""
        self.questions.append(question)
        if self.on_question is not None:
            return self.on_question(question)
        return self.answers.pop(0) if self.answers else question.default

    def make_context(self) -> CallContext:
        """A context that records here."""
        return CallContext(
            settings=self.settings,
            save_picture=self._save_picture,
            save_file=self._save_file,
            started=lambda call_id, name, given: self.started.append((call_id, name, dict(given))),
            finished=lambda *args: self.finished.append(args),
            ask=self.ask,
        )

    def _save_picture(self, data: bytes, mime: str) -> ImageContent:
        self.pictures.append(data)
        return ImageContent(f"/pictures/{len(self.pictures)}", mime, 1, 1)

    def _save_file(self, data: bytes, mime: str, title: str) -> FileContent:
        self.files.append(data)
        return FileContent(f"/files/{len(self.files)}", mime, len(data), title)


@asynccontextmanager
async def hosted(
    folder: Path,
    *configs: ServerConfig,
    begin: bool = True,
    allow: tuple[str, ...] = ("bad/*",),
    answers: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[Hosted]:
    """Servers that are attached and, with ``begin``, begun; closed at the end."""
    values: dict[str, Any] = {
        "data_dir": folder / "data",
        "mcp_allow": allow,
        "mcp_start_timeout": 20.0,
        "mcp_call_timeout": 20.0,
        **settings,
    }
    found = Settings(**values)
    events: list[Event] = []
    servers = Servers(configs, found, events.append, folder / "logs")
    h = Hosted(servers, found, events, list(answers))
    h.context = h.make_context()
    servers.attach(h.context)
    if begin:
        servers.begin()
    try:
        yield h
    finally:
        await servers.close(2.0)


def gone(pid: int, patience: float = 10.0) -> bool:
    """Wait for the end of a process; whether it came."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.Error:
            return True
        time.sleep(0.02)
    return False


def descendants() -> set[int]:
    """Process ids of all that this process started and that still runs."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Check that no more processes of this one run at the end than at the beginning."""
    before = descendants()
    yield
    end = time.monotonic() + 10.0
    while (left := descendants() - before) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left
