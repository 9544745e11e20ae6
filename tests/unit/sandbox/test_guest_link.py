"""The host's end against guests that lie: a thread plays the guest on the other end of the socket."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox_chat.guest.protocol import HEADER, FrameReader, pack
from sandbox_chat.sandbox import guest_link
from sandbox_chat.sandbox.base import SandboxError, SandboxFileError, SandboxLost
from sandbox_chat.sandbox.gather import MAX_OUTPUTS
from sandbox_chat.sandbox.guest_link import Channel, GuestLink

Answer = Callable[["Guest", dict[str, Any], bytes], None]


class Guest:
    """The other end: answers each request by calling ``answer``."""

    def __init__(self, answer: Answer) -> None:
        self.killed = False
        self.late: list[tuple[str, str]] = []
        ours, self.sock = socket.socketpair()
        out, self.out = os.pipe()
        err, self.err = os.pipe()
        self.link = GuestLink(
            Channel(ours, out, err, self.kill, self.ended),
            output_limit=1000,
        )
        self._answer = answer
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        if not self.killed:
            self.killed = True
            self.sock.shutdown(socket.SHUT_RDWR)

    def ended(self) -> str:
        return "It ended." if self.killed else ""

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        self.sock.sendall(pack(message, blob))

    def done(self, number: int, error: Any = None) -> None:
        self.send({"op": "done", "id": number, "error": error})

    def _serve(self) -> None:
        reader = FrameReader()
        try:
            while data := self.sock.recv(1 << 16):
                for message, blob in reader.feed(data):
                    self._answer(self, message, blob)
        except OSError:
            return

    def close(self) -> None:
        self.link.close()
        self._thread.join(5)
        self.link.release()
        self.sock.close()
        os.close(self.out)
        os.close(self.err)


@pytest.fixture
def make() -> Iterator[Callable[[Answer], Guest]]:
    guests: list[Guest] = []

    def create(answer: Answer) -> Guest:
        guests.append(Guest(answer))
        return guests[-1]

    yield create
    for guest in guests:
        guest.close()


def test_output_before_done_belongs_to_the_run(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        os.write(guest.out, "grüße".encode())
        os.write(guest.err, b"\xffbad")
        guest.send({"op": "display", "id": 1, "result": True, "text": {"text/plain": "2"}, "sizes": []})
        guest.done(message["id"])

    live: list[tuple[str, str]] = []
    done = make(answer).link.execute("x", 5, lambda stream, text: live.append((stream, text)))
    assert (done.stdout, done.stderr, done.result_text, done.ok) == ("grüße", "\ufffdbad", "2", True)
    assert "".join(text for stream, text in live if stream == "stdout") == "grüße"


def test_raw_output_is_all_of_it_and_late_output_is_none_of_it(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        os.write(guest.out, b"A" * 5000)
        os.write(guest.err, b"\xff")
        guest.send({"op": "late", "id": 1, "stream": "stdout", "text": "late"})
        guest.done(message["id"])

    raw: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def take(stream: str, data: bytes) -> None:
        raw[stream] += data

    done = make(answer).link.execute("x", 5, None, None, take)
    assert len(done.stdout) < 1200
    assert raw == {"stdout": b"A" * 5000, "stderr": b"\xff"}


def test_pictures_are_cut_out_of_the_blob(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        sizes = [["image/png", 3], ["application/x-evil", 2], ["image/jpeg", 1]]
        guest.send(
            {"op": "display", "id": 1, "result": False, "text": {"x/y": "no"}, "sizes": sizes}, b"pngxxj"
        )
        guest.done(message["id"])

    [output] = make(answer).link.execute("x", 5, None).outputs
    assert output.data == {"image/png": b"png", "image/jpeg": b"j"}
    assert not output.is_result


@pytest.mark.parametrize(
    "bad",
    [
        HEADER.pack(0xFFFFFFFF, 1),
        b"HTTP/1.1 200 OK\r\n\r\n",
        pack({"op": "display", "id": 1, "text": [], "sizes": []}),
        pack({"op": "display", "id": 1, "text": {}, "sizes": [["image/png", 10]]}, b"123"),
        pack({"op": "display", "id": 1, "text": {}, "sizes": [["image/png", -1]]}, b"123"),
        pack({"op": "display", "id": 1, "text": {}, "sizes": [[1, 2, 3]]}, b"123"),
    ],
)
def test_nonsense_ends_the_sandbox(make: Callable[[Answer], Guest], bad: bytes) -> None:
    guest = make(lambda guest, _message, _blob: guest.sock.sendall(bad))
    done = guest.link.execute("x", 5, None)
    assert done.stopped == "died"
    assert done.error is not None
    assert guest.killed
    with pytest.raises(SandboxLost):
        guest.link.execute("y", 5, None)


def test_forged_and_old_frames_are_passed_over(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        guest.done(message["id"] + 1)
        guest.done(message["id"] - 1)
        guest.send({"op": "reply", "id": message["id"]})
        guest.send({"op": "late", "id": "x", "stream": "stdout", "text": "?"})
        guest.send({"op": "late", "id": 7, "stream": "stdout", "text": "of no run"})
        guest.send({"op": "late", "id": message["id"], "stream": "stdout", "text": "late"})
        guest.send({"op": "unheard of"})
        guest.done(message["id"], {"name": ["x"], "value": 5})

    guest = make(answer)
    done = guest.link.execute("x", 5, None, lambda *what: guest.late.append(what))
    assert done.error is not None
    assert (done.error.name, done.error.value, done.error.traceback) == ("['x']", "5", "")
    assert guest.late == [("stdout", "late")]


def test_many_outputs_are_counted_not_kept(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        for _ in range(MAX_OUTPUTS + 5):
            guest.send({"op": "display", "id": 1, "result": False, "text": {"text/plain": "x"}, "sizes": []})
        guest.done(message["id"])

    done = make(answer).link.execute("x", 5, None)
    assert len(done.outputs) == MAX_OUTPUTS
    assert "5 more results" in done.stderr


def test_endless_output_is_bounded_and_live_output_stops(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        if message["op"] == "run":
            for _ in range(200):
                os.write(guest.out, b"A" * 10_000)
            guest.done(message["id"])

    live: list[str] = []
    done = make(answer).link.execute("x", 5, lambda _stream, text: live.append(text))
    assert len(done.stdout) < 1100
    assert "cut out of 2,000,000" in done.stdout
    assert len("".join(live)) == 1000


def test_time_limit_and_interrupt(make: Callable[[Answer], Guest]) -> None:
    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        if message["op"] == "interrupt":
            guest.done(message["id"], {"name": "KeyboardInterrupt", "value": "", "traceback": "t"})

    guest = make(answer)
    assert guest.link.execute("x", 0.1, None).stopped == "timeout"
    timer = threading.Timer(0.1, guest.link.interrupt)
    timer.start()
    done = guest.link.execute("x", 30, None)
    assert done.stopped == "interrupted"
    assert done.duration_ms < 10_000
    guest.link.interrupt()  # when idle: nothing
    assert guest.link.execute("x", 0.1, None).stopped == "timeout"


def test_deaf_code_is_killed(make: Callable[[Answer], Guest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_link, "TIMEOUT_GRACE", 0.2)
    guest = make(lambda *_: None)
    done = guest.link.execute("x", 0.1, None)
    assert done.stopped == "died"
    assert done.error is not None
    assert "did not stop" in done.error.value
    assert guest.killed


def test_close_from_another_thread_ends_a_run(make: Callable[[Answer], Guest]) -> None:
    guest = make(lambda *_: None)
    threading.Timer(0.1, guest.link.close).start()
    started = time.monotonic()
    assert guest.link.execute("x", 60, None).stopped == "died"
    assert time.monotonic() - started < 10


def test_a_guest_that_hangs_up(make: Callable[[Answer], Guest]) -> None:
    guest = make(lambda guest, *_: guest.kill())
    done = guest.link.execute("x", 5, None)
    assert done.stopped == "died"
    assert done.error is not None
    assert done.error.value.startswith("It ended.")


def test_hello(make: Callable[[Answer], Guest]) -> None:
    guest = make(lambda *_: None)
    guest.send({"op": "hello", "protocol": 1, "python": "3.11.7"})
    assert guest.link.hello(5) == "3.11.7"


def test_hello_that_does_not_come(make: Callable[[Answer], Guest]) -> None:
    with pytest.raises(SandboxLost, match="did not answer within"):
        make(lambda *_: None).link.hello(0.1)
    guest = make(lambda *_: None)
    os.write(guest.err, b"bwrap: setting up uid map: Permission denied\n")
    guest.kill()
    with pytest.raises(SandboxLost, match="uid map"):
        guest.link.hello(5)
    guest = make(lambda *_: None)
    guest.send({"op": "hello", "protocol": 99})
    with pytest.raises(SandboxLost, match="does not understand"):
        guest.link.hello(5)


def test_files(make: Callable[[Answer], Guest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_link, "FILE_CHUNK", 4)
    store = bytearray()

    def answer(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        reply: dict[str, Any] = {"op": "reply", "id": message["id"], "path": "/tmp/x"}
        part = b""
        if message["op"] == "write":
            if not message["append"]:
                store.clear()
            store.extend(blob)
        elif message["op"] == "read":
            part = bytes(store[message["offset"] : message["offset"] + message["size"]])
            reply["size"] = len(store)
        else:
            reply = {"op": "reply", "id": message["id"], "problem": "No such folder."}
        guest.send(reply, part)

    guest = make(answer)
    assert guest.link.write_file("x", b"0123456789") == "/tmp/x"
    assert guest.link.read_file("x", 10) == b"0123456789"
    with pytest.raises(SandboxFileError, match="10 bytes"):
        guest.link.read_file("x", 9)
    with pytest.raises(SandboxFileError, match="No such folder"):
        guest.link.list_files("x", 5)
    assert guest.link.write_file("x", b"") == "/tmp/x"
    assert guest.link.read_file("x", 10) == b""


@pytest.mark.parametrize(
    "entries",
    [
        None,
        [1],
        [["a", 1, 2]],
        [["a", True]],
        [["a", True, "x"]],
        "abc",
        [["a", True, 1, False]],
        [["a", True, 1, 0, 5]],
        [["a", True, 1, False, "x"]],
        [["a", True, 1, False, 5, 6]],
    ],
)
def test_lists_that_make_no_sense(make: Callable[[Answer], Guest], entries: Any) -> None:
    guest = make(lambda g, m, _b: g.send({"op": "reply", "id": m["id"], "path": "/tmp", "entries": entries}))
    with pytest.raises(SandboxError):
        guest.link.list_files("x", 5)


def test_a_file_that_grows_while_it_is_read_is_bounded(make: Callable[[Answer], Guest]) -> None:
    guest = make(
        lambda g, m, _b: g.send({"op": "reply", "id": m["id"], "path": "/f", "size": 1}, b"x" * 1000)
    )
    with pytest.raises(SandboxFileError):
        guest.link.read_file("x", 999)


def test_what_is_written_between_runs_is_background(make: Callable[[Answer], Guest]) -> None:
    guest = make(lambda guest, message, _blob: guest.done(message["id"]))
    guest.link.execute("x", 5, None, lambda *what: guest.late.append(what))
    os.write(guest.out, b"from a child")
    assert guest.link.execute("y", 5, None).stdout == ""
    assert guest.late == [("stdout", "from a child")]


def test_too_long_code_is_refused_and_the_guest_lives(make: Callable[[Answer], Guest]) -> None:
    guest = make(lambda guest, message, _blob: guest.done(message["id"]))
    with pytest.raises(SandboxFileError, match="too long"):
        guest.link.execute("x" * (17 << 20), 5, None)
    assert guest.link.execute("x", 5, None).ok


def drip(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
    """Answer a read with one byte of a file that never ends."""
    time.sleep(0.01)
    guest.send({"op": "reply", "id": message["id"], "path": "/x", "size": 1 << 20}, b"x")


def test_a_guest_that_gives_a_file_byte_by_byte_is_ended_in_time(
    make: Callable[[Answer], Guest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_link, "FILE_TIMEOUT", 0.3)
    guest = make(drip)
    started = time.monotonic()
    with pytest.raises(SandboxLost, match="too long"):
        guest.link.read_file("/x", 1 << 20)
    assert time.monotonic() - started < 3
    assert guest.killed


@pytest.mark.parametrize("answer", [drip, lambda *_: None])
def test_a_file_operation_can_be_stopped_and_the_guest_lives_on(
    make: Callable[[Answer], Guest], answer: Answer
) -> None:
    def all_of_it(guest: Guest, message: dict[str, Any], blob: bytes) -> None:
        if message["op"] == "run":
            guest.done(message["id"])
        else:
            answer(guest, message, blob)

    guest = make(all_of_it)
    threading.Timer(0.2, guest.link.interrupt).start()
    with pytest.raises(SandboxFileError, match="stopped"):
        guest.link.read_file("/x", 1 << 20)
    assert guest.link.execute("1", 5, None).ok
    assert not guest.killed
