"""Workers whose sandboxes are in the test cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sandbox_chat.sandbox import make_worker
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings

from .e2b_server import Cloud
from .sandboxes import PATIENCE


def cloud_settings(cloud: Cloud, **values: Any) -> Settings:
    """Settings that point at the test cloud, patient with a busy machine."""
    return Settings(**{**cloud.settings(), "start_timeout": PATIENCE, "close_timeout": PATIENCE, **values})


@contextmanager
def a_cloud_worker(
    cloud: Cloud, on_state: Callable[[str, str], None] | None = None, session_id: str = "test", **values: Any
) -> Iterator[SandboxWorker]:
    """A worker of sandboxes in the test cloud, closed at the end."""
    worker = make_worker(cloud_settings(cloud, **values), on_state, session_id=session_id)
    assert worker is not None
    try:
        yield worker
    finally:
        worker.close(PATIENCE)


async def run(worker: SandboxWorker, code: str, timeout: float = PATIENCE, **sinks: Any) -> Execution:
    """Run code, with patience unless told otherwise."""
    return await worker.run_code(code, timeout=timeout, **sinks)
