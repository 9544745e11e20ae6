"""The host's end of the guest's protocol: run code, move files, interrupt; trust nothing that comes back.

What code in the sandbox does can forge every byte. So each field is checked, every wait has an end, and on
nonsense the sandbox is killed. How the bytes come is ``guest_wire``'s.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from sandbox_chat.events import Stream
from sandbox_chat.guest import protocol
from sandbox_chat.guest.protocol import Frame
from sandbox_chat.sandbox.base import (
    CodeError,
    Execution,
    FileEntry,
    OutputSink,
    Progress,
    RawSink,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    StopReason,
)
from sandbox_chat.sandbox.gather import STREAMS, Run
from sandbox_chat.sandbox.guest_wire import FILE_CHUNK, FILE_TIMEOUT, Channel, Wire

TIMEOUT_GRACE = 2.0
"""Seconds that code has to stop after its time limit, before the shell is killed."""
INTERRUPT_GRACE = 1.0
"""Seconds that code has to stop after the user's interrupt, before the shell is killed."""
ASK_AGAIN = 0.3
"""Seconds after which code that was asked to stop is asked again: an exception can get lost in a callback."""
LOST = "Its variables and files are lost; the next run starts afresh."
_CHUNK = 1 << 16
_MAX_COMPLAINT = 600  # characters of what a guest that did not start has said
# A run that writes without end is read more slowly, so that the rest of this program keeps the processor.
_SLOW_AFTER = 32 << 20
_SLOW_PAUSE = 0.002

# Output that comes line by line is left to gather for a moment, so that not each line costs a turn of both sides.
_SMALL = 1 << 14
_MANY_PIECES = 20
_GATHER_PAUSE = 0.001

SLOWEST = 1 << 20
"""Bytes that a transfer must move in each second, after its first ``FILE_TIMEOUT`` seconds: no guest can drip for ever."""
MAX_PATH = 4096
"""Characters of a path or name that comes back: no system has longer ones."""
MAX_SIZE = 1 << 62
"""Bytes of the largest file that is believed in."""
LATE_RUNS = 64
"""Runs whose late output still finds its way; that of older ones is dropped."""


class GuestLink(Wire):
    """Speaks with one guest. Used by one thread; only ``interrupt`` and ``close`` by others."""

    def __init__(self, channel: Channel, *, output_limit: int) -> None:
        super().__init__(channel)
        self._limit = output_limit
        self._number = 0
        self._late_sinks: dict[int, OutputSink] = {}
        self._interruptible = False
        self._wanted = False

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

    def execute(
        self,
        code: str,
        timeout: float,
        sink: OutputSink | None,
        on_late: OutputSink | None = None,
        on_raw: RawSink | None = None,
        *,
        waited: Callable[[], float] | None = None,
    ) -> Execution:
        """Run ``code``. Raises ``SandboxLost`` when the guest was gone before it could take the code.

        ``waited`` tells how many seconds so far are not the code's own; they are added to its ``timeout``.
        """
        self.look()
        run = Run(self._next(), sink, self._limit, on_raw)
        if on_late is not None:
            self._late_sinks[run.number] = on_late
            while len(self._late_sinks) > LATE_RUNS:
                del self._late_sinks[next(iter(self._late_sinks))]
        started = time.monotonic()
        with self._lock:
            self._interruptible, self._wanted = True, False
        try:
            self._send({"op": "run", "id": run.number, "code": code})
            stopped = self._follow(run, started + timeout, waited or (lambda: 0.0))
        finally:
            with self._lock:
                self._interruptible = False
        return run.result(stopped, round((time.monotonic() - started) * 1000))

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None) -> str:
        """Write a file from a stream; see ``Sandbox.upload``."""
        full, done = "", 0
        try:
            with self._file_operation() as deadline:
                while True:
                    part = source.read(min(FILE_CHUNK, size - done)) if done < size else b""
                    request = {"op": "write", "path": path, "append": done > 0}
                    reply, _ = self._request(request, deadline + done / SLOWEST, part)
                    full = str(reply.get("path", ""))[:MAX_PATH]
                    done += len(part)
                    if on_progress is not None:
                        on_progress(done, size)
                    if done >= size:
                        return full
                    if not part:
                        raise SandboxFileError(f"The source ended after {done:,} of {size:,} bytes.")
        except (SandboxFileError, OSError):
            if done:  # a part of a file under its name would be taken for the whole
                with contextlib.suppress(SandboxError), self._file_operation() as deadline:
                    self._request({"op": "discard", "path": path}, deadline)
            raise

    def write_file(self, path: str, data: bytes) -> str:
        """Write a file; see ``Sandbox.write_file``."""
        return self.upload(io.BytesIO(data), len(data), path)

    def download(
        self, path: str, target: BinaryIO, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """Read a file into a stream; see ``Sandbox.download``."""
        done = 0
        with self._file_operation() as deadline:
            while True:
                request = {"op": "read", "path": path, "offset": done, "size": FILE_CHUNK}
                reply, part = self._request(request, deadline + done / SLOWEST)
                size = reply.get("size")
                if not isinstance(size, int) or len(part) > FILE_CHUNK:
                    raise self._broken()
                if size > max_bytes or done + len(part) > max_bytes:
                    raise SandboxFileError(
                        f"{str(reply.get('path'))[:1000]} has {size:,} bytes; at most {max_bytes:,} can be taken."
                    )
                target.write(part)
                done += len(part)
                if on_progress is not None:
                    on_progress(done, max(size, done))
                if not part or done >= size:
                    return done

    def read_file(self, path: str, max_bytes: int) -> bytes:
        """Read a file; see ``Sandbox.read_file``."""
        data = io.BytesIO()
        self.download(path, data, max_bytes)
        return data.getvalue()

    def list_files(self, path: str, limit: int) -> list[FileEntry]:
        """List a folder; see ``Sandbox.list_files``."""
        with self._file_operation() as deadline:
            reply, _ = self._request({"op": "list", "path": path, "limit": limit}, deadline)
        rows, folder = reply.get("entries"), reply.get("path")
        if not isinstance(rows, list) or not isinstance(folder, str):
            raise self._broken()
        found = []
        folder = folder[:MAX_PATH].rstrip("/")
        for row in rows[:limit]:
            match row:
                case [str(name), bool(is_dir), int(size)]:
                    is_link, changed = False, 0
                case [str(name), bool(is_dir), int(size), bool(is_link), int(changed)]:
                    pass
                case _:
                    raise self._broken()
            path, size = f"{folder}/{name[:MAX_PATH]}", min(max(size, 0), MAX_SIZE)
            found.append(FileEntry(path, is_dir, size, is_link, changed % (1 << 64)))
        return found

    def start_keeper(self, folder: str, descriptor: int) -> None:
        """Have the guest start the keeper of the gateway whose package is in ``folder``, with a socket of this side.

        Raises ``SandboxError`` with the guest's sentence.
        """
        try:
            with self._file_operation() as deadline:
                self._request({"op": "keeper", "folder": folder}, deadline, descriptor=descriptor)
        except SandboxFileError as problem:
            raise SandboxError(f"The gateway could not be started: {problem}") from None

    def start_bridge(self, folder: str, path: str, descriptor: int) -> None:
        """Have the guest start the way to the host that listens at ``path``, with a socket of this side.

        ``folder`` holds the gateway's package. Raises ``SandboxError`` with the guest's sentence.
        """
        try:
            with self._file_operation() as deadline:
                request = {"op": "keeper", "folder": folder, "path": path}
                self._request(request, deadline, descriptor=descriptor)
        except SandboxFileError as problem:
            raise SandboxError(str(problem)) from None

    def offer_tools(self, path: str, token: str) -> None:
        """Let code in the guest use the way that listens at ``path``. Raises ``SandboxError``."""
        try:
            with self._file_operation() as deadline:
                self._request({"op": "tools", "path": path, "token": token}, deadline)
        except SandboxFileError as problem:
            raise SandboxError(str(problem)) from None

    # -- for any thread --------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ask the run or file operation under way to stop. Does nothing when none is."""
        with self._lock:
            if not self._interruptible or self._closed:
                return
            self._wanted = True
            self._wake()

    # -- inner parts -----------------------------------------------------------------------------------

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _take(self) -> list[Frame]:
        """The frames that came; those of late threads are handed on and left out."""
        frames, self._frames = self._frames, []
        kept = []
        for message, blob in frames:
            if message.get("op") == "late":
                number, stream, text = message.get("id"), message.get("stream"), message.get("text")
                if isinstance(number, int) and stream in STREAMS and isinstance(text, str):
                    self._late(number, cast("Stream", stream), text)
            elif message.get("op") == "cleared":
                self._channel.cleared()
            else:
                kept.append((message, blob))
        return kept

    def _late(self, number: int, stream: Stream, text: str) -> None:
        sink = self._late_sinks.get(number)
        if sink is not None:
            sink(stream, text)

    def look(self) -> None:
        """Hand on what threads and processes wrote since the last run ended, so that the next does not get it.

        Raises ``SandboxLost`` when the guest is gone.
        """
        number = self._number
        self._drain(lambda stream, data: self._late(number, stream, data.decode("utf-8", "replace")))
        self._read_socket_quietly()
        self._take()
        if self._eof or self._channel.ended():
            raise self._lost(self._channel.ended() or "The sandbox is gone.")

    def _follow(self, run: Run, limit_at: float, waited: Callable[[], float]) -> StopReason:
        """Read until the run is over; stop it when its time is up or when asked to. Returns why it ended early."""
        stopped: StopReason = ""
        ask_at = kill_at = float("inf")
        total = pieces = 0

        while True:
            deadline = limit_at + waited()
            limit = min(ask_at, kill_at) if stopped else deadline
            try:
                read = self._wait(min(limit, run.flush_at), run.take)
                total += read
                pieces += 0 < read < _SMALL
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
            elif 0 < read < _SMALL and pieces > _MANY_PIECES:
                time.sleep(_GATHER_PAUSE)
            now = time.monotonic()
            if not stopped:
                with self._lock:
                    wanted = self._wanted
                if wanted or now >= limit_at + waited():
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
        self,
        message: dict[str, Any],
        deadline: float,
        blob: bytes | memoryview = b"",
        descriptor: int | None = None,
    ) -> tuple[dict[str, Any], bytes]:
        """Send a file request and wait for its reply. Raises ``SandboxFileError`` with the guest's sentence."""
        self.look()
        number = self._next()
        self._send({**message, "id": number}, blob, descriptor)
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
