"""A session with the agent in tests: the real SDK and CLI, a scripted endpoint, events recorded.

async with chat(text("hello"), tmp=tmp_path) as c:
    finished = await c.ask("hi")
    c.of(Text)                # the events of a type
    c.server.requests[-1].body
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import traceback
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from support.scripted import MessagesServer, serve

from sandbox_chat.agent.session import ChatSession, Endpoint
from sandbox_chat.events import Event, FileContent, ImageContent, TurnFinished
from sandbox_chat.sandbox.base import (
    Bridge,
    CodeError,
    Execution,
    FileEntry,
    OutputSink,
    Progress,
    RawSink,
    RichOutput,
    SandboxFileError,
    SandboxInfo,
)
from sandbox_chat.settings import Secret, Settings

E = TypeVar("E", bound=Event)
KNOWN_MODEL = "claude-sonnet-4-5"
"""A model whose price the CLI knows."""


class MemorySandbox:
    """Stands in for a ``SandboxWorker``: files in a dictionary, code by ``exec`` in this process.

    ``sleep(n)`` in the code waits; ``fail`` is raised by every operation when it is set.
    """

    def __init__(self) -> None:
        self.info = SandboxInfo(kind="local", label="memory")
        self.generation = 1
        self.files: dict[str, bytes] = {}
        self.names: dict[str, Any] = {}
        self.fail: Exception | None = None
        self.slow = 0.0
        self.runs: list[tuple[str, float]] = []
        self.next: list[Execution] = []
        self.late: list[OutputSink | None] = []
        self.cancelled = 0
        self._lock = asyncio.Lock()

    def prestart(self) -> None:
        """Nothing to start."""

    def interrupt(self) -> None:
        """Nothing to stop."""

    def close(self, timeout: float = 5.0) -> None:
        """Nothing to close."""

    async def run_code(
        self,
        code: str,
        *,
        timeout: float,
        on_output: OutputSink | None = None,
        on_late: OutputSink | None = None,
        on_raw: RawSink | None = None,
        bridge: Bridge | None = None,
    ) -> Execution:
        """Run ``code``, or return the next prepared execution."""
        self._check()
        self.runs.append((code, timeout))
        async with self._lock:
            try:
                for seconds in re.findall(r"^sleep\(([\d.]+)\)", code, re.MULTILINE):
                    if on_output is not None:
                        on_output("stdout", "sleeping\n")
                    await asyncio.sleep(float(seconds))
                    code = re.sub(r"^sleep\([\d.]+\)", "pass", code, flags=re.MULTILINE)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if self.next:
                return self.next.pop(0)
            self.late.append(on_late)
            done = await asyncio.to_thread(self._exec, code, on_output)
            if on_raw is not None and done.stdout:
                on_raw("stdout", done.stdout.encode())
            return done

    def _exec(self, code: str, on_output: OutputSink | None) -> Execution:
        out = io.StringIO()
        outputs: tuple[RichOutput, ...] = ()
        error = None
        with contextlib.redirect_stdout(out):
            try:
                try:
                    value = eval(code, self.names)
                    if value is not None:
                        outputs = (RichOutput({"text/plain": repr(value)}, is_result=True),)
                except SyntaxError:
                    exec(code, self.names)
            except Exception as caught:
                error = CodeError(type(caught).__name__, str(caught), traceback.format_exc())
        if on_output is not None and out.getvalue():
            on_output("stdout", out.getvalue())
        return Execution(stdout=out.getvalue(), outputs=outputs, error=error)

    async def write_file(self, path: str, data: bytes) -> str:
        """Keep a file."""
        self._check()
        path = self._path(path)
        self.files[path] = data
        return path

    async def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """Return a file."""
        self._check()
        try:
            data = self.files[self._path(path)]
        except KeyError:
            raise SandboxFileError(f"There is no file {path}.") from None
        if len(data) > max_bytes:
            raise SandboxFileError(f"{path} has {len(data):,} bytes, more than {max_bytes:,}.")
        return data

    async def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        """List the files under a folder, without its folders."""
        self._check()
        prefix = self._path(path).rstrip("/") + "/"
        found = sorted(name for name in self.files if name.startswith(prefix))
        return [FileEntry(name, False, len(self.files[name])) for name in found[:limit]]

    async def upload(
        self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None
    ) -> str:
        """Keep a file that comes in pieces."""
        return await self.write_file(path, source.read(size))

    async def download(
        self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """Give a file in pieces."""
        data = await self.read_file(path, max_bytes=max_bytes)
        half = len(data) // 2
        for done, piece in ((half, data[:half]), (len(data), data[half:])):
            target.write(piece)
            if self.slow:
                await asyncio.sleep(self.slow)
            if on_progress is not None:
                on_progress(done, len(data))
        return len(data)

    def _check(self) -> None:
        if self.fail is not None:
            raise self.fail

    @staticmethod
    def _path(path: str) -> str:
        return path if path.startswith("/") else "/tmp/" + path


@dataclass
class Chat:
    """A session under test and what it emitted."""

    session: ChatSession
    server: MessagesServer
    worker: Any
    pictures: list[bytes]
    events: list[Event] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def sink(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        self.changed.set()

    def of(self, kind: type[E]) -> list[E]:
        """The events of a type, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, condition: Callable[[], object], timeout: float = 30.0) -> None:
        """Wait until ``condition`` holds; it is looked at after each event."""
        async with asyncio.timeout(timeout):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def ask(self, prompt: str, timeout: float = 60.0) -> TurnFinished:
        """Send a prompt and wait for the end of its turn."""
        turn_id = await self.send(prompt)
        return await self.finished(turn_id, timeout)

    async def send(self, prompt: str) -> str:
        """Send a prompt and return its turn's id."""
        turn_id = uuid.uuid4().hex[:8]
        await self.session.send(turn_id, prompt)
        return turn_id

    async def finished(self, turn_id: str, timeout: float = 60.0) -> TurnFinished:
        """Wait for the end of a turn."""
        await self.until(lambda: self._end(turn_id), timeout)
        found = self._end(turn_id)
        assert found is not None
        return found

    def _end(self, turn_id: str) -> TurnFinished | None:
        return next((event for event in self.of(TurnFinished) if event.turn_id == turn_id), None)


@asynccontextmanager
async def chat(
    *steps: Any,
    tmp: Path,
    settings: Settings | None = None,
    worker: Any = None,
    model: str = KNOWN_MODEL,
    session_id: str = "",
    resume: bool = False,
    server: MessagesServer | None = None,
    endpoint: Endpoint | None = None,
    connect: bool = True,
    function: Any = None,
    earlier: TurnFinished | None = None,
    budget: float | None = None,
) -> AsyncIterator[Chat]:
    """A connected session against a scripted endpoint; closed at the end, and its CLI with it.

    ``worker`` is a ``MemorySandbox`` when ``None`` and no sandbox when ``False``.
    """
    settings = settings or Settings(request_retries=1, data_dir=tmp)
    pictures: list[bytes] = []

    def save(data: bytes, mime: str, width: int, height: int) -> ImageContent:
        pictures.append(data)
        path = tmp / f"picture-{len(pictures)}.{mime.rpartition('/')[2]}"
        path.write_bytes(data)
        return ImageContent(str(path), mime, width, height)

    def save_file(data: bytes, mime: str, title: str) -> FileContent:
        return FileContent(str(tmp / "file.html"), mime, len(data), title)

    with contextlib.ExitStack() as stack:
        if server is None:
            server = stack.enter_context(serve(*steps, function=function))
        if worker is None:
            worker = MemorySandbox()
        elif worker is False:
            worker = None
        events: list[Event] = []
        made: list[Chat] = []
        session = ChatSession(
            settings,
            session_id=session_id or str(uuid.uuid4()),
            resume=resume,
            endpoint=endpoint or Endpoint(server.url, Secret(server.token), Secret(""), model),
            worker=worker,
            save_picture=save,
            save_file=save_file,
            emit=lambda event: made[0].sink(event),
            home=tmp / "claude",
            earlier=earlier,
            budget=budget,
        )
        made.append(Chat(session, server, worker, pictures, events))
        try:
            if connect:
                await session.connect()
            yield made[0]
        finally:
            await session.close()
