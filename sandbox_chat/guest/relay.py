"""First process of a container: carries what guest and host say to each other over standard input and output.

A container has no inherited socket, only its three standard streams. The relay keeps them to itself and gives
the guest what it has everywhere else: a socket and two pipes. Both sides speak in pieces
``u8 kind, u32 length, bytes``.

* Order: what the guest wrote to its pipes before a frame goes out before that frame.
* Nothing is read ahead of what the host takes, beyond ``AHEAD`` bytes. From the host everything is read at
  once (it sends one request at a time), so that its end is never overlooked: then the relay ends, and being
  the first process, the whole container with it.
* A host that says nothing for very long, not even that it is there, is taken for gone: where the daemon between
  them has been killed, nobody else tells.
* As the first process it waits for orphans, and no signal from inside can end or stop it. It is closed to other
  processes of its user (not dumpable), so code cannot reach its streams through ``/proc``.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import termios
import time
from pathlib import Path
from typing import Any, NoReturn

from .counters import Counters, cpu_time
from .nest import filter_calls

SOCKET, OUT, ERR, STATUS, BEAT = 0, 1, 2, 3, 4
"""Kinds of pieces. The host sends ``SOCKET`` and ``BEAT``, which says only that it is there. ``STATUS`` is a JSON object: ``oom``, ``pids`` and ``cpu``, how often these limits struck since the
start of the container; at the very end also ``code``, the guest's exit code (negative for a signal)."""
HEADER = struct.Struct("!BI")
PIECE = 1 << 16
"""Bytes of the longest piece."""
AHEAD = 1 << 18
_INBOUND = 96 << 20  # the longest frame that a host can send, and a little more
_LAST_WAIT = 3.0
_PR_SET_DUMPABLE = 4
_NICE = 5  # the relay comes first: however many processes code starts, the host's word to stop gets through
_LOOK_EVERY = 1.0  # seconds between two looks at the processor time


class Relay:
    """Carries bytes between the container's standard streams and one guest."""

    def __init__(
        self,
        guest: int,
        sock: socket.socket,
        pipes: dict[int, int],
        wakeup: int,
        *,
        cpu: float,
        silence: float,
    ) -> None:
        """``pipes`` maps descriptor to kind; ``wakeup`` is readable when a child has ended.

        ``cpu``: seconds of processor time from one word of the host to the next, 0 for no limit. ``silence``:
        seconds without a word of the host after which it is taken for gone.
        """
        self._guest = guest
        self._sock = sock
        self._pipes = pipes
        self._wakeup = wakeup
        self._to_host = bytearray()
        self._to_guest = bytearray()
        self._counters = Counters()
        self._counted = self._counters.read()
        self._open = True
        self._cpu = cpu
        self._look_at = 0.0
        self._silence = silence
        self._heard = time.monotonic()
        self._from = bytearray()
        self._rest = 0
        self._struck: dict[str, int] = {}
        self._cpu_until = cpu_time() + cpu
        for fd in (0, 1, sock.fileno(), *self._pipes):
            os.set_blocking(fd, False)

    def run(self) -> NoReturn:
        """Carry until one side is gone."""
        while True:
            poller = select.poll()
            poller.register(0, select.POLLIN if len(self._to_guest) < _INBOUND else 0)
            poller.register(self._wakeup, select.POLLIN)
            if self._to_host:
                poller.register(1, select.POLLOUT)
            room = len(self._to_host) < AHEAD
            if self._open:
                events = (select.POLLIN if room else 0) | (select.POLLOUT if self._to_guest else 0)
                if events:
                    poller.register(self._sock, events)
            if room:
                for fd in self._pipes:
                    poller.register(fd, select.POLLIN)
            ready = dict(poller.poll(_LOOK_EVERY * 1000))
            if (now := time.monotonic()) >= self._look_at:
                self._look_at = now + _LOOK_EVERY
                self._watch()
                if now > self._heard + self._silence and 0 not in ready:
                    os._exit(0)
            self._step(ready, room)

    def _step(self, ready: dict[int, int], room: bool) -> None:
        sock = self._sock.fileno()
        if 0 in ready:
            self._from_host(ready[0])
        for fd in list(self._pipes):
            if fd in ready and room:
                self._from_pipe(fd)
        if ready.get(sock, 0) & ~select.POLLOUT and room:
            self._from_guest()
        if self._wakeup in ready:
            self._reap()
        self._write_guest()
        self._write_host()

    def _from_host(self, events: int) -> None:
        if len(self._to_guest) < _INBOUND:
            try:
                data = os.read(0, 1 << 20)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                os._exit(0)
            self._heard = time.monotonic()
            self._from += data
            self._take_pieces()
        elif events & (select.POLLHUP | select.POLLERR):
            os._exit(0)

    def _take_pieces(self) -> None:
        """Hand on what is the socket's, also of a piece that is not whole yet."""
        while True:
            if self._rest:
                part = self._from[: self._rest]
                self._to_guest += part
                self._rest -= len(part)
                del self._from[: len(part)]
            if self._rest or len(self._from) < HEADER.size:
                return
            kind, length = HEADER.unpack_from(self._from)
            del self._from[: HEADER.size]
            if kind == SOCKET:
                self._rest = length
                self._cpu_until = 0.0  # a new time begins at the next look
            elif kind != BEAT or length:
                os._exit(3)

    def _watch(self) -> None:
        """End the guest when the container has used up its processor time."""
        if not self._cpu:
            return
        now = cpu_time()
        if not self._cpu_until:
            self._cpu_until = now + self._cpu
        elif now > self._cpu_until and not self._struck:
            self._struck = {"cpu": 1}
            os.kill(self._guest, signal.SIGKILL)

    def _from_pipe(self, fd: int) -> None:
        try:
            data = os.read(fd, PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._queue(self._pipes[fd], data)
        else:  # nobody can write to it any more
            del self._pipes[fd]

    def _from_guest(self) -> None:
        try:
            data = self._sock.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._drain()
        counted = self._counters.read()
        if counted != self._counted:
            self._counted = counted
            self._queue(STATUS, json.dumps(counted).encode())
        if data:
            self._queue(SOCKET, data)
        else:  # the guest is ending, or has closed its connection and so is of no use
            self._open = False
            self._end_guest()

    def _drain(self) -> None:
        """Take what is in the pipes now, and no more: they may be written to all the time."""
        for fd, kind in self._pipes.items():
            count = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0]
            while count > 0:
                try:
                    data = os.read(fd, min(count, PIECE))
                except OSError:
                    break
                if not data:
                    break
                self._queue(kind, data)
                count -= len(data)

    def _queue(self, kind: int, data: bytes) -> None:
        self._to_host += HEADER.pack(kind, len(data)) + data

    def _write_guest(self) -> None:
        if self._to_guest and self._open:
            try:
                sent = self._sock.send(bytes(self._to_guest[: 1 << 18]))
            except BlockingIOError:
                return
            except OSError:
                sent = len(self._to_guest)
            del self._to_guest[:sent]

    def _write_host(self) -> None:
        while self._to_host:
            try:
                sent = os.write(1, self._to_host[:PIECE])
            except BlockingIOError:
                return
            except OSError:
                os._exit(0)
            del self._to_host[:sent]

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._guest:
                    self._finish(os.waitstatus_to_exitcode(status))

    def _end_guest(self) -> None:
        """The guest's end of the socket is closed: give it a moment to end by itself, then kill it."""
        poller = select.poll()
        poller.register(self._wakeup, select.POLLIN)
        for _ in range(20):
            poller.poll(50)
            self._reap()
        with contextlib.suppress(OSError):
            os.kill(self._guest, signal.SIGKILL)

    def _finish(self, code: int) -> NoReturn:
        """Hand over what the guest left, then how it ended; and end."""
        with contextlib.suppress(OSError):
            for _ in range(64):
                data = self._sock.recv(PIECE) if self._open else b""
                if not data:
                    break
                self._drain()
                self._queue(SOCKET, data)
        self._drain()
        self._queue(STATUS, json.dumps({**self._counters.read(), **self._struck, "code": code}).encode())
        poller = select.poll()
        poller.register(1, select.POLLOUT)
        poller.register(0, 0)
        while self._to_host and (ready := dict(poller.poll(_LAST_WAIT * 1000))) and 0 not in ready:
            self._write_host()
        os._exit(code if code >= 0 else 128 - code)


def main(config: dict[str, Any]) -> NoReturn:
    """Start the guest and carry until one side is gone.

    ``config``: ``guest`` is the guest's own configuration; ``filters`` maps a machine name to a system call
    filter in base64; ``fonts`` is a folder with matplotlib's list of fonts, which is copied to its cache;
    ``cpu_seconds`` and ``silence`` are the relay's.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # the first process does not get signals that it does not handle
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _settle_home()
    _seed_fonts(str(config.get("fonts", "")))
    ours, theirs = socket.socketpair()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    guest = os.fork()
    if guest == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _become_guest(config, theirs.detach(), out_write, err_write, libc)
    theirs.close()
    os.close(out_write)
    os.close(err_write)
    cpu, silence = float(config["cpu_seconds"]), float(config["silence"])
    pipes = {out_read: OUT, err_read: ERR}
    Relay(guest, ours, pipes, wake_read, cpu=cpu, silence=silence).run()


def _become_guest(config: dict[str, Any], sock: int, out: int, err: int, libc: Any) -> NoReturn:
    """Turn this child of the relay into the guest: its own streams, nothing of the relay's, the filter."""
    try:
        libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # what is in /proc of this process is its own again
        null = os.open(os.devnull, os.O_RDWR)
        for fd, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(fd, target)
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers only
            if int(name) > 2 and int(name) != sock:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        os.setsid()
        os.nice(_NICE)
        _filter(config["filters"])
        from .main import serve

        serve({**config["guest"], "fd": sock})
        os._exit(0)
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        os._exit(1)


def _filter(filters: dict[str, str]) -> None:
    """Put this process, and all that it starts, under the system call filter for this machine."""
    machine = os.uname().machine
    if machine not in filters:
        raise RuntimeError(f"the processor {machine} is not known, so code cannot be filtered")
    filter_calls(base64.b64decode(filters[machine]))


def _settle_home() -> None:
    """Where the home folder belongs to another user of the image and cannot be written, have one in ``/tmp``."""
    if not os.access(os.environ.get("HOME", "/"), os.W_OK | os.X_OK):
        home = Path("/tmp/.home")  # noqa: S108 - of this container only
        home.mkdir(mode=0o700, exist_ok=True)
        os.environ["HOME"] = str(home)


def _seed_fonts(folder: str) -> None:
    """Copy the list of fonts that the image holds to where matplotlib looks for it. Without it, a first plot is slow."""
    if not folder or not Path(folder).is_dir():
        return
    target = Path(os.path.expanduser("~"), ".cache", "matplotlib")  # noqa: PTH111 - never fails
    with contextlib.suppress(OSError):
        target.mkdir(parents=True, exist_ok=True)
        for source in Path(folder).glob("fontlist-*.json"):
            shutil.copyfile(source, target / source.name)
