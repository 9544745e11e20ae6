"""The connection to one guest: bytes in and out, frames put together, every wait with an end.

What code in the sandbox does can forge every byte on the socket and the pipes. So each length is
capped, and on nonsense the sandbox is killed. What the frames mean is ``guest_link``'s.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox_chat.events import Stream
from sandbox_chat.guest import protocol
from sandbox_chat.guest.protocol import Frame, FrameReader, ProtocolError
from sandbox_chat.sandbox.base import SandboxError, SandboxFileError, SandboxLost

FILE_TIMEOUT = 60.0
"""Seconds for a file operation; a long transfer gets more, by what it has moved."""
FILE_CHUNK = 8 << 20
_CHUNK = 1 << 16
_PIPE_SIZE = 1 << 18  # code that writes much waits less for its reader
_CHECK_EVERY = 0.5  # a dead process is noticed within this time even if something holds its socket open

Take = Callable[[Stream, bytes], None]
"""Takes a piece of output."""


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
    cleared: Callable[[], None] = lambda: None
    """Called when the guest has cleared away ended processes of earlier runs, before it runs new code."""


class Wire:
    """Reads and writes one channel. Used by one thread; only ``wake`` and ``close`` by others."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._reader = FrameReader()
        self._frames: list[Frame] = []
        self._lock = threading.Lock()
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
            with contextlib.suppress(OSError, AttributeError):  # more than this user may have, or no Linux
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._eof = False

    def close(self) -> None:
        """Kill the guest. The thread that waits for it is woken and finds it gone."""
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

    def _ended(self) -> str:
        """How the guest ended, empty while it lives."""
        return self._channel.ended()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"!")
        except OSError:  # it is full, so a wake-up is on its way
            return

    def _lost(self, reason: str) -> SandboxLost:
        self._channel.kill()
        return SandboxLost(reason)

    def _broken(self) -> SandboxError:
        self._channel.kill()
        return SandboxLost("The sandbox sent an answer that makes no sense, so it was ended.")

    def _send(
        self, message: dict[str, Any], blob: bytes | memoryview = b"", descriptor: int | None = None
    ) -> None:
        """Send one request; ``descriptor`` goes beside its first byte. Raises ``SandboxLost`` when it cannot be."""
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
                if descriptor is None:
                    data = data[self._channel.sock.send(data) :]
                else:
                    data = data[socket.send_fds(self._channel.sock, [data], [descriptor]) :]
                    descriptor = None
            except BlockingIOError:
                if self._closed or time.monotonic() > deadline:
                    raise self._lost("The sandbox took no more requests.") from None
                poller.poll(100)
            except OSError:
                self._eof = True
                raise self._lost(self._channel.ended() or "The sandbox is gone.") from None

    def _wait(self, deadline: float, take: Take) -> int:
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

    def _read_pipe(self, fd: int, take: Take) -> int:
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

    def _drain(self, take: Take) -> None:
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

    def _read_socket_quietly(self) -> None:
        for _ in range(64):
            before = len(self._frames)
            if self._eof:
                return
            self._read_socket()
            if len(self._frames) == before:
                return
