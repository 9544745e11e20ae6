"""A Python environment with MCP servers in it, made once and kept: it takes the packages of a registry.

``python()`` is its interpreter, for the local sandbox (``sandbox_python``); ``packages()`` the folder of its packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

WANTED = (
    "ipython>=9",
    "matplotlib-inline",
    "mcp>=2,<3",
    "uvicorn",
    "starlette",
    "mcp-server-time",
    "mcp-server-git",
)
"""What is installed: what a sandbox's shell needs, what the gateway needs, and two servers."""
_LIMIT = 900


@cache
def python() -> Path:
    """The interpreter of the environment; makes it when it is not there yet."""
    key = hashlib.sha256(repr((WANTED, sys.version_info[:3], sys.base_prefix)).encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "sandbox-chat-tests")
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"servers-{key}"
    with (base / f"servers-{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            for command in (
                [sys.executable, "-m", "venv", str(folder)],
                [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *WANTED],
            ):
                subprocess.run(command, check=True, timeout=_LIMIT, capture_output=True)
            (folder / "complete").touch()
    return folder / "bin/python"


def packages() -> Path:
    """The folder of its packages."""
    [found] = python().parent.parent.glob("lib/python*/site-packages")
    return found
