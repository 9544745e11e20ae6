"""Arbitrary bytes straight at the host's ends of the connections: a guest's socket and a container's output."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sandbox_chat.guest import relay
from sandbox_chat.guest.protocol import MAX_PARTS, FrameReader, ProtocolError, pack
from sandbox_chat.sandbox.base import Execution, SandboxError
from sandbox_chat.sandbox.docker import describe
from sandbox_chat.sandbox.docker_link import Container
from sandbox_chat.sandbox.guest_link import Channel, GuestLink
from sandbox_chat.settings import Settings

FUZZ = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
SLOWEST = 30.0
"""Seconds that one example may take on a busy machine."""

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
operations = st.sampled_from(["hello", "display", "done", "reply", "late", "run", "interrupt", ""]) | anything
fields = st.fixed_dictionaries(
    {},
    optional={
        "op": operations,
        "id": st.sampled_from([0, 1, 2, True, 1.0]) | anything,
        "error": anything
        | st.fixed_dictionaries({"name": anything, "value": anything, "traceback": anything}),
        "text": anything
        | st.dictionaries(st.sampled_from(["text/plain", "image/png", "x"]), anything, max_size=3),
        "sizes": anything
        | st.lists(st.tuples(st.sampled_from(["image/png", "x"]), anything).map(list), max_size=4),
        "result": anything,
        "stream": st.sampled_from(["stdout", "stderr"]) | anything,
        "path": anything,
        "size": anything,
        "entries": anything | st.lists(st.tuples(anything, anything, anything).map(list), max_size=4),
        "problem": anything,
        "protocol": anything,
        "python": anything,
    },
)
frames = st.builds(lambda message, blob: _frame(message, blob), fields, st.binary(max_size=60))
pieces = st.lists(frames | st.binary(max_size=40), max_size=8).map(b"".join)


def _frame(message: Any, blob: bytes) -> bytes:
    body = json.dumps(message).encode()
    return struct.pack("!II", len(body), len(blob)) + body + blob


class Fake:
    """A guest of which only the bytes are there: sent beforehand, then its end."""

    def __init__(self, data: bytes, out: bytes = b"") -> None:
        ours, self._sock = socket.socketpair()
        self._sock.setblocking(False)
        read, self._out = os.pipe()
        err, self._err = os.pipe()
        os.write(self._out, out[:4096])
        with contextlib.suppress(BlockingIOError):
            self._sock.sendall(data)
        self._sock.shutdown(socket.SHUT_WR)
        self.killed = False
        self.link = GuestLink(Channel(ours, read, err, self._kill, lambda: ""), output_limit=1000)

    def _kill(self) -> None:
        self.killed = True

    def close(self) -> None:
        self.link.close()
        self.link.release()
        self._sock.close()
        os.close(self._out)
        os.close(self._err)


@FUZZ
@given(pieces, st.binary(max_size=200))
def test_a_run_against_any_bytes(data: bytes, out: bytes) -> None:
    fake = Fake(data, out)
    began = time.monotonic()
    late: list[tuple[str, str]] = []
    try:
        done = fake.link.execute("x", 5, None, lambda *what: late.append(what))
    except SandboxError as error:
        assert str(error)
    else:
        assert isinstance(done, Execution)
        assert done.stopped in ("", "died")
        for output in done.outputs:
            assert all(isinstance(value, bytes | str) for value in output.data.values())
        for text in (done.stdout, done.stderr, *([done.error.name, done.error.value] if done.error else [])):
            text.encode()
    finally:
        fake.close()
    assert all(stream in ("stdout", "stderr") and isinstance(text, str) for stream, text in late)
    assert time.monotonic() - began < SLOWEST


@FUZZ
@given(pieces, st.sampled_from(["list", "read", "write", "hello"]))
@example(_frame({"op": "reply", "id": 1, "path": "x", "size": 1e400}, b"x"), "read")
@example(_frame({"op": "reply", "id": 1, "path": "x", "size": -(10**300)}, b"x"), "read")
@example(_frame({"op": "reply", "id": 1, "path": "/", "entries": [["a", False, True]]}, b""), "list")
def test_a_request_against_any_bytes(data: bytes, operation: str) -> None:
    fake = Fake(data)
    began = time.monotonic()
    try:
        if operation == "list":
            for entry in fake.link.list_files("/", 3):
                assert isinstance(entry.path, str)
                assert 0 <= entry.size < 1 << 63
        elif operation == "read":
            assert len(fake.link.read_file("x", 10)) <= 10
        elif operation == "write":
            assert isinstance(fake.link.write_file("x", b"data"), str)
        else:
            assert isinstance(fake.link.hello(5), str)
    except SandboxError as error:
        assert len(str(error)) < 10_000
    finally:
        fake.close()
    assert time.monotonic() - began < SLOWEST


@FUZZ
@given(st.lists(st.binary(max_size=100), max_size=20))
def test_a_reader_never_holds_more_than_one_frame(chunks: list[bytes]) -> None:
    reader = FrameReader(max_json=64, max_blob=64)
    for chunk in chunks:
        try:
            for message, _ in reader.feed(chunk):
                assert isinstance(message, dict)
        except ProtocolError:
            return
        assert len(reader._buffer) <= 8 + 128 + 100


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": [' + b"{}," * 1_000_000 + b"{}]}",
        b'{"a": [' + b'"",' * 1_000_000 + b'""]}',
        b'{"a": [' + b"1.5," * 1_000_000 + b"1]}",
        b"{" + b",".join(b'"%d":0' % number for number in range(200_000)) + b"}",
        b'{"a": "' + b'\\"' * 1_000_000 + b'", "b": [' + b"[]," * 500_000 + b"1]}",
        b'{"a": "'
        + b"\\\\" * 1_000_001
        + b'", "b": ['
        + b"[]," * 500_000
        + b'1], "c": "'
        + b"x" * 10
        + b'"}',
    ],
)
def test_a_frame_of_millions_of_parts_is_not_even_read(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ProtocolError, match="too many parts"):
        FrameReader().feed(struct.pack("!II", len(body), 0) + body)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "text", ['"' * 3_000_000, "\\" * 3_000_000, '\\"' * 1_500_000, "{},[]" * 600_000, "é\n" * 1_000_000]
)
def test_long_texts_of_any_kind_pass(text: str) -> None:
    assert len(text) > MAX_PARTS
    message = {"op": "display", "id": 1, "text": {"text/plain": text}, "sizes": []}
    [(found, blob)] = FrameReader().feed(pack(message, b"blob"))
    assert (found, blob) == (message, b"blob")


# -- a container's output ---------------------------------------------------------------------------------

kinds = st.sampled_from([relay.SOCKET, relay.OUT, relay.ERR, relay.STATUS]) | st.integers(0, 255)
status = st.fixed_dictionaries({}, optional=dict.fromkeys(("code", "oom", "pids", "cpu", "x"), anything))
container_pieces = st.lists(
    st.builds(lambda kind, data: relay.HEADER.pack(kind, len(data)) + data, kinds, st.binary(max_size=80))
    | status.map(
        lambda found: (
            (data := json.dumps(found).encode()) and relay.HEADER.pack(relay.STATUS, len(data)) + data
        )
    )
    | st.binary(max_size=20),
    max_size=6,
).map(b"".join)


def _carry(data: bytes) -> tuple[str, Container, list[BaseException]]:
    """Let a process be a container that says ``data``; returns how it ended and what went wrong in threads."""
    wrong: list[BaseException] = []
    hook, threading.excepthook = (
        threading.excepthook,
        lambda found: wrong.append(found.exc_value or SystemExit()),
    )
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            pipe = subprocess.PIPE
            process = subprocess.Popen(["cat", file.name], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
            container = Container(
                process,
                b"first",
                lambda guest, program, said: describe(Settings(), guest, program, said, {}),
                lambda: None,
            )
            drained = threading.Thread(target=_drain, args=(container,))
            drained.start()
            assert container.gone(SLOWEST)
            container.kill()
            container.channel.sock.close()
            drained.join(SLOWEST)
            for fd in (container.channel.stdout, container.channel.stderr):
                os.close(fd)
            return container.ended(), container, wrong
    finally:
        threading.excepthook = hook


def _drain(container: Container) -> None:
    for fd in (container.channel.stdout, container.channel.stderr):
        while os.read(fd, 1 << 16):
            pass


@settings(FUZZ, max_examples=25)
@given(container_pieces)
@example(relay.HEADER.pack(relay.STATUS, 4000) + b"[" * 4000)
@example(relay.HEADER.pack(relay.STATUS, 0xFFFFFFFF))
@example(relay.HEADER.pack(9, 1) + b"x")
@example(relay.HEADER.pack(relay.STATUS, 13) + b'{"code": NaN}')
@example(relay.HEADER.pack(relay.OUT, 5))
@example(relay.HEADER.pack(relay.STATUS, 4012) + b'{"code": -' + b"9" * 4001 + b"}")
@example(relay.HEADER.pack(relay.STATUS, 12) + b'{"code":-77}')
def test_a_container_may_say_anything(data: bytes) -> None:
    ended, container, wrong = _carry(data)
    assert ended
    assert wrong == []
    assert all(isinstance(number, int) for number in container.counts.values())
    assert len(container._buffer) <= relay.PIECE + relay.HEADER.size + (1 << 16)


def test_a_transfer_counts_what_it_gets_not_what_is_said() -> None:
    fake = Fake(_frame({"op": "reply", "id": 1, "path": "x", "size": 3}, b"12345678"))
    target = io.BytesIO()
    try:
        with contextlib.suppress(SandboxError):
            assert fake.link.download("x", target, 5) <= 5
        assert len(target.getvalue()) <= 5
    finally:
        fake.close()
