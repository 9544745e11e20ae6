"""The way out of a cloud's sandbox: a command whose streams are held here. The cloud is this machine, its client a small one."""

from __future__ import annotations

import ast
import asyncio
import base64
import contextlib
import gc
import itertools
import json
import logging
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridging import Listening

from sandbox_chat.gateway import bridge
from sandbox_chat.guest import calls
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.bridge_link import BridgeLink
from sandbox_chat.sandbox.e2b_bridge import LOADER, LONGEST_LINE, _box, _Held, offer, open_way
from sandbox_chat.settings import Secret, Settings

PATIENCE = 30.0
SECRET = "k3y-of-the-cloud"


class Handle:
    """A command in the cloud: really, here, with the output as text in the pieces that come."""

    def __init__(self, cloud: Any, command: str, on_stdout: Any) -> None:
        self.killed = False
        self._cloud, self._on_stdout = cloud, on_stdout
        (self._into, stdin), (self._out, stdout) = socket.socketpair(), socket.socketpair()
        for sock in (self._into, self._out):
            sock.setblocking(False)
        self.process = subprocess.Popen(
            command,
            shell=True,
            stdin=stdin,
            stdout=stdout,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(cloud.folder)},
        )
        stdin.close()
        stdout.close()

    async def send_stdin(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._into, data)

    async def wait(self) -> None:
        while part := await asyncio.get_running_loop().sock_recv(self._out, self._cloud.piece):
            await self._on_stdout(part.decode("ascii"))

    async def kill(self) -> None:
        await asyncio.sleep(0.01)  # a request takes its time
        self.end()
        self.killed = True

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._into.close()
        self._out.close()


class Commands:
    """The part of the client that runs commands."""

    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud

    async def run(self, command: str, *, on_stdout: Any, **options: Any) -> Handle:
        self.cloud.asked.append((command, options))
        if self.cloud.hangs:
            await asyncio.Event().wait()
        if self.cloud.problem is not None:
            raise self.cloud.problem
        self.cloud.handle = Handle(self.cloud, self.cloud.instead or command, on_stdout)
        return self.cloud.handle


class Cloud:
    """A sandbox in the cloud."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = Settings(e2b_api_key=Secret(SECRET))
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.handle: Handle | None = None
        self.problem: Exception | None = None
        self.hangs = False
        self.instead = ""
        self.piece = 1 << 16

    def twin(self) -> Any:
        return types.SimpleNamespace(commands=Commands(self))


def echo(sock: socket.socket) -> None:
    def work() -> None:
        with sock, contextlib.suppress(OSError):
            while data := sock.recv(1 << 16):
                sock.sendall(data.swapcase())

    threading.Thread(target=work, daemon=True).start()


def connect(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE)
    sock.connect(str(path))
    return sock


def over(link: BridgeLink) -> bool:
    """Wait until its end."""
    found = link.gone(PATIENCE) and link.over
    end = time.monotonic() + PATIENCE
    while found and any(thread.name == "cloud-bridge" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


@pytest.fixture(name="cloud")
def cloud_fixture(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path)
    yield cloud
    if cloud.handle is not None:
        cloud.handle.end()


@pytest.fixture(name="start")
def start_fixture(cloud: Cloud, tmp_path: Path) -> Iterator[Callable[[], BridgeLink]]:
    made: list[BridgeLink] = []

    def start() -> BridgeLink:
        made.append(open_way(cloud, str(tmp_path / "way"), echo))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for each in made:
        each.close()
        assert over(each)


Start = Callable[[], BridgeLink]


# -- the way -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1 << 16, 7])
def test_connections_in_the_sandbox_reach_the_host(
    piece: int, cloud: Cloud, start: Start, tmp_path: Path
) -> None:
    """Whatever pieces the cloud's client makes of the output."""
    cloud.piece = piece
    link = start()
    assert link.ready(PATIENCE)
    sent = b"".join(b"line %d\n" % number for number in range(2000 if piece > 7 else 50))
    with connect(tmp_path / "way") as one, connect(tmp_path / "way") as two:
        for sock, data in ((one, sent), (two, b"x" + sent)):
            sock.sendall(data)
        for sock, data in ((two, b"x" + sent), (one, sent)):
            assert sock.recv(len(data), socket.MSG_WAITALL) == data.swapcase()
    command, options = cloud.asked[0]
    assert command == f"exec python3 -s -X utf8 -c {shlex.quote(LOADER)}"
    assert (options["background"], options["stdin"], options["timeout"]) == (True, True, 0)
    assert options["retain_output"] is False
    assert options["request_timeout"] == cloud.settings.e2b_request_timeout


def test_the_end_ends_the_command(cloud: Cloud, start: Start, tmp_path: Path) -> None:
    link = start()
    assert link.ready(PATIENCE)
    link.close()
    assert over(link)
    assert cloud.handle is not None
    assert cloud.handle.killed


def test_the_end_before_the_beginning(cloud: Cloud, tmp_path: Path) -> None:
    link = open_way(cloud, str(tmp_path / "way"), echo)  # type: ignore[arg-type]
    link.close()
    assert over(link)
    assert not link.ready(0)


def test_nothing_is_begun_after_the_end(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = socket.socketpair()
    held = _Held(cloud, ours, "/way")  # type: ignore[arg-type]
    held.stop()
    held.start()
    held._thread.join(PATIENCE)
    assert theirs.recv(1) == b""
    theirs.close()
    held.stop()
    del held
    gc.collect()
    assert cloud.asked == []
    assert caplog.records == []  # no task that nobody waited for


def test_the_end_while_the_command_is_begun(cloud: Cloud, start: Start) -> None:
    """Also one that never answers."""
    cloud.hangs = True
    link = start()
    assert not link.ready(0.05)
    link.close()
    assert over(link)


def test_a_command_that_ends(cloud: Cloud, start: Start) -> None:
    link = start()
    assert link.ready(PATIENCE)
    assert cloud.handle is not None
    os.killpg(cloud.handle.process.pid, signal.SIGKILL)
    assert over(link)
    assert not link.ready(0)


def test_a_cloud_that_refuses(cloud: Cloud, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    cloud.problem = RuntimeError(f"no, and your key is {SECRET}")
    link = start()
    assert not link.ready(PATIENCE)
    assert over(link)
    assert "the way to the host's tools ended: " in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("said", ["no base64!", "é", "AAA", "=" * 8, "\x1b[2J"])
def test_output_that_is_none_of_ours(said: str, cloud: Cloud) -> None:
    held = _Held(cloud, socket.socket(), "")  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match=r"sent what makes no sense\."):
        asyncio.run(held._take(said + "\n"))


def test_a_line_without_an_end(cloud: Cloud) -> None:
    held = _Held(cloud, socket.socket(), "")  # type: ignore[arg-type]
    asyncio.run(held._take("A" * LONGEST_LINE))
    with pytest.raises(SandboxError, match=r"sent what makes no sense\."):
        asyncio.run(held._take("A"))


@pytest.mark.parametrize(
    "command", ["echo hello there; sleep 60", "head -c 400000 /dev/zero | tr '\\0' A; sleep 60"]
)
def test_a_command_that_says_other_things(
    command: str, cloud: Cloud, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    cloud.instead = command
    link = start()
    assert not link.ready(PATIENCE)
    assert over(link)
    assert "the way to the host's tools ended: The cloud's sandbox sent what makes no sense" in caplog.text
    assert cloud.handle is not None
    assert cloud.handle.killed


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(st.binary(min_size=1, max_size=60), max_size=10),
    cuts=st.lists(st.integers(0, 900), max_size=15),
)
def test_any_cuts_of_the_output(pieces: list[bytes], cuts: list[int], cloud: Cloud) -> None:
    text = "".join(base64.b64encode(piece).decode() + "\n" for piece in pieces)
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})

    async def taken() -> bytes:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            held = _Held(cloud, ours, "")  # type: ignore[arg-type]
            held._loop.close()
            held._loop = asyncio.get_running_loop()
            for start, stop in itertools.pairwise(edges):
                await held._take(text[start:stop])
            ours.shutdown(socket.SHUT_WR)
            found = b""
            while part := theirs.recv(1 << 16):
                found += part
            return found

    assert asyncio.run(taken()) == b"".join(pieces)


# -- what is sent there ------------------------------------------------------------------------------------


def test_the_box() -> None:
    data = _box("/tmp/way é")
    length = int.from_bytes(data[:4], "big")
    assert length == len(data) - 4
    box = json.loads(data[4:])
    assert box["path"] == "/tmp/way é"
    assert set(box["files"]) == {"__init__", "channels", "bridge"}
    for text in (*box["files"].values(), LOADER):
        ast.parse(text, feature_version=(3, 8))
    # What they import of the gateway is in the box.
    for text in box["files"].values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in box["files"]


def test_the_loader_that_gets_nothing_ends(tmp_path: Path) -> None:
    for data in (b"", b"\0\0", _box("x")[:-1]):
        done = subprocess.run(
            [sys.executable, "-c", LOADER], input=data, capture_output=True, timeout=PATIENCE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


# -- the cell ----------------------------------------------------------------------------------------------

CELL = """
import builtins, sys
before = set(globals()) | {"before"}
exec(cell)
new = set(globals()) - before
import tools
print(new, tools.call_mcp_tool("a__b"), call_mcp_tool("c__d"))
"""


def test_the_cell_offers_the_tools_and_leaves_no_name(tmp_path: Path) -> None:
    """In a Python of its own, as a kernel runs it; twice, as after a restart of the way."""
    host = Listening(tmp_path, lambda request: {"ok": True, "value": request["name"]})
    cell = offer(host.path, host.token)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", f"cell = {cell!r}\n" + CELL + CELL],
            capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path,
        )  # fmt: skip
    finally:
        host.close()
    assert (done.stderr, done.stdout) == ("", "set() a__b c__d\n" * 2)
    assert host.tokens == {host.token}


@pytest.mark.parametrize("odd", ["'", '"""', "\\", "\n", "é'+__import__('os').abort()+'"])
def test_path_and_token_are_texts_in_the_cell(odd: str) -> None:
    tree = ast.parse(offer(f"/p{odd}", f"t{odd}"))
    assert len(tree.body) == 1
    (source,) = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and "install(" in str(node.value)
    ]
    last = ast.parse(str(source)).body[-1]
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Call)
    assert [ast.literal_eval(each) for each in last.value.args] == [f"/p{odd}", f"t{odd}"]
    assert str(source).startswith(Path(calls.__file__).read_text("utf-8"))


def test_the_frames_of_the_way_fit_in_a_line() -> None:
    """A piece of the sandbox's end is at most this long, so no line of it is refused here."""
    assert 4 * (bridge._LINE // 3 + 1) < LONGEST_LINE
