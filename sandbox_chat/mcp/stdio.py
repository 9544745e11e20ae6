"""A server's program: started with few variables, spoken to over its pipes within bounds, ended for certain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from sandbox_chat.mcp import launch_server
from sandbox_chat.mcp.base import McpError, ServerConfig
from sandbox_chat.mcp.secrets import credentials
from sandbox_chat.mcp.wire import ENDS, answered, own_error, read_message
from sandbox_chat.text import clean_line

PASSED = ("HOME", "PATH", "SHELL", "TERM", "USER", "LOGNAME", "LANG")
"""Variables of the program that every server gets. All else is given to it by its configuration."""
FOLLOWED = ("notifications/tools/list_changed", "notifications/cancelled")
"""Notifications that are passed on; others tell nothing that is used."""
LARGE = 500_000
"""Bytes of a line above which it is read in a thread, so that nothing else waits for it."""
QUEUE = 1000
"""Messages that may wait for the server to read them."""
PATIENCE = 500
"""Lines without an answer after which a server is in a flood: it is read slowly, and what it asks or tells is dropped."""
PAUSE = 0.02
"""Seconds between two pieces of a flood."""
GIVE_UP = 20
"""A line so many times longer than the longest that is taken is taken for one without an end."""
PIECE = 65_536
REPORT = 65_536
CLOSING = 5
"""Rounds of the loop in which the pipes of a program that has ended are closed: they would outlive a loop that ends at once."""
KILL_WAIT = 4.0
"""Seconds until what was ordered to end is surely gone: the launcher kills well before."""

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass(frozen=True, slots=True)
class End:
    """How a program ended: its status, negative for a signal; why it could not be started; its last words."""

    status: int | None = None
    problem: str = ""
    tail: str = ""


def environment(config: ServerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a server's program."""
    env = {name: environ[name] for name in PASSED if environ.get(name)}
    env.update({name: value.reveal() for name, value in config.env.items()})
    return env


def _secret_places(config: ServerConfig) -> list[str]:
    """Return where the command holds credentials, for the launcher, on whose command line they stand just once."""
    return [
        f"{number}:{found.start()}:{found.end()}"
        for value in credentials(config)
        for number, word in enumerate(config.command)
        for found in re.finditer(re.escape(value), word)
    ]


class ServerProcess:
    """The program of a server. ``limit``: bytes of the longest line that is taken. ``note`` takes a sentence about it.

    All methods belong to one loop.
    """

    def __init__(
        self,
        config: ServerConfig,
        log: Path | None,
        *,
        limit: int,
        log_limit: int,
        note: Callable[[str], None],
    ) -> None:
        self._config = config
        self._log = log
        self._limit = limit
        self._log_limit = log_limit
        self._note = note
        self._process: asyncio.subprocess.Process | None = None
        self._control = -1
        self._tasks: list[asyncio.Task[None]] = []
        self._asked: dict[RequestId, None] = {}  # requests of ours without an answer
        self._noise = 0
        self.ended = asyncio.Event()
        """Nothing more comes from it."""
        self.reported = asyncio.Event()
        """``end`` is known."""
        self.end = End()
        self.fault = ""
        """Why it was given up, as a sentence; empty when it was not."""
        self.ordered = False
        """It did not end by itself."""

    async def start(self) -> Streams:
        """Start it and return what its messages come from and go to. Raises ``McpError``."""
        config = self._config
        env = environment(config, os.environ)
        program = config.command[0]
        place = Path(config.cwd or "", program) if "/" in program else program
        if shutil.which(place, path=env.get("PATH", os.defpath)) is None:
            raise McpError(
                f"the program {clean_line(program)} is not there. Install it, or write its whole path."
            )
        self._make_log()
        control, self._control = os.pipe()
        stopped: asyncio.CancelledError | None = None
        try:
            spawned = asyncio.ensure_future(self._spawn(env, control))
            try:
                self._process = await asyncio.shield(spawned)
            except asyncio.CancelledError as error:  # what is half begun would not be closed for certain
                self._process, stopped = await spawned, error
        except (OSError, ValueError) as error:
            self._let_go()
            reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            raise McpError(f"it cannot be run ({clean_line(reason)}).") from None
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(control)
        send, read = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        write, receive = anyio.create_memory_object_stream[SessionMessage](QUEUE)
        self._tasks = [
            asyncio.create_task(self._read(send)),
            asyncio.create_task(self._write(receive)),
            asyncio.create_task(self._watch()),
        ]
        if stopped is not None:
            read.close()
            write.close()
            raise stopped
        return read, write

    async def _spawn(self, env: Mapping[str, str], control: int) -> asyncio.subprocess.Process:
        config = self._config
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", launch_server.__file__,
            str(control), str(self._log or ""), str(self._log_limit), ",".join([*config.env, *_secret_places(config)]),
            *config.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=config.cwd,
            pass_fds=(control,),
            start_new_session=True,
            limit=PIECE,
        )  # fmt: skip

    async def stop(self, limit: float) -> None:
        """End it within about ``limit`` seconds: its input ends first, then it is asked to, then killed."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not self.reported.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit * 0.4):
                    await self.reported.wait()
        self.ordered = not self.reported.is_set()
        self._let_go()
        reader, writer, watcher = self._tasks
        await _ended([reader, writer])
        drain = asyncio.create_task(self._drain())  # else the end of the process is never told
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_WAIT):
                await self.reported.wait()
        await _ended([drain, watcher])
        for _ in range(CLOSING):
            await asyncio.sleep(0)

    async def _drain(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            while data := await self._process.stdout.read(PIECE):
                del data
                await asyncio.sleep(0)

    def _let_go(self) -> None:
        """Order the launcher to end the server, if it has not ended."""
        control, self._control = self._control, -1
        if control >= 0:
            os.close(control)

    def _make_log(self) -> None:
        if self._log is not None:
            try:
                self._log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError:
                self._log = None

    async def _watch(self) -> None:
        """Read the launcher's report, and wait for its end."""
        assert self._process is not None and self._process.stderr is not None
        said = b""
        while data := await self._process.stderr.read(PIECE):
            said = (said + data)[-REPORT:]
        await self._process.wait()
        try:
            found = json.loads(said.splitlines()[-1])
            self.end = End(found["status"], str(found["problem"]), str(found["tail"]))
        except (ValueError, IndexError, KeyError, TypeError):
            self.end = End(self._process.returncode, "", said.decode("utf-8", "replace"))
        self.reported.set()

    # -- what comes ------------------------------------------------------------------------------------

    async def _read(self, send: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert self._process is not None and self._process.stdout is not None
        try:
            async with send:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    await self._read_lines(self._process.stdout, send)
        finally:
            self.ended.set()

    async def _read_lines(
        self, source: asyncio.StreamReader, send: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        line = bytearray()
        over, head = 0, b""  # of a line that is too long: its bytes beyond what is held, and its start
        while chunk := await source.read(PIECE):
            # What comes without end must not keep all else from running.
            await asyncio.sleep(PAUSE if self._noise > PATIENCE else 0)
            start = 0
            while start <= len(chunk):
                end = chunk.find(b"\n", start)
                line += chunk[start : end if end >= 0 else None]
                if len(line) > self._limit:
                    head = head or bytes(line[:ENDS])
                    over += len(line) - ENDS
                    del line[:-ENDS]
                    if over > GIVE_UP * self._limit:
                        self.fault = "It wrote a line without an end to its standard output."
                        return
                if end < 0:
                    break
                if head:
                    await self._too_large(send, head, bytes(line), over)
                    over, head = 0, b""
                elif line:
                    await self._take(send, bytes(line))
                line.clear()
                start = end + 1

    async def _too_large(
        self, send: MemoryObjectSendStream[SessionMessage | Exception], head: bytes, tail: bytes, over: int
    ) -> None:
        """Answer the request whose answer was not kept; all that wait, when it does not tell which."""
        number = answered(head, tail)
        hit = [number] if number in self._asked else list(self._asked)
        size = (over + len(tail)) / 1e6
        for each in hit:
            assert each is not None
            sentence = (
                f"Its answer has {size:,.1f} MB, more than the {self._limit / 1e6:g} MB that are taken "
                "(SANDBOX_CHAT_MCP_RESULT_MB). Ask for less at a time."
            )
            await self._pass(send, own_error(each, sentence))

    async def _take(self, send: MemoryObjectSendStream[SessionMessage | Exception], line: bytes) -> None:
        large = len(line) > LARGE
        message = await asyncio.to_thread(read_message, line) if large else read_message(line)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id is None and len(self._asked) == 1:
                message.id = next(iter(self._asked))
            elif isinstance(message.id, str) and message.id.isdecimal():
                message.id = int(message.id)
            if message.id in self._asked:
                self._noise = 0
                await self._pass(send, message)
                return
        self._noise += 1
        if self._noise > PATIENCE:
            return
        if isinstance(message, JSONRPCRequest):
            if message.method != "ping":
                method = clean_line(message.method, 60)
                self._note(f"It asked for {method}, which is not offered to servers; it was told so.")
            await self._pass(send, message)
        elif isinstance(message, JSONRPCNotification) and message.method in FOLLOWED:
            await self._pass(send, message)

    async def _pass(
        self, send: MemoryObjectSendStream[SessionMessage | Exception], message: JSONRPCMessage
    ) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.pop(message.id, None)
        await send.send(SessionMessage(message))

    # -- what goes -------------------------------------------------------------------------------------

    async def _write(self, receive: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert self._process is not None and self._process.stdin is not None
        stdin = self._process.stdin
        async with receive:
            with contextlib.suppress(OSError):
                async for item in receive:
                    message = item.message
                    if isinstance(message, JSONRPCRequest):
                        self._asked[message.id] = None
                    elif isinstance(message, JSONRPCNotification) and message.params:
                        self._asked.pop(message.params.get("requestId", ""), None)
                    words = message.model_dump(by_alias=True, exclude_unset=True)
                    stdin.write(json.dumps(words, separators=(",", ":")).encode("ascii") + b"\n")
                    await stdin.drain()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
