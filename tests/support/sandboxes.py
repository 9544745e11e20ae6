"""Real sandboxes for tests: a worker on its own data folder, and how to find what is left of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

PATIENCE = 60.0
"""Seconds that anything may take on a busy machine before a test gives up."""


@contextmanager
def a_worker(
    folder: Path, on_state: Callable[[str, str], None] | None = None, **values: Any
) -> Iterator[SandboxWorker]:
    """A worker of a local sandbox, closed at the end."""
    worker = make_worker(Settings(data_dir=folder, start_timeout=PATIENCE, **values), on_state)
    assert worker is not None
    try:
        yield worker
    finally:
        worker.close()


def until(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait until ``condition`` holds; False when it does not come true."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def descendants(pid: int) -> list[psutil.Process]:
    """The processes below ``pid``, as handles that do not mistake a later process of the same number."""
    return psutil.Process(pid).children(recursive=True)


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run (zombies do not)."""
    found = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found
