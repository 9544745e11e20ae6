"""The host's end of a container's standard streams: makes an ordinary channel to the guest of them.

Code in the container may be able to forge what comes (it should not be: see ``guest/relay``). So each length is
capped, nothing is kept beyond one piece, and on nonsense the container is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO

from sandbox_chat.guest import relay
from sandbox_chat.sandbox.spawn import Started

BEAT_EVERY = 20.0
"""Seconds between two words to the container that this side is still there."""
END_WAIT = 3.0
"""Seconds that a container may take to end by itself when its input has ended, before it is removed by force."""
_TAIL = 8000  # bytes kept of what the program that runs the container complains of
_CHUNK = 1 << 16
_MOMENT = 1.0
_LOOK_EVERY = 200  # milliseconds
_MAX_STATUS = 4096


class Container(Started):
    """A container that was started: the program that holds it, and a channel to the guest in it.

    The end of the program's standard input is the end of the container. So it ends with this process,
    however that ends, without anybody's doing.
    """

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        first: bytes,
        describe: Callable[[int | None, int, str], str],
        remove: Callable[[], None],
    ) -> None:
        """``process`` has three pipes; ``first`` is what it gets before everything else.

        ``describe(guest's exit code or None, the process's, its last words)`` returns the sentence about the end;
        ``remove`` makes the container go by force.
        """
        ours, self._theirs = socket.socketpair()
        out_read, self._out = os.pipe()
        err_read, self._err = os.pipe()
        super().__init__(process, ours, out_read, err_read)
        self._first = first
        self.counts: dict[str, int] = {}
        """How often the container's limits have struck, by name."""
        self._describe = describe
        self._remove = remove
        self._lock = threading.Lock()
        self._killed = False
        self._ended = ""
        self._ending = False
        self._known = threading.Event()
        self._code: int | None = None
        self._complaints = bytearray()
        self._buffer = bytearray()
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._out, self._err, self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        self._thread = threading.Thread(target=self._carry, name="container", daemon=True)
        self._thread.start()
        self._feeder = threading.Thread(target=self._feed, name="container input", daemon=True)
        self._feeder.start()

    def kill(self) -> None:
        """End the container. Returns at once; any thread, any number of times."""
        with self._lock:
            if self._killed:
                return
            self._killed = True
            with contextlib.suppress(OSError):
                os.write(self._wake_write, b"!")
            with contextlib.suppress(OSError):
                self._theirs.shutdown(socket.SHUT_RDWR)  # which ends the input of the container too

    def ended(self) -> str:
        """Return how the guest ended as a sentence, or an empty string while it lives."""
        if self._ending:  # the connection closes a moment before it is known why
            self._known.wait(_MOMENT)
        return self._ended

    def gone(self, timeout: float) -> bool:
        """Wait until the container is gone for certain; False when that took longer than ``timeout`` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the thread that carries what goes in ----------------------------------------------------------

    def _feed(self) -> None:
        """Carry what is for the guest, and say now and then that this side is there. The end of it ends the container."""
        into = self.process.stdin
        assert into is not None
        try:
            os.set_blocking(into.fileno(), False)
            self._put(into, self._first)
            poller = select.poll()
            poller.register(self._theirs, select.POLLIN)
            while not self._killed:
                if not poller.poll(BEAT_EVERY * 1000):
                    self._put(into, relay.HEADER.pack(relay.BEAT, 0))
                    continue
                data = self._theirs.recv(_CHUNK)
                if not data:
                    break
                self._put(into, relay.HEADER.pack(relay.SOCKET, len(data)) + data)
        except (OSError, ValueError):  # the process, or this side, is gone
            pass
        finally:
            with contextlib.suppress(OSError):
                into.close()

    def _put(self, into: IO[bytes], data: bytes) -> None:
        rest = memoryview(data)
        poller = select.poll()
        poller.register(into, select.POLLOUT)
        while rest and not self._killed:
            try:
                rest = rest[os.write(into.fileno(), rest) :]
            except BlockingIOError:
                poller.poll(_LOOK_EVERY)

    # -- the thread that carries what comes out --------------------------------------------------------

    def _carry(self) -> None:
        out, err = self.process.stdout, self.process.stderr
        assert out is not None
        assert err is not None
        try:
            self._serve(out, err)
        except (OSError, ValueError, RecursionError):  # nobody reads any more, or it made no sense
            pass
        finally:
            self._end(out, err)

    def _serve(self, out: IO[bytes], err: IO[bytes]) -> None:
        poller = select.poll()
        for file in (out, err):
            os.set_blocking(file.fileno(), False)
            poller.register(file, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        while not self._killed:
            ready = dict(poller.poll())
            if err.fileno() in ready and not self._take_complaint(err):
                poller.unregister(err)
            if out.fileno() in ready:
                data = os.read(out.fileno(), _CHUNK)
                if not data:
                    return
                self._buffer += data
                self._deliver_all()

    def _take_complaint(self, err: IO[bytes]) -> bool:
        """Keep the end of what the process says on its standard error. False at its end."""
        try:
            data = os.read(err.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        self._complaints += data
        del self._complaints[:-_TAIL]
        return bool(data)

    def _deliver_all(self) -> None:
        start = 0
        size = relay.HEADER.size
        while len(self._buffer) - start >= size and not self._killed:
            kind, length = relay.HEADER.unpack_from(self._buffer, start)
            if kind not in (relay.SOCKET, relay.OUT, relay.ERR, relay.STATUS) or length > relay.PIECE:
                raise ValueError("the container sent what makes no sense")
            end = start + size + length
            if len(self._buffer) < end:
                break
            self._deliver(kind, bytes(self._buffer[start + size : end]))
            start = end
        del self._buffer[:start]

    def _deliver(self, kind: int, data: bytes) -> None:
        if kind == relay.STATUS:
            self._status(data)
            return
        target = {relay.SOCKET: self._theirs.fileno(), relay.OUT: self._out, relay.ERR: self._err}[kind]
        rest = memoryview(data)
        while rest and not self._killed:
            try:
                if kind == relay.SOCKET:  # the other thread waits in it
                    sent = self._theirs.send(rest, socket.MSG_DONTWAIT)
                else:
                    sent = os.write(target, rest)
                rest = rest[sent:]
            except BlockingIOError:
                poller = select.poll()
                poller.register(target, select.POLLOUT)
                poller.register(self._wake_read, select.POLLIN)
                poller.poll()

    def _status(self, data: bytes) -> None:
        if len(data) > _MAX_STATUS:
            raise ValueError("the container sent what makes no sense")
        said = json.loads(data)
        if not isinstance(said, dict):
            raise ValueError("the container sent what makes no sense")
        self.counts = {name: said[name] for name in ("oom", "pids", "cpu") if isinstance(said.get(name), int)}
        if isinstance(code := said.get("code"), int):
            self._code = code
            self._ended = self._sentence(code)
            self._known.set()
            with contextlib.suppress(OSError):
                self._theirs.shutdown(socket.SHUT_RDWR)

    def _sentence(self, process_code: int) -> str:
        words = bytes(self._complaints).decode("utf-8", "replace")
        return self._describe(self._code, process_code, words) or "The sandbox was ended."

    def _end(self, out: IO[bytes], err: IO[bytes]) -> None:
        """See the process off, tell the channel, and make sure that the container is gone."""
        self._ending = True
        deadline = time.monotonic() + END_WAIT
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RD)  # nothing more goes in
        while (code := self.process.poll()) is None and time.monotonic() < deadline:
            self._drain(out, err)
        if code is None:
            self.process.kill()
            code = self.process.wait()
        self._drain(out, err)
        if not self._ended:
            self._ended = self._sentence(code)
        self._known.set()
        with self._lock:
            self._killed = True
            with contextlib.suppress(OSError):
                self._theirs.shutdown(socket.SHUT_RDWR)
        self._feeder.join()
        with self._lock:
            self._theirs.close()
            for fd in (self._out, self._err, self._wake_read, self._wake_write):
                os.close(fd)
        out.close()
        err.close()
        if code != 0 and self._code is None:  # it may not have seen the container's end
            self._remove()

    def _drain(self, out: IO[bytes], err: IO[bytes]) -> None:
        """Read what the process still says, so that it can end."""
        poller = select.poll()
        poller.register(out, select.POLLIN)
        poller.register(err, select.POLLIN)
        ready = dict(poller.poll(20))
        with contextlib.suppress(OSError):
            if err.fileno() in ready and not self._take_complaint(err):
                time.sleep(0.01)
        with contextlib.suppress(OSError):
            if out.fileno() in ready and not os.read(out.fileno(), _CHUNK):
                time.sleep(0.01)
