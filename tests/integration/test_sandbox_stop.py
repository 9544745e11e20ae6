"""Stopping: time limits, interrupts, deaths, limits, closing. Names S1… are those of the cases."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.sandboxes import PATIENCE, a_worker, alive, descendants, until

from sandbox_chat.sandbox.base import Execution, SandboxClosed
from sandbox_chat.sandbox.worker import SandboxWorker


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxWorker]:
    data = tmp_path_factory.mktemp("data")
    with a_worker(data, sandbox_processes=100) as found:
        yield found


async def run(worker: SandboxWorker, code: str, timeout: float = PATIENCE) -> Execution:
    return await worker.run_code(code, timeout=timeout)


async def test_time_limit_keeps_variables_s1(worker: SandboxWorker) -> None:
    await run(worker, "x = 41")
    started = time.monotonic()
    done = await run(worker, "import time; time.sleep(30)", 2)
    assert 1.9 < time.monotonic() - started < 8
    assert done.stopped == "timeout"
    assert (await run(worker, "x + 1")).result_text == "42"


async def test_death_is_said_and_the_next_run_is_fresh_s2(worker: SandboxWorker) -> None:
    await run(worker, "x = 1")
    before = worker.generation
    done = await run(worker, "print('last words', flush=True)\nimport os; os._exit(1)")
    assert (done.stopped, done.stdout) == ("died", "last words\n")
    assert done.error is not None
    assert "exit code 1" in done.error.value
    assert "lost" in done.error.value
    done = await run(worker, "x")
    assert done.fresh
    assert done.error is not None
    assert done.error.name == "NameError"
    assert worker.generation == before + 1
    assert not (await run(worker, "1")).fresh


async def test_a_crash_is_named(worker: SandboxWorker) -> None:
    done = await run(worker, "import ctypes; ctypes.string_at(0)")
    assert done.stopped == "died"
    assert done.error is not None
    assert "SIGSEGV" in done.error.value


async def test_late_output_of_a_thread_s5(worker: SandboxWorker) -> None:
    late: list[str] = []
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()"
    await worker.run_code(code, timeout=PATIENCE, on_late=lambda _stream, text: late.append(text))
    done = await run(worker, "time.sleep(1.5); print('mine')")
    assert done.stdout == "mine\n"
    assert "".join(late) == "late\n"


async def test_late_output_comes_without_another_run_s5(worker: SandboxWorker) -> None:
    late: list[str] = []
    code = "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()"
    await worker.run_code(code, timeout=PATIENCE, on_late=lambda _stream, text: late.append(text))
    assert await asyncio.to_thread(until, lambda: "".join(late) == "late\n")


async def test_output_of_an_old_pool_belongs_to_the_run_that_uses_it(worker: SandboxWorker) -> None:
    await run(
        worker,
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(print, 'a').result()",
    )
    assert (await run(worker, "pool.submit(print, 'b').result()")).stdout == "b\n"


@pytest.mark.parametrize(
    "code",
    ["import subprocess; subprocess.run(['sleep', '100'])", "import os; os.system('sleep 100')", "!sleep 100",
     "import os, time\npid = os.fork()\nif pid == 0: time.sleep(100)\nos.waitpid(pid, 0)"],
)  # fmt: skip
async def test_children_of_an_interrupted_run_are_ended_s6(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 3")
    assert (await run(worker, code, 1)).stopped == "timeout"
    left = (
        "import os\nfound = []\nfor p in os.listdir('/proc'):\n  if p.isdigit() and int(p) not in (1, os.getpid()):\n"
        "    try: found.append(open(f'/proc/{p}/cmdline').read())\n    except OSError: pass\n"
        "len([line for line in found if line])"
    )
    assert (await run(worker, left)).result_text == "0"
    assert (await run(worker, "kept")).result_text == "3"


async def test_children_of_a_finished_run_live_on(worker: SandboxWorker) -> None:
    await run(worker, "import subprocess; server = subprocess.Popen(['sleep', '100'])")
    assert (await run(worker, "import time; time.sleep(100)", 0.5)).stopped == "timeout"
    assert (await run(worker, "server.poll()")).result_text == ""
    assert (await run(worker, "server.kill(); server.wait()")).result_text == "-9"


async def test_endless_output_is_bounded_s7(worker: SandboxWorker) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    done = await run(worker, "while True: print('A' * 10000)", 2)
    assert done.stopped == "timeout"
    assert len(done.stdout) < 1_100_000
    assert process.memory_info().rss - before < 60_000_000


async def test_endless_output_of_a_child_is_bounded(worker: SandboxWorker) -> None:
    done = await run(worker, "!yes", 1)
    assert done.stopped == "timeout"
    assert len(done.stdout) < 1_100_000
    assert (await run(worker, "1+1")).result_text == "2"


@pytest.mark.slow
async def test_fork_bomb_s8(worker: SandboxWorker) -> None:
    await run(worker, "kept = 5")
    done = await run(worker, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", 2)
    assert done.stopped in ("timeout", "died")
    done = await run(worker, "1+1")
    assert done.result_text == "2"


async def test_orphans_are_no_zombies_s8(worker: SandboxWorker) -> None:
    code = (
        "import os\nfor _ in range(200):\n  if os.fork() == 0:\n    if os.fork() == 0: os._exit(0)\n    os._exit(0)\n"
        "  os.wait()"
    )
    assert (await run(worker, code)).ok
    count = "import os, time; time.sleep(0.3); len([p for p in os.listdir('/proc') if p.isdigit()])"
    assert int((await run(worker, count)).result_text) < 10


async def test_children_that_nobody_waits_for_do_not_use_up_all_processes_s8(worker: SandboxWorker) -> None:
    code = "import os\ntry:\n  for _ in range(200):\n    if os.fork() == 0: os._exit(0)\nexcept BlockingIOError: print('no more')"
    done = await run(worker, code)
    assert done.stdout == "no more\n"
    assert "the limit of 100 processes" in " ".join(done.notes)
    done = await run(worker, "import subprocess; subprocess.run(['sh', '-c', 'exit 3']).returncode")
    assert (done.result_text, done.notes) == ("3", ())


async def test_a_few_children_can_be_waited_for_in_a_later_run(worker: SandboxWorker) -> None:
    await run(
        worker, "import subprocess\nmany = [subprocess.Popen(['sh', '-c', 'exit 3']) for _ in range(20)]"
    )
    await run(worker, "import time; time.sleep(0.5)")
    assert (await run(worker, "{child.wait() for child in many}")).result_text == "{3}"


async def test_too_much_memory_is_an_error_of_the_run_s8(worker: SandboxWorker) -> None:
    await run(worker, "kept = 6")
    done = await run(worker, "x = bytearray(6 << 30)")
    assert done.error is not None
    assert done.error.name == "MemoryError"
    assert (await run(worker, "kept")).result_text == "6"


async def test_deaf_code_loses_the_shell(worker: SandboxWorker) -> None:
    code = "import signal; signal.signal(signal.SIGIO, signal.SIG_IGN)\nwhile True: pass"
    done = await run(worker, code, 0.5)
    assert done.stopped == "died"
    assert (await run(worker, "1")).fresh


async def test_cancelling_is_quick_and_keeps_variables(worker: SandboxWorker) -> None:
    await run(worker, "kept = 8")
    task = asyncio.create_task(run(worker, "import time; time.sleep(100)"))
    await asyncio.sleep(0.5)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    assert (await run(worker, "kept")).result_text == "8"


@pytest.mark.slow
async def test_many_interrupts_never_break_the_connection(worker: SandboxWorker) -> None:
    await run(worker, "kept = 9")
    for pause in range(40):
        code = "from IPython.display import display\nwhile True: display('x' * 1000); print('y')"
        task = asyncio.create_task(run(worker, code))
        await asyncio.sleep(0.003 * pause)
        worker.interrupt()
        while not task.done():
            await asyncio.sleep(0.05)
            worker.interrupt()
        done = await task
        assert done.stopped == "interrupted", (pause, done.error)
    assert (await run(worker, "kept")).result_text == "9"


async def test_a_sandbox_killed_behind_our_back_is_replaced(tmp_path: Path) -> None:
    with a_worker(tmp_path) as worker:
        before = descendants(os.getpid())
        await run(worker, "x = 1")
        kill_sandboxes([child for child in descendants(os.getpid()) if child not in before])
        done = await run(worker, "1+1")
        assert (done.result_text, done.fresh) == ("2", True)


def kill_sandboxes(processes: list[psutil.Process]) -> None:
    """Kill bubblewrap, and wait for the end of what runs in it."""
    inside = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # each ends with the one before
            if process.name() == "bwrap":
                inside.append(process)
                inside += process.children(recursive=True)
                process.kill()
    assert inside
    assert until(lambda: not alive(inside))


async def test_a_death_between_runs_is_noticed_without_a_run(tmp_path: Path) -> None:
    states: list[tuple[str, str]] = []
    with a_worker(tmp_path, lambda *what: states.append(what)) as worker:
        before = descendants(os.getpid())
        await run(worker, "x = 1")
        kill_sandboxes([child for child in descendants(os.getpid()) if child not in before])
        assert await asyncio.to_thread(until, lambda: any(state == "lost" for state, _ in states))
        [reason] = [text for state, text in states if state == "lost"]
        assert "killed" in reason
        assert "memory together" not in reason


async def test_a_death_between_runs_by_the_code_itself(tmp_path: Path) -> None:
    states: list[str] = []
    with a_worker(tmp_path, lambda state, _text: states.append(state)) as worker:
        code = "import os, threading\nthreading.Timer(0.5, os._exit, (1,)).start()"
        assert (await run(worker, code)).ok
        assert await asyncio.to_thread(until, lambda: "lost" in states)
        assert (await run(worker, "1+1")).fresh


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(100)", "while True: pass", "while True: print('x' * 100)"]
)
async def test_an_interrupt_is_quick(worker: SandboxWorker, code: str) -> None:
    await run(worker, "kept = 4")
    times = []
    for _ in range(3):
        task = asyncio.create_task(run(worker, code))
        await asyncio.sleep(0.5)
        started = time.monotonic()
        worker.interrupt()
        assert (await task).stopped == "interrupted"
        times.append(time.monotonic() - started)
    assert min(times) < 0.5  # once at least, however busy the machine is
    assert (await run(worker, "kept")).result_text == "4"


@pytest.mark.parametrize("code", ["", "1", "import time; time.sleep(100)", "while True: print('x')"])
async def test_closing_at_any_moment_leaves_nothing(tmp_path: Path, code: str) -> None:
    with a_worker(tmp_path) as worker:
        before = descendants(os.getpid())
        task = asyncio.create_task(run(worker, code)) if code else None
        if code and code != "1":
            await asyncio.sleep(1)
        else:
            worker.prestart()
            await asyncio.sleep(0.05)
        children = [child for child in descendants(os.getpid()) if child not in before]
        await asyncio.to_thread(worker.close)
        await asyncio.to_thread(worker.close)
        assert until(lambda: not alive(children), 10)
        if task is not None:
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(outcome, Execution | SandboxClosed)
        with pytest.raises(SandboxClosed):
            await run(worker, "1")


PARENT = '''
import asyncio, sys
from pathlib import Path
from sandbox_chat.sandbox import make_worker
from sandbox_chat.settings import Settings
worker = make_worker(Settings(data_dir=Path(sys.argv[1]), sandbox=sys.argv[2]))
def show(stream, text): print("READY", flush=True)
code = """
import subprocess
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sleep", "1000"], start_new_session=True)
subprocess.run("(setsid sleep 1000 &)", shell=True)
print("x")
while True: pass
"""
asyncio.run(worker.run_code(code, timeout=1000, on_output=show))
'''


@pytest.mark.parametrize("kind", ["local", "unsafe-local"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_killed_program_s9(tmp_path: Path, number: signal.Signals, kind: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), kind], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "READY\n"
    children: list[psutil.Process] = []

    def started_all() -> bool:
        children[:] = descendants(program.pid)
        return sum(child.name() == "sleep" for child in children) == 3

    assert until(started_all, 10)
    program.send_signal(number)
    program.wait()
    program.stdout.close()
    started = time.monotonic()
    assert until(lambda: not alive(children), 10)
    assert time.monotonic() - started < 2.5
