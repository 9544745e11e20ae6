"""Servers from GitHub: their repository is cloned once, and installed at each start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from .config import Plan
from .link import LinkClosed
from .log import Lines, Log

GITHUB = "https://github.com"


async def prepare(plan: Plan, *, folder: Path, github: str, environment: Mapping[str, str], log: Log) -> Path:
    """Return the clone of the plan's repository, made if it is not there, after the install command has run.

    Raises ``LinkClosed``.
    """
    clone = folder / plan.repository
    lines = Lines(log, plan.name)
    if not clone.is_dir():
        partial = clone.with_name(f"{clone.name}+.partial")  # no repository's name has this sign
        address = f"{github.rstrip('/')}/{plan.repository}"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            clone.parent.mkdir(parents=True, exist_ok=True)
            await _run(
                lines,
                ("git", "clone", "--quiet", "--depth", "1", "--", address, str(partial)),
                f"{address} could not be cloned",
                environment={**environment, "GIT_TERMINAL_PROMPT": "0"},
                folder=folder,
            )
            partial.rename(clone)
        except OSError as error:
            raise LinkClosed(f"its clone could not be made in {folder}: {error.strerror or error}") from None
    if plan.install:
        command = ("/bin/sh", "-c", plan.install)
        await _run(lines, command, "its installCmd did not succeed", environment=environment, folder=clone)
    return clone


async def _run(
    lines: Lines, command: Sequence[str], failure: str, *, environment: Mapping[str, str], folder: Path
) -> None:
    """Run a command to its end, its output in the log. One that is cancelled is killed with its session."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise LinkClosed(f"{failure}: {command[0]}: {error.strerror}") from None
    assert process.stdout is not None
    try:
        while data := await process.stdout.read(1 << 16):
            lines.feed(data)
        lines.end()
        code = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if code:
        raise LinkClosed(f"{failure} (exit code {code})")
