"""The back ends that can be had here, each with a way to end a sandbox behind its back, or why not."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from conformance.registry import Place
from support.docker_daemon import Daemon
from support.sandboxes import PATIENCE, alive, until

from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

MARK = "conform"


class NotHere(Exception):
    """This back end cannot be had on this machine; the message says why. Its cases are *not run*."""


class Local:
    """The local sandbox, started cold."""

    name = "local"

    def settings(self) -> dict[str, Any]:
        """See ``Place.settings``."""
        return {"sandbox": "local", "sandbox_warm": False}

    def ready(self, worker: SandboxWorker) -> None:
        """Nothing is to be waited for."""

    def check(self, worker: SandboxWorker) -> None:
        """There is but one kind."""

    async def kill_behind(self, worker: SandboxWorker) -> None:
        """Kill the shell, found from outside by a name that code gave it; with it goes the whole sandbox."""
        mark = f"{MARK}{os.getpid() % 10_000_000}"
        done = await worker.run_code(
            f"import ctypes; ctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)", timeout=PATIENCE
        )
        assert done.ok, done
        found = [process for process in psutil.process_iter() if _comm(process.pid) == mark]
        assert len(found) == 1, found
        found[0].kill()
        assert await asyncio.to_thread(until, lambda: not alive(found), 20)


class Warm(Local):
    """The local sandbox, forked from the warm parent process."""

    name = "warm"

    def settings(self) -> dict[str, Any]:
        """See ``Place.settings``."""
        return {"sandbox": "local", "sandbox_warm": True}

    def ready(self, worker: SandboxWorker) -> None:
        """Wait for the parent process, so that no cold sandbox is tested in its place."""
        wait_warm(worker)

    def check(self, worker: SandboxWorker) -> None:
        """See ``Place.check``."""
        sandbox: Any = worker._sandbox
        assert sandbox is None or sandbox.is_warm, "a cold sandbox was tested in place of a warm one"


class Docker:
    """A container of a daemon that the tests have."""

    name = "docker"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def settings(self) -> dict[str, Any]:
        """See ``Place.settings``."""
        return {"sandbox": "docker", "docker_image": self._daemon.image}

    def ready(self, worker: SandboxWorker) -> None:
        """Nothing is to be waited for."""

    def check(self, worker: SandboxWorker) -> None:
        """There is but one kind."""

    async def kill_behind(self, worker: SandboxWorker) -> None:
        """``docker kill`` every container of this process."""
        found = self.containers()
        assert found
        self._daemon.call("kill", *found)
        assert await asyncio.to_thread(until, lambda: not self.containers(), 30)

    def containers(self) -> list[str]:
        """Ids of the containers of this process."""
        return self._daemon.call("ps", "-aq", "--filter", f"label=pid={os.getpid()}").split()


class E2B:
    """A cloud on loopback, driven by the real client."""

    name = "e2b"

    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud

    def settings(self) -> dict[str, Any]:
        """See ``Place.settings``."""
        return {"sandbox": "e2b", **self.cloud.settings()}

    def ready(self, worker: SandboxWorker) -> None:
        """Nothing is to be waited for."""

    def check(self, worker: SandboxWorker) -> None:
        """There is but one kind."""

    async def kill_behind(self, worker: SandboxWorker) -> None:
        """Let the cloud end it."""
        ids = list(self.cloud.sandboxes)
        assert ids
        for sandbox_id in ids:
            await asyncio.to_thread(self.cloud.vanish, sandbox_id)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


@contextlib.contextmanager
def _local() -> Iterator[Place]:
    from sandbox_chat.sandbox import probe

    works, sentence = probe(Settings(sandbox="local"))
    if not works:
        raise NotHere(sentence)
    yield Local()


@contextlib.contextmanager
def _warm() -> Iterator[Place]:
    from sandbox_chat.sandbox import probe

    works, sentence = probe(Settings(sandbox="local"))
    if not works:
        raise NotHere(sentence)
    yield Warm()


@contextlib.contextmanager
def _docker() -> Iterator[Place]:
    from support import docker_daemon

    with contextlib.ExitStack() as stack:
        try:
            daemon = stack.enter_context(docker_daemon.daemon())
        except docker_daemon.NotHere as reason:
            raise NotHere(str(reason)) from None
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = daemon.host
        place = Docker(daemon)
        try:
            yield place
            assert until(lambda: not place.containers(), 30), f"containers were left: {place.containers()}"
        finally:
            if before is None:
                del os.environ["DOCKER_HOST"]
            else:
                os.environ["DOCKER_HOST"] = before


@contextlib.contextmanager
def _e2b() -> Iterator[Place]:
    try:
        from support.e2b_server import Cloud
    except ImportError as error:
        raise NotHere(f"the cloud on loopback cannot be had: {error}") from None
    with Cloud() as cloud:
        yield E2B(cloud)
        left = list(cloud.sandboxes)
    assert not left, f"sandboxes were left in the cloud: {left}"


PLACES: dict[str, Callable[[], contextlib.AbstractContextManager[Place]]] = {
    "local": _local,
    "warm": _warm,
    "docker": _docker,
    "e2b": _e2b,
}


def wait_warm(worker: SandboxWorker) -> None:
    """Begin what keeps a sandbox of ``worker`` warm and wait until it serves. Raises ``NotHere``."""
    worker.warm()
    warm: Any = getattr(worker._warm, "__self__", None)
    if warm is None:
        raise NotHere("the back end has no warm start")
    if not warm.wait(PATIENCE):
        raise NotHere(f"no warm start can be had: {warm.state}")
