"""A container ends with the program, however that ends; and what was left of one is found and named."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from support import docker_daemon
from support.docker_daemon import Daemon
from support.sandboxes import PATIENCE, alive, until

from sandbox_chat.sandbox import docker_list, remote
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.sandbox.docker import LOADER, DockerSandbox
from sandbox_chat.settings import Settings

pytestmark = pytest.mark.slow

KILLS = 30
GONE_WITHIN = 5.0
PROGRAM = """
import sys, time
from pathlib import Path
from sandbox_chat.sandbox.docker import DockerSandbox
from sandbox_chat.settings import Settings
sandbox = DockerSandbox(Settings(sandbox="docker", docker_image=sys.argv[1], data_dir=Path(sys.argv[2]), start_timeout=60), "s1")
print("begun", sandbox.name, flush=True)
sandbox.start()
print("started", flush=True)
while True:
    sandbox.run_code("import time; time.sleep(.3)", timeout=20)
    time.sleep(.3)
"""


@contextmanager
def a_program(docker: Daemon, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that starts a container and uses it now and then; with the container's name."""
    command = [sys.executable, "-c", PROGRAM, docker.image, str(folder)]
    process = subprocess.Popen(
        command, env=docker.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        name = process.stdout.readline().split()[1]
        yield process, name
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def clients(name: str) -> list[psutil.Process]:
    """The processes that hold the container ``name``."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if name in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def inside() -> list[psutil.Process]:
    """The processes that began as the first of a container of ours, or as the shell in it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if LOADER in process.cmdline() and process.name().startswith("python"):
                found.append(process)
    return found


def gone(docker: Daemon, name: str, seconds: float, *, wait: Callable[[], object] = lambda: None) -> bool:
    """Wait until neither the container nor a process that holds it exists."""
    end = time.monotonic() + seconds
    while name in docker.all_containers() or clients(name):
        if time.monotonic() > end:
            return False
        wait()
        time.sleep(0.05)
    return True


def test_no_container_outlives_a_killed_program(docker: Daemon, tmp_path: Path) -> None:
    """kill -9 at random moments: while it starts, runs code, is idle."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    slowest = 0.0
    for number in range(KILLS):
        pause = chance.uniform(0, 2)
        with a_program(docker, tmp_path) as (process, name):
            time.sleep(pause)
            process.kill()
            killed = time.monotonic()
            there = gone(docker, name, GONE_WITHIN * 4)  # how late it was is of use when it was too late
            slowest = max(slowest, time.monotonic() - killed)
            assert there, f"seed {seed}, number {number}: {name} is left after a kill at {pause:.2f} s"
    # A container that was just being started has to come up before it can end. On a machine that is overloaded that
    # takes seconds of its own, which are measured and granted.
    started = time.monotonic()
    docker.call("run", "--rm", "--network", "none", docker.image, "python3", "-c", "import numpy")
    plain = time.monotonic() - started
    granted = GONE_WITHIN + (3 * plain if plain > 1.5 else 0)
    print(
        f"{KILLS} kills, seed {seed}: all gone after {slowest:.1f} s at most (a plain container: {plain:.1f} s)"
    )
    assert slowest < granted, f"seed {seed}: {slowest:.1f} s, a plain container takes {plain:.1f} s"


def test_no_container_outlives_the_program_that_holds_it(docker: Daemon, tmp_path: Path) -> None:
    """The docker command alone is killed: while it starts the container, and later."""
    chance = random.Random(7)
    for _ in range(6):
        with a_program(docker, tmp_path) as (process, name):
            time.sleep(chance.uniform(0, 1.5))
            for client in clients(name):
                with contextlib.suppress(psutil.NoSuchProcess):
                    client.kill()
            # The program is well, and sees to it. It ends by the error, which takes it a moment.
            assert gone(docker, name, PATIENCE), name
            assert process.wait(PATIENCE) != 0


def test_closing_leaves_nothing(docker: Daemon, tmp_path: Path) -> None:
    settings = Settings(
        sandbox="docker", docker_image=docker.image, data_dir=tmp_path, start_timeout=PATIENCE
    )
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    for started in (False, True, True):
        sandbox = DockerSandbox(settings)
        if started:
            sandbox.start()
            assert sandbox.name in docker.containers()
        sandbox.close()
        sandbox.close()
        sandbox.release()
        if started:
            assert sandbox._container is not None
            assert sandbox._container.gone(PATIENCE)
        assert gone(docker, sandbox.name, PATIENCE)
    assert {path.name for path in Path("/proc/self/fd").iterdir()} == before


def test_what_a_crash_has_left_is_found_and_ended(docker: Daemon, tmp_path: Path) -> None:
    settings = Settings(sandbox="docker", docker_image=docker.image, data_dir=tmp_path)
    with a_program(docker, tmp_path) as (process, name):
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        (mine,) = [found for found in docker_list.list_containers(settings) if found.session == "s1"]
        assert (mine.kind, mine.state, mine.here, mine.left) == ("docker", "running", True, False)
        assert mine.started is not None
        assert mine.started.tzinfo is not None
    assert gone(docker, name, PATIENCE)
    # As if the machine's daemon had kept one of a program that is no more.
    labels = {**remote.marks("s2", ""), "pid": "999999999"}
    options = [part for key, value in labels.items() for part in ("--label", f"{key}={value}")]
    left = docker.call("create", "--network", "none", *options, docker.image, "sleep", "600").strip()
    stranger = docker.call("create", "--network", "none", docker.image, "sleep", "600").strip()
    try:
        (found,) = docker_list.leftovers(settings)
        assert (found.id, found.session, found.state, found.left) == (left, "s2", "created", True)
        assert docker_list.kill(settings, [stranger[:12], found.id[:12]]) == [found.id[:12]]
        assert docker_list.leftovers(settings) == []
    finally:
        docker.call("rm", "--force", left, stranger, check=False)


def test_a_daemon_that_ends_is_said(docker: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of a daemon under a sandbox that runs code: one of our own, which nobody else uses."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("not run: no second daemon can be started here")
    folder = Path(tempfile.mkdtemp(prefix="sandbox-chat-dockerd-"))  # sockets need a short path
    try:
        own = Daemon(docker_daemon.start(folder), docker.image)
        with subprocess.Popen(
            ["docker", "save", docker.image], env=docker.environ, stdout=subprocess.PIPE
        ) as save:
            subprocess.run(["docker", "load", "--quiet"], env=own.environ, stdin=save.stdout, check=True)
        monkeypatch.setenv("DOCKER_HOST", own.host)
        settings = Settings(
            sandbox="docker", docker_image=docker.image, data_dir=folder, start_timeout=PATIENCE
        )
        monkeypatch.setattr("sandbox_chat.sandbox.docker.SILENCE", 5.0)
        monkeypatch.setattr("sandbox_chat.sandbox.docker_link.BEAT_EVERY", 0.5)
        before = {process.pid for process in inside()}
        sandbox = DockerSandbox(settings)
        sandbox.start()
        mine = [process for process in inside() if process.pid not in before]
        assert len(mine) >= 2
        time.sleep(7)  # longer than the silence: it is not ended while this side is there
        assert sandbox.run_code("1 + 1", timeout=PATIENCE).result_text == "2"
        pid = docker_daemon.running(folder)
        timer = threading.Timer(1, os.kill, (pid, signal.SIGKILL))
        timer.start()
        try:
            done = sandbox.run_code("import time; time.sleep(60)", timeout=PATIENCE)
        finally:
            timer.join()
            sandbox.close()
            sandbox.release()
        docker_daemon.reap(pid)
        assert (done.stopped, done.duration_ms < 30_000) == ("died", True), done
        assert done.error is not None
        assert "The daemon of docker ended or does not answer" in done.error.value, done.error
        with pytest.raises(SandboxUnavailable, match="The Docker daemon does not answer"):
            DockerSandbox(settings).start()
        # Nobody has told the container, and there is no daemon that could end it: it has to notice by itself.
        assert until(lambda: not alive(mine)), mine
        docker_daemon.start(folder)
        assert own.wait_gone({sandbox.name}, PATIENCE) == set()
    finally:
        docker_daemon.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
