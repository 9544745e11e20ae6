"""What is tried with each server of the catalogue: its properties, the calls, and what the last answer must hold."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import databases

PAGE = (
    "<html><head><title>Trial</title></head><body><h1>Trial page</h1><p>The number is 5050.</p></body></html>"
)


@dataclass(frozen=True)
class Place:
    """What the trials need: a folder with things in it, a web page, databases; ``missing`` says why something is not there."""

    folder: Path
    page: str = ""
    postgres: str = ""
    redis: str = ""
    missing: dict[str, str] = field(default_factory=dict)

    def words(self) -> dict[str, str]:
        """What stands in braces in arguments."""
        return {"folder": str(self.folder), "page": self.page}


def _none(_there: Place) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Trial:
    """One server's trial. ``calls``: tools and arguments in order; ``expects`` must be in the answer to the last.

    ``needs``: ``postgres``, ``redis`` or ``browser``. ``reason``: why no call is made.
    """

    properties: Callable[[Place], dict[str, Any]] = _none
    environ: Callable[[Place], dict[str, str]] = _none
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    expects: str = ""
    needs: str = ""
    reason: str = ""


_BROWSER = '{"headless": true, "args": ["--no-sandbox"]}'
_AS_ROOT = os.geteuid() == 0
_ACCOUNT = "It needs an account, and the network."
TRIALS: dict[str, Trial] = {
    "filesystem": Trial(
        properties=lambda there: {"paths": [str(there.folder)]},
        calls=[("read_text_file", {"path": "{folder}/note.txt"})],
        expects="The number is 5050.",
    ),
    "git": Trial(
        properties=lambda there: {"repository": str(there.folder / "repository")},
        calls=[("git_log", {"repo_path": "{folder}/repository"})],
        expects="The first commit",
    ),
    "memory": Trial(
        properties=lambda there: {"file": str(there.folder / "memory.jsonl")},
        calls=[
            (
                "create_entities",
                {"entities": [{"name": "Gauss", "entityType": "person", "observations": ["sums to 5050"]}]},
            ),
            ("read_graph", {}),
        ],
        expects="sums to 5050",
    ),
    "fetch": Trial(
        properties=lambda _there: {"allow_private": True},
        calls=[("fetch", {"url": "{page}"})],
        expects="The number is 5050.",
    ),
    "everything": Trial(calls=[("get-sum", {"a": 2525, "b": 2525})], expects="5050"),
    "time": Trial(
        calls=[
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"})
        ],
        expects="T20:00:00+08:00",
    ),
    "sequential-thinking": Trial(
        calls=[
            (
                "sequentialthinking",
                {"thought": "One.", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True},
            )
        ],
        expects='"thoughtHistoryLength": 1',
    ),
    "sqlite": Trial(
        properties=lambda there: {"database": str(there.folder / "numbers.db")},
        calls=[("read_query", {"query": "select sum(n) as total from numbers"})],
        expects="{'total': 5050}",
    ),
    "postgres": Trial(
        environ=lambda there: {"POSTGRES_URL": there.postgres},
        calls=[("query", {"sql": "select sum(n)::text as total from generate_series(1, 100) n"})],
        expects='"total": "5050"',
        needs="postgres",
    ),
    "postgres-mcp": Trial(
        environ=lambda there: {"DATABASE_URI": there.postgres},
        calls=[("execute_sql", {"sql": "select sum(n)::int as total from generate_series(1, 100) n"})],
        expects="{'total': 5050}",
        needs="postgres",
    ),
    "redis": Trial(
        environ=lambda there: {"REDIS_URL": there.redis},
        calls=[("set", {"key": "total", "value": "5050"}), ("get", {"key": "total"})],
        expects="5050",
        needs="redis",
    ),
    "mongodb": Trial(reason="No MongoDB server can be had from Debian, PyPI or npm."),
    "greptimedb": Trial(reason="No GreptimeDB server can be had from Debian, PyPI or npm."),
    "semgrep": Trial(calls=[("deprecation_notice", {})], expects="deprecated"),
    "puppeteer": Trial(
        properties=lambda _there: {"options": _BROWSER, "allow_dangerous": True} if _AS_ROOT else {},
        calls=[
            ("puppeteer_navigate", {"url": "{page}"}),
            ("puppeteer_evaluate", {"script": "document.title + ' ' + document.body.innerText"}),
        ],
        expects="The number is 5050.",
        needs="browser",
    ),
    "sentry": Trial(environ=lambda _there: {"SENTRY_TOKEN": "no-token"}, reason=_ACCOUNT),
    "unstructured": Trial(environ=lambda _there: {"UNSTRUCTURED_API_KEY": "no-key"}, reason=_ACCOUNT),
    "mcp-installer": Trial(
        calls=[("install_local_mcp_server", {"path": "{folder}/nothing"})], expects="does not exist locally"
    ),
}


@contextmanager
def place(names: Sequence[str]) -> Iterator[Place]:
    """Everything that the trials of these servers need."""
    needed = {TRIALS[name].needs for name in names}
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcp-trial-")))
        fill(folder)
        page = stack.enter_context(_page())
        found = {}
        for name, start in (("postgres", databases.postgresql), ("redis", databases.redis)):
            if name in needed:
                try:
                    found[name] = stack.enter_context(start())
                except databases.NotHere as reason:
                    missing[name] = str(reason)
        if not any(map(shutil.which, ("chromium", "google-chrome", "google-chrome-stable"))):
            missing["browser"] = "no browser is installed (Debian: chromium)"
        yield Place(folder, page, missing=missing, **found)


def fill(folder: Path) -> None:
    """Put a file, a repository and a database into a folder."""
    (folder / "note.txt").write_text("The number is 5050.\n")
    repository = folder / "repository"
    repository.mkdir()
    (repository / "note.txt").write_text("The number is 5050.\n")
    who = ["-c", "user.name=Trial", "-c", "user.email=trial@example.com"]
    for arguments in (
        ["init", "-q"],
        ["add", "note.txt"],
        [*who, "commit", "-q", "--no-gpg-sign", "-m", "The first commit"],
    ):
        subprocess.run(["git", *arguments], cwd=repository, check=True, timeout=60)
    with contextlib.closing(sqlite3.connect(folder / "numbers.db")) as database:
        database.execute("create table numbers (n integer)")
        database.executemany("insert into numbers values (?)", [(n,) for n in range(1, 101)])
        database.commit()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path == "/page.html"
        body = PAGE.encode() if found else b"not here"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _page() -> Iterator[str]:
    """A web server on loopback with one page; gives its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/page.html"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
