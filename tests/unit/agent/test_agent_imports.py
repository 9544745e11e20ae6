"""What importing the agent and the tools costs: nothing heavy before a session connects."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("claude_agent_sdk", "mcp", "pydantic", "PIL", "starlette", "anyio", "textual", "numpy")


@pytest.mark.parametrize(
    "module", ["sandbox_chat.agent.session", "sandbox_chat.tools", "sandbox_chat.tools.images"]
)
def test_nothing_heavy_is_imported(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
