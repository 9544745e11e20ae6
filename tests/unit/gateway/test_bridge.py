"""The sandbox's end of the way from code to the host: a file that is listened at, for as long as the host is there."""

from __future__ import annotations

import ast
import base64
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.gateway import bridge
from sandbox_chat.gateway.bridge import serve
from sandbox_chat.gateway.channels import DATA, GONE, HEADER, OPEN, WORD
from sandbox_chat.sandbox.bridge_link import BridgeLink

PATIENCE = 30.0


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def connect(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    sock.connect(str(path))
    return sock


def exchange(sock: socket.socket) -> bytes:
    """Say something and hear what comes to its end."""
    with sock:
        sock.sendall(b"hello")
        found = b""
        while part := sock.recv(100):
            found += part
        return found


def echo(sock: socket.socket) -> None:
    """Take a connection, as the host does: answer in a thread."""

    def work() -> None:
        with sock, contextlib.suppress(OSError):
            sock.sendall(sock.recv(5, socket.MSG_WAITALL).upper())

    threading.Thread(target=work, daemon=True).start()


class Way:
    """A way with the sandbox's end in a thread and the host's end at the other side of a stream."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        ours, theirs = socket.socketpair()
        self.inner = theirs
        self.failure: BaseException | None = None
        end = ours.detach()
        self.thread = threading.Thread(target=self._serve, args=(options,), daemon=True)
        self.thread.start()
        self.link = BridgeLink(end, end, echo)

    def _serve(self, options: dict[str, Any]) -> None:
        try:
            with self.inner:
                serve(self.inner.fileno(), self.inner.fileno(), str(self.path), **options)
        except BaseException as error:
            self.failure = error

    def end(self) -> None:
        self.link.close()
        assert self.link.gone(PATIENCE)
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    return tmp_path / "way"


@pytest.fixture(name="way")
def way_fixture(path: Path) -> Iterator[Way]:
    way = Way(path)
    yield way
    way.end()


# -- in a thread -------------------------------------------------------------------------------------------


def test_it_says_when_it_listens(way: Way, path: Path) -> None:
    assert way.link.ready(PATIENCE)
    assert stat.S_ISSOCK(path.stat().st_mode)


def test_what_connects_reaches_the_host(way: Way, path: Path) -> None:
    assert way.link.ready(PATIENCE)
    socks = [connect(path) for _ in range(5)]
    assert [exchange(sock) for sock in reversed(socks)] == [b"HELLO"] * 5


@pytest.mark.parametrize(("options", "mode"), [({}, 0o600), ({"mode": 0o666}, 0o666)])
def test_who_may_connect(options: dict[str, Any], mode: int, path: Path) -> None:
    before = os.umask(0o022)
    try:
        way = Way(path, **options)
        assert way.link.ready(PATIENCE)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert os.umask(0o022) == 0o022  # it is as it was
        way.end()
    finally:
        os.umask(before)


def test_the_file_is_gone_when_the_host_is(path: Path) -> None:
    way = Way(path)
    assert way.link.ready(PATIENCE)
    client = connect(path)
    way.end()
    assert way.failure is None
    assert not path.exists()
    with client, contextlib.suppress(ConnectionResetError):  # so it is when nobody had taken it yet
        assert client.recv(1) == b""


def test_a_file_that_is_there_already_is_left_alone(path: Path) -> None:
    path.write_text("of the user")
    way = Way(path)
    assert not way.link.ready(PATIENCE)
    way.end()
    assert isinstance(way.failure, OSError)
    assert path.read_text() == "of the user"


@pytest.mark.parametrize(
    "data", [HEADER.pack(WORD, 0, 2) + b"{}", HEADER.pack(OPEN, 1, 0), HEADER.pack(DATA, 7, 1) + b"x"]
)
def test_a_host_that_says_something_or_opens_something_is_none(data: bytes, path: Path) -> None:
    """Only the host's answers to connections come this way."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    thread = threading.Thread(target=serve, args=(ours.fileno(), ours.fileno(), str(path)), daemon=True)
    thread.start()
    until(path.exists)
    theirs.sendall(data)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not path.exists()
    ours.close()
    theirs.close()


def test_it_needs_the_standard_library_and_the_channels_alone() -> None:
    for node in ast.walk(ast.parse(Path(bridge.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            assert all(each.name.partition(".")[0] in sys.stdlib_module_names for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            known = (
                node.module in sys.stdlib_module_names
                or (node.module or "").partition(".")[0] == "collections"
            )
            assert known or (node.level, node.module) in ((1, "channels"), (0, "pathlib"), (0, "__future__"))


# -- as a program ------------------------------------------------------------------------------------------


def program(code: str, path: Path, **options: Any) -> subprocess.Popen[bytes]:
    source = f"import sys; from sandbox_chat.gateway import bridge\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", source, str(path)], cwd=Path(bridge.__file__).parents[2], **options
    )


def test_main(path: Path) -> None:
    """It has a stream, outlives Ctrl-C, and ends with the host."""
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    process = program(f"bridge.main({fd}, {fd}, sys.argv[1])", path, pass_fds=[fd], stderr=subprocess.PIPE)
    theirs.close()
    end = ours.detach()
    link = BridgeLink(end, end, echo)
    try:
        assert link.ready(PATIENCE)
        process.send_signal(signal.SIGINT)
        assert exchange(connect(path)) == b"HELLO"
        link.close()
        assert process.wait(PATIENCE) == 0
        assert not path.exists()
    finally:
        link.close()
        process.kill()
        _, errors = process.communicate()
    assert errors == b""


WHAT_IS_LEFT = """
import ctypes, json, os, signal, stat
def serve(reader, writer, path):
    null = os.stat(os.devnull).st_rdev
    print(json.dumps({
        "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
        "sigint": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        "null": [os.fstat(fd).st_rdev == null for fd in {0, 1, FD}],
        "kept": [stat.S_ISSOCK(os.fstat(fd).st_mode) and fd > 2 and not os.get_inheritable(fd) for fd in (reader, writer)],
    }), file=sys.stderr, flush=True)
bridge.serve = serve
bridge.main(FD, FD, sys.argv[1])
"""


def test_code_of_the_same_user_cannot_take_hold_of_the_stream(path: Path) -> None:
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    process = program(
        WHAT_IS_LEFT.replace("FD", str(fd)),
        path,
        pass_fds=[fd],
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    found = ast.literal_eval(said.decode().replace("true", "True").replace("false", "False"))
    assert found == {"dumpable": 0, "sigint": True, "null": [True] * 3, "kept": [True, True]}
    ours.close()
    theirs.close()


def test_main_as_text(path: Path) -> None:
    """Bytes in as they are; out a line of base64 for each piece."""
    process = program(
        "bridge.main_as_text(sys.argv[1])", path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    came = b""

    def more(count: int) -> bytes:
        nonlocal came
        while len(came) < count:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.endswith(b"\n")
            assert len(line) <= 70_000
            came += base64.b64decode(line[:-1], validate=True)
        found, came = came[:count], came[count:]
        return found

    def frame() -> tuple[int, int, bytes]:
        kind, number, length = HEADER.unpack(more(HEADER.size))
        return kind, number, more(length)

    try:
        assert frame() == (WORD, 0, b'{"op":"open"}')
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        client = connect(path)
        assert frame() == (OPEN, 1, b"")
        sent = os.urandom(200_000)
        client.sendall(sent)
        got = b""
        while len(got) < len(sent):
            kind, number, data = frame()
            assert (kind, number) == (DATA, 1)
            got += data
        assert got == sent
        process.stdin.write(HEADER.pack(DATA, 1, 4) + b"\0\n\xff!" + HEADER.pack(GONE, 1, 0))
        process.stdin.flush()
        assert client.recv(4, socket.MSG_WAITALL) == b"\0\n\xff!"
        assert client.recv(1) == b""
        client.close()
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert not path.exists()
    finally:
        process.kill()
        process.wait(PATIENCE)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        for each in (process.stdin, process.stdout, process.stderr):
            each.close()
