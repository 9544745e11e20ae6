"""Connections over one stream of bytes: how clients outside reach a server inside a sandbox that has no network.

Both ends use ``Carrier``: one has a listening socket and opens a channel for each connection that it accepts, the
other connects to its server for each channel that is opened, or takes it as a socket of its own. Frames are ``u8 kind, u32 channel, u32 length, bytes``.

* Each side may send ``WINDOW`` bytes of a channel before the other has handed them on, so one connection that is not
  read holds up neither the others nor the memory of either side.
* Neither side trusts the other: lengths, numbers of channels and windows are checked, and a ``Breach`` ends the
  stream. Each side says ``GONE`` once for each channel; what is on its way meanwhile is counted and thrown away.
* Channel 0 carries ``WORD`` frames, JSON objects of the two programs that own the ends.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

WORD, OPEN, DATA, TAKEN, GONE = 0, 1, 2, 3, 4
"""Kinds of frames. ``TAKEN`` holds a u32: so many bytes of the channel have been handed on."""
HEADER = struct.Struct("!BII")
COUNT = struct.Struct("!I")
PIECE = 1 << 16
"""Bytes of the longest ``DATA`` frame."""
WINDOW = 1 << 18
"""Bytes of one channel in one direction that may be on their way."""
CHANNELS = 64
"""Connections at a time; more wait until one of them has ended."""
MAX_WORD = 1 << 20
"""Bytes of the longest ``WORD`` frame that is sent."""
_AHEAD = 1 << 20  # bytes that wait for the stream from which on no connection is read
_MOST = 8 << 20  # the same, from which on the other side is taken for hostile: it reads nothing
_READ = 1 << 18
_MOST_OPEN = 4 * CHANNELS  # of the side that does not accept: some may be over on the other only


class Breach(Exception):
    """The other side sent what it must not send."""


class _Channel:
    """One connection. ``sock`` is ``None`` when this side has nothing more to do with it."""

    def __init__(self, sock: socket.socket | None, *, connected: bool) -> None:
        self.sock = sock
        self.connected = connected
        self.out = bytearray()
        self.window = WINDOW
        """Bytes that may be sent to the other side."""
        self.grant = WINDOW
        """Bytes that the other side may send."""
        self.taken = 0
        self.left = False
        """Whether this side has said ``GONE``."""
        self.over = False
        """Whether the other side has."""


class Carrier:
    """One end of the stream. ``run`` belongs to one thread; ``say`` and ``stop`` to any."""

    def __init__(
        self,
        reader: int,
        writer: int,
        *,
        on_word: Callable[[dict[str, Any]], None],
        listener: socket.socket | None = None,
        connect: Callable[[], tuple[str, int]] | None = None,
        take: Callable[[socket.socket], None] | None = None,
        longest_word: int = MAX_WORD,
        on_tick: Callable[[], None] | None = None,
        first: bytes = b"",
    ) -> None:
        """``reader`` and ``writer`` are descriptors of the stream, which stay the caller's; they may be the same.

        ``listener`` is where connections are accepted; ``connect`` tells the address for channels that are opened, or ``take``
        gets a socket for each, which is its own then; it must return at once. ``on_word`` gets each word of the other side, at most ``longest_word`` bytes of JSON. ``on_tick`` is called after each wait.
        ``first`` is sent before everything else.
        """
        self._reader, self._writer = reader, writer
        self._on_word, self._on_tick = on_word, on_tick
        self._listener, self._connect, self._take_socket = listener, connect, take
        self._longest_word = longest_word
        self._channels: dict[int, _Channel] = {}
        self._number = 0
        self._in = bytearray()
        self._out = bytearray(first)
        self._lock = threading.Lock()
        self._said: list[bytes] = []
        self._stopped = False
        self._wake_read, self._wake_write = os.pipe()
        for fd in (reader, writer, self._wake_read, self._wake_write):
            os.set_blocking(fd, False)
        if listener is not None:
            listener.setblocking(False)

    def say(self, word: dict[str, Any]) -> None:
        """Send a word. Raises ``ValueError`` when it is too long."""
        data = json.dumps(word, separators=(",", ":")).encode("ascii")
        if len(data) > MAX_WORD:
            raise ValueError(f"a word of {len(data):,} bytes is too long")
        with self._lock:
            self._said.append(HEADER.pack(WORD, 0, len(data)) + data)
            self._wake()

    def stop(self) -> None:
        """Make ``run`` return. Any number of times, also before and after it."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._wake()

    def run(self) -> str:
        """Carry until the stream ends, the other side breaks the rules, or ``stop``. Returns why, empty after ``stop``."""
        try:
            while not self._stopped:
                ready = dict(self._wait())
                if self._wake_read in ready:
                    self._take_said()
                if self._on_tick is not None:
                    self._on_tick()
                if self._reader in ready:
                    self._read_stream()
                self._serve(ready)
                self._write_stream()
        except Breach as problem:
            return str(problem)
        except OSError as problem:
            return problem.strerror or "the stream ended"
        finally:
            self._end()
        return ""

    # -- inner parts -----------------------------------------------------------------------------------

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is full, so a wake-up is on its way
            os.write(self._wake_write, b"!")

    def _take_said(self) -> None:
        with contextlib.suppress(OSError):
            os.read(self._wake_read, 4096)
        with self._lock:
            said, self._said = self._said, []
        for frame in said:
            self._out += frame

    def _wait(self) -> list[tuple[int, int]]:
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        wanted = {self._reader: select.POLLIN}
        if self._out:
            wanted[self._writer] = wanted.get(self._writer, 0) | select.POLLOUT
        for channel in self._channels.values():
            if channel.sock is None:
                continue
            events = select.POLLOUT if channel.out or not channel.connected else 0
            if channel.connected and not channel.left and channel.window and len(self._out) < _AHEAD:
                events |= select.POLLIN
            if events:
                wanted[channel.sock.fileno()] = events
        if self._listener is not None and len(self._channels) < CHANNELS:
            wanted[self._listener.fileno()] = select.POLLIN
        for fd, events in wanted.items():
            poller.register(fd, events)
        return poller.poll(1000 if self._on_tick is not None else None)

    def _serve(self, ready: dict[int, int]) -> None:
        for number, channel in list(self._channels.items()):
            sock = channel.sock
            if sock is None or sock.fileno() not in ready:
                continue
            try:
                if not channel.connected:
                    if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        raise OSError(error, os.strerror(error))
                    channel.connected = True
                self._hand_on(number, channel)
                if channel.sock is not None and not channel.left and ready[sock.fileno()] & ~select.POLLOUT:
                    self._take_in(number, channel)
            except OSError:
                self._leave(number, channel)
        if self._listener is not None and self._listener.fileno() in ready:
            self._accept()

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except OSError:  # it left again, or this program has no descriptor to spare
            return
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number += 1
        self._channels[self._number] = _Channel(sock, connected=True)
        self._frame(OPEN, self._number)

    def _take_in(self, number: int, channel: _Channel) -> None:
        """Read from a connection what may be sent of it."""
        size = min(PIECE, channel.window)
        if not size or channel.sock is None:
            return
        try:
            data = channel.sock.recv(size)
        except BlockingIOError:
            return
        if not data:
            raise OSError(errno.ECONNRESET, "it ended")
        channel.window -= len(data)
        self._frame(DATA, number, data)

    def _hand_on(self, number: int, channel: _Channel) -> None:
        """Write to a connection what came for it."""
        sock = channel.sock
        assert sock is not None
        while channel.out:
            try:
                sent = sock.send(channel.out[:PIECE])
            except BlockingIOError:
                break
            del channel.out[:sent]
            channel.taken += sent
        if channel.over:
            if not channel.out:
                self._drop(channel)
                self._forget(number, channel)
            return
        if channel.taken >= WINDOW // 4:
            channel.grant += channel.taken
            self._frame(TAKEN, number, COUNT.pack(channel.taken))
            channel.taken = 0

    def _leave(self, number: int, channel: _Channel) -> None:
        """A connection has ended on this side."""
        self._drop(channel)
        if not channel.left:
            channel.left = True
            self._frame(GONE, number)
        self._forget(number, channel)

    def _drop(self, channel: _Channel) -> None:
        if channel.sock is not None:
            channel.sock.close()
            channel.sock = None
        channel.out.clear()

    def _forget(self, number: int, channel: _Channel) -> None:
        if channel.left and channel.over and channel.sock is None:
            self._channels.pop(number, None)

    def _frame(self, kind: int, number: int, data: bytes = b"") -> None:
        self._out += HEADER.pack(kind, number, len(data))
        self._out += data
        if len(self._out) > _MOST:
            raise Breach("The other side takes nothing.")

    # -- the stream ------------------------------------------------------------------------------------

    def _write_stream(self) -> None:
        while self._out:
            try:
                sent = os.write(self._writer, self._out[:_READ])
            except BlockingIOError:
                return
            del self._out[:sent]

    def _read_stream(self) -> None:
        try:
            data = os.read(self._reader, _READ)
        except BlockingIOError:
            return
        if not data:
            raise OSError(errno.EPIPE, "The stream ended.")
        self._in += data
        start = 0
        while len(self._in) - start >= HEADER.size:
            kind, number, length = HEADER.unpack_from(self._in, start)
            self._check(kind, number, length)
            end = start + HEADER.size + length
            if len(self._in) < end:
                break
            self._take(kind, number, bytes(self._in[start + HEADER.size : end]))
            start = end
        del self._in[:start]

    def _check(self, kind: int, number: int, length: int) -> None:
        """Refuse a frame by its header, before any of it is kept."""
        longest = {WORD: self._longest_word, OPEN: 0, DATA: PIECE, TAKEN: COUNT.size, GONE: 0}.get(kind, -1)
        if length > longest or (kind == WORD) != (number == 0):
            raise Breach("The other side sent a frame that there cannot be.")
        if kind in (DATA, TAKEN, GONE):
            channel = self._channels.get(number)
            if channel is None or channel.over:
                raise Breach("The other side sent something of a channel that there is not.")
            if kind == DATA and not 0 < length <= channel.grant:
                raise Breach("The other side sent more than it may.")
            if kind == TAKEN and length != COUNT.size:
                raise Breach("The other side sent a frame that there cannot be.")

    def _take(self, kind: int, number: int, data: bytes) -> None:
        if kind == WORD:
            try:
                word = json.loads(data)
            except (ValueError, RecursionError):
                word = None
            if not isinstance(word, dict):
                raise Breach("The other side sent a word that is none.")
            self._on_word(word)
            return
        if kind == OPEN:
            self._open(number)
            return
        channel = self._channels[number]
        if kind == DATA:
            channel.grant -= len(data)
            if channel.sock is not None:
                channel.out += data
                if channel.connected:
                    try:
                        self._hand_on(number, channel)
                    except OSError:
                        self._leave(number, channel)
        elif kind == TAKEN:
            (count,) = COUNT.unpack(data)
            if not 0 < count <= WINDOW - channel.window:
                raise Breach("The other side took more than there was.")
            channel.window += count
        else:
            channel.over = True
            if not channel.left:
                channel.left = True
                self._frame(GONE, number)
            if not channel.out:
                self._drop(channel)
            self._forget(number, channel)

    def _open(self, number: int) -> None:
        may = self._connect is not None or self._take_socket is not None
        if not may or number in self._channels or len(self._channels) >= _MOST_OPEN:
            raise Breach("The other side opened a channel that it must not open.")
        channel = self._channels[number] = _Channel(None, connected=False)
        if self._take_socket is not None:
            self._open_here(number, channel, self._take_socket)
        elif self._connect is not None:
            self._open_there(number, channel, self._connect())

    def _open_here(self, number: int, channel: _Channel, take: Callable[[socket.socket], None]) -> None:
        try:
            channel.sock, theirs = socket.socketpair()
        except OSError:  # this program has no descriptor to spare
            self._leave(number, channel)
            return
        channel.sock.setblocking(False)
        channel.connected = True
        take(theirs)

    def _open_there(self, number: int, channel: _Channel, address: tuple[str, int]) -> None:
        try:
            sock = channel.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = sock.connect_ex(address)
            if code == 0:
                channel.connected = True
            elif code != errno.EINPROGRESS:
                raise OSError(code, os.strerror(code))
        except OSError:
            self._leave(number, channel)

    def _end(self) -> None:
        with self._lock:
            self._stopped = True
            for fd in (self._wake_read, self._wake_write):
                if fd >= 0:
                    os.close(fd)
            self._wake_read = self._wake_write = -1
        for channel in self._channels.values():
            self._drop(channel)
        self._channels.clear()
