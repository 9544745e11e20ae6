"""Parts of code mode in tests without a sandbox and without a server's process.

b = bridged(tmp_path)      # a real ``CodeBridge`` and real ``Servers``, whose server is in memory
async with b.bridge.run("call-1"):
    answer = await call(b, text="x")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from support.mcp_host import Hosted

from sandbox_chat.bridge.frames import HEADER
from sandbox_chat.bridge.server import CodeBridge
from sandbox_chat.events import Event, ServerPlace
from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.mcp.host import Servers
from sandbox_chat.mcp.managed import Managed
from sandbox_chat.settings import Secret, Settings

SECRET = "s3cr3t-token-of-the-server"
Act = Callable[[Mapping[str, Any]], Any]


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.start = self.at = 1000.0

    def now(self) -> float:
        return self.at


def tool(name: str, *, server: str = "notes", **more: Any) -> ToolDefinition:
    """A tool as a server offers it; ``properties`` and ``required`` are those of its schema."""
    schema: dict[str, Any] = {"type": "object"}
    for key in ("properties", "required"):
        if key in more:
            schema[key] = more.pop(key)
    values: dict[str, Any] = {
        "original": name, "description": f"{name.capitalize()} it.", "schema": schema, **more,
    }  # fmt: skip
    return ToolDefinition(server=server, name=name, **values)


def text(*parts: str, is_error: bool = False) -> types.CallToolResult:
    """A result of texts."""
    content = [types.TextContent(type="text", text=part) for part in parts]
    return types.CallToolResult(content=list(content), is_error=is_error)


class Memory(Managed):
    """A server of this process: all of ``Managed`` but for its start. ``acts`` do what its tools do, by name.

    One gets the arguments and returns a result, a text or structured content, or something to await for these.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        tools: Mapping[ToolDefinition, Act] | list[tuple[ToolDefinition, Act]],
        *,
        name: str = "notes",
        place: ServerPlace = "host",
        command: tuple[str, ...] = ("a-server-of-the-user",),
    ) -> None:
        found = list(tools.items()) if isinstance(tools, Mapping) else tools
        config = ServerConfig(name=name, place=place, command=command, env={"TOKEN": Secret(SECRET)})
        server = found[0][0].server if found else name
        super().__init__(
            config,
            server,
            settings,
            lambda event: None,
            log_file=folder / "log",
            tools_file=folder / "tools.json",
            on_tools=lambda name: None,
        )
        self.tools, self._known = [each for each, _ in found], True
        self.got: list[tuple[str, dict[str, Any], float | None]] = []
        """The calls that reached it: the server's own name of the tool, the arguments, the limit."""
        self._acts = {each.original: act for each, act in found}

    async def connected(self) -> Any:
        """It is its own connection."""
        return self

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, limit: float | None = None
    ) -> types.CallToolResult:
        """Do what a tool does."""
        self.got.append((name, dict(arguments), limit))
        found = self._acts[name](arguments)
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, str):
            return text(found)
        if isinstance(found, dict):
            return types.CallToolResult(content=[], structured_content=found)
        assert isinstance(found, types.CallToolResult)
        return found


class Bridged:
    """Code mode over servers in memory, and what was told and asked."""

    def __init__(
        self,
        folder: Path,
        make: Callable[[Settings, Path], list[Memory]] | None = None,
        *,
        policy: tuple[str, ...] = ("*=free",),
        answers: tuple[str, ...] = (),
        private: Callable[[Settings], Any] = lambda settings: None,
        shelf: Any = None,
        **values: Any,
    ) -> None:
        self.settings = Settings(
            data_dir=folder / "data", code_mode="on", code_mode_policy=policy, **{"pii": "off", **values}
        )
        self.events: list[Event] = []
        self.servers = Servers([], self.settings, self.events.append, folder / "logs") if make else None
        self.host = Hosted(self.servers, self.settings, self.events, list(answers))  # type: ignore[arg-type]
        if self.servers is not None and make is not None:
            self.servers._servers = {each.name: each for each in make(self.settings, folder)}
        self.private = private(self.settings)
        self.bridge = CodeBridge(
            self.servers,
            self.settings,
            self.events.append,
            self.host.ask,
            save_picture=self.host.make_context().save_picture,
            private=self.private,
            shelf=shelf,
        )

    @property
    def token(self) -> str:
        """The session's token."""
        return self.bridge._token.reveal()

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a type, in order."""
        return self.host.of(kind)

    def connect(self) -> socket.socket:
        """A connection as code makes one."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.bridge.serve(theirs)
        return ours

    async def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask for something, as code with the token does."""
        return await self.raw(json.dumps({"token": self.token, "op": op, **fields}).encode())

    async def raw(self, body: bytes) -> dict[str, Any]:
        """Send a request and return its answer; empty when the connection was closed."""
        return await answer_of(self.connect(), HEADER.pack(len(body)) + body)


async def answer_of(sock: socket.socket, data: bytes) -> dict[str, Any]:
    """Send bytes and return the one answer to them; empty when there is none."""
    loop = asyncio.get_running_loop()
    with sock:
        await loop.sock_sendall(sock, data)
        came = b""
        while part := await loop.sock_recv(sock, 1 << 20):
            came += part
    if not came:
        return {}
    (length,) = HEADER.unpack(came[:4])
    assert len(came) == 4 + length
    found = json.loads(came[4:])
    assert isinstance(found, dict)
    return found


ECHO = tool(
    "echo", properties={"text": {"type": "string"}, "n": {"type": "integer"}}, required=["text"], read_only=True
)  # fmt: skip


def echo(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give back what came."""
    return dict(arguments)


def bridged(
    folder: Path, act: Act = echo, *more: tuple[ToolDefinition, Act], definition: ToolDefinition = ECHO, **values: Any
) -> Bridged:  # fmt: skip
    """A server ``notes`` with the tool ``echo``, and more tools."""
    place = values.pop("place", "host")
    return Bridged(
        folder, lambda found, path: [Memory(found, path, [(definition, act), *more], place=place)], **values
    )


def memory(b: Bridged) -> Memory:
    """Its server."""
    assert b.servers is not None
    found = b.servers._servers["notes"]
    assert isinstance(found, Memory)
    return found


def refused(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as refused."""
    return [record.getMessage() for record in caplog.records if "code mode refused" in record.getMessage()]


async def call(b: Bridged, name: str = "notes__echo", **arguments: Any) -> dict[str, Any]:
    """Call a tool."""
    return await b.ask("call", name=name, arguments=arguments)


class Listening:
    """The host's end of a guest's way in a thread: answers what is asked over a real socket in a file.

    ``answer`` gets each request and returns the answer: a dict, or bytes as they go, or ``None`` to hang up.
    """

    def __init__(
        self, folder: Path, answer: Callable[[dict[str, Any]], dict[str, Any] | bytes | None]
    ) -> None:
        self.path = str(folder / "way")
        self.token = "t0ken-of-the-session"
        self.asked: list[dict[str, Any]] = []
        """What was asked, without the token, in the order in which it came in whole."""
        self.tokens: set[str] = set()
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(100)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(sock,), daemon=True))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            head = sock.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return
            request = json.loads(sock.recv(HEADER.unpack(head)[0], socket.MSG_WAITALL))
            self.tokens.add(request.pop("token"))
            self.asked.append(request)
            answer = self._answer(request)
            if isinstance(answer, dict):
                data = json.dumps(answer).encode()
                answer = HEADER.pack(len(data)) + data
            if answer is not None:
                sock.sendall(answer)

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)
