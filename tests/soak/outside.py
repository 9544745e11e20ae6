"""Parts of a running chat from outside: its processes, which are killed and stopped, and what it complains of."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from support.faulty import tags

from sandbox_chat.engine import Engine

PATIENCE = 120.0
"""Seconds that the warm parent may take to start on a busy machine."""


def agent_pid(engine: Engine) -> int:
    """Process id of the agent's program, 0 when none runs."""
    session = engine._session
    return session.cli_pid if session is not None else 0


def signal_agent(engine: Engine, number: signal.Signals) -> bool:
    """Send the agent's program a signal. Returns false when there is none."""
    pid = agent_pid(engine)
    if not pid:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def kill_sandbox(engine: Engine, *, parent: bool = False) -> bool:
    """Kill the sandbox, and with ``parent`` the warm parent too. Returns false when there was nothing to kill."""
    worker: Any = engine._worker
    sandbox = worker._sandbox if worker is not None else None
    started = sandbox._started if sandbox is not None else None
    pids = [started.root_pid] if started is not None else []
    if parent:
        pids += [child.pid for child in psutil.Process().children(recursive=True) if _is_parent(child)]
    killed = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    return killed


def _is_parent(process: psutil.Process) -> bool:
    try:
        return any('"warm_parent": true' in word for word in process.cmdline())
    except psutil.Error:
        return False


def wait_warm(engine: Engine) -> None:
    """Wait until the sandbox's warm parent serves, so that its start is over before anything is measured."""
    worker: Any = engine._worker
    warm = getattr(worker._warm, "__self__", None)
    if warm is not None:
        warm.wait(PATIENCE)


@contextmanager
def handed() -> Iterator[Counter[str]]:
    """Count how often each prompt is handed to a program of the agent, by tag, while it lasts.

    The endpoint alone cannot tell: a prompt that a killed program had not saved and that its successor gets again stands
    once in the successor's history, as if it had been read from there.
    """
    from claude_agent_sdk import ClaudeSDKClient

    count: Counter[str] = Counter()
    real = ClaudeSDKClient.query

    async def query(client: Any, prompt: Any, *rest: Any, **named: Any) -> None:
        async def noted() -> AsyncIterator[dict[str, Any]]:
            async for message in prompt:
                count.update(tags(str(message["message"]["content"])))
                yield message

        if isinstance(prompt, str):
            count.update(tags(prompt))
        await real(client, prompt if isinstance(prompt, str) else noted(), *rest, **named)

    ClaudeSDKClient.query = query  # type: ignore[method-assign]
    try:
        yield count
    finally:
        ClaudeSDKClient.query = real  # type: ignore[method-assign]


class Complaints(logging.Handler):
    """Keeps what the program, asyncio and threads complain of: errors, exceptions that nobody took."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        text = f"{record.name}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({record.exc_info[1]!r})"
        ours = not record.name.startswith(
            "claude_agent_sdk"
        )  # which logs the death of its program as an error
        (self.errors if ours and record.levelno >= logging.ERROR else self.warnings).append(text[:500])


@contextmanager
def complaints() -> Iterator[Complaints]:
    """Collect complaints while it lasts."""
    taken = Complaints()
    root = logging.getLogger()
    before = threading.excepthook, sys.unraisablehook

    def thread_failed(args: Any) -> None:
        taken.errors.append(f"thread {args.thread.name if args.thread else '?'}: {args.exc_value!r}"[:500])

    def unraisable(args: Any) -> None:
        taken.errors.append(f"unraisable: {args.exc_value!r} in {args.object!r}"[:500])

    root.addHandler(taken)
    threading.excepthook, sys.unraisablehook = thread_failed, unraisable
    try:
        yield taken
    finally:
        threading.excepthook, sys.unraisablehook = before
        root.removeHandler(taken)
