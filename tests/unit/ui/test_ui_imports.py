"""The first frame waits for nothing that it does not show: what importing the interface brings along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sandbox_chat.ui.start import FRAMES_PER_SECOND

HEAVY = (
    "claude_agent_sdk",
    "mcp",
    "PIL",
    "chafa",
    "markdown_it",
    "pygments",
    "numpy",
    "httpx",
    "uvicorn",
    "sandbox_chat.engine",
    "sandbox_chat.agent.session",
)


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import sandbox_chat.ui", (*HEAVY, "textual", "rich", "asyncio")),
        ("from sandbox_chat.ui.pictures import Probe", (*HEAVY, "textual")),
        ("import sandbox_chat.ui.app", HEAVY),
    ],
)
def test_imports_before_the_first_frame(statement: str, unwanted: tuple[str, ...]) -> None:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(unwanted).isdisjoint(json.loads(done.stdout))


def test_the_frame_rate_is_not_left_in_the_environment() -> None:
    code = (
        "import os\nfrom sandbox_chat.ui import start\nstart._import_app()\n"
        "import textual.constants\nprint('TEXTUAL_FPS' in os.environ, textual.constants.MAX_FPS)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", FRAMES_PER_SECOND]
