"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import a_worker
from support.toolbox import Tools

from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.settings import Settings


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Tools over a sandbox in memory."""
    return Tools(Settings(downloads_dir=tmp_path / "downloads"), tmp_path)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxWorker]:
    """A real sandbox for all tests of a file."""
    with a_worker(tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def real(worker: SandboxWorker, tmp_path: Path) -> Tools:
    """Tools over that sandbox."""
    return Tools(Settings(downloads_dir=tmp_path / "downloads"), tmp_path, sandbox=worker)
