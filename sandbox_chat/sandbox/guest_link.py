"""The host's end of the guest's protocol: run code, move files, interrupt; trust nothing that comes back.

What code in the sandbox does can forge every byte on the socket and the pipes. So each length is
capped, each field is checked, every wait has an end, and on nonsense the sandbox is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from sandbox_chat.events import Stream
from sandbox_chat.guest import protocol
from sandbox_chat.guest.protocol import Frame, FrameReader, ProtocolError
from sandbox_chat.sandbox.base import (
    CodeError,
    Execution,
    FileEntry,
    OutputSink,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    StopReason,
)
from sandbox_chat.sandbox.gather import STREAMS, Run

TIMEOUT_GRACE = 2.0
"""Seconds that code has to stop after its time limit, before the shell is killed."""
INTERRUPT_GRACE = 1.0
"""Seconds that code has to stop after the user's interrupt, before the shell is killed."""
ASK_AGAIN = 0.3
"""Seconds after which code that was asked to stop is asked again: an exception can get lost in a callback."""
FILE_TIMEOUT = 60.0
"""Seconds for a whole file operation, however many steps of at most ``FILE_CHUNK`` bytes it takes."""
FILE_CHUNK = 8 << 20
LOST = "Its variables and files are lost; the next run starts afresh."
_CHUNK = 1 << 16
_MAX_COMPLAINT = 600  # characters of what a guest that did not start has said
_CHECK_EVERY = 0.5  # a dead process is noticed within this time even if something holds its socket open
# A run that writes without end is read more slowly, so that the rest of this program keeps the processor.
_SLOW_AFTER = 32 << 20
_SLOW_PAUSE = 0.002

LateSink = Callable[[int, Stream, str], None]
"""Takes output that came after its run had ended: number of the run, stream, text."""


@dataclass(frozen=True, slots=True)
class Channel:
    """What a back end gives after it started a guest: the connection, the output pipes, the handles.

    ``kill`` ends everything in the sandbox at once (any thread, any number of times). ``ended``
    returns a sentence about how the guest ended, or an empty string while it lives.
    """

    sock: socket.socket
    stdout: int
    stderr: int
    kill: Callable[[], None]
    ended: Callable[[], str]


class GuestLink:
    """Speaks with one guest. Used by one thread; only ``interrupt`` and ``close`` by others."""

    def __init__(self, channel: Channel, *, output_limit: int, on_late: LateSink | None = None) -> None:
        self._channel = channel
        self._limit = output_limit
        self._on_late = on_late
        self._reader = FrameReader()
        self._frames: list[Frame] = []
        self._number = 0
        self._lock = threading.Lock()
        self._interruptible = False
        self._wanted = False
        self._wake_read, self._wake_write = os.pipe()
        self._closed = False
        self._pipes: dict[int, Stream] = {channel.stdout: "stdout", channel.stderr: "stderr"}
        self._poller = select.poll()
        channel.sock.setblocking(False)
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        for fd in (channel.sock.fileno(), self._wake_read, *self._pipes):
            self._poller.register(fd, select.POLLIN)
        for fd in self._pipes:
            os.set_blocking(fd, False)
        self._eof = False

    # -- for the worker's thread -----------------------------------------------------------------------

    def hello(self, timeout: float) -> str:
        """Wait for the guest's first word; return its Python version. Raises ``SandboxLost``."""
        deadline = time.monotonic() + timeout
        said = bytearray()
        while True:
            self._wait(deadline, lambda _stream, data: said.extend(data[:_CHUNK]))
            for message, _ in self._take():
                if message.get("op") == "hello" and message.get("protocol") == protocol.VERSION:
                    return str(message.get("python"))[:40]
                raise self._lost("It answered what this version does not understand.")
            if self._eof or time.monotonic() >= deadline:
                self._drain(lambda _stream, data: said.extend(data[:_CHUNK]))
                reason = self._channel.ended() if self._eof else f"It did not answer within {timeout:g} s."
                text = " ".join(bytes(said[:_CHUNK]).decode("utf-8", "replace").split())[:_MAX_COMPLAINT]
                raise self._lost(text or reason)

    def execute(self, code: str, timeout: float, sink: OutputSink | None) -> Execution:
        """Run ``code``. Raises ``SandboxLost`` when the guest was gone before it could take the code."""
        self._background()
        run = Run(self._next(), sink, self._limit)
        started = time.monotonic()
        with self._lock:
            self._interruptible, self._wanted = True, False
        try:
            self._send({"op": "run", "id": run.number, "code": code})
            stopped = self._follow(run, started + timeout)
        finally:
            with self._lock:
                self._interruptible = False
        return run.result(stopped, round((time.monotonic() - started) * 1000))

    def write_file(self, path: str, data: bytes) -> str:
        """Write a file; see ``Sandbox.write_file``."""
        view = memoryview(data)
        full = ""
        with self._file_operation() as deadline:
            for start in range(0, max(len(data), 1), FILE_CHUNK):
                request = {"op": "write", "path": path, "append": start > 0}
                reply, _ = self._request(request, deadline, view[start : start + FILE_CHUNK])
                full = str(reply.get("path", ""))
        return full

    def read_file(self, path: str, max_bytes: int) -> bytes:
        """Read a file; see ``Sandbox.read_file``."""
        data = bytearray()
        with self._file_operation() as deadline:
            while True:
                request = {"op": "read", "path": path, "offset": len(data), "size": FILE_CHUNK}
                reply, part = self._request(request, deadline)
                size = reply.get("size")
                if not isinstance(size, int) or len(part) > FILE_CHUNK:
                    raise self._broken()
                if size > max_bytes or len(data) + len(part) > max_bytes:
                    raise SandboxFileError(
                        f"{str(reply.get('path'))[:1000]} has {size:,} bytes; at most {max_bytes:,} can be taken."
                    )
                data += part
                if not part or len(data) >= size:
                    return bytes(data)

    def list_files(self, path: str, limit: int) -> list[FileEntry]:
        """List a folder; see ``Sandbox.list_files``."""
        with self._file_operation() as deadline:
            reply, _ = self._request({"op": "list", "path": path, "limit": limit}, deadline)
        rows, folder = reply.get("entries"), reply.get("path")
        if not isinstance(rows, list) or not isinstance(folder, str):
            raise self._broken()
        found = []
        for row in rows[:limit]:
            match row:
                case [str(name), bool(is_dir), int(size)]:
                    found.append(FileEntry(f"{folder.rstrip('/')}/{name}", is_dir, max(size, 0)))
                case _:
                    raise self._broken()
        return found

    # -- for any thread --------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ask the run or file operation under way to stop. Does nothing when none is."""
        with self._lock:
            if not self._interruptible or self._closed:
                return
            self._wanted = True
            self._wake()

    def close(self) -> None:
        """Kill the guest. The thread that is in ``execute`` gets a result with ``died``."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._wake()
        self._channel.kill()

    def release(self) -> None:
        """Close the connection's descriptors; only when no thread uses this link any more."""
        self._channel.sock.close()
        with self._lock:
            for fd in (self._wake_read, self._wake_write, *self._pipes):
                try:
                    os.close(fd)
                except OSError:
                    continue
            self._pipes.clear()

    # -- inner parts -----------------------------------------------------------------------------------

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"!")
        except OSError:  # it is full, so a wake-up is on its way
            return

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _lost(self, reason: str) -> SandboxLost:
        self._channel.kill()
        return SandboxLost(reason)

    def _broken(self) -> SandboxError:
        self._channel.kill()
        return SandboxLost("The sandbox sent an answer that makes no sense, so it was ended.")

    def _send(self, message: dict[str, Any], blob: bytes | memoryview = b"") -> None:
        try:
            data = memoryview(protocol.pack(message, blob))
        except ProtocolError:
            raise SandboxFileError(
                "This is too long to be given to the sandbox in one piece. Split it."
            ) from None
        deadline = time.monotonic() + FILE_TIMEOUT
        poller = select.poll()
        poller.register(self._channel.sock.fileno(), select.POLLOUT)
        while data:
            try:
                data = data[self._channel.sock.send(data) :]
            except BlockingIOError:
                if self._closed or time.monotonic() > deadline:
                    raise self._lost("The sandbox took no more requests.") from None
                poller.poll(100)
            except OSError:
                self._eof = True
                raise self._lost(self._channel.ended() or "The sandbox is gone.") from None

    def _wait(self, deadline: float, take: Callable[[Stream, bytes], None]) -> int:
        """Wait for something and read it once; ``take`` gets output. Returns how many bytes of output came."""
        pause = max(0.0, min(deadline - time.monotonic(), _CHECK_EVERY))
        ready = self._poller.poll(pause * 1000)
        read = 0
        for fd, _event in ready:
            if fd in self._pipes:
                read += self._read_pipe(fd, take)
        for fd, _event in ready:
            if fd == self._wake_read:
                os.read(fd, 4096)
            elif fd not in self._pipes and not self._eof:
                self._read_socket()
        if not ready and not self._eof and self._channel.ended():
            self._read_socket()
            self._eof = True
        if self._closed:
            self._eof = True
        return read

    def _read_socket(self) -> None:
        try:
            data = self._channel.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._eof = True
            self._poller.unregister(self._channel.sock.fileno())
            return
        try:
            self._frames.extend(self._reader.feed(data))
        except ProtocolError:
            raise self._broken() from None

    def _read_pipe(self, fd: int, take: Callable[[Stream, bytes], None]) -> int:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self._poller.unregister(fd)
            return 0
        take(self._pipes[fd], data)
        return len(data)

    def _drain(self, take: Callable[[Stream, bytes], None]) -> None:
        """Read what is in the output pipes now; bounded, because their other ends may be written meanwhile."""
        for fd in self._pipes:
            for _ in range(32):  # a pipe holds 64 kB, at most 1 MB
                try:
                    data = os.read(fd, _CHUNK)
                except OSError:
                    break
                if not data:
                    break
                take(self._pipes[fd], data)

    def _take(self) -> list[Frame]:
        """The frames that came; those of late threads are handed on and left out."""
        frames, self._frames = self._frames, []
        kept = []
        for message, blob in frames:
            if message.get("op") == "late":
                number, stream, text = message.get("id"), message.get("stream"), message.get("text")
                if isinstance(number, int) and stream in STREAMS and isinstance(text, str):
                    self._late(number, cast("Stream", stream), text)
            else:
                kept.append((message, blob))
        return kept

    def _late(self, number: int, stream: Stream, text: str) -> None:
        if self._on_late is not None:
            self._on_late(number, stream, text)

    def _background(self) -> None:
        """Hand on what processes wrote since the last run ended, so that the next does not get it."""
        number = self._number
        self._drain(lambda stream, data: self._late(number, stream, data.decode("utf-8", "replace")))
        self._read_socket_quietly()
        self._take()
        if self._eof or self._channel.ended():
            raise self._lost(self._channel.ended() or "The sandbox is gone.")

    def _read_socket_quietly(self) -> None:
        for _ in range(64):
            before = len(self._frames)
            if self._eof:
                return
            self._read_socket()
            if len(self._frames) == before:
                return

    def _follow(self, run: Run, deadline: float) -> StopReason:
        """Read until the run is over; stop it when its time is up or when asked to. Returns why it ended early."""
        stopped: StopReason = ""
        ask_at = kill_at = float("inf")
        total = 0

        while True:
            limit = min(ask_at, kill_at) if stopped else deadline
            try:
                total += self._wait(min(limit, run.flush_at), run.take)
                for message, blob in self._take():
                    if not run.accept(message, blob):
                        raise self._broken()
            except SandboxLost as broken:
                run.error = CodeError("SandboxDied", f"{broken} {LOST}", "")
                return "died"
            if run.done:
                self._drain(run.take)
                return stopped
            if self._eof:
                self._drain(run.take)
                reason = self._channel.ended() or "The sandbox was ended."
                run.error = CodeError("SandboxDied", f"{reason} {LOST}", "")
                self._channel.kill()
                return "died"
            run.flush()
            if total > _SLOW_AFTER:
                time.sleep(_SLOW_PAUSE)
            now = time.monotonic()
            if not stopped:
                with self._lock:
                    wanted = self._wanted
                if wanted or now >= deadline:
                    stopped = "interrupted" if wanted else "timeout"
                    ask_at = now
                    kill_at = now + (INTERRUPT_GRACE if wanted else TIMEOUT_GRACE)
            if now >= ask_at and now < kill_at:
                ask_at = now + ASK_AGAIN
                try:
                    self._send({"op": "interrupt", "id": run.number})
                except SandboxLost:
                    self._eof = True
            elif now >= kill_at:
                self._channel.kill()
                self._drain(run.take)
                how = "its time limit" if stopped == "timeout" else "the interrupt"
                reason = f"The code did not stop at {how}, so its Python process was ended."
                run.error = CodeError("SandboxDied", f"{reason} {LOST}", "")
                return "died"

    @contextlib.contextmanager
    def _file_operation(self) -> Iterator[float]:
        """Gives the time at which a file operation must be over; ``interrupt`` stops it before."""
        with self._lock:
            self._interruptible, self._wanted = True, False
        try:
            yield time.monotonic() + FILE_TIMEOUT
        finally:
            with self._lock:
                self._interruptible = False

    def _request(
        self, message: dict[str, Any], deadline: float, blob: bytes | memoryview = b""
    ) -> tuple[dict[str, Any], bytes]:
        """Send a file request and wait for its reply. Raises ``SandboxFileError`` with the guest's sentence."""
        self._background()
        number = self._next()
        self._send({**message, "id": number}, blob)
        while True:
            self._wait(
                deadline, lambda stream, data: self._late(number, stream, data.decode("utf-8", "replace"))
            )
            for reply, data in self._take():
                if reply.get("op") != "reply" or reply.get("id") != number:
                    continue
                if (problem := reply.get("problem")) is not None:
                    raise SandboxFileError(str(problem)[:4000])
                return reply, data
            if self._eof:
                raise self._lost(self._channel.ended() or "The sandbox was closed.")
            if self._wanted:  # a reply that comes later has another number than what is waited for then
                raise SandboxFileError("The file operation was stopped by the user.")
            if time.monotonic() >= deadline:
                raise self._lost("A file operation took too long, so the sandbox was ended.")
