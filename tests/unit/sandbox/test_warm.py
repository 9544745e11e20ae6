"""The host's side of warm starts, with plain processes in place of sandboxes: ends, refusals, closing."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox_chat.sandbox import bwrap, local, spawn, warm_parent
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.warm import Warm
from sandbox_chat.sandbox.warm_parent import Child, Parent, Refused
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the local sandbox needs Linux")
PATIENCE = 60.0


@pytest.fixture
def child() -> Iterator[tuple[Child, int, subprocess.Popen[bytes]]]:
    """A handle on a process that waits, the write end of its status pipe, and the process."""
    process = subprocess.Popen(["sleep", "1000"])
    status, theirs = os.pipe()
    handle = Child(os.pidfd_open(process.pid), status)
    yield handle, theirs, process
    process.kill()
    process.wait()
    handle.poll()  # closes what it holds
    os.close(theirs)


def test_a_child_is_named_by_its_outer_number_and_lives(
    child: tuple[Child, int, subprocess.Popen[bytes]],
) -> None:
    handle, _, process = child
    assert handle.pid == process.pid
    assert handle.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        handle.wait(timeout=0.01)


def test_a_killed_child_is_told_as_killed(child: tuple[Child, int, subprocess.Popen[bytes]]) -> None:
    handle, _, process = child
    handle.kill()
    assert handle.wait(timeout=PATIENCE) == -signal.SIGKILL
    assert handle.poll() == -signal.SIGKILL
    handle.kill()  # its number may be another's by now
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("said", "code"), [(b"3\n", 3), (b"139\n", 139), (b"", -9), (b"nonsense", -9), (b"-5\n", -9)]
)
def test_how_it_ended_is_what_its_first_process_wrote(
    child: tuple[Child, int, subprocess.Popen[bytes]], said: bytes, code: int
) -> None:
    handle, status, process = child
    os.write(status, said)
    process.kill()
    assert handle.wait(timeout=PATIENCE) == code


def test_many_threads_may_ask_and_kill(child: tuple[Child, int, subprocess.Popen[bytes]]) -> None:
    handle, _, _ = child
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(handle.wait(PATIENCE))) for _ in range(8)]
    threads += [threading.Thread(target=handle.kill) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert codes == [-9] * 8


def test_nothing_is_given_before_the_start_and_after_the_end(tmp_path: Path) -> None:
    warm = Warm(Settings(data_dir=tmp_path))
    assert warm.spawn() is None
    assert warm.state == "not started"
    warm.close()
    warm.start()
    assert warm.spawn() is None
    assert threading.active_count() == 1 or "sandbox-warm" not in [t.name for t in threading.enumerate()]


def test_closed_within_the_first_moment_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "warm_parent", lambda *_: pytest.fail("it was started"))
    warm = Warm(Settings(data_dir=tmp_path))
    warm.start(delay=PATIENCE)
    warm.close()
    warm.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "sandbox-warm"]
    assert not warm.wait(PATIENCE)


@pytest.mark.parametrize("fault", [SandboxUnavailable("no bubblewrap"), OSError(12, "no memory")])
def test_a_fault_is_only_told(fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(spawn, "warm_parent", fail)
    warm = Warm(Settings(data_dir=tmp_path))
    warm.start(delay=0.0)
    try:
        assert not warm.wait(PATIENCE)
        assert warm.state == f"there is none: {fault}"
        assert warm.spawn() is None
    finally:
        warm.close()


def parent(serve: Callable[[socket.socket], None]) -> tuple[Parent, threading.Thread]:
    """A parent whose other end is ``serve``, on a thread."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(["sleep", "1000"])
    err, err_write = os.pipe()
    os.close(err_write)
    thread = threading.Thread(target=lambda: (serve(theirs), theirs.close()))
    thread.start()
    return Parent(process, ours, err), thread


def answering(word: bytes) -> Callable[[socket.socket], None]:
    def serve(sock: socket.socket) -> None:
        _, fds, _, _ = socket.recv_fds(sock, 100, 4)
        for fd in fds:
            os.close(fd)
        if word:
            sock.send(word)

    return serve


def saying(status: bytes) -> Callable[[socket.socket], None]:
    def serve(sock: socket.socket) -> None:
        _, fds, _, _ = socket.recv_fds(sock, 100, 4)
        pidfd = os.pidfd_open(os.getpid())
        victim = subprocess.Popen(["sleep", "1000"])
        os.close(pidfd)
        pidfd = os.pidfd_open(victim.pid)
        socket.send_fds(sock, [b"{}"], [pidfd])
        os.write(fds[3], status)
        for fd in (pidfd, *fds):
            os.close(fd)
        victim.wait()  # it is killed, as nobody can use it

    return serve


@pytest.mark.parametrize(
    ("serve", "match"),
    [
        (answering(b""), "has ended"),
        (
            answering(b'{"op": "refused", "reason": "Making namespaces was refused."}'),
            "Making namespaces was refused",
        ),
        (saying(b"-NestError: Mounting proc was refused."), "^NestError: Mounting proc was refused"),
        (saying(b""), "ended while it was made"),
    ],
)
def test_a_refusal_has_its_reason_and_leaves_nothing_open(
    serve: Callable[[socket.socket], None], match: str
) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    made, thread = parent(serve)
    with pytest.raises(Refused, match=match):
        made.fork(b"{}")
    thread.join(PATIENCE)
    assert not thread.is_alive()
    made.end()
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_a_parent_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_parent, "FORK_TIMEOUT", 0.05)
    let_go = threading.Event()
    made, thread = parent(lambda _sock: (let_go.wait(PATIENCE), None)[1])
    with pytest.raises(TimeoutError):
        made.fork(b"{}")
    let_go.set()
    thread.join(PATIENCE)
    made.end()


def test_a_parent_that_cannot_be_used_says_why() -> None:
    stop, stop_write = os.pipe()
    made, thread = parent(
        lambda sock: (sock.send(b'{"op": "unfit", "reason": "a library keeps a thread"}'), None)[1]
    )
    with pytest.raises(Refused, match="a library keeps a thread"):
        made.ready(stop)
    thread.join(PATIENCE)
    with pytest.raises(Refused, match="ended while it started"):
        made.process.kill()
        made.ready(stop)
    os.write(stop_write, b"!")
    assert select.select([stop], [], [], 0)[0]
    made.end()
    os.close(stop)
    os.close(stop_write)


def test_the_plan_of_a_parent_lacks_only_what_forbids_nesting(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    python = local.find(None)
    cold, warm = local.make_plan(settings, python), local.make_plan(settings, python, warm_parent=True)
    sources = [str(path) for path in cold.sources]
    first, second = cold.arguments(sources, {}, 9), warm.arguments(sources, {}, None)
    assert [part for part in first if part not in second] == [
        "--seccomp", "9", "/proc/sys", "/proc/sys", "--disable-userns", "--assert-userns-disabled",
        "--as-pid-1",
    ]  # fmt: skip
    assert [part for part in second if part not in first] == []
    assert cold.environ == warm.environ
    assert bwrap.HOME in warm.command[-1]


def test_it_is_begun_for_the_local_kind_and_when_it_is_wanted(tmp_path: Path) -> None:
    with_it = local.back_end(Settings(data_dir=tmp_path))
    assert with_it.warm is not None
    assert with_it.on_close is not None
    with_it.on_close()
    for values in ({"sandbox_warm": False}, {"sandbox": "unsafe-local"}):
        assert local.back_end(Settings(data_dir=tmp_path, **values)).warm is None  # type: ignore[arg-type]


def test_a_parent_that_did_not_answer_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_parent, "FORK_TIMEOUT", 0.05)
    let_go = threading.Event()
    made, thread = parent(lambda _sock: (let_go.wait(PATIENCE), None)[1])
    warm = Warm(Settings(data_dir=tmp_path))
    warm._python = local.find(None)
    warm._key = warm._python.key
    warm._parent = made
    assert warm.spawn() is None
    assert "did not answer" in warm.state
    assert warm._parent is None
    assert warm.spawn() is None
    let_go.set()
    thread.join(PATIENCE)
    made.end()
