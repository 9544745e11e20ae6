"""The tools over a sandbox in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.toolbox import Tools

from sandbox_chat.settings import Settings


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Tools with default settings; downloads go to ``downloads`` under the test's folder."""
    return Tools(Settings(downloads_dir=tmp_path / "downloads"), tmp_path)
