"""One client over stdin and stdout, which carry the protocol and nothing else.

The two streams belong to daemon threads of their own: a client that keeps its end open and says nothing, or reads
nothing, must not hold this program when it is told to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage

from sandbox_chat.mcp.serve.session import Session

LINE_LIMIT = 64_000_000
"""Bytes of the longest message that is taken: a file to write may be in it."""
_PIECE = 1 << 16

Say = Callable[[str], None]


async def serve(session: Session, stop: asyncio.Event, say: Say) -> None:
    """Serve the client until its end of input, or until ``stop``; the session is closed then.

    ``say`` tells the user a sentence, from any thread.
    """
    inward, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outward = anyio.create_memory_object_stream[SessionMessage](0)
    fd_in, fd_out = claim()
    loop = asyncio.get_running_loop()
    writer = _Writer(fd_out, loop)
    writer.start()
    _Reader(fd_in, loop, inward, stop, say).start()
    try:
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await stop.wait()
                await session.close()  # first: what runs in it has then ended, and nothing waits for it
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            tasks.start_soon(_pump, outward, writer, stop)
            await session.server.run(read, write, session.server.create_initialization_options())
            stop.set()
    finally:
        for stream in (inward, read, write, outward):
            stream.close()
        with anyio.CancelScope(shield=True):
            await session.close()


def claim() -> tuple[int, int]:
    """Take stdin and stdout away from everybody else in this process; returns the descriptors of the wire.

    What reads stdin then finds its end, and what prints to stdout prints to stderr.
    """
    sys.stdout.flush()
    fd_in, fd_out = os.dup(0), os.dup(1)  # children do not inherit these
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return fd_in, fd_out


async def _pump(
    messages: MemoryObjectReceiveStream[SessionMessage], writer: _Writer, stop: asyncio.Event
) -> None:
    """Write what is to go out; a client that is gone is the end."""
    async for item in messages:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            await writer.write(line.encode("utf-8", "replace") + b"\n")
        except OSError:
            stop.set()
            return


class _Reader(threading.Thread):
    """Reads lines and hands each over as a message when the one before has been taken; sets ``stop`` at the end."""

    def __init__(
        self,
        fd: int,
        loop: asyncio.AbstractEventLoop,
        target: MemoryObjectSendStream[SessionMessage | Exception],
        stop: asyncio.Event,
        say: Say,
    ) -> None:
        super().__init__(name="stdin", daemon=True)
        self._fd = fd
        self._loop = loop
        self._target = target
        self._stop = stop
        self._say = say

    def run(self) -> None:
        """Read until the end of the input or of the program."""
        # What ends it early: the input cannot be read, or the loop or the server has ended.
        with contextlib.suppress(OSError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            for line in self._lines():
                handed = self._hand_over(line)
                try:
                    waiting = asyncio.run_coroutine_threadsafe(handed, self._loop)
                except RuntimeError:
                    handed.close()
                    return
                waiting.result()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)

    async def _hand_over(self, line: bytes) -> None:
        try:
            item: SessionMessage | Exception = SessionMessage(
                types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            )
        except ValueError as error:  # not JSON, or no message: the server passes over it
            item = error
        await self._target.send(item)

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that are not empty. One beyond the limit is passed over and said. Raises ``OSError``."""
        parts: list[bytes] = []
        size = 0
        while data := os.read(self._fd, _PIECE):
            *ended, rest = data.split(b"\n")
            for end in ended:
                line, size = b"".join([*parts, end]), size + len(end)
                parts = []
                if size > LINE_LIMIT:
                    self._say(f"A message of {size:,} bytes was thrown away: {LINE_LIMIT:,} is the limit.")
                elif line.strip():
                    yield line
                size = 0
            size += len(rest)
            if size <= LINE_LIMIT:
                parts.append(rest)
            else:
                parts.clear()


class _Writer(threading.Thread):
    """Writes one message after the other."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="stdout", daemon=True)
        self._fd = fd
        self._loop = loop
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()

    async def write(self, data: bytes) -> None:
        """Write ``data`` and wait until it is taken. Raises ``OSError`` when nobody reads any more."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((data, done))
        await done

    def run(self) -> None:
        """Write until the end of the program."""
        while True:
            data, done = self._jobs.get()
            failed: OSError | None = None
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                failed = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, failed)
            except RuntimeError:
                return


def _settle(done: asyncio.Future[None], failed: OSError | None) -> None:
    if done.done():
        return
    if failed is None:
        done.set_result(None)
    else:
        done.set_exception(failed)
