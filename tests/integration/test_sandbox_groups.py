"""Control groups of real sandboxes: each has its own, and none is left, whatever happens (S9)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.sandboxes import PATIENCE, a_worker, until

from sandbox_chat.sandbox import cgroups, prepare, watch
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.sandbox.worker import SandboxWorker

LIMITS = {"sandbox_memory_mb": 400, "sandbox_processes": 60, "sandbox_warm": False}


async def run(worker: SandboxWorker, code: str, timeout: float = PATIENCE) -> Execution:
    return await worker.run_code(code, timeout=timeout)


@pytest.fixture
def place() -> cgroups.Place:
    found = cgroups.find()
    if found is None:
        pytest.skip("this user may make no control groups on this machine")
    return found


async def test_groups_go_with_their_sandboxes(
    tmp_path: Path, place: cgroups.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare.Preparer, "begin", lambda *_: None)  # it has a sandbox of its own
    mine = f"{cgroups.PREFIX}{cgroups._owner(os.getpid())}-"

    def groups() -> set[Path]:
        found = {path for parent in place.parents.values() for path in parent.glob(mine + "*")}
        return found - before

    before: set[Path] = set()
    before = groups()
    with a_worker(tmp_path, sandbox_cpus=1.5, **LIMITS) as worker:
        done = await run(worker, "import os; os.getpid()")
        assert done.ok
        made = groups()
        assert {path.parent for path in made} == {
            place.parents[name] for name in ("memory", "cpu") if name in place.parents
        }
        for path in made:
            assert (
                len((path / "cgroup.procs").read_text().split()) >= 2
            )  # the sandbox's first process and the shell
        await run(worker, "import os; os._exit(1)")
        await run(worker, "1")
        assert len(groups()) == len(made)
        assert not any(path.exists() for path in made)
    assert not groups()


PROGRAM = """
import asyncio, sys
from pathlib import Path
from sandbox_chat.sandbox import make_worker
from sandbox_chat.settings import Settings
worker = make_worker(Settings(data_dir=Path(sys.argv[1])))
asyncio.run(worker.run_code("while True: print('x')", timeout=1000, on_output=lambda *_: print("READY", flush=True)))
"""


def test_no_group_outlives_a_killed_program_s9(tmp_path: Path, place: cgroups.Place) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "READY\n"
    mine = f"{cgroups.PREFIX}{cgroups._owner(program.pid)}-*"
    folders = [path for parent in place.parents.values() for path in parent.glob(mine)]
    assert folders
    program.kill()
    program.wait()
    program.stdout.close()
    assert until(lambda: not any(path.exists() for path in folders), 10)


async def test_processors_are_limited(tmp_path: Path, place: cgroups.Place) -> None:
    if "cpu" not in place.parents:
        pytest.skip("there is no controller for processors here")
    code = (
        "import time\nt = time.monotonic(); c = time.process_time()\nwhile time.monotonic() < t + 2: pass\n"
        "(time.process_time() - c) / (time.monotonic() - t)"
    )
    with a_worker(tmp_path, sandbox_cpus=0.3, **LIMITS) as worker:
        assert float((await run(worker, code)).result_text) < 0.6


async def test_the_kernel_ends_what_is_quicker_than_the_watchdog(
    tmp_path: Path, place: cgroups.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "BUSY_PAUSE", 600.0)
    monkeypatch.setattr(watch, "_LONGEST", 600.0)
    code = "import mmap\nm = mmap.mmap(-1, 600 << 20)\nfor i in range(0, 600 << 20, 4096): m[i] = 1"
    with a_worker(tmp_path, **LIMITS) as worker:
        await run(worker, "import time; time.sleep(0.5)")
        done = await run(worker, code)
    assert done.stopped == "died"
    assert done.error is not None
    assert "more than 400 MB of memory together" in done.error.value
