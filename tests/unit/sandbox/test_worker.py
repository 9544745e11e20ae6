"""The worker with a back end that the test controls: order, cancelling, losing, closing."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import pytest

from sandbox_chat.sandbox import worker as worker_module
from sandbox_chat.sandbox.base import (
    CodeError,
    Execution,
    FileEntry,
    SandboxClosed,
    SandboxError,
    SandboxFileError,
    SandboxInfo,
    SandboxLost,
    SandboxUnavailable,
)
from sandbox_chat.sandbox.worker import SandboxWorker

INFO = SandboxInfo("test", "test")


class Back:
    """A back end: ``code`` is the name of what is to happen."""

    info = INFO
    on_keep: Exception | None = None

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.closed = threading.Event()
        self.interrupted = threading.Event()
        self.lost = False

    def start(self) -> None:
        self.log.append("start")

    def run_code(
        self,
        code: str,
        *,
        timeout: float,
        on_output: Any = None,
        on_late: Any = None,
        on_raw: Any = None,
        bridge: Any = None,
    ) -> Execution:
        self.log.append(code)
        self.interrupted.clear()
        if self.closed.is_set():
            raise SandboxClosed("closed")
        match code:
            case "wait":
                deadline = time.monotonic() + 30
                while time.monotonic() < deadline:
                    if self.interrupted.wait(0.01):
                        return Execution(stopped="interrupted")
                    if self.closed.is_set():
                        return Execution(stopped="died", error=CodeError("SandboxDied", "closed", ""))
            case "deaf":
                self.closed.wait(30)
                return Execution(stopped="died", error=CodeError("SandboxDied", "closed", ""))
            case "die":
                return Execution(stopped="died", error=CodeError("SandboxDied", "it died", ""))
            case "lost once" if not self.lost and self.log.count("start") == 1:
                raise SandboxLost("gone")
            case "lost always":
                raise SandboxLost("gone")
            case "error":
                raise SandboxError("broken")
            case "fault":
                raise RuntimeError("a fault of ours")
        return Execution(stdout=code)

    def interrupt(self) -> None:
        self.interrupted.set()

    def write_file(self, path: str, data: bytes) -> str:
        raise SandboxFileError("no")

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        if path == "slow":  # stops when it is asked to
            self.log.append(path)
            self.interrupted.wait(30)
            raise SandboxFileError("stopped")
        if path == "hung":
            self.log.append(path)
            self.closed.wait(30)
            raise SandboxLost("closed")
        return b"data"

    def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        if path == "full":
            raise OSError(28, "no space left")
        return []

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Any = None) -> str:
        raise SandboxFileError("no")

    def download(self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Any = None) -> int:
        raise SandboxFileError("no")

    def keep(self, unused: float) -> None:
        self.log.append("keep")
        if self.on_keep is not None:
            raise self.on_keep

    def close(self) -> None:
        self.log.append("close")
        self.closed.set()

    def release(self) -> None:
        self.log.append("release")


class Rig:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.states: list[str] = []
        self.worker = SandboxWorker(
            lambda: Back(self.log), info=INFO, on_state=lambda state, _text: self.states.append(state)
        )

    async def run(self, code: str) -> Execution:
        return await self.worker.run_code(code, timeout=5)


@pytest.fixture
def rig() -> Iterator[Rig]:
    found = Rig()
    yield found
    found.worker.close()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


async def test_lazy_and_serial(rig: Rig) -> None:
    assert rig.worker.generation == 0
    assert not rig.log
    results = await asyncio.gather(*(rig.run(f"c{n}") for n in range(20)))
    assert [done.stdout for done in results] == [f"c{n}" for n in range(20)]
    assert rig.log == ["start", *(f"c{n}" for n in range(20))]
    assert rig.worker.generation == 1
    assert rig.states[:4] == ["starting", "ready", "busy", "ready"]


async def test_usable_from_several_loops(rig: Rig) -> None:
    await rig.run("here")
    there = await asyncio.to_thread(lambda: asyncio.run(rig.run("there")))
    assert there.stdout == "there"


async def test_prestart_is_silent_and_starts_once(rig: Rig) -> None:
    rig.worker.prestart()
    rig.worker.prestart()
    await until(lambda: "ready" in rig.states)
    await rig.run("x")
    assert rig.log == ["start", "x"]


async def test_a_failed_start_is_shown_at_the_first_use() -> None:
    attempts: list[int] = []

    def factory() -> Back:
        attempts.append(1)
        raise SandboxUnavailable("no isolation here")

    states: list[tuple[str, str]] = []
    worker = SandboxWorker(factory, info=INFO, on_state=lambda *what: states.append(what))
    worker.prestart()
    await until(lambda: ("none", "") in states)
    with pytest.raises(SandboxUnavailable, match="no isolation"):
        await worker.run_code("x", timeout=5)
    assert ("lost", "no isolation here") in states
    assert len(attempts) == 2
    worker.close()
    assert states[-1] == ("closed", "")


async def test_a_fault_in_start_closes_the_back_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Back) -> None:
        raise SandboxUnavailable("no")

    monkeypatch.setattr(Back, "start", fail)
    with pytest.raises(SandboxUnavailable):
        await rig.run("x")
    assert rig.log == ["close", "release"]


async def test_cancelling_interrupts_and_waits(rig: Rig) -> None:
    task = asyncio.create_task(rig.run("wait"))
    await until(lambda: "wait" in rig.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: rig.states[-1] == "ready")
    assert (await rig.run("next")).fresh is False
    assert rig.worker.generation == 1


async def test_cancelling_twice_still_waits(rig: Rig) -> None:
    task = asyncio.create_task(rig.run("wait"))
    await until(lambda: "wait" in rig.log)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await rig.run("next")).stdout == "next"


async def test_deaf_code_loses_the_shell(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "CANCEL_WAIT", 0.2)
    task = asyncio.create_task(rig.run("deaf"))
    await until(lambda: "deaf" in rig.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = await rig.run("next")
    assert done.fresh
    assert rig.worker.generation == 2


@pytest.mark.parametrize(("path", "starts"), [("slow", 1), ("hung", 2)])
async def test_cancelling_a_file_operation_frees_the_sandbox(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, path: str, starts: int
) -> None:
    monkeypatch.setattr(worker_module, "CANCEL_WAIT", 0.2)
    task = asyncio.create_task(rig.worker.read_file(path, max_bytes=10))
    await until(lambda: path in rig.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await asyncio.wait_for(rig.run("next"), 5)).stdout == "next"
    assert rig.log.count("start") == starts
    assert rig.log.count(path) == 1  # what was stopped is not tried again


async def test_a_queued_run_that_is_cancelled_never_runs(rig: Rig) -> None:
    first = asyncio.create_task(rig.run("wait"))
    await until(lambda: "wait" in rig.log)
    second = asyncio.create_task(rig.run("never"))
    await asyncio.sleep(0.01)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    rig.worker.interrupt()
    assert (await first).stopped == "interrupted"
    await rig.run("last")
    assert "never" not in rig.log


async def test_interrupt_when_idle_does_nothing(rig: Rig) -> None:
    rig.worker.interrupt()
    assert (await rig.run("x")).ok
    rig.worker.interrupt()
    assert (await rig.run("y")).ok


async def test_death_is_told_once(rig: Rig) -> None:
    assert (await rig.run("die")).stopped == "died"
    assert rig.states[-1] == "lost"
    assert await rig.worker.read_file("x", max_bytes=9) == b"data"
    assert (await rig.run("a")).fresh
    assert not (await rig.run("b")).fresh
    assert rig.worker.generation == 2


async def test_a_shell_lost_between_runs_is_replaced(rig: Rig) -> None:
    done = await rig.run("lost once")
    assert done.stdout == "lost once"
    assert done.fresh
    assert rig.log.count("start") == 2


async def test_losing_twice_is_an_error(rig: Rig) -> None:
    with pytest.raises(SandboxError, match="twice"):
        await rig.run("lost always")
    assert (await rig.run("x")).fresh


async def test_errors(rig: Rig) -> None:
    with pytest.raises(SandboxFileError):
        await rig.worker.write_file("x", b"")
    assert rig.worker.generation == 1
    with pytest.raises(SandboxError, match="broken"):
        await rig.run("error")
    assert (await rig.run("x")).fresh


async def test_a_fault_in_a_run_costs_the_shell(rig: Rig) -> None:
    """Its code may be running still: the next run must not get behind it."""
    with pytest.raises(RuntimeError):
        await rig.run("fault")
    assert rig.states[-1] == "lost"
    assert (await rig.run("x")).fresh
    assert rig.log.count("start") == 2
    assert rig.log.count("release") == 1


async def test_this_machines_trouble_with_a_file_costs_nothing(rig: Rig) -> None:
    with pytest.raises(OSError, match="no space left"):
        await rig.worker.list_files("full", limit=1)
    assert rig.states[-1] == "ready"
    assert not (await rig.run("x")).fresh


async def test_a_fault_while_it_is_looked_after_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []
    states: list[str] = []
    monkeypatch.setattr(Back, "on_keep", RuntimeError("a fault of ours"))
    info = dataclasses.replace(INFO, keep_every=0.01)
    worker = SandboxWorker(lambda: Back(log), info=info, on_state=lambda state, _text: states.append(state))
    try:
        await worker.run_code("x", timeout=5)
        await until(lambda: "lost" in states)
        done = await asyncio.wait_for(worker.run_code("y", timeout=5), 10)
        assert done.fresh
    finally:
        worker.close()


async def test_a_thread_that_ends_by_a_fault_leaves_nobody_waiting(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.run("x")
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(rig.worker, "_do", lambda _job: None)
    monkeypatch.setattr(worker_module.Job, "finish", _fail)
    with pytest.raises(asyncio.TimeoutError):  # this job's own end is what fails
        await asyncio.wait_for(rig.run("y"), 0.2)
    await until(lambda: rig.states[-1] == "closed")
    monkeypatch.undo()
    with pytest.raises(SandboxClosed):
        await asyncio.wait_for(rig.run("z"), 10)


def _fail(*_: object) -> None:
    raise RuntimeError("a fault of ours")


async def test_close_while_running(rig: Rig) -> None:
    running = asyncio.create_task(rig.run("wait"))
    queued = asyncio.create_task(rig.run("never"))
    await until(lambda: "wait" in rig.log)
    await asyncio.to_thread(rig.worker.close)
    results = await asyncio.gather(running, queued, return_exceptions=True)
    assert isinstance(results[0], Execution | SandboxClosed)
    assert isinstance(results[1], SandboxClosed)
    with pytest.raises(SandboxClosed):
        await rig.run("x")
    assert rig.states[-1] == "closed"
    assert rig.states.count("closed") == 1


def test_close_without_use_and_twice(rig: Rig) -> None:
    rig.worker.close()
    rig.worker.close()
    assert rig.states == ["closed"]
    rig.worker.prestart()
    assert not rig.log


async def test_close_during_start(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    started = threading.Event()

    def slow(self: Back) -> None:
        started.set()
        if self.closed.wait(30):
            raise SandboxClosed("closed")

    monkeypatch.setattr(Back, "start", slow)
    task = asyncio.create_task(rig.run("x"))
    await asyncio.to_thread(started.wait, 10)
    await asyncio.to_thread(rig.worker.close)
    with pytest.raises(SandboxClosed):
        await task
    assert "x" not in rig.log


async def test_close_from_its_own_thread() -> None:
    log: list[str] = []
    worker = SandboxWorker(
        lambda: Back(log),
        info=INFO,
        on_state=lambda state, _text: worker.close() if state == "ready" else None,
    )
    with pytest.raises(SandboxClosed):
        await worker.run_code("x", timeout=5)
        await worker.run_code("x", timeout=5)


async def test_a_faulty_listener_does_no_harm() -> None:
    def listener(_state: str, _text: str) -> None:
        raise ValueError

    worker = SandboxWorker(lambda: Back([]), info=INFO, on_state=listener)
    assert (await worker.run_code("x", timeout=5)).ok
    worker.close()


async def test_cancelled_while_starting_does_not_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(self: Back) -> None:
        started.set()
        go_on.wait(10)

    monkeypatch.setattr(Back, "start", slow)
    task = asyncio.create_task(rig.run("x"))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await rig.run("y")
    assert rig.log == ["y"]


class Kept:
    """Keeps nothing, and says what it was asked."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.wait: threading.Event | None = None
        self.stopped = False
        self.error: SandboxError | None = None

    def bring(self, sandbox: Any) -> None:
        self.log.append("bring")
        if self.error is not None:
            raise self.error

    def save(self, sandbox: Any, stopped: Callable[[], bool]) -> None:
        self.log.append("save")
        if self.error is not None:
            raise self.error
        if self.wait is not None:
            assert self.wait.wait(10)
        self.stopped = stopped()


class KeepingRig(Rig):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept(self.log)
        self.worker = SandboxWorker(lambda: Back(self.log), info=INFO, kept=self.kept)  # type: ignore[arg-type]


@pytest.fixture
def keeping() -> Iterator[KeepingRig]:
    found = KeepingRig()
    yield found
    found.worker.close()


async def test_a_workspace_is_brought_and_saved(keeping: KeepingRig) -> None:
    await keeping.run("x")
    await keeping.worker.saved(10)
    await keeping.run("y")
    keeping.worker.save()
    await keeping.run("z")
    assert [word for word in keeping.log if word != "keep"] == [
        "start",
        "bring",
        "x",
        "save",
        "y",
        "save",
        "z",
    ]


async def test_nothing_is_started_to_save_a_workspace(keeping: KeepingRig) -> None:
    keeping.worker.save()
    await keeping.worker.saved(10)
    assert keeping.log == []
    assert keeping.worker._thread is None
    keeping.worker.prestart()
    await keeping.worker.saved(10)
    assert keeping.log == ["start", "bring"]  # nothing was done in it
    keeping.worker.close()
    await keeping.worker.saved(10)
    assert "save" not in keeping.log


async def test_a_workspace_is_saved_before_the_sandbox_is_ended_on_purpose(keeping: KeepingRig) -> None:
    await keeping.run("x")
    keeping.worker.restart()
    await keeping.run("y")
    order = [word for word in keeping.log if word != "keep"]
    assert order == ["start", "bring", "x", "save", "close", "release", "start", "bring", "y"]


async def test_saving_is_given_up_in_time(keeping: KeepingRig) -> None:
    await keeping.run("x")
    keeping.kept.wait = threading.Event()
    task = asyncio.create_task(keeping.worker.saved(0.05))
    while "save" not in keeping.log:
        await asyncio.sleep(0.01)
    threading.Timer(0.3, keeping.kept.wait.set).start()
    await task
    assert keeping.kept.stopped


async def test_a_workspace_that_cannot_be_saved_does_no_harm(keeping: KeepingRig) -> None:
    await keeping.run("x")
    keeping.kept.error = SandboxLost("gone")
    await keeping.worker.saved(10)
    keeping.kept.error = None
    assert (await keeping.run("y")).ok


async def test_a_sandbox_that_is_lost_while_the_workspace_is_brought(keeping: KeepingRig) -> None:
    keeping.kept.error = SandboxLost("gone")
    with pytest.raises(SandboxError, match="gone"):
        await keeping.run("x")
    keeping.kept.error = None
    assert (await keeping.run("y")).ok
    assert keeping.log.count("release") == 1
