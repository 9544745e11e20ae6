"""Cases: time limits, interrupts, deaths, limits, closing."""

from __future__ import annotations

import asyncio
import time

import pytest
from conformance.registry import Ground, case
from support.sandboxes import PATIENCE

from sandbox_chat.sandbox.base import Execution, SandboxClosed

CLOUD_LIMITS = "How many processes and how much memory a cloud sandbox has is the cloud's affair; it ends what passes them."


# -- stopping -------------------------------------------------------------------------------------------


@case("Stopping", fast=True)
async def time_limit_s1(ground: Ground) -> None:
    """Code that passes its time limit is stopped about then and reported as such; variables stay; the next run works at once. (S1)"""
    await ground.run("x = 41")
    started = time.monotonic()
    done = await ground.run("import time; print('begun'); time.sleep(30)", 2)
    assert 1.9 < time.monotonic() - started < 15
    assert (done.stopped, done.stdout) == ("timeout", "begun\n")
    assert await ground.result("x + 1") == "42"


@case("Stopping")
async def computing_code_is_stopped(ground: Ground) -> None:
    """Code that computes without a pause is stopped by its time limit, and keeps its variables."""
    await ground.run("x = 41")
    assert (await ground.run("while True: pass", 1)).stopped == "timeout"
    assert await ground.result("x + 1") == "42"


@case("Stopping", fast=True)
async def an_interrupt_keeps_variables(ground: Ground) -> None:
    """An interrupt from another thread stops the run at once; variables and what was printed are kept."""
    await ground.run("kept = 8")
    task = asyncio.create_task(ground.run("import time; print('begun'); time.sleep(100)"))
    await asyncio.sleep(1.5)
    started = time.monotonic()
    await asyncio.to_thread(ground.worker.interrupt)
    done = await task
    assert time.monotonic() - started < 15
    assert (done.stopped, done.stdout) == ("interrupted", "begun\n")
    assert await ground.result("kept") == "8"


@case("Stopping")
async def cancelling_is_an_interrupt(ground: Ground) -> None:
    """A cancelled call leaves an idle sandbox that keeps its variables."""
    await ground.run("kept = 8")
    task = asyncio.create_task(ground.run("import time; time.sleep(100)"))
    await asyncio.sleep(1)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 15
    done = await ground.run("kept")
    assert (done.result_text, done.fresh) == ("8", False), done


@case("Stopping")
async def an_idle_sandbox_is_not_interrupted(ground: Ground) -> None:
    """An interrupt while nothing runs does nothing, also not to the next run."""
    await ground.run("1")
    for _ in range(3):
        ground.worker.interrupt()
    done = await ground.run("import time; time.sleep(0.3); 5")
    assert (done.result_text, done.stopped) == ("5", ""), done


@case("Stopping")
async def many_interrupts(ground: Ground) -> None:
    """Interrupts at many moments, several at a time, never break the connection or lose variables."""
    await ground.run("kept = 9")
    for pause in (0.0, 0.01, 0.05, 0.2, 0.5, 1.0):
        task = asyncio.create_task(ground.run("while True: print('y' * 100)"))
        await asyncio.sleep(pause)
        deadline = time.monotonic() + PATIENCE
        while not task.done() and time.monotonic() < deadline:
            ground.worker.interrupt()
            await asyncio.sleep(0.1)
        done = await task
        assert done.stopped == "interrupted", (pause, done)
    done = await ground.run("kept")
    assert (done.result_text, done.fresh) == ("9", False), done


@case("Stopping", own=True)
async def deaf_code_is_stopped(ground: Ground) -> None:
    """Code that swallows every interrupt is stopped all the same, with its shell if need be, and that is said."""
    await ground.run("1")
    code = "import time\nwhile True:\n    try: time.sleep(10)\n    except BaseException: pass"
    started = time.monotonic()
    done = await ground.run(code, 1)
    assert time.monotonic() - started < 30
    assert done.stopped in ("timeout", "died")
    after = await ground.run("1 + 1")
    assert after.result_text == "2", after
    assert after.fresh == (done.stopped == "died")


@case("Stopping")
async def children_of_a_stopped_run_are_gone_s6(ground: Ground) -> None:
    """The child processes of a run that was stopped are gone. (S6)"""
    await ground.run("kept = 3")
    count = (
        "import os, time\ntime.sleep(0.5)\n"
        "def found(word):\n    n = 0\n    for p in os.listdir('/proc'):\n        try: n += p.isdigit() and word in open(f'/proc/{p}/cmdline').read()\n"
        "        except OSError: pass\n    return n\nfound('12' + '34.5')"
    )
    for code in ("import subprocess; subprocess.run(['sleep', '1234.5'])", "!sleep 1234.5"):
        task = asyncio.create_task(ground.run(code))
        await asyncio.sleep(1.5)
        ground.worker.interrupt()
        assert (await task).stopped == "interrupted", code
        assert await ground.result(count) == "0", code
    assert await ground.result("kept") == "3"


@case("Stopping")
async def a_background_child_lives_on(ground: Ground) -> None:
    """A child process that a finished run left in the background lives on when a later run is stopped."""
    await ground.run("import subprocess, time; server = subprocess.Popen(['sleep', '300'])")
    assert (await ground.run("time.sleep(100)", 1)).stopped == "timeout"
    assert await ground.result("server.poll() is None") == "True"
    assert await ground.result("server.kill(); server.wait()") == "-9"


@case("Stopping")
async def calls_are_serial(ground: Ground) -> None:
    """Calls made at the same time run one after another, in the order in which they were made."""
    await ground.run("import time; seen = []")
    codes = [f"seen.append('a{n}'); time.sleep(0.1); seen.append('b{n}')" for n in range(4)]
    await asyncio.gather(*(ground.run(code) for code in codes))
    assert await ground.result("' '.join(seen)") == "'a0 b0 a1 b1 a2 b2 a3 b3'"


@case("Stopping")
async def a_waiting_call_can_be_cancelled(ground: Ground) -> None:
    """A call that waits for another can be cancelled; then its code never runs."""
    await ground.run("import time; hits = []")
    first = asyncio.create_task(ground.run("time.sleep(1)"))
    await asyncio.sleep(0.2)
    second = asyncio.create_task(ground.run("hits.append(2)"))
    await asyncio.sleep(0.1)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert (await first).ok
    assert await ground.result("hits") == "[]"


# -- death ----------------------------------------------------------------------------------------------


async def _dies(ground: Ground, code: str) -> Execution:
    """Run code that ends the shell; check what is said, and that the next run tells of it."""
    await ground.run("x = 1")
    before = ground.worker.generation
    done = await ground.run(code)
    assert done.stopped == "died", done
    assert done.error is not None
    assert done.error.name == "SandboxDied"
    assert "lost" in done.error.value
    after = await ground.run("x")
    assert after.fresh
    assert after.error is not None
    assert after.error.name == "NameError"
    assert ground.worker.generation >= before
    again = await ground.run("1 + 1")
    assert (again.result_text, again.fresh) == ("2", False)
    return done


@case("Death", own=True, fast=True)
async def the_shell_ends_itself_s2(ground: Ground) -> None:
    """`os._exit(1)` ends the shell: said plainly, with the loss of the variables; the next run is in a new shell and told so. (S2)"""
    done = await _dies(
        ground, "import time\nprint('last words', flush=True)\ntime.sleep(0.3)\nimport os; os._exit(1)"
    )
    assert "last words" in done.stdout


@case("Death", own=True)
async def the_shell_crashes(ground: Ground) -> None:
    """A crash in C code (SIGSEGV) is said in the same way."""
    await _dies(ground, "import ctypes; ctypes.string_at(0)")


@case("Death", own=True)
async def the_shell_is_killed(ground: Ground) -> None:
    """So is a shell that is killed (SIGKILL)."""
    await _dies(ground, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")


@case("Death", own=True, fast=True)
async def killed_behind_our_back_s10(ground: Ground) -> None:
    """A sandbox that was ended from outside is replaced at the next call; that call runs, and is told that variables are gone. (S10)"""
    await ground.run("x = 1; open('/tmp/mine.txt', 'w').close()")
    await ground.place.kill_behind(ground.worker)
    done = await ground.run("import os; ('x' in globals(), os.path.exists('/tmp/mine.txt'))")
    assert done.ok, done
    assert (done.result_text, done.fresh) == ("(False, False)", True)
    assert not (await ground.run("1")).fresh


@case("Death", own=True)
async def files_after_a_death(ground: Ground) -> None:
    """File operations after a sandbox was ended from outside work in the new one; the next run is told."""
    await ground.run("x = 1")
    await ground.place.kill_behind(ground.worker)
    assert await ground.worker.write_file("new.txt", b"abc") == "/tmp/new.txt"
    done = await ground.run("open('/tmp/new.txt').read()")
    assert (done.result_text, done.fresh) == ("'abc'", True)


# -- limits ---------------------------------------------------------------------------------------------


@case("Limits", own=True, not_there={"e2b": CLOUD_LIMITS})
async def six_gigabytes_s8(ground: Ground) -> None:
    """6 GB at once are refused: a MemoryError of that run, or an end that names memory; the next run works. (S8)"""
    await ground.run("kept = 6")
    done = await ground.run("x = bytearray(6 << 30)")
    assert done.error is not None
    told = f"{done.error.name} {done.error.value}"
    assert "memory" in told.lower(), told
    if done.stopped == "":
        assert await ground.result("kept") == "6"
    assert await ground.result("1 + 1") == "2"


@case("Limits", values={"sandbox_memory_mb": 400}, not_there={"e2b": CLOUD_LIMITS})
async def memory_of_all_processes_s8(ground: Ground) -> None:
    """Processes that take more than the limit together are ended, memory is named as the reason, and the next run works. (S8)"""
    code = (
        "import subprocess, sys\n"
        "eat = 'import time; x = bytearray(150 << 20); x[::4096] = b\"x\" * len(x[::4096]); time.sleep(10)'\n"
        "children = [subprocess.Popen([sys.executable, '-c', eat]) for _ in range(6)]\n"
        "codes = [c.wait() for c in children]\nraise RuntimeError(f'children ended with {codes}')"
    )
    done = await ground.run(code, 50)
    assert done.error is not None or done.stopped, done
    told = " ".join([done.error.value if done.error else "", done.stderr, *done.notes])
    assert "memory" in told.lower(), done
    assert done.stopped != "timeout", done
    assert (await ground.run("1 + 1")).result_text == "2"


@case("Limits", values={"sandbox_processes": 100}, not_there={"e2b": CLOUD_LIMITS})
async def fork_bomb_s8(ground: Ground) -> None:
    """A fork bomb stays within the number of processes, the limit is named, and the next run works. (S8)"""
    await ground.run("kept = 5")
    done = await ground.run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", 3)
    assert done.stopped in ("timeout", "died")
    told = " ".join([done.error.value if done.error else "", *done.notes])
    assert "process" in told.lower(), done
    assert (await ground.run("1 + 1")).result_text == "2"
    count = "import os; len([p for p in os.listdir('/proc') if p.isdigit()]) < 15"
    assert await ground.result("import time; time.sleep(0.5)\n" + count) == "True"


@case("Limits")
async def orphans_s8(ground: Ground) -> None:
    """200 orphans of child processes leave no zombies. (S8)"""
    code = (
        "import os, time\nfor _ in range(200):\n  if os.fork() == 0:\n    if os.fork() == 0: os._exit(0)\n"
        "    os._exit(0)\n  os.wait()\ntime.sleep(0.5)"
    )
    assert (await ground.run(code)).ok
    zombies = (
        "states = []\nfor p in os.listdir('/proc'):\n    if p.isdigit():\n        try: fields = open(f'/proc/{p}/stat').read().rsplit(')', 1)[1].split()\n"
        "        except OSError: continue\n        if fields[1] in ('1', str(os.getpid())): states.append(fields[0])\nstates.count('Z')"
    )
    assert await ground.result(zombies) == "0"


@case("Limits", values={"sandbox_file_mb": 20}, not_there={"e2b": CLOUD_LIMITS})
async def the_largest_file(ground: Ground) -> None:
    """A file that grows beyond the limit is an error of the code; variables stay."""
    await ground.run("kept = 4")
    code = "with open('/tmp/big', 'wb') as f:\n    for _ in range(60): f.write(b'x' * (1 << 20))"
    error = await ground.fails(code)
    assert error.name == "OSError"
    assert "too large" in error.value.lower()
    assert await ground.result("import os; os.remove('/tmp/big'); kept") == "4"


@case("Limits", values={"sandbox_disk_mb": 32, "sandbox_memory_mb": 1024}, not_there={"e2b": CLOUD_LIMITS})
async def the_room_in_tmp(ground: Ground) -> None:
    """A full `/tmp` is an error of the code; variables stay, and there is room again when files are removed."""
    await ground.run("kept = 4")
    code = "with open('/tmp/big', 'wb') as f:\n    for _ in range(100): f.write(b'x' * (1 << 20))"
    error = await ground.fails(code)
    assert error.name == "OSError"
    assert "no space" in error.value.lower()
    assert await ground.result("import os; os.remove('/tmp/big'); kept") == "4"
    assert await ground.result("from pathlib import Path; Path('/tmp/small').write_text('abc')") == "3"


@case("Limits", values={"sandbox_processes": 60}, not_there={"e2b": CLOUD_LIMITS})
async def too_many_threads(ground: Ground) -> None:
    """Threads beyond the limit are an error of the code; the limit is named, and variables stay."""
    await ground.run("kept = 4; import threading; go = threading.Event()")
    code = "for _ in range(300): threading.Thread(target=go.wait, daemon=True).start()"
    done = await ground.run(code)
    assert done.error is not None
    assert done.error.name == "RuntimeError"
    assert "thread" in done.error.value
    assert "process" in " ".join(done.notes).lower() or "thread" in " ".join(done.notes).lower(), done.notes
    assert await ground.result("go.set(); kept") == "4"


# -- closing --------------------------------------------------------------------------------------------


@case("Closing", own=True, fast=True)
async def closing_ends_a_run(ground: Ground) -> None:
    """Closing during a run ends it soon; the call that waits fails with a plain sentence, and so does every later one."""
    await ground.run("1")
    task = asyncio.create_task(ground.run("import time; time.sleep(100)"))
    await asyncio.sleep(1)
    started = time.monotonic()
    await asyncio.to_thread(ground.worker.close)
    [outcome] = await asyncio.gather(task, return_exceptions=True)
    assert time.monotonic() - started < 20
    assert isinstance(outcome, Execution | SandboxClosed), outcome
    for _ in range(2):
        await asyncio.to_thread(ground.worker.close)
    with pytest.raises(SandboxClosed, match="closed"):
        await ground.run("1")
    with pytest.raises(SandboxClosed):
        await ground.worker.read_file("x", max_bytes=10)


@case("Closing", own=True)
async def closing_before_the_first_use(ground: Ground) -> None:
    """A worker that was never used can be closed; nothing was started."""
    await asyncio.to_thread(ground.worker.close)
    assert ground.worker.generation == 0
    with pytest.raises(SandboxClosed):
        await ground.run("1")


@case("Closing", own=True)
async def closing_while_it_starts(ground: Ground) -> None:
    """Closing while the sandbox starts ends it; waiting calls fail with a plain sentence."""
    task = asyncio.create_task(ground.run("1"))
    await asyncio.sleep(0.05)
    await asyncio.to_thread(ground.worker.close)
    [outcome] = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, Execution | SandboxClosed), outcome
