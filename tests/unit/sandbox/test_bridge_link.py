"""The host's end of the way from code to tools, against other ends that say what they please."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_chat.gateway.channels import DATA, GONE, HEADER, OPEN, TAKEN, WORD
from sandbox_chat.sandbox.bridge_link import BridgeLink

PATIENCE = 30.0
"""Seconds that anything may take on a busy machine before a test gives up."""


def word(value: Any) -> bytes:
    data = json.dumps(value).encode()
    return HEADER.pack(WORD, 0, len(data)) + data


HELLO = word({"op": "open"})


class Ends:
    """A link and the other end of its stream."""

    def __init__(self, **options: Any) -> None:
        ours, self.sock = socket.socketpair()
        self.sock.settimeout(PATIENCE)
        self.fd = ours.detach()
        self.taken: list[socket.socket] = []
        self.closed: list[str] = []
        self.link = BridgeLink(
            self.fd, self.fd, self._serve, on_close=lambda: self.closed.append("closed"), **options
        )

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE)
        self.taken.append(sock)

    def frame(self) -> tuple[int, int, bytes]:
        """The next frame that the link sent."""
        kind, number, length = HEADER.unpack(self.sock.recv(HEADER.size, socket.MSG_WAITALL))
        return kind, number, self.sock.recv(length, socket.MSG_WAITALL) if length else b""

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.002)

    def end(self) -> None:
        self.link.close()
        assert self.link.gone(PATIENCE)
        self.sock.close()
        for each in self.taken:
            each.close()


@pytest.fixture(name="make")
def make_fixture() -> Iterator[Callable[..., Ends]]:
    made: list[Ends] = []

    def make(**options: Any) -> Ends:
        made.append(Ends(**options))
        return made[-1]

    yield make
    for each in made:
        each.end()


Make = Callable[..., Ends]


# -- whether it is there -----------------------------------------------------------------------------------


def test_ready_when_the_other_end_listens(make: Make) -> None:
    e = make()
    assert not e.link.ready(0)
    e.sock.sendall(HELLO)
    assert e.link.ready(PATIENCE)
    assert e.link.ready(0)
    assert not e.link.over


def test_not_ready_when_the_other_end_is_silent(make: Make) -> None:
    e = make()
    assert not e.link.ready(0.02)
    assert not e.link.over  # it may still come


def test_who_waits_is_told_that_the_other_end_is_gone(make: Make) -> None:
    e = make()
    said: list[bool] = []
    waiting = threading.Thread(target=lambda: said.append(e.link.ready(600)))
    waiting.start()
    e.sock.close()
    waiting.join(PATIENCE)
    assert said == [False]
    assert e.link.over
    assert e.link.why == "The stream ended."


def test_one_that_was_ready_and_is_gone_is_not_ready(make: Make) -> None:
    e = make()
    e.sock.sendall(HELLO)
    assert e.link.ready(PATIENCE)
    e.sock.close()
    assert e.link.gone(PATIENCE)
    assert not e.link.ready(0)


def test_what_is_first_is_sent_before_all_else(make: Make) -> None:
    e = make(first=b"the token")
    assert e.sock.recv(9, socket.MSG_WAITALL) == b"the token"
    e.sock.sendall(HELLO + HEADER.pack(OPEN, 1, 0))
    e.until(lambda: e.taken)
    e.taken[0].sendall(b"x")
    assert e.frame() == (DATA, 1, b"x")


# -- what goes over it -------------------------------------------------------------------------------------


def test_connections_are_carried_both_ways(make: Make) -> None:
    e = make()
    e.sock.sendall(HELLO + HEADER.pack(OPEN, 1, 0) + HEADER.pack(OPEN, 2, 0))
    e.sock.sendall(HEADER.pack(DATA, 2, 3) + b"two" + HEADER.pack(DATA, 1, 3) + b"one")
    e.until(lambda: len(e.taken) == 2)
    assert [sock.recv(3, socket.MSG_WAITALL) for sock in e.taken] == [b"one", b"two"]
    e.taken[1].sendall(b"back")
    assert e.frame() == (DATA, 2, b"back")
    e.taken[1].close()
    assert e.frame() == (GONE, 2, b"")
    e.sock.sendall(HEADER.pack(GONE, 1, 0))
    assert e.taken[0].recv(1) == b""
    assert not e.link.over


# -- what must not be said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        HELLO + HELLO,
        word({}),
        word({"op": "open", "more": 1}),
        word({"op": "close"}),
        word(["open"]),
        word("open"),
        HEADER.pack(WORD, 0, 4) + b"junk",
        HEADER.pack(WORD, 0, 1025),
        word({"op": "open", "x": "y" * 2000}),
        HEADER.pack(WORD, 1, 2) + b"{}",
        HEADER.pack(9, 1, 0),
        HEADER.pack(DATA, 1, 1) + b"x",
        HEADER.pack(GONE, 1, 0),
        HEADER.pack(OPEN, 0, 0),
        HEADER.pack(OPEN, 1, 1) + b"x",
        HEADER.pack(OPEN, 1, 0) * 2,
        HEADER.pack(OPEN, 1, 0) + HEADER.pack(TAKEN, 1, 4) + b"\0\0\0\1",
        HEADER.pack(OPEN, 1, 0) + HEADER.pack(DATA, 1, 0xFFFFFFFF),
    ],
)
def test_forged_frames_end_it(data: bytes, make: Make) -> None:
    e = make()
    e.sock.sendall(data)
    assert e.link.gone(PATIENCE)
    assert e.link.over
    assert e.link.why.startswith("The other side ")
    assert not e.link.ready(0)
    for each in e.taken:
        assert each.recv(1) == b""  # whoever took a connection is told


def test_more_connections_than_there_may_be(make: Make) -> None:
    e = make()
    e.sock.sendall(HELLO + b"".join(HEADER.pack(OPEN, number, 0) for number in range(1, 1000)))
    assert e.link.gone(PATIENCE)
    assert "opened a channel that it must not open" in e.link.why
    assert 0 < len(e.taken) < 300


# -- its end -----------------------------------------------------------------------------------------------


def test_close(make: Make) -> None:
    e = make()
    e.sock.sendall(HELLO + HEADER.pack(OPEN, 1, 0))
    e.until(lambda: e.taken)
    for _ in range(3):
        e.link.close()
    assert e.link.gone(PATIENCE)
    assert (e.link.over, e.link.why, e.closed) == (True, "", ["closed"])
    assert e.taken[0].recv(1) == b""
    e.sock.recv(100)
    assert e.sock.recv(1) == b""  # the descriptor is closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(e.fd)
    e.link.close()
    assert e.link.gone(0)


def test_two_descriptors_are_both_closed() -> None:
    (one_read, one_write), (two_read, two_write) = os.pipe(), os.pipe()
    link = BridgeLink(one_read, two_write, lambda sock: sock.close())
    os.write(one_write, HELLO)
    assert link.ready(PATIENCE)
    link.close()
    assert link.gone(PATIENCE)
    for fd in (one_read, two_write):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    assert os.read(two_read, 1) == b""
    os.close(one_write)
    os.close(two_read)


def test_the_end_can_be_waited_for_from_any_thread_its_own_too() -> None:
    ours, theirs = socket.socketpair()
    said: list[bool] = []
    end = ours.detach()
    link: list[BridgeLink] = []
    known = threading.Event()

    def on_close() -> None:
        known.wait(PATIENCE)
        link[0].close()
        said.append(link[0].gone(PATIENCE))

    link.append(BridgeLink(end, end, lambda sock: sock.close(), on_close=on_close))
    known.set()
    theirs.close()
    assert link[0].gone(PATIENCE)
    assert said == [False]  # at once: it cannot wait for itself
