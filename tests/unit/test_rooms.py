"""The rooms of the house: who may import whom, and what an import brings along."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sandbox_chat"
SDK = {"claude_agent_sdk", "mcp", "anyio"}
SCREEN = {"textual"}
CLOUD = {"e2b", "e2b_code_interpreter", "httpx"}
SCIENCE = {"numpy", "pandas", "matplotlib", "IPython"}
SERVER = {"starlette", "uvicorn"}
HEAVY = SDK | SCREEN | CLOUD | SCIENCE | SERVER
MODULES = """
import json, sys
__import__(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""


def brought_by(module: str) -> set[str]:
    """The modules that are loaded once ``module`` has been imported in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES, module], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_import_contract_holds() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("sandbox_chat", HEAVY | {"argparse", "asyncio", "sandbox_chat.settings"}),
        (
            "sandbox_chat.cli",
            HEAVY | {"asyncio", "dataclasses", "logging", "pathlib", "sandbox_chat.settings"},
        ),
        ("sandbox_chat.events", HEAVY | {"asyncio", "logging", "platformdirs"}),
        ("sandbox_chat.text", HEAVY | {"asyncio", "logging", "dataclasses"}),
        ("sandbox_chat.settings", HEAVY | {"asyncio", "platformdirs", "dotenv", "tomllib"}),
        ("sandbox_chat.journal", HEAVY | {"asyncio", "sqlite3", "sandbox_chat.settings"}),
        ("sandbox_chat.sandbox", HEAVY),
        ("sandbox_chat.mcp.config", HEAVY),
        ("sandbox_chat.mcp_face.listing", HEAVY),
        ("sandbox_chat.engine", HEAVY),
        ("sandbox_chat.headless", HEAVY | {"asyncio"}),
        ("sandbox_chat.serve.face", HEAVY | {"prometheus_client"}),
        ("sandbox_chat.sessions", HEAVY | {"asyncio", "rich"}),
        ("sandbox_chat.doctor", HEAVY | {"asyncio"}),
        ("sandbox_chat.logs", HEAVY | {"asyncio"}),
        ("sandbox_chat.demo", SDK | SCREEN | CLOUD | SCIENCE),
        ("sandbox_chat.tools", SCREEN | CLOUD | SCIENCE),
        ("sandbox_chat.ui", SDK | CLOUD | SCIENCE | SERVER),
    ],
)
def test_an_import_brings_no_more_than_it_must(module: str, unwanted: set[str]) -> None:
    assert sorted(brought_by(module) & unwanted) == []


def guest_modules() -> list[str]:
    names = [path.stem for path in (PACKAGE / "guest").glob("*.py")]
    return sorted("sandbox_chat.guest" + ("" if name == "__init__" else f".{name}") for name in names)


@pytest.mark.parametrize("module", [name for name in guest_modules() if not name.endswith("__main__")])
def test_the_guest_brings_nothing_of_ours(module: str) -> None:
    ours = {name for name in brought_by(module) if name.startswith("sandbox_chat")}
    assert {name for name in ours if not name.startswith("sandbox_chat.guest")} <= {"sandbox_chat"}


def test_every_module_says_what_it_is_for() -> None:
    missing = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.strip() and not text.startswith(('"""', 'r"""')):
            missing.append(str(path.relative_to(ROOT)))
    assert missing == []
