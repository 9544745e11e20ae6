"""Which program starts a server of the catalogue: one that was installed here, one on the search path, or ``uvx`` or ``npx``.

The first of these that is there:

1. what ``sandbox-chat mcp add`` has installed under the data folder, in an environment of the server's own;
2. an executable of its name on the search path, whatever its version;
3. ``uvx`` or ``npx`` with the version that was tried, which fetch it when it is first started.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.settings import ConfigError

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry

NODE_LAUNCHER = Path(__file__).with_name("launch_node.mjs")
INSTALLED = "installed.json"
"""In a server's folder: which environment is complete and what is in it."""
FORMAT = 1
_FETCHING = re.compile(r"(?i)(uv|pip|npm_config)_\w+|xdg_cache_home")
_FETCHING_PROXY = re.compile(r"(?i)(https?|all|no)_proxy|ssl_cert_(file|dir)|node_extra_ca_certs")


@dataclass(frozen=True, slots=True)
class Start:
    """How a server is started: its ``command`` without the arguments, and the variables that this way needs."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def folder(entry: CatalogEntry, data: Path) -> Path:
    """Return where a server is installed. ``data`` is the data folder."""
    return data / "mcp" / "servers" / entry.name


def own_files(entry: CatalogEntry, data: Path) -> Path:
    """Return the folder of files that a server keeps; removing the server leaves it."""
    return data / "mcp" / "files" / entry.name


def installed(
    entry: CatalogEntry, data: Path, environ: Mapping[str, str] | None = None
) -> tuple[str, ...] | None:
    """Return the command of a server that is installed here; ``None`` when it is not, or not whole any more."""
    told = record(entry, data)
    program = told.get("program")
    environment = told.get("folder")
    if not isinstance(program, str) or not isinstance(environment, str):
        return None
    path = folder(entry, data) / environment / program
    if not path.is_file():
        return None
    if entry.registry == "npm":
        node = _which("node", (environ or {}).get("PATH"))
        return (node, str(path)) if node else None
    python = path.parent / "python"  # a link into a Python that may have gone
    return (str(path),) if python.exists() else None


def with_own(entry: CatalogEntry, environ: Mapping[str, str], data: Path) -> dict[str, str]:
    """Return the environment with the programs that were installed with a server before all others on the search path."""
    command = installed(entry, data, environ)
    places = [str(Path(command[-1]).parent)] if command else []
    return {**environ, "PATH": os.pathsep.join([*places, environ.get("PATH", os.defpath)])}


def installed_version(entry: CatalogEntry, data: Path) -> str:
    """Return the version that is installed here, empty when none is."""
    return str(record(entry, data).get("version", "")) if installed(entry, data) else ""


def record(entry: CatalogEntry, data: Path) -> dict[str, Any]:
    """Return what was written when a server was installed; empty when none is, or when that cannot be read."""
    try:
        told = json.loads((folder(entry, data) / INSTALLED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(told, dict) or told.get("format") != FORMAT or told.get("package") != entry.package:
        return {}
    return told


def start(
    entry: CatalogEntry, environ: Mapping[str, str], data: Path | None, secret: Sequence[str] = ()
) -> Start:
    """Return how a server is started. ``secret``: variables that hold credentials for its arguments.

    Raises ``ConfigError`` with a sentence when there is no way.
    """
    path = environ.get("PATH")
    command = installed(entry, data, environ) if data is not None else None
    if command is None and (there := _which(entry.program, path)):
        command = (there,)
    if secret:
        return _with_secret(entry, command, path, secret)
    if command is not None:
        return Start(command)
    fetcher = _which("uvx" if entry.registry == "pypi" else "npx", path)
    if fetcher is None or entry.instead:
        needs = " (it needs node and npm)" if entry.registry == "npm" else ""
        raise ConfigError(
            f"The MCP server {entry.name} is not installed. Install it with: sandbox-chat mcp add {entry.name}{needs}"
        )
    passed = {
        name: value
        for name, value in environ.items()
        if value and (_FETCHING.fullmatch(name) or _FETCHING_PROXY.fullmatch(name))
    }
    return Start((fetcher, *fetching(entry)), passed)


def _which(program: str, path: str | None) -> str | None:
    """Return where a program is on the search path; what is relative on it would be the working folder's."""
    places = (path if path is not None else os.environ.get("PATH", os.defpath)).split(os.pathsep)
    return shutil.which(program, path=os.pathsep.join(each for each in places if Path(each).is_absolute()))


def fetching(entry: CatalogEntry) -> tuple[str, ...]:
    """Return the arguments of ``uvx`` or ``npx`` that start a server in the version that was tried."""
    if entry.registry == "npm":
        return ("--yes", f"--package={entry.package}@{entry.version}", "--", entry.program)
    python = ("--python", entry.runtime) if oldest(entry.runtime) > (3, 11) else ()
    beside = tuple(word for requirement in entry.requires for word in ("--with", requirement))
    return (*python, *beside, "--from", f"{entry.package}=={entry.version}", entry.program)


def oldest(runtime: str) -> tuple[int, ...]:
    """Return the numbers of a version as ``>=3.12`` names it."""
    return tuple(int(part) for part in runtime.removeprefix(">=").split("."))


def _with_secret(
    entry: CatalogEntry, command: tuple[str, ...] | None, path: str | None, secret: Sequence[str]
) -> Start:
    """A program of node whose arguments do not stand on its command line, where every user could read them."""
    node = _which("node", path)
    if command is None or node is None or sys.platform == "win32":
        raise ConfigError(
            f"The MCP server {entry.name} takes a credential as an argument, which is kept off its command line only when it is "
            f"installed. Install it with: sandbox-chat mcp add {entry.name}"
        )
    return Start((node, str(NODE_LAUNCHER), ",".join(secret), str(Path(command[-1]).resolve())))
