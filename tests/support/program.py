"""Running the installed program as a user does, and finding what it leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

PROGRAM = [sys.executable, "-m", "sandbox_chat"]
_PR_SET_CHILD_SUBREAPER = 36


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment with a home of its own and nothing of the caller's but the path."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SANDBOX_CHAT_DEMO_PACE": "0.001",
        **(extra or {}),
    }


@dataclass
class Ended:
    """A finished run: exit code, what it wrote, the events of a ``--json`` run."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    events: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def answer(self) -> str:
        """The text blocks of the answer."""
        return "\n".join(event["text"] for event in self.of("text"))

    def results(self) -> list[str]:
        """The text of each tool result, in order."""
        return [
            "\n".join(part["text"] for part in event["content"] if part["type"] == "text")
            for event in self.of("tool_finished")
        ]


def run(
    *arguments: str,
    home: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float = 120,
) -> Ended:
    """Run the program to its end. Lines of JSON on stdout become ``events``."""
    folder = cwd or home / "work"
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    done = subprocess.run(
        [*PROGRAM, *arguments],
        env=environment(home, env),
        cwd=folder,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    events = []
    for line in done.stdout.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict) and "type" in value:
                events.append(value)
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - start, events)


@contextlib.contextmanager
def watching_leftovers() -> Iterator[Callable[[], list[str]]]:
    """Adopt orphans of the programs run inside, so that what they leave behind can be listed.

    Yields a function that returns the command lines of the processes that are still there.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}

    def left() -> list[str]:
        found = []
        for child in me.children(recursive=True):
            if child.pid in before:
                continue
            with contextlib.suppress(psutil.Error):
                if child.status() == psutil.STATUS_ZOMBIE:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(child.pid, os.WNOHANG)
                    continue
                found.append(" ".join(child.cmdline())[:200] or child.name())
        return found

    try:
        yield left
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for child in me.children(recursive=True):
            if child.pid not in before:
                with contextlib.suppress(psutil.Error):
                    child.kill()


def gone_within(seconds: float, left: Callable[[], list[str]]) -> list[str]:
    """Wait until nothing is left, at most ``seconds``; return what still is."""
    end = time.monotonic() + seconds
    while (found := left()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def journals(home: Path) -> list[Path]:
    """The event files of all sessions under a home."""
    return sorted(home.glob(".local/share/sandbox-chat/sessions/*/events.jsonl"))


def journal_events(home: Path) -> list[dict[str, Any]]:
    """The events of the only session under a home."""
    (path,) = journals(home)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def wait_until(ready: Callable[[], Any], seconds: float, what: str) -> Any:
    """Poll until ``ready`` returns something true and return it; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ValueError, OSError):
            if value := ready():
                return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)
