"""Every server of the catalogue, installed and called: what is found is what the catalogue says."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support import catalogue_check, databases
from support.catalogue_trials import TRIALS

from sandbox_chat.mcp import catalog, install
from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.connection import Connection

ENTRIES = catalog.load()
CI = bool(os.environ.get("CI"))
pytestmark = pytest.mark.slow


def lacking(name: str) -> str:
    """Why a server cannot be tried on this machine; empty if it can."""
    if ENTRIES[name].registry == "npm" and shutil.which("npm") is None:
        return "node and npm are not installed"
    try:
        if ENTRIES[name].registry == "pypi":
            install.find_python(ENTRIES[name], os.environ)
        if TRIALS[name].needs == "postgres":
            databases.postgres_program("postgres")
        elif TRIALS[name].needs == "redis":
            databases.redis_program()
    except (databases.NotHere, McpError) as reason:
        return str(reason)
    if TRIALS[name].needs == "browser" and not shutil.which("chromium"):
        return "no browser is installed (Debian: chromium)"
    return "" if sys.platform == "linux" else "the check runs on Linux"


@pytest.mark.parametrize("name", ENTRIES)
def test_the_catalogue_says_what_is_found(name: str) -> None:
    needs(name)
    finding = catalogue_check.run([name], catalogue_check.cache())[0]
    assert finding.trouble == ""
    found, told = dataclasses.asdict(finding.checked), dataclasses.asdict(ENTRIES[name].checked)
    # The libraries beneath a server write parts of its schemas, and newer ones write them otherwise.
    assert found.pop("size") == pytest.approx(told.pop("size"), rel=0.25)
    assert found == told


def needs(*names: str) -> None:
    """Skip where one of these servers cannot be tried; in CI that is a failure."""
    for name in names:
        if reason := lacking(name):
            assert not CI, f"{name} must be tried in CI: {reason}"
            pytest.skip(reason)


@contextlib.asynccontextmanager
async def connected(name: str, environ: dict[str, str], log: Path) -> AsyncIterator[Connection]:
    """A connection to a server of the catalogue, which is installed if need be."""
    data = catalogue_check.cache()
    if install.installed(ENTRIES[name], data) is None:
        install.install(ENTRIES[name], data, lambda _line: None)
    config = ENTRIES[name].config({}, {**os.environ, **environ}, data)
    connection = Connection(config, catalogue_check.SETTINGS, log)
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


def command_lines() -> str:
    """The command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(found)


@pytest.mark.parametrize(
    ("name", "variable", "server"),
    [
        ("redis", "REDIS_URL", databases.redis),
        ("postgres", "POSTGRES_URL", databases.postgresql),
        ("postgres-mcp", "DATABASE_URI", databases.postgresql),
    ],
)
async def test_a_password_is_in_no_command_line_and_no_log(
    name: str, variable: str, server: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    needs(name)
    with server() as address:
        password = urlsplit(address).password or ""
        async with connected(name, {variable: address}, tmp_path / "log") as connection:
            assert connection.tools
            lines = command_lines()
            assert "launch_node.mjs" in lines or ENTRIES[name].registry == "pypi"
            assert password not in lines
    assert len(password) > 20
    assert password not in (tmp_path / "log").read_text()


async def test_the_risk_of_postgres_is_real(tmp_path: Path) -> None:
    needs("postgres")
    with databases.postgresql() as address:
        async with connected("postgres", {"POSTGRES_URL": address}, tmp_path / "log") as connection:
            with pytest.raises(McpError, match="read-only transaction"):
                await connection.call("query", {"sql": "create table plain (n integer)"})
            await connection.call("query", {"sql": "commit; create table written (n integer)"})
            found = await connection.call(
                "query", {"sql": "select tablename from pg_tables where schemaname='public'"}
            )
    assert "written" in str(found.content) and "plain" not in str(found.content)


HELD = """
import sys, time
from support import databases
with getattr(databases, sys.argv[1])() as address:
    print(address, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("name", ["postgresql", "redis"])
def test_a_database_ends_with_its_test_also_when_that_is_killed(name: str) -> None:
    needs({"postgresql": "postgres"}.get(name, name))
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    held = subprocess.Popen(
        [sys.executable, "-c", HELD, name], stdout=subprocess.PIPE, env=environ, text=True
    )
    assert held.stdout is not None
    with held.stdout:
        port = urlsplit(held.stdout.readline().strip()).port
        assert port is not None and listens(port)
        held.kill()
        held.wait()
    end = time.monotonic() + 20
    while listens(port) and time.monotonic() < end:
        time.sleep(0.1)
    assert not listens(port)


def listens(port: int) -> bool:
    """Whether anything takes connections there."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0
