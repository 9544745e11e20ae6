"""The guest's end of the connection: frames in and out, and interrupts while code runs.

No thread reads the socket. While code runs, the kernel tells of an incoming frame by SIGIO; the only
frame that can come then is ``interrupt``, and the handler raises ``KeyboardInterrupt`` in the code.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from .protocol import Frame, FrameReader, ProtocolError, pack

_CHUNK = 1 << 18
_ROOM = socket.CMSG_SPACE(4)  # for one descriptor
_CLOSED_AT_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Link:
    """One connection to the host. When the host is gone, the guest ends."""

    def __init__(self, sock: socket.socket) -> None:
        self.cell = 0
        """Id of the run that is under way, 0 between runs."""
        self.last_cell = 0
        """Id of the newest run, also after it ended."""
        self.stopped = False
        """True when the present (or last) run was interrupted."""
        self.on_stop: Callable[[], None] | None = None
        """Called just before a run is interrupted, in a signal handler."""
        self._sock = sock
        self._reader = FrameReader()
        self._queue: deque[Frame] = deque()
        self._descriptor = -1
        self._lock = threading.Lock()
        self._armed = False
        self._held = 0
        self._pending = False
        self._reading = False
        self._owner = os.getpid()

    @property
    def here(self) -> bool:
        """False in a process that was forked from the guest: it must not touch the connection."""
        return os.getpid() == self._owner

    def listen(self) -> None:
        """Take the signals that stop code: SIGIO for the host's word, SIGINT for the code's own."""
        signal.signal(signal.SIGIO, self._on_io)
        signal.signal(signal.SIGINT, self._on_interrupt)
        fd = self._sock.fileno()
        fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)

    def receive(self) -> Frame:
        """Wait for the next request of the host. Frames that came too late (an interrupt) are skipped."""
        while True:
            while self._queue:
                frame = self._queue.popleft()
                if frame[0].get("op") != "interrupt":
                    return frame
            self._fill(blocking=True)

    def begin(self, cell: int) -> None:
        """A run begins: from here on ``KeyboardInterrupt`` may come at any moment."""
        self.listen()  # code may have changed the handlers
        self._pending = self.stopped = False
        self.cell = self.last_cell = cell
        self._armed = True
        self._on_io(0, None)  # an interrupt may already be here

    def end(self) -> None:
        """The run is over: no interrupt is raised any more."""
        self._armed = False
        self.cell = 0

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Keep an interrupt back while something must not be broken off; it is raised at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield  # interrupts are only ever raised in the main thread
            return
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self._pending and not self._held:
            self._stop()

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Send one whole frame. An interrupt that comes meanwhile is raised afterwards."""
        data = memoryview(pack(message, blob))
        with self.holding(), self._lock:
            while data:
                try:
                    sent = self._sock.send(data)
                except OSError:
                    os._exit(0)
                data = data[sent:]

    def _fill(self, *, blocking: bool) -> None:
        try:
            flags = _CLOSED_AT_EXEC if blocking else _CLOSED_AT_EXEC | socket.MSG_DONTWAIT
            data, beside, _, _ = self._sock.recvmsg(_CHUNK, _ROOM, flags)
            if beside:
                self._keep(beside)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            if not data:
                os._exit(0)
            self._queue.extend(self._reader.feed(data))
        except ProtocolError:
            os._exit(3)

    def take_descriptor(self) -> int:
        """Return the descriptor that came with a request; it is the caller's then. -1 when none did."""
        fd, self._descriptor = self._descriptor, -1
        return fd

    def _keep(self, beside: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in beside:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(data) >= 4:
                if self._descriptor >= 0:
                    os.close(self._descriptor)
                self._descriptor = int.from_bytes(data[:4], sys.byteorder)

    def _on_io(self, _signum: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if not self._armed or self._reading or not self.here:
            return
        self._reading = True
        try:
            self._fill(blocking=False)
            waiting = len(self._queue)
            wanted = False
            for _ in range(waiting):
                message, blob = self._queue.popleft()
                if message.get("op") == "interrupt":
                    wanted = wanted or message.get("id") == self.cell
                else:
                    self._queue.append((message, blob))
        finally:
            self._reading = False
        if wanted:
            self._stop()

    def _on_interrupt(self, _signum: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if not self.here:
            raise KeyboardInterrupt
        if self._armed:
            self._stop()

    def _stop(self) -> None:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        if self._armed and self.on_stop is not None:
            self.on_stop()
        if self._held:
            self._pending = True
            return
        self._pending = False
        if self._armed:
            self.stopped = True
            raise KeyboardInterrupt
