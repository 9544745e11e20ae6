"""``sandbox-chat serve --http`` as other programs meet it: the real program, with the demo model, and a client of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from support.program import PROGRAM, environment, wait_until

PATIENCE = 120.0
"""Seconds that anything may take on a busy machine before a test gives up."""
DATA = ".local/share/sandbox-chat"


class Serving:
    """A server: its address, its token, what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], home: Path, said: Path) -> None:
        self.process = process
        self.home = home
        self._said = said
        found: re.Match[str] = wait_until(
            lambda: re.search(r"Serving at (\S+); (.*)", self.said), PATIENCE, "the address"
        )
        self.url = found[1]
        place = re.fullmatch(r"the token is in (\S+)", found[2])
        self.token = Path(place[1]).read_text(encoding="ascii").strip() if place else ""
        wait_until(
            lambda: httpx.get(self.url + "/health", timeout=PATIENCE).status_code == 200,
            PATIENCE,
            "its start",
        )

    @property
    def said(self) -> str:
        """All of stderr so far."""
        return self._said.read_text(encoding="utf-8")

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        """What opens it."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The lines of its structured log (with ``--log-json``) about one kind of thing."""
        found = [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]
        return [each for each in found if each["event"] == event]

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request with the token."""
        headers = {**self.headers, **options.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=PATIENCE, **options)

    def task(self, user: str, task: str, session: str = "") -> dict[str, Any]:
        """Run a task; returns its result."""
        body = {"userId": user, "task": task, **({"session": session} if session else {})}
        answer = self.request("POST", "/task", json=body)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        return result

    def client(self) -> httpx.AsyncClient:
        """A client that has many requests at a time."""
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, headers=self.headers, timeout=PATIENCE, limits=limits)

    def counts(self) -> dict[str, float]:
        """The metrics, by name and labels."""
        return counts_of(self.request("GET", "/metrics").text)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def counts_of(text: str) -> dict[str, float]:
    """The figures of metrics by their names without the program's and their labels."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name.removeprefix("sandbox_chat_")] = float(value)
    return found


def adds_up(counts: dict[str, float]) -> bool:
    """True when each task that was taken is somewhere."""
    ended = sum(value for name, value in counts.items() if name.startswith("tasks_finished_total"))
    return counts["tasks_accepted_total"] == ended + counts["tasks_running"] + counts["tasks_queued"]


@contextmanager
def serving(home: Path, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Serving]:
    """A server with the demo model on a free port; killed at the end if it still runs. It must write nothing on stdout."""
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    said = home / "said.txt"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [*PROGRAM, "serve", "--demo", "--http", "0", *arguments],
            env=environment(home, env),
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        try:
            yield Serving(process, home, said)
        finally:
            process.kill()
            out, _ = process.communicate()
            assert out == b""
