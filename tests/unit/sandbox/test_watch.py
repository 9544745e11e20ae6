"""The watchdog's eyes and judgement, on real processes of this test."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from support.sandboxes import alive, descendants, until

from sandbox_chat.sandbox import cgroups, tree, watch
from sandbox_chat.sandbox.watch import Bounds, Watch, memory_sentence
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
MB = 1 << 20
NO_LIMIT = Bounds(memory=1 << 50, processes=10_000)


@contextmanager
def program(code: str) -> Iterator[subprocess.Popen[str]]:
    """A Python program that says a line when it is ready; ended with all that it started."""
    process = subprocess.Popen(
        [sys.executable, "-c", code + "\nprint('ready', flush=True)\nimport time; time.sleep(600)"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        for child in alive(descendants(process.pid)) if process.poll() is None else []:
            child.kill()
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(autouse=True)
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "find", lambda: None)


def a_watch(process: subprocess.Popen[str], bounds: Bounds) -> Watch:
    return Watch(process.pid, bounds, process.kill)


ORPHAN = """
import os, ctypes
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        import time; time.sleep(600)
    os._exit(0)
os.wait()
"""


def test_the_tree_has_orphans_and_nothing_else() -> None:
    with program(ORPHAN) as process, program(""):
        found = tree.Tree(process.pid)
        usage = found.usage()
        [orphan] = descendants(process.pid)
        assert usage.pids == sorted([process.pid, orphan.pid])
        assert usage.threads == 2
        assert usage.resident > 2 * MB
        assert found.usage().pids == usage.pids


def test_the_tree_sees_what_starts_later_and_counts_threads() -> None:
    code = "import sys, threading, time\ndef more():\n  sys.stdin.readline()\n  [threading.Thread(target=time.sleep, args=(600,), daemon=True).start() for _ in range(7)]\nthreading.Thread(target=more, daemon=True).start()"
    with program(
        f"import subprocess\nsubprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])"
    ) as process:
        assert len(tree.Tree(process.pid).usage().pids) == 2
    read, write = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", code + "\ntime.sleep(600)"], stdin=read)
    try:
        found = tree.Tree(process.pid)
        assert until(lambda: found.usage().threads == 2)
        os.write(write, b"\n")
        assert until(lambda: found.usage().threads == 8)
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)


def test_a_tree_that_is_gone_is_empty() -> None:
    with program("") as process:
        found = tree.Tree(process.pid)
        found.usage()
        process.kill()
        process.wait()
        assert found.usage().pids == []


FORKED = f"import os\nx = bytearray(b'x' * {100 * MB})\nfor _ in range(3):\n  if os.fork() == 0:\n    import time; time.sleep(600)"


def test_below_no_process_there_is_nothing() -> None:
    """Below 0 and 1 is the whole machine, which nobody must count or put into a group."""
    for root in (-1, 0, 1):
        assert tree.Tree(root).usage().pids == []


def test_memory_that_parent_and_children_share_counts_once() -> None:
    with program(FORKED) as process:
        assert until(lambda: len(descendants(process.pid)) == 3)
        pids = tree.Tree(process.pid).usage().pids
        own, _ = tree.private_memory(pids)
        exact = tree.exact_memory(pids)
        assert own > 390 * MB
        assert 95 * MB < exact[0] < 200 * MB
        assert a_watch(process, Bounds(memory=300 * MB, processes=100)).look() == ""
        assert a_watch(process, Bounds(memory=90 * MB, processes=100)).look() == memory_sentence(90 * MB)


@pytest.mark.parametrize(
    "code",
    [f"x = bytearray(b'x' * {200 * MB})",
     f"import mmap; m = mmap.mmap(-1, {200 * MB})\nfor i in range(0, {200 * MB}, 4096): m[i] = 1",
     f"import os\nfor _ in range(4):\n  r, w = os.pipe()\n  if os.fork() == 0:\n    x = bytearray(b'x' * {50 * MB}); os.write(w, b'x'); import time; time.sleep(600)\n  os.read(r, 1)"],
)  # fmt: skip
def test_memory_of_every_kind_counts(code: str) -> None:
    with program(code) as process:
        sentence = a_watch(process, Bounds(memory=150 * MB, processes=100)).look()
    assert sentence == memory_sentence(150 * MB)
    assert "used more than 150 MB of memory together (SANDBOX_CHAT_SANDBOX_MEMORY_MB)" in sentence


def test_what_is_within_its_bounds_is_left_alone() -> None:
    with program(f"x = bytearray(b'x' * {100 * MB})") as process:
        assert a_watch(process, Bounds(memory=150 * MB, processes=100, cpu_seconds=60)).look() == ""


def test_processor_time_counts_from_the_run_and_over_all_processes() -> None:
    busy = "import os\nos.fork()\nwhile True: pass"
    code = f"import subprocess\nchild = subprocess.Popen([{sys.executable!r}, '-c', {busy!r}])"
    with program(code) as process:
        found = a_watch(process, Bounds(memory=1 << 50, processes=100, cpu_seconds=1))
        found.begin()
        assert found.look() == ""
        assert until(lambda: "SANDBOX_CHAT_SANDBOX_CPU_SECONDS" in found.look())
        found.begin()
        assert found.look() == ""


def test_the_clock_never_goes_back() -> None:
    clock = watch._Clock()
    assert clock.spent(5.0) == 0.0
    assert clock.spent(6.0) == pytest.approx(1.0)
    assert clock.spent(2.0) == pytest.approx(1.0)  # a process ended and nobody waited for it
    assert clock.spent(2.5) == pytest.approx(1.5)
    clock.restart()
    assert clock.spent(3.0) == 0.0
    assert clock.spent(3.5) == pytest.approx(0.5)


def test_far_too_many_processes() -> None:
    code = "import os\nfor _ in range(30):\n  if os.fork() == 0:\n    import time; time.sleep(600)"
    with program(code) as process:
        assert until(lambda: len(descendants(process.pid)) == 30)
        assert (
            "SANDBOX_CHAT_SANDBOX_PROCESSES" in a_watch(process, Bounds(memory=1 << 50, processes=10)).look()
        )
        near = a_watch(process, Bounds(memory=1 << 50, processes=31))
        near.begin()
        assert near.look() == ""
        assert near.end()
        near.begin()
        assert not near.end()


def test_the_thread_ends_what_passes_a_limit_and_says_why() -> None:
    with program(f"x = bytearray(b'x' * {100 * MB})") as process:
        found = a_watch(process, Bounds(memory=50 * MB, processes=100))
        found.prepare()
        found.start()
        assert until(lambda: process.poll() is not None)
        assert found.explain("It was killed.") == memory_sentence(50 * MB)
        found.stop()
    assert until(lambda: not any(thread.name == "sandbox-watch" for thread in threading.enumerate()))


def test_an_end_that_no_limit_made_keeps_its_own_words() -> None:
    with program("") as process:
        found = a_watch(process, NO_LIMIT)
        assert found.explain("") == ""
        assert found.explain("It crashed.") == "It crashed."
        found.stop()
        found.stop()


def test_looks_often_only_while_something_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Watch(os.getpid(), NO_LIMIT, lambda: None)
    assert found._pause(0) == watch.IDLE_PAUSE
    found.begin()
    assert found._pause(0) == watch.BUSY_PAUSE
    assert found._pause(0.01) == pytest.approx(0.2)
    assert found._pause(10) == 0.5
    found.end()
    monkeypatch.setattr(watch, "ASLEEP_AFTER", 0.0)
    assert found._pause(0) == watch.ASLEEP_PAUSE


def test_bounds_are_those_of_the_settings() -> None:
    bounds = watch.bounds_of(
        Settings(sandbox_memory_mb=500, sandbox_processes=9, sandbox_cpu_seconds=7, sandbox_cpus=1.5)
    )
    assert bounds == Bounds(memory=500 * MB, processes=9, cpu_seconds=7, cpus=1.5)
    assert watch.bounds_of(Settings(), ("/tmp",)).counted


def test_unreadable_answers_are_no_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_pid: int) -> None:
        return None

    look: Callable[[int], None] = nothing
    monkeypatch.setattr(tree, "_stat", look)
    assert tree.Tree(os.getpid()).usage() == tree.Usage()
    assert tree.private_memory([1 << 30]) == (0, 0)
    assert tree.exact_memory([1 << 30]) == (0, 0)
    assert tree.files_in_memory(1 << 30, ("/tmp",)) == 0
    assert tree.inside([os.getpid(), 1 << 30]) == 0
