"""Relay and link against each other as plain processes: order, back-pressure, ends, and nonsense. No daemon needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.sandbox import docker, docker_link
from sandbox_chat.sandbox.base import SandboxLost
from sandbox_chat.sandbox.docker_link import Container
from sandbox_chat.sandbox.guest_link import GuestLink
from sandbox_chat.settings import Settings

PATIENCE = 60.0
# Stands in for the guest's main module: answers each run as its code says, without a shell.
GUEST = """
import json, os, socket
from .protocol import FrameReader, VERSION, pack

def serve(config):
    sock = socket.socket(fileno=config["fd"])
    reader = FrameReader()
    sock.sendall(pack({"op": "hello", "protocol": VERSION, "python": "3"}))
    while True:
        data = sock.recv(1 << 16)
        if not data:
            os._exit(0)
        for message, blob in reader.feed(data):
            if message["op"] == "run":
                exec(message["code"], {"sock": sock, "pack": pack, "number": message["id"]})
                sock.sendall(pack({"op": "done", "id": message["id"], "error": None}))
            elif message["op"] == "write":
                sock.sendall(pack({"op": "reply", "id": message["id"], "path": str(len(blob))}))
"""


def describe(guest: int | None, program: int, said: str) -> str:
    return f"guest {guest}, program {program}: {said.strip()[-300:]}"


@contextmanager
def a_container(
    folder: Path, *, removed: list[int] | None = None, **config: Any
) -> Iterator[tuple[Container, GuestLink]]:
    """The relay with the stand-in, as a process of this machine."""
    data = docker.box(Settings(data_dir=folder))
    content = json.loads(data[4:])
    content["files"]["main"] = GUEST
    content["config"].update(config)
    first = json.dumps(content).encode()
    command = [sys.executable, "-s", "-P", "-c", docker.LOADER]
    with a_link(command, len(first).to_bytes(4, "big") + first, removed) as pair:
        yield pair


@contextmanager
def a_link(
    command: list[str], first: bytes, removed: list[int] | None = None
) -> Iterator[tuple[Container, GuestLink]]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    gone: list[int] = [] if removed is None else removed
    container = Container(process, first, describe, lambda: gone.append(1))
    link = GuestLink(container.channel, output_limit=1 << 30)
    try:
        yield container, link
    finally:
        link.close()
        assert container.gone(PATIENCE)
        link.release()
        assert process.poll() is not None


def test_what_was_written_before_a_frame_comes_before_it(tmp_path: Path) -> None:
    with a_container(tmp_path) as (_, link):
        link.hello(PATIENCE)
        for number in range(30):
            done = link.execute(
                f"import os\nfor i in range(300): os.write(1, b'{number}.%d\\n' % i)\nos.write(2, b'end')",
                30,
                None,
            )
            assert done.stdout.splitlines() == [f"{number}.{i}" for i in range(300)]
            assert done.stderr == "end"


def test_much_output_is_whole_and_a_reader_that_waits_holds_it_back(tmp_path: Path) -> None:
    with a_container(tmp_path) as (_, link):
        link.hello(PATIENCE)
        code = "import os\nfor i in range(200): os.write(1, bytes([65 + i % 26]) * 50_000)"
        assert len(link.execute(code, PATIENCE, None).stdout) == 10_000_000
        # Nobody reads: the writer is held up, and nothing gathers anywhere.
        far = tmp_path / "far"
        code = f"import os\nfor i in range(2000):\n    os.write(1, b'x' * 50_000)\n    open({str(far)!r}, 'w').write(str(i))"
        link._send({"op": "run", "id": 999, "code": code})
        time.sleep(2)
        assert int(far.read_text()) * 50_000 < 3_000_000


def test_a_large_request_goes_through_while_output_waits(tmp_path: Path) -> None:
    with a_container(tmp_path) as (_, link):
        link.hello(PATIENCE)
        data = b"x" * (20 << 20)
        assert link.write_file("x", data) == str(4 << 20)  # the stand-in tells the size of the last piece
        writer = "import os, threading\nthreading.Thread(target=lambda: [os.write(1, b'y' * 50_000) for _ in range(100)]).start()"
        link.execute(writer, PATIENCE, None)
        assert link.write_file("x", b"z" * (4 << 20)) == str(4 << 20)


def test_the_guest_s_own_end_is_told(tmp_path: Path) -> None:
    with a_container(tmp_path) as (container, link):
        link.hello(PATIENCE)
        done = link.execute("import os\nos.write(1, b'last words')\nos._exit(7)", PATIENCE, None)
        assert (done.stopped, done.stdout) == ("died", "last words")
        assert done.error is not None
        assert done.error.value.startswith("guest 7, program")
        assert container.gone(PATIENCE)
        assert container.process.poll() == 7


def test_a_guest_that_cannot_start_says_why(tmp_path: Path) -> None:
    with a_container(tmp_path, filters={}) as (_, link), pytest.raises(SandboxLost, match="processor"):
        link.hello(PATIENCE)


@pytest.mark.slow
def test_the_relay_ends_with_its_input_and_with_a_silent_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_container(tmp_path) as (container, link):
        link.hello(PATIENCE)
        assert container.process.stdin is not None
        container.kill()
        assert container.gone(PATIENCE)
    monkeypatch.setattr(docker_link, "BEAT_EVERY", 600.0)
    with a_container(tmp_path, silence=1.5) as (container, link):
        link.hello(PATIENCE)
        assert container.process.wait(PATIENCE) == 0
    monkeypatch.setattr(docker_link, "BEAT_EVERY", 0.2)
    with a_container(tmp_path, silence=5) as (container, link):
        link.hello(PATIENCE)
        time.sleep(7)
        assert link.execute("", PATIENCE, None).ok


def test_a_program_that_dies_leaves_its_container_to_be_removed(tmp_path: Path) -> None:
    removed: list[int] = []
    with a_container(tmp_path, removed=removed) as (container, link):
        link.hello(PATIENCE)
        container.process.kill()
        done = link.execute("import time; time.sleep(60)", PATIENCE, None) if not container.gone(0) else None
        assert container.gone(PATIENCE)
        assert done is None or done.stopped == "died"
        assert container.ended().startswith("guest None, program -9")
    assert removed == [1]


@pytest.mark.parametrize(
    "said",
    [
        b"\x09\x00\x00\x00\x01x",  # no such kind
        b"\x01\xff\xff\xff\xff",  # too long
        b"\x03\x00\x00\x00\x03[1]",  # not an object
        b"\x03\x00\x00\x00\x02{]",  # not JSON
        b"\x03\x00\x00\x20\x00" + b" " * 0x2000,  # a status that is too long
        b"\x00\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff",  # a frame that is too long, within a good piece
        b"\x03\x00\x00\x00\x0f" + b'{"code":"seven"}'[:15],
    ],
)
def test_nonsense_ends_the_container(said: bytes) -> None:
    program = f"import os\nos.write(1, {said!r})\nos.read(0, 1)\nos.read(0, 1)"
    with a_link([sys.executable, "-c", program], b"!") as (container, link):
        with pytest.raises(SandboxLost):
            link.hello(PATIENCE)
        assert container.gone(PATIENCE)


def test_no_descriptor_and_no_thread_is_left(tmp_path: Path) -> None:
    import threading

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    threads = threading.active_count()
    for _ in range(3):
        with a_container(tmp_path) as (_container, link):
            link.hello(PATIENCE)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert threading.active_count() == threads
