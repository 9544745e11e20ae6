"""The host's end of the way to a gateway, against keepers that lie; and what the worker makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.gateway.channels import HEADER, WORD
from sandbox_chat.guest import processes
from sandbox_chat.guest.link import Link
from sandbox_chat.guest.protocol import FrameReader
from sandbox_chat.sandbox import docker_build, docker_gateway, e2b_errors, environment, guest_wire, local
from sandbox_chat.sandbox.base import (
    Execution,
    GatewayFailed,
    GatewayGone,
    McpAddress,
    SandboxClosed,
    SandboxError,
    SandboxInfo,
    SandboxUnavailable,
)
from sandbox_chat.sandbox.gateway_link import GatewayLink
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.values import Servers

PATIENCE = 30.0
Answer = Callable[[dict[str, Any]], Any]


class Keeper:
    """The other end: answers each word with what ``answer`` returns; bytes go as they are, ``None`` is the end."""

    def __init__(self, answer: Answer, **options: Any) -> None:
        self.words: list[dict[str, Any]] = []
        ours, self.sock = socket.socketpair()
        self.link = GatewayLink(*[ours.detach()] * 2, **options)
        self._answer = answer
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        try:
            while head := self.sock.recv(HEADER.size, socket.MSG_WAITALL):
                _, _, length = HEADER.unpack(head)
                word = json.loads(self.sock.recv(length, socket.MSG_WAITALL))
                self.words.append(word)
                answer = self._answer(word)
                if answer is None:
                    break
                if not isinstance(answer, bytes):
                    data = json.dumps({"id": word["id"], **answer}).encode()
                    answer = HEADER.pack(WORD, 0, len(data)) + data
                self.sock.sendall(answer)
        except (OSError, ValueError):
            pass
        finally:
            self.sock.close()

    def close(self) -> None:
        self.link.close()
        assert self.link.gone(PATIENCE)
        self.thread.join(PATIENCE)


@pytest.fixture(name="make")
def make_fixture() -> Iterator[Callable[..., GatewayLink]]:
    made: list[Keeper] = []

    def make(answer: Answer, **options: Any) -> GatewayLink:
        made.append(Keeper(answer, **options))
        return made[-1].link

    yield make
    for keeper in made:
        keeper.close()


def test_ready(make: Callable[..., GatewayLink]) -> None:
    heard: list[dict[str, Any]] = []
    link = make(lambda word: heard.append(word) or {"op": "ready", "servers": 1, "tools": 2})
    for _ in range(2):
        link.ready(Servers({"time": {"a": 1}}), "token", 60)
    assert [word["id"] for word in heard] == [1, 2]
    assert heard[0] == {
        "op": "start",
        "id": 1,
        "config": {"time": {"a": 1}},
        "token": "token",
        "timeout": 55.0,
    }
    assert link.port
    assert not link.over


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"op": "failed", "text": "\x1b[31mno\x1b[0m server "}, "no server"),
        ({"op": "failed", "text": "x is not installed."}, "x is not installed. Do this."),
        ({"op": "failed", "text": ""}, "It gave no reason."),
        ({"op": "failed", "text": 5}, "It gave no reason."),
        ({"op": "failed"}, "It gave no reason."),
        ({"op": "failed", "missing": ["starlette", "mcp", "evil\x1b["]}, "Install mcp, starlette!"),
        ({"op": "failed", "missing": ["evil"], "text": "why"}, "why"),
        ({"op": "failed", "missing": "mcp", "text": "why"}, "why"),
        ({"op": "failed", "text": "a" * 100_000 + "end"}, "a" * 7997 + "end"),
    ],
)
def test_failed(answer: Any, said: str, make: Callable[..., GatewayLink]) -> None:
    link = make(lambda _word: answer, advice="Install {missing}!", hint="Do this.")
    with pytest.raises(GatewayFailed) as caught:
        link.ready({}, "token", 60)
    assert str(caught.value) == said
    assert not link.over


@pytest.mark.parametrize(
    "answer",
    [
        {"op": "ready", "id": 2},
        {"op": "ready", "id": "1"},
        {"op": "hello"},
        {},
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(1000),
        b"\xff" * 1000,
        HEADER.pack(WORD, 0, 1 << 30),
        None,
    ],
)
def test_an_answer_that_makes_no_sense_is_the_end(answer: Any, make: Callable[..., GatewayLink]) -> None:
    ended: list[bool] = []
    link = make(lambda _word: answer, on_close=lambda: ended.append(True))
    with pytest.raises(GatewayGone):
        link.ready({}, "token", 60)
    assert link.over
    assert link.gone(PATIENCE)
    assert ended == [True]
    with pytest.raises(GatewayGone):
        link.ready({}, "token", 60)


def test_a_word_that_nobody_asked_for(make: Callable[..., GatewayLink]) -> None:
    data = b'{"op":"ready","id":1}'
    frame = HEADER.pack(WORD, 0, len(data)) + data
    link = make(lambda _word: frame * 2)
    with contextlib.suppress(GatewayGone):
        link.ready({}, "token", 60)
    assert link.gone(PATIENCE)


def test_it_is_said_why_the_other_end_is_gone(make: Callable[..., GatewayLink]) -> None:
    link = make(lambda _word: None, explain=lambda: "No such container.")
    with pytest.raises(GatewayGone, match="No such container"):
        link.ready({}, "token", 60)


def test_no_answer_in_time(make: Callable[..., GatewayLink], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_chat.gateway.relay.GRACE", 0.0)
    monkeypatch.setattr("sandbox_chat.sandbox.gateway_link._LAST_WAIT", 0.1)
    link = make(lambda _word: b"")
    with pytest.raises(GatewayFailed, match="gave no answer in time"):
        link.ready({}, "token", 0.1)
    assert link.gone(PATIENCE)


def test_closing_ends_the_wait_and_the_address(make: Callable[..., GatewayLink]) -> None:
    link = make(lambda _word: b"")
    threading.Timer(0.2, link.close).start()
    with pytest.raises(GatewayGone):
        link.ready({}, "token", 60)
    assert link.gone(PATIENCE)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", link.port), timeout=PATIENCE)


def test_a_configuration_that_is_none(make: Callable[..., GatewayLink]) -> None:
    link = make(lambda _word: {"op": "ready"})
    for bad in ({"a": {"b": object()}}, {"a": {"b": "x" * (2 << 20)}}):
        with pytest.raises(GatewayFailed, match="cannot be handed over"):
            link.ready(bad, "token", 60)


# -- the guest ------------------------------------------------------------------------------------------


def test_a_descriptor_comes_beside_a_request() -> None:
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    out, err = os.pipe(), os.pipe()
    wire = guest_wire.Wire(guest_wire.Channel(ours, out[0], err[0], lambda: None, str))
    link = Link(theirs)
    try:
        wire._send({"op": "keeper", "id": 1}, b"x" * 100, write)
        assert link.receive() == ({"op": "keeper", "id": 1}, b"x" * 100)
        taken = link.take_descriptor()
        assert taken >= 0
        assert not os.get_inheritable(taken)
        os.close(write)
        os.write(taken, b"here")
        assert os.read(read, 10) == b"here"
        os.close(taken)
        assert link.take_descriptor() == -1
        wire._send({"op": "run", "id": 2})
        assert link.receive()[0]["id"] == 2
        assert link.take_descriptor() == -1
    finally:
        wire.release()
        theirs.close()
        for fd in (read, out[1], err[1]):
            os.close(fd)


def test_the_host_takes_no_descriptor() -> None:
    ours, theirs = socket.socketpair()
    out, err = os.pipe(), os.pipe()
    wire = guest_wire.Wire(guest_wire.Channel(ours, out[0], err[0], lambda: None, str))
    before = len(list(Path("/proc/self/fd").iterdir()))
    try:
        data = b"\0\0\0\2\0\0\0\0{}"
        socket.send_fds(theirs, [data], [0, 1, 2])
        wire._read_socket()
        assert wire._frames == FrameReader().feed(data)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    finally:
        wire.release()
        theirs.close()
        for fd in (out[1], err[1]):
            os.close(fd)


def test_what_the_host_started_is_not_the_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    me = os.getpid()
    table = {1: 0, me: 1, 20: me, 21: 20, 30: 0, 31: 30, 40: me, 41: 40, 42: 1}
    real = open

    def stat(path: Any, *rest: Any) -> Any:
        if str(path).startswith("/proc/"):
            pid = int(str(path).split("/")[2])
            file = tmp_path / str(pid)
            file.write_text(f"{pid} (a) b) S {table[pid]} 1 1 0")
            return real(file, *rest)
        return real(path, *rest)

    monkeypatch.setattr(os, "listdir", lambda _path: [*map(str, table), "self", "version"])
    monkeypatch.setattr("builtins.open", stat)
    monkeypatch.setattr(processes, "SPARED", {40})
    assert processes.others(alone=True) == {20, 21, 42}
    monkeypatch.setattr(processes, "SPARED", set())
    assert processes.others(alone=True) == {20, 21, 40, 41, 42}


# -- the worker -----------------------------------------------------------------------------------------


class Back:
    """A back end with servers that behave as ``how`` says."""

    info = SandboxInfo("test", "test")

    def __init__(self, how: list[Any], log: list[str]) -> None:
        self.how, self.log = how, log

    def start(self) -> None:
        self.log.append("start")

    def run_code(self, code: str, **_: Any) -> Execution:
        self.log.append(code)
        return Execution()

    def mcp_endpoint(self) -> Callable[[], McpAddress]:
        how = self.how.pop(0)
        if how == "refused":
            raise GatewayFailed("refused")

        def wait() -> McpAddress:
            if isinstance(how, Exception):
                raise how
            return McpAddress(url="here", token=Secret("t"))

        return wait

    def interrupt(self) -> None: ...

    def close(self) -> None:
        self.log.append("close")

    def release(self) -> None: ...


def a_worker(log: list[str], states: list[str], *how: Any) -> SandboxWorker:
    left = list(how)
    return SandboxWorker(
        lambda: Back(left, log),  # type: ignore[arg-type,return-value]
        info=Back.info,
        on_state=lambda state, text: states.append(f"{state}: {text}" if text else state),
    )


async def test_the_worker_gives_the_address() -> None:
    log: list[str] = []
    states: list[str] = []
    worker = a_worker(log, states, "", "")
    try:
        assert (await worker.mcp_endpoint()).url == "here"
        assert (await worker.mcp_endpoint()).url == "here"
        assert log == ["start"]
        assert "busy" not in states
    finally:
        worker.close()
    with pytest.raises(SandboxClosed):
        await worker.mcp_endpoint()


@pytest.mark.parametrize("how", ["refused", GatewayFailed("refused")])
async def test_a_failure_ends_a_sandbox_in_which_nothing_was_done(how: Any) -> None:
    log: list[str] = []
    states: list[str] = []
    worker = a_worker(log, states, how, how)
    try:
        with pytest.raises(SandboxError, match=r"^Failed to start MCP gateway: refused$"):
            await worker.mcp_endpoint()
        await worker.run_code("code", timeout=1)
        assert log == ["start", "close", "start", "code"]
        assert "lost: Failed to start MCP gateway: refused" in states
        with pytest.raises(SandboxError):
            await worker.mcp_endpoint()
        await worker.run_code("more", timeout=1)
        assert log == ["start", "close", "start", "code", "more"]  # this one is in use
    finally:
        worker.close()


async def test_a_gateway_that_is_gone_is_started_once_more() -> None:
    log: list[str] = []
    worker = a_worker(log, [], GatewayGone("gone"), "")
    try:
        assert (await worker.mcp_endpoint()).url == "here"
    finally:
        worker.close()
    worker = a_worker(log, [], GatewayGone("gone"), GatewayGone("gone again"))
    try:
        with pytest.raises(SandboxError, match="gone again"):
            await worker.mcp_endpoint()
    finally:
        worker.close()


async def test_a_sandbox_whose_servers_are_called_is_in_use() -> None:
    seen: list[float] = []

    class Kept(Back):
        def keep(self, unused: float) -> None:
            seen.append(unused)

    info = SandboxInfo("test", "test", keep_every=0.02)
    worker = SandboxWorker(lambda: Kept([], []), info=info)  # type: ignore[arg-type,return-value]
    try:
        await worker.run_code("code", timeout=1)
        while len(seen) < 5:
            await asyncio.sleep(0.01)
        before = seen[-1]
        worker.touch()
        seen.clear()
        while len(seen) < 2:
            await asyncio.sleep(0.01)
        assert seen == sorted(seen)
        assert seen[0] < before or before < 0.1
    finally:
        worker.close()


async def test_giving_up_the_wait_leaves_the_sandbox() -> None:
    log: list[str] = []
    gate = threading.Event()

    class Slow(Back):
        def mcp_endpoint(self) -> Callable[[], McpAddress]:
            return lambda: gate.wait(PATIENCE) and McpAddress(url="late", token=Secret("t"))  # type: ignore[return-value]

    worker = SandboxWorker(lambda: Slow([], log), info=Back.info)  # type: ignore[arg-type,return-value]
    try:
        waiting = asyncio.ensure_future(worker.mcp_endpoint())
        while "start" not in log:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await worker.run_code("code", timeout=1)
        assert log == ["start", "code"]
    finally:
        gate.set()
        worker.close()


# -- the cloud's templates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, ["code-interpreter-v1"]),
        ({"cube_template_id": "c", "cube_mcp_template_id": "m"}, ["code-interpreter-v1"]),
        ({"sandbox_mcp": Servers({"time": {}})}, ["mcp-gateway"]),
        ({"sandbox_mcp": Servers({"time": {}}), "cube_mcp_template_id": "m"}, ["m"]),
        ({"sandbox_mcp": Servers({"time": {}}), "cube_template_id": "c"}, ["mcp-gateway", "c"]),
        ({"sandbox_mcp": Servers({"time": {}}), "cube_template_id": "c", "e2b_template": "mine"}, ["mine"]),
        (
            {"sandbox_mcp": Servers({"time": {}}), "origins": {"e2b_template": "the environment"}},
            ["code-interpreter-v1"],
        ),
    ],
)
def test_templates(values: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    assert e2b_errors.templates(Settings(data_dir=tmp_path, **values)) == found


# -- what is put into sandboxes -------------------------------------------------------------------------


def test_the_local_sandbox_sees_the_gateway_when_it_is_asked_for(tmp_path: Path) -> None:
    python = environment.find(None)
    for warm_parent in (False, True):
        plain = local.make_plan(Settings(data_dir=tmp_path), python, warm_parent=warm_parent)
        asked = Settings(data_dir=tmp_path, sandbox_mcp=Servers({"time": {}}))
        plan = local.make_plan(asked, python, warm_parent=warm_parent)
        [more] = set(plan.binds) - set(plain.binds)
        assert (more.source.name, more.target) == ("gateway", "/opt/sandbox/servers/gateway")
        assert (more.source / "relay.py").is_file()


def test_packages_of_servers_go_into_the_image(tmp_path: Path) -> None:
    folder = tmp_path / "context"
    folder.mkdir()
    docker_build._fill(folder, None, ["mcp-server-git==2026.10.19", "mcp-server-sqlite[x]>=1,<2"])
    lines = (folder / "requirements.txt").read_text().splitlines()
    assert lines[-2:] == ["mcp-server-git==2026.10.19", "mcp-server-sqlite[x]>=1,<2"]
    assert "mcp-server-time" in lines


@pytest.mark.parametrize(
    "name", ["", "-r /etc/passwd", "--pre=x", "a b", "a\nb", "./here", "git+https://x", "a;b"]
)
def test_what_is_no_package(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_chat.sandbox.docker_program.find", lambda _settings: "/bin/false")
    with pytest.raises(SandboxUnavailable, match="is not the name of a package"):
        docker_build.build(Settings(data_dir=tmp_path), servers=[name])


def test_the_keeper_of_a_container_gets_all_that_it_needs() -> None:
    box = docker_gateway._box({"x86_64": "AA=="})
    content = json.loads(box[4:])
    assert len(box) == 4 + int.from_bytes(box[:4], "big")
    assert {"relay.py", "channels.py", "launch.py", "daemon.py", "catalog.json", "__init__.py"} <= set(
        content["files"]
    )
    assert "def filter_calls" in content["nest"]
    for name, source in content["files"].items():
        if name.endswith(".py"):
            compile(source, name, "exec")
    compile(docker_gateway.LOADER, "loader", "exec")
