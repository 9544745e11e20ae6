"""The limits of a local sandbox: each one holds for all its processes together, and is named when it strikes (S8)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance.backends import wait_warm
from support.sandboxes import PATIENCE, a_worker, until

from sandbox_chat.sandbox import cgroups
from sandbox_chat.sandbox.base import Execution, SandboxFileError
from sandbox_chat.sandbox.watch import Watch
from sandbox_chat.sandbox.worker import SandboxWorker

MEMORY = "used more than 400 MB of memory together (SANDBOX_CHAT_SANDBOX_MEMORY_MB)"
LIMITS = {
    "sandbox_memory_mb": 400,
    "sandbox_processes": 60,
    "sandbox_disk_mb": 64,
    "sandbox_file_mb": 16,
}


WAYS = ["cold", "cold, without control groups", pytest.param("warm", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=WAYS)
def worker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxWorker]:
    warm = request.param == "warm"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cold, without control groups":
            patch.setattr(cgroups, "find", lambda: None)
        elif request.param == "cold" and cgroups.find() is None:
            pytest.skip("this user may make no control groups on this machine; the other tests are without")
        with a_worker(tmp_path_factory.mktemp("data"), sandbox_warm=warm, **LIMITS) as found:
            if warm:
                found.warm()
                parent: Any = getattr(found._warm, "__self__", None)
                if not parent.wait(PATIENCE):
                    pytest.skip(f"no warm sandbox can be had here: {parent.state}")
            yield found


async def run(worker: SandboxWorker, code: str, timeout: float = PATIENCE) -> Execution:
    return await worker.run_code(code, timeout=timeout)


def named(done: Execution) -> str:
    return " ".join(done.notes)


async def died(worker: SandboxWorker, code: str, why: str) -> None:
    done = await run(worker, code)
    assert done.stopped == "died", done
    assert done.error is not None
    assert why in done.error.value
    assert "variables and files are lost" in done.error.value
    done = await run(worker, "1+1")
    assert (done.result_text, done.fresh) == ("2", True)


@pytest.mark.parametrize(
    "code",
    ["x = bytearray(6 << 30)", "import numpy as np; x = np.ones(10**9)", "x = []\nwhile True: x.append(bytearray(10 << 20))",
     "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = bytearray(6 << 30)'], check=False)"],
)  # fmt: skip
async def test_one_process_that_wants_too_much_gets_an_error_and_keeps_all(
    worker: SandboxWorker, code: str
) -> None:
    await run(worker, "kept = 6")
    done = await run(worker, code)
    assert not done.stopped
    assert "MemoryError" in (done.error.name if done.error else done.stderr)
    assert "SANDBOX_CHAT_SANDBOX_MEMORY_MB" in named(done)
    assert (await run(worker, "x = None; get_ipython().reset_selective; kept")).result_text == "6"


MANY = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        x = bytearray(b'x') * (150 << 20)
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""
SHARED = "import mmap\nm = mmap.mmap(-1, 600 << 20)\nfor i in range(0, 600 << 20, 4096): m[i] = 1\nimport time; time.sleep(600)"
ORPHANS = "import subprocess, sys, time\nsubprocess.run(['sh', '-c', 'for i in 1 2 3 4; do setsid %s -c \"x = bytearray(b\\'x\\') * (150 << 20); import time; time.sleep(600)\" & done' % sys.executable])\ntime.sleep(600)"


@pytest.mark.parametrize("code", [MANY, SHARED, ORPHANS], ids=["children", "shared memory", "orphans"])
async def test_memory_of_all_processes_together(worker: SandboxWorker, code: str) -> None:
    await died(worker, code, MEMORY)


async def test_memory_that_children_share_is_not_counted_twice(worker: SandboxWorker) -> None:
    code = (
        "import os, time\nx = bytearray(b'x') * (150 << 20)\nfor _ in range(5):\n  if os.fork() == 0:\n"
        "    time.sleep(1); os._exit(0)\nfor _ in range(5): os.wait()\nlen(x)"
    )
    done = await run(worker, code)
    assert done.result_text == str(150 << 20), done
    assert not done.notes
    await run(worker, "del x")


async def test_memory_taken_between_runs_ends_it_too(tmp_path: Path) -> None:
    states: list[tuple[str, str]] = []
    with a_worker(tmp_path, lambda *what: states.append(what), **LIMITS) as worker:
        code = MANY.replace("x = bytearray", "time.sleep(0.5)\n        x = bytearray").removesuffix(
            "time.sleep(600)\n"
        )
        assert (await run(worker, code)).ok
        assert await asyncio.to_thread(until, lambda: any(state == "lost" for state, _ in states))
        [reason] = [text for state, text in states if state == "lost"]
        assert MEMORY in reason
        done = await run(worker, "1+1")
        assert (done.result_text, done.fresh) == ("2", True)


async def test_many_files_count_as_memory(tmp_path: Path) -> None:
    with a_worker(tmp_path, **(LIMITS | {"sandbox_memory_mb": 200, "sandbox_disk_mb": 512})) as worker:
        code = "for i in range(300):\n  with open(f'/tmp/{i}', 'wb') as f: f.write(bytes(1 << 20))\nimport time; time.sleep(600)"
        done = await run(worker, code)
        assert done.stopped == "died"
        assert done.error is not None
        assert "200 MB of memory together" in done.error.value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "unsafe-local"])
async def test_processor_time_of_all_processes(tmp_path: Path, kind: str) -> None:
    with a_worker(tmp_path, sandbox=kind, sandbox_cpu_seconds=2) as worker:
        assert (await run(worker, "import time; kept = 1; time.sleep(3)")).ok
        await died(
            worker,
            "import os\nfor _ in range(3): os.fork()\nwhile True: pass",
            "more than 2 seconds of processor time since a run began (SANDBOX_CHAT_SANDBOX_CPU_SECONDS)",
        )


async def test_unsafe_local_has_the_limit_of_memory_too(tmp_path: Path) -> None:
    with a_worker(tmp_path, sandbox="unsafe-local", **LIMITS) as worker:
        await died(worker, MANY, MEMORY)
        assert "MEMORY_MB" in named(await run(worker, "x = bytearray(6 << 30)"))


@pytest.mark.parametrize(
    "code",
    ["import threading, time\nfor i in range(100): threading.Thread(target=time.sleep, args=(1,)).start()",
     "import os, time\nfor i in range(100):\n  if os.fork() == 0: time.sleep(1); os._exit(0)",
     "import subprocess; subprocess.run('for i in $(seq 100); do sleep 1 & done; wait', shell=True)"],
    ids=["threads", "forks", "shell"],
)  # fmt: skip
async def test_too_many_processes_is_named(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 7")
    done = await run(worker, code)
    assert not done.stopped
    assert "the limit of 60 processes and threads was reached" in named(done)
    assert "SANDBOX_CHAT_SANDBOX_PROCESSES" in named(done)
    await run(worker, "import time; time.sleep(1.5)")
    done = await run(worker, "import subprocess; subprocess.run(['true']).returncode, kept")
    assert (done.result_text, done.notes) == ("(0, 7)", ()), done


async def test_ended_processes_of_an_earlier_run_are_not_counted_for_the_next(
    worker: SandboxWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when they are looked at in the moment before the sandbox clears them away."""
    begin = Watch.begin

    def begin_and_look(watch: Watch) -> None:
        begin(watch)
        watch.look()

    done = await run(worker, "import os\nfor i in range(100):\n  if os.fork() == 0: os._exit(0)")
    assert "the limit of 60 processes and threads was reached" in named(done)
    monkeypatch.setattr(Watch, "begin", begin_and_look)
    done = await run(worker, "import subprocess; subprocess.run(['true']).returncode")
    assert (done.result_text, done.notes) == ("0", ()), done


@pytest.mark.slow
async def test_a_fork_bomb_is_named_and_the_next_run_works(worker: SandboxWorker) -> None:
    done = await run(worker, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", 2)
    assert done.stopped in ("timeout", "died")
    assert "SANDBOX_CHAT_SANDBOX_PROCESSES" in named(done) or done.stopped == "died"
    done = await run(worker, "1+1")
    assert (done.result_text, done.notes) == ("2", ())


@pytest.mark.parametrize(
    ("code", "setting"),
    [("open('/tmp/a', 'wb').write(bytes(20 << 20))", "SANDBOX_CHAT_SANDBOX_FILE_MB"),
     ("!dd if=/dev/zero of=/tmp/b bs=1M count=20", "SANDBOX_CHAT_SANDBOX_FILE_MB"),
     ("import subprocess; subprocess.run(['dd', 'if=/dev/zero', 'of=/tmp/b', 'bs=1M', 'count=20'], check=True, stderr=-3)", "SANDBOX_CHAT_SANDBOX_FILE_MB"),
     ("for i in range(10): open(f'/tmp/c{i}', 'wb').write(bytes(10 << 20))", "SANDBOX_CHAT_SANDBOX_DISK_MB"),
     ("import subprocess; subprocess.run('for i in 1 2 3 4 5 6 7; do dd if=/dev/zero of=/tmp/c$i bs=1M count=10; done', shell=True)", "SANDBOX_CHAT_SANDBOX_DISK_MB")],
)  # fmt: skip
async def test_the_limit_of_files_is_named(worker: SandboxWorker, code: str, setting: str) -> None:
    await run(worker, "kept = 8")
    done = await run(worker, code)
    assert setting in named(done), done
    assert (await run(worker, "!rm -f /tmp/a /tmp/b /tmp/c*\nkept")).result_text == "8"


async def test_the_limit_of_files_is_named_to_who_puts_them_there(worker: SandboxWorker) -> None:
    with pytest.raises(
        SandboxFileError, match=r"file too large\. One file may have 16 MB \(SANDBOX_CHAT_SANDBOX_FILE_MB"
    ):
        await worker.write_file("/tmp/large", bytes(20 << 20))
    await run(worker, "!rm -f /tmp/large")
    with pytest.raises(SandboxFileError, match=r"no space left on device.*SANDBOX_CHAT_SANDBOX_DISK_MB"):
        for number in range(8):
            await worker.write_file(f"/tmp/many{number}", bytes(10 << 20))
    assert (await run(worker, "!rm -f /tmp/many*\n1")).result_text == "1"


async def test_an_ordinary_run_has_no_notes(worker: SandboxWorker) -> None:
    done = await run(worker, "import numpy as np; float((np.ones((300, 300)) @ np.ones((300, 300))).sum())")
    assert (done.result_text, done.notes) == ("27000000.0", ())


class _Source:
    """Gives 8 MB at a time without end; ``after`` pieces it fails, if not 0."""

    def __init__(self, after: int = 0) -> None:
        self.pieces, self.after = 0, after

    def seekable(self) -> bool:
        return False

    def read(self, size: int) -> bytes:
        self.pieces += 1
        if self.after and self.pieces > self.after:
            raise OSError(5, "Input/output error")
        return b"x" * size


async def test_a_transfer_that_fails_midway_leaves_no_part_that_looks_whole(worker: SandboxWorker) -> None:
    there = "import os; os.path.exists('/tmp/much.bin')"
    for size, source, trouble in (
        (60 << 20, _Source(), SandboxFileError),  # more than one file may hold
        (14 << 20, _Source(after=1), OSError),
    ):
        with pytest.raises(trouble):
            await worker.upload(source, size, "much.bin")  # type: ignore[arg-type]
        assert (await run(worker, there)).result_text == "False"
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Slow(_Source):
        def read(self, size: int) -> bytes:
            if self.pieces:
                loop.call_soon_threadsafe(started.set)
                time.sleep(0.2)
            return super().read(min(size, 1000))

    task = asyncio.create_task(worker.upload(Slow(), 14 << 20, "much.bin"))  # type: ignore[arg-type]
    await asyncio.wait_for(started.wait(), PATIENCE)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, SandboxFileError)):
        await task
    assert (await run(worker, there)).result_text == "False"


async def test_a_file_that_may_not_be_written_is_not_removed(worker: SandboxWorker) -> None:
    await run(worker, "open('/tmp/mine', 'w').write('kept'); import os; os.chmod('/tmp/mine', 0o444)")
    with pytest.raises(SandboxFileError, match="cannot be written"):
        await worker.upload(_Source(), 14 << 20, "mine")  # type: ignore[arg-type]
    assert (await run(worker, "open('/tmp/mine').read()")).result_text == "'kept'"


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True])
async def test_the_workspace_has_its_limits_too(warm: bool, tmp_path: Path) -> None:
    """Its room, and that what lies in it counts as memory."""
    values: dict[str, Any] = {
        "sandbox_disk_mb": 64,
        "sandbox_memory_mb": 400,
        "sandbox_file_mb": 400,
        "sandbox_warm": warm,
    }
    with a_worker(tmp_path, **values) as worker:
        if warm:
            wait_warm(worker)
        code = "for i in range(10): open(f'/workspace/{i}', 'wb').write(bytes(10 << 20))"
        done = await run(worker, code)
        assert "/tmp and /workspace each hold 64 MB" in named(done), done
        assert (await run(worker, "!rm -f /workspace/*\n1")).result_text == "1"
    with a_worker(tmp_path, **{**values, "sandbox_disk_mb": 1024}) as worker:
        if warm:
            wait_warm(worker)
        code = "import time\nfor i in range(50):\n    open(f'/workspace/{i}', 'wb').write(bytes(10 << 20)); time.sleep(0.05)\ntime.sleep(5)"
        done = await run(worker, code)
        assert done.stopped == "died", done
        assert MEMORY in str(done.error), done
