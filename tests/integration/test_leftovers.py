"""What a killed program leaves: nothing. No process, container, group, socket or temporary folder, at whatever moment."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import docker_daemon
from support.program import PROGRAM, environment, gone_within, run, wait_until, watching_leftovers
from support.sandboxes import PATIENCE
from support.terminal import terminal

GRACE = 5.0
"""Seconds after which nothing may be left of a killed program."""
ROUNDS = 30
LATEST = 3.0
"""Seconds after its start at which a program is killed at the latest, where it is killed at random."""

WORKER = """
import asyncio, sys
from pathlib import Path
from sandbox_chat.sandbox import make_worker
from sandbox_chat.settings import load
children = '''
import subprocess, threading
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["sleep", "1000"], start_new_session=True)
subprocess.run("(setsid sleep 1000 &)", shell=True)
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
'''
async def main():
    worker = make_worker(load(), session_id=sys.argv[1])
    worker.warm()
    while True:
        await worker.run_code(children, timeout=20)
        await worker.write_file("a/b.bin", bytes(5_000_000))
        await worker.run_code("import time\\nfor _ in range(5): print('x' * 10000); time.sleep(0.01)", timeout=20)
        await worker.run_code("while True: pass", timeout=0.2)
        await worker.run_code("import os; os._exit(1)", timeout=20)
asyncio.run(main())
"""


def test_a_killed_run_leaves_no_temporary_folder(tmp_path: Path) -> None:
    temp = tmp_path / "t"
    temp.mkdir()
    with watching_leftovers() as left:
        process = subprocess.Popen(
            [*PROGRAM, "run", "--demo", "run a slow job"],
            env=environment(tmp_path, {"TMPDIR": str(temp)}),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: list(temp.glob("*/*")), PATIENCE, "the temporary folder")
        process.kill()
        process.wait()
        assert gone_within(GRACE, lambda: [*left(), *map(str, temp.iterdir())]) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["connecting", "streaming", "running"])
def test_a_killed_chat_leaves_no_process(tmp_path: Path, moment: str) -> None:
    with watching_leftovers() as left, terminal([*PROGRAM, "--demo"], env=environment(tmp_path)) as chat:
        chat.wait(lambda: b"\x1b[?1049h" in chat.written(), PATIENCE)
        if moment != "connecting":
            chat.shows("Type a prompt", PATIENCE)
        if moment == "streaming":
            chat.type("sum 1 to 100 and check it with Gauss's formula\r")
            chat.shows("add up", PATIENCE)
        elif moment == "running":
            chat.type("run a slow job\r")
            chat.shows("run_code", PATIENCE)
        os.kill(chat.process.pid, signal.SIGKILL)
        chat.process.wait()
        assert gone_within(2, left) == []
    if moment != "connecting":
        ended = run("run", "--demo", "--resume=", "x = 41", home=tmp_path)
        assert ended.code == 0, ended.stderr
        shown = run("sessions", "show", home=tmp_path)
        assert "sum 1 to 100" in shown.stdout or "slow job" in shown.stdout


@contextlib.contextmanager
def back_end(kind: str) -> Iterator[tuple[dict[str, str], Callable[[int], list[str]]]]:
    """The environment that chooses a back end, and what lists the containers of a process."""
    if kind != "docker":
        warm = "true" if kind == "warm" else "false"
        yield {"SANDBOX_CHAT_SANDBOX": "local", "SANDBOX_CHAT_SANDBOX_WARM": warm}, lambda _pid: []
        return
    with contextlib.ExitStack() as stack:
        try:
            daemon = stack.enter_context(docker_daemon.daemon())
        except docker_daemon.NotHere as reason:
            pytest.skip(f"not run: {reason}")

        def containers(pid: int) -> list[str]:
            return daemon.call("ps", "-aq", "--filter", f"label=pid={pid}").split()

        names = {"SANDBOX_CHAT_SANDBOX": "docker", "SANDBOX_CHAT_DOCKER_IMAGE": daemon.image}
        yield {**names, "DOCKER_HOST": daemon.host}, containers


def groups(pid: int) -> list[str]:
    """Control groups of a process of the program."""
    # os.walk passes over folders that vanish meanwhile.
    found = (name for _folder, names, _files in os.walk("/sys/fs/cgroup") for name in names)
    return [name for name in found if name.startswith("sandbox-chat-") and f"-{pid}-" in name]


def sockets(folder: Path) -> set[str]:
    """Unix sockets of this machine whose path lies in ``folder``."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if str(folder) in line}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "warm", "docker"])
def test_killed_at_random_moments_nothing_is_left(tmp_path: Path, kind: str) -> None:
    seed = int(os.environ.get("SANDBOX_CHAT_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed} (SANDBOX_CHAT_TEST_SEED)")
    chance = random.Random(seed)
    temp = tmp_path / "t"
    temp.mkdir()
    seen = 0
    with back_end(kind) as (choice, containers), watching_leftovers() as left:
        env = environment(tmp_path / "home", {**choice, "TMPDIR": str(temp)})
        for number in range(ROUNDS):
            whole = number % 3 == 0
            command = (
                [*PROGRAM, "run", "--demo", "run a slow job"]
                if whole
                else [sys.executable, "-c", WORKER, "s"]
            )
            moment = chance.uniform(0, LATEST)
            process = subprocess.Popen(
                command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(moment)
            assert process.poll() is None, f"round {number}: the program had ended by itself"
            seen += len(left()) > 1
            process.kill()
            process.wait()

            def rest(pid: int = process.pid) -> list[str]:
                return [
                    *left(),
                    *map(str, temp.iterdir()),
                    *sockets(tmp_path),
                    *groups(pid),
                    *containers(pid),
                ]

            assert gone_within(GRACE, rest) == [], (number, whole, moment, kind)
    assert seen > ROUNDS / 3, "most programs were killed before they had started anything"
