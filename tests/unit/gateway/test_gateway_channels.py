"""Connections over one stream: what goes in comes out, nothing is kept without bound, and no forged frame is believed."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_chat.gateway.channels import (
    CHANNELS,
    COUNT,
    DATA,
    GONE,
    HEADER,
    OPEN,
    PIECE,
    TAKEN,
    WINDOW,
    WORD,
    Carrier,
)

PATIENCE = 30.0
"""Seconds that anything may take on a busy machine before a test gives up."""


class Pair:
    """A listener outside, a server inside, and the two carriers between them."""

    def __init__(self) -> None:
        self.words: list[dict[str, Any]] = []
        self.outside = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.inside = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.inside.settimeout(PATIENCE)
        self.ends = socket.socketpair()
        one, two = (end.fileno() for end in self.ends)
        self.host = Carrier(one, one, on_word=self.words.append, listener=self.outside)
        address = self.inside.getsockname()
        self.guest = Carrier(two, two, on_word=lambda word: self.guest.say(word), connect=lambda: address)
        self.why: dict[str, str] = {}
        self.threads = [
            threading.Thread(target=self._run, args=("host", self.host)),
            threading.Thread(target=self._run, args=("guest", self.guest)),
        ]
        for thread in self.threads:
            thread.start()

    def _run(self, name: str, carrier: Carrier) -> None:
        self.why[name] = carrier.run()

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """A client's and a server's end of a new connection."""
        client = socket.create_connection(self.outside.getsockname(), timeout=PATIENCE)
        server, _ = self.inside.accept()
        server.settimeout(PATIENCE)
        return client, server

    def close(self) -> None:
        self.host.stop()
        self.guest.stop()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        for sock in (*self.ends, self.outside, self.inside):
            sock.close()


@pytest.fixture(name="pair")
def pair_fixture() -> Iterator[Pair]:
    pair = Pair()
    try:
        yield pair
    finally:
        pair.close()


def everything(sock: socket.socket) -> bytes:
    """What comes until the end."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := sock.recv(1 << 16):
            data += part
    return data


def test_both_ways_and_the_end(pair: Pair) -> None:
    client, server = pair.connect()
    with client, server:
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        server.sendall(b"answer" * 100_000)
        server.close()  # what was written before the end arrives
        assert everything(client) == b"answer" * 100_000


def test_the_client_leaves(pair: Pair) -> None:
    client, server = pair.connect()
    with server:
        client.close()
        assert server.recv(1) == b""


def test_many_at_once_and_one_that_is_not_read(pair: Pair) -> None:
    stuck_client, stuck_server = pair.connect()
    with stuck_client, stuck_server:
        stuck_server.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:
                sent += stuck_server.send(bytes(1 << 16))
        assert sent < 32 << 20  # the sockets' own buffers and the windows: it is held up
        pairs = [pair.connect() for _ in range(CHANNELS - 1)]
        for number, (client, server) in enumerate(pairs):
            client.sendall(b"%d" % number)
            assert server.recv(10) == b"%d" % number
            server.sendall(b"!" * WINDOW * 2) if number % 16 == 0 else server.sendall(b"!")
            assert client.recv(1) == b"!"
        for client, server in pairs:
            client.close()
            server.close()


def test_one_more_than_fit_waits(pair: Pair) -> None:
    pairs = [pair.connect() for _ in range(CHANNELS)]
    late = socket.create_connection(pair.outside.getsockname(), timeout=PATIENCE)
    late.sendall(b"late")
    for sock in pairs.pop():
        sock.close()
    server, _ = pair.inside.accept()
    with late, server:
        assert server.recv(10) == b"late"
    for client, other in pairs:
        client.close()
        other.close()


def test_no_server(pair: Pair) -> None:
    pair.inside.close()
    with socket.create_connection(pair.outside.getsockname(), timeout=PATIENCE) as client:
        assert everything(client) == b""


def test_words_come_back_while_connections_are_carried(pair: Pair) -> None:
    client, server = pair.connect()
    with client, server:
        pair.host.say({"op": "x" * 10_000})
        client.sendall(b"1")
        assert server.recv(1) == b"1"
        until(lambda: bool(pair.words))
    assert pair.words == [{"op": "x" * 10_000}]
    with pytest.raises(ValueError, match="too long"):
        pair.host.say({"op": "x" * (2 << 20)})


def until(condition: Callable[[], bool]) -> None:
    gate = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        if condition():
            return
        gate.wait(0.01)
    raise AssertionError("waited in vain")


def test_the_end_of_the_stream_ends_everything(pair: Pair) -> None:
    client, server = pair.connect()
    with client, server:
        pair.ends[1].shutdown(socket.SHUT_RDWR)
        assert everything(client) == b""
        assert everything(server) == b""
    until(lambda: len(pair.why) == 2)


# -- what a hostile other side may send ----------------------------------------------------------------


class Forger:
    """A carrier with a listener, whose other end is the test."""

    def __init__(self) -> None:
        self.words: list[dict[str, Any]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sock, self._end = socket.socketpair()
        self.sock.settimeout(PATIENCE)
        fd = self._end.fileno()
        self.carrier = Carrier(fd, fd, on_word=self.words.append, listener=self.listener, longest_word=1000)
        self.why: list[str] = []
        self.thread = threading.Thread(target=lambda: self.why.append(self.carrier.run()))
        self.thread.start()

    def client(self) -> socket.socket:
        """A new connection; its channel has been opened, the numbers begin with 1."""
        client = socket.create_connection(self.listener.getsockname(), timeout=PATIENCE)
        assert self.frame()[0] == OPEN
        return client

    def frame(self) -> tuple[int, int, bytes]:
        head = self._exactly(HEADER.size)
        kind, number, length = HEADER.unpack(head)
        return kind, number, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            assert part
            data += part
        return data

    def send(self, kind: int, number: int, data: bytes = b"", length: int | None = None) -> None:
        self.sock.sendall(HEADER.pack(kind, number, len(data) if length is None else length) + data)

    def ended(self) -> str:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.why[0]

    def close(self) -> None:
        self.carrier.stop()
        self.thread.join(PATIENCE)
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # for who still sends
        for sock in (self.sock, self._end, self.listener):
            sock.close()


@pytest.fixture(name="forger")
def forger_fixture() -> Iterator[Forger]:
    forger = Forger()
    try:
        yield forger
    finally:
        forger.close()


@pytest.mark.parametrize(
    ("kind", "number", "data", "length"),
    [
        (DATA, 1, b"", PIECE + 1),
        (DATA, 1, b"", 0xFFFFFFFF),
        (DATA, 1, b"", 0),
        (DATA, 2, b"x", None),
        (DATA, 0, b"x", None),
        (TAKEN, 1, b"", 0),
        (TAKEN, 1, COUNT.pack(1), None),
        (TAKEN, 1, COUNT.pack(0), None),
        (TAKEN, 1, b"12345", None),
        (TAKEN, 7, COUNT.pack(1), None),
        (GONE, 2, b"", None),
        (GONE, 1, b"x", None),
        (OPEN, 5, b"", None),
        (OPEN, 1, b"", None),
        (WORD, 0, b"", 1001),
        (WORD, 1, b"{}", None),
        (WORD, 0, b"[]", None),
        (WORD, 0, b"{", None),
        (WORD, 0, b"[" * 1000, None),
        (WORD, 0, b"\xff\xfe", None),
        (5, 1, b"", None),
        (255, 0, b"", None),
    ],
)
def test_a_forged_frame_ends_the_stream(
    forger: Forger, kind: int, number: int, data: bytes, length: int | None
) -> None:
    with forger.client() as client:
        forger.send(kind, number, data, length)
        assert forger.ended()
        assert everything(client) == b""
    assert not forger.words


def _flood(forger: Forger) -> None:
    with contextlib.suppress(OSError):  # what the sockets' own buffers take is granted anew
        for _ in range(1000):
            forger.send(DATA, 1, bytes(PIECE))


def test_more_than_the_window_ends_the_stream(forger: Forger) -> None:
    with forger.client():  # which reads nothing
        flood = threading.Thread(target=_flood, args=(forger,), daemon=True)
        flood.start()
        assert "more than it may" in forger.ended()


def test_a_channel_that_is_over_is_over(forger: Forger) -> None:
    with forger.client() as client:
        forger.send(GONE, 1)
        assert forger.frame() == (GONE, 1, b"")
        assert everything(client) == b""
        forger.send(DATA, 1, b"x")
        assert "there is not" in forger.ended()


def test_what_was_on_its_way_is_thrown_away_and_counted(forger: Forger) -> None:
    forger.client().close()
    assert forger.frame() == (GONE, 1, b"")
    for _ in range(WINDOW // PIECE):
        forger.send(DATA, 1, bytes(PIECE))
    forger.send(WORD, 0, b"{}")
    until(lambda: bool(forger.words))
    forger.send(DATA, 1, b"x")
    assert "more than it may" in forger.ended()


def test_an_other_side_that_reads_nothing_holds_up_the_clients(forger: Forger) -> None:
    clients = [forger.client() for _ in range(8)]
    for client in clients:
        client.settimeout(0.2)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 32 << 20:
                sent += client.send(bytes(1 << 16))
        assert sent < 16 << 20
    for client in clients:
        client.close()


def test_stop_before_and_after(forger: Forger) -> None:
    forger.carrier.stop()
    assert forger.ended() == ""
    forger.carrier.stop()
    forger.carrier.say({})
