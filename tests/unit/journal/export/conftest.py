"""What the tests of exported documents share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.exported import write_session

from sandbox_chat import words


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Documents in English."""
    words.use("en")
    yield
    words.use("en")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The folder of the made-up session."""
    return write_session(tmp_path / "sessions")
