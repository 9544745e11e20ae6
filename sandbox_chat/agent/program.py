"""Where the agent's CLI is. Imports no SDK."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path


def find_cli() -> Path | None:
    """Return the path of the CLI: the one that comes with the SDK, else an installed ``claude``; ``None`` without."""
    # Private to the SDK, which looks here itself but only when no path is given; ours has to be the
    # launcher's. To be removed when the SDK can be told the whole environment of the CLI.
    spec = find_spec("claude_agent_sdk")
    name = "claude.exe" if sys.platform == "win32" else "claude"
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "_bundled" / name
        if path.is_file():
            return path
    installed = shutil.which("claude")
    return Path(installed) if installed is not None else None
