"""Installing servers of the catalogue: each in an environment of its own under the data folder.

One environment for each Python server, because they ask for versions of libraries that exclude each other; one folder of
npm packages for each of node's. An environment is made in a new folder and counts only when ``installed.json``, which is
put in its place at once, names it: one that was not finished is never used, and is removed by the next attempt. No script
of a package is run by installing it, but for the few that the catalogue says are built from source.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.mcp import program
from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.installer import Failed, run
from sandbox_chat.mcp.program import installed, installed_version
from sandbox_chat.text import clean_line

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry

__all__ = ["InstallError", "install", "installed", "installed_version", "remove"]

TIMEOUT = 900.0
"""Seconds that one installation may take."""
LOG = "install.log"
LOG_LIMIT = 1_000_000
_ENVIRONMENT = "env-"
_PYTHONS = ("python3.13", "python3.12", "python3.14", "python3", "python3.11")
_PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
_PROBE_TIME = 30.0
_NO_ROOM = 1_000_000
_ASKED = (
    "import importlib.metadata, json, sys; print(json.dumps(importlib.metadata.requires(sys.argv[1]) or []))"
)
_NAME = re.compile(r"[\w.-]*", re.ASCII)
_KEPT = re.compile(
    r"(?i)(uv|pip|pyenv|npm_config|lc|xdg)_\w+|(https?|all|no)_proxy|ssl_cert_(file|dir)|node_extra_ca_certs|"
    r"requests_ca_bundle|home|path|lang|tmpdir|user|logname|shell|term"
)
"""Variables that an installer gets: no credential of the program is among them."""


class InstallError(McpError):
    """A server cannot be installed or removed. The message is a sentence for the user."""


def install(
    entry: CatalogEntry,
    data: Path,
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> tuple[str, ...]:
    """Install a server in the version that was tried and return the command that starts it. Takes a minute or so.

    ``data`` is the data folder. ``say`` gets what the installer says, line by line, clean. What was installed before stays
    in use until the new one is complete. Raises ``InstallError``.
    """
    environ = os.environ if environ is None else environ
    passed = {name: value for name, value in environ.items() if _KEPT.fullmatch(name)}
    passed |= entry.install_environment
    home = program.folder(entry, data)
    deadline = time.monotonic() + timeout
    try:
        with _alone(entry, data):
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            _sweep(home, str(program.record(entry, data).get("folder", "")))
            place = home / f"{_ENVIRONMENT}{secrets.token_hex(4)}"
            try:
                steps = _of_python if entry.registry == "pypi" else _of_node
                found = steps(entry, place, passed, _runner(entry, home / LOG, passed, deadline, say))
                _record(entry, home, place, found)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            _sweep(home, place.name)
    except OSError as error:
        raise InstallError(
            f"The MCP server {entry.name} could not be installed in {home}: {error.strerror or error}."
        ) from None
    command = installed(entry, data, environ)
    if command is None:
        raise InstallError(
            f"The MCP server {entry.name} was installed in {home}, but its program is not there."
        )
    return command


def remove(entry: CatalogEntry, data: Path) -> bool:
    """Remove what was installed of a server; return whether there was anything. Its own files stay.

    Raises ``InstallError`` when it cannot be removed.
    """
    home = program.folder(entry, data)
    if not home.exists():
        return False
    try:
        with _alone(entry, data):
            (home / program.INSTALLED).unlink(missing_ok=True)
            shutil.rmtree(home)
    except OSError as error:
        raise InstallError(
            f"The MCP server {entry.name} could not be removed from {home}: {error.strerror or error}."
        ) from None
    return True


# -- the two kinds -----------------------------------------------------------------------------------------

Runner = Callable[[Sequence[str]], None]


def _of_python(entry: CatalogEntry, place: Path, environ: Mapping[str, str], call: Runner) -> Path:
    """Make an environment of Python with a server in it; return its program."""
    python = find_python(entry, environ)
    call([python, "-m", "venv", str(place)])
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    pip += [
        "--progress-bar=off",
        "--only-binary=:all:",
        *(f"--no-binary={name}" for name in entry.from_source),
    ]
    package = f"{entry.package}=={entry.version}"
    if entry.instead:  # what it asks for is not to be had any more, and pip takes no other word for it
        call([*pip, "--no-deps", package])
        said = _answer([str(place / "bin" / "python"), "-I", "-c", _ASKED, entry.package], environ)
        if not said:
            raise InstallError(f"What the package {entry.package} needs beside it cannot be read.")
        asked: list[str] = json.loads(said)
        kept = [each for each in asked if _name(each) not in entry.instead]
        call([*pip, *kept, *entry.instead.values(), *entry.requires])
    else:
        call([*pip, package, *entry.requires])
    return place / "bin" / entry.program


def _of_node(entry: CatalogEntry, place: Path, environ: Mapping[str, str], call: Runner) -> Path:
    """Install a server's package and what it needs in a folder; return its program."""
    npm = shutil.which("npm", path=environ.get("PATH"))
    node = shutil.which("node", path=environ.get("PATH"))
    if npm is None or node is None:
        raise InstallError(f"The MCP server {entry.name} needs node and npm, which are not installed.")
    version = _answer([node, "--version"], environ).removeprefix("v")
    if _numbers(version) < program.oldest(entry.runtime):
        raise InstallError(
            f"The MCP server {entry.name} needs node {entry.runtime}; {node} is {version or 'broken'}."
        )
    place.mkdir(mode=0o700)
    call(
        [npm, "install", "--prefix", str(place), "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev",
         "--no-update-notifier", f"{entry.package}@{entry.version}"]
    )  # fmt: skip
    package = place / "node_modules" / entry.package
    programs = json.loads((package / "package.json").read_text(encoding="utf-8")).get("bin")
    path = programs.get(entry.program) if isinstance(programs, dict) else programs
    if not isinstance(path, str):
        raise InstallError(f"The package {entry.package} has no program {entry.program}.")
    return package / path


def find_python(entry: CatalogEntry, environ: Mapping[str, str]) -> str:
    """Return an interpreter that is new enough for a server and can make environments. Raises ``InstallError``."""
    wanted = program.oldest(entry.runtime)
    there = (shutil.which(name, path=environ.get("PATH")) for name in _PYTHONS)
    for path in dict.fromkeys([sys.executable, *(each for each in there if each), *_kept_pythons(environ)]):
        if _numbers(_answer([path, "-I", "-c", _PROBE], environ)) >= wanted:
            return path
    raise InstallError(
        f"The MCP server {entry.name} needs Python {entry.runtime} with venv and pip, which is not installed. Install that, or uv, "
        "which brings it along."
    )


def _kept_pythons(environ: Mapping[str, str]) -> list[str]:
    """Return interpreters that managers of versions keep, which need not be on the search path; the newest first."""
    home = Path(environ.get("HOME") or os.devnull)
    root = environ.get("PYENV_ROOT")
    places = [
        *([Path(root) / "versions"] if root else home.glob(".*/versions")),
        home / ".local/share/uv/python",
    ]
    searched = map(Path, environ.get("PATH", "").split(os.pathsep))
    places += [path.parent / "versions" for path in searched if path.name == "shims"]
    found = [path for place in places for path in place.glob("*3.*/bin/python3")]
    return [str(path) for path in sorted(found, key=lambda path: _numbers(path.parts[-3]), reverse=True)]


def _answer(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return what a short program prints, empty when it fails."""
    try:
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIME,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def _name(requirement: str) -> str:
    """Return the name of the package that a requirement is about."""
    found = _NAME.match(requirement)
    return found[0].lower() if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


# -- what both need ----------------------------------------------------------------------------------------


def _runner(
    entry: CatalogEntry, log: Path, environ: Mapping[str, str], deadline: float, say: Callable[[str], None]
) -> Runner:
    """Return what runs the steps of an installation until ``deadline``, with one log for all of them."""
    log.unlink(missing_ok=True)

    def call(command: Sequence[str]) -> None:
        try:
            run(command, environ, log, say, log_limit=LOG_LIMIT, timeout=deadline - time.monotonic())
        except Failed as failed:
            said = clean_line(str(failed), 400).rstrip(".")
            if shutil.disk_usage(log.parent).free < _NO_ROOM:  # pip does not always say so
                said = f"there is no room left on the disk of {log.parent}"
            raise InstallError(
                f"The MCP server {entry.name} could not be installed: {said}. Its log: {log}"
            ) from None

    return call


def _record(entry: CatalogEntry, home: Path, place: Path, found: Path) -> None:
    """Say that an environment is complete; from now on it is the one that counts."""
    if not found.is_file():
        raise InstallError(f"The package {entry.package} {entry.version} has no program {entry.program}.")
    told: dict[str, Any] = {
        "format": program.FORMAT, "package": entry.package, "version": entry.version, "requires": [*entry.requires, *entry.instead.values()],
        "folder": place.name, "program": str(found.relative_to(place)),
    }  # fmt: skip
    part = home / f"{program.INSTALLED}.part"
    with part.open("w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(home / program.INSTALLED)


def _sweep(home: Path, keep: str) -> None:
    """Remove the environments of a server that do not count."""
    for path in home.glob(f"{_ENVIRONMENT}*"):
        if path.name != keep:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _alone(entry: CatalogEntry, data: Path) -> Iterator[None]:
    """Keep other processes from installing or removing the same server. Raises ``InstallError`` when one does."""
    folder = program.folder(entry, data).parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(folder / f".{entry.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if sys.platform != "win32":
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InstallError(
                    f"The MCP server {entry.name} is being installed or removed by another process. Wait for it."
                ) from None
        yield
    finally:
        os.close(fd)
