"""Running pip and npm: bounded in time and output, and ended with this program, however that ends."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from sandbox_chat.text import clean_line

_LONGEST_LINE = 4000
_TAIL = 30
_LOOK = 0.05
_DRAIN = 2.0
_CREDENTIAL = re.compile(r"(?<=//)[^/@\s]+@")
_TELLING = re.compile(r"(?i)\s*(error\b|npm (err!|error))")
_UNREACHABLE = re.compile(
    r"(?i)failed to establish a new connection|name resolution|network is unreachable|connection refused|timed out"
    r"|\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b"
)
_NOTHING_FOUND = "(from versions: none)"
"""What pip says of a package that does not exist, and of every one when it reaches nothing."""
_NOISE = re.compile(r"(?i)npm (err!|error)\s*(A complete log|code \w+$|errno|syscall|\d{4}-)")
GUARD = 'read -r _; kill -s KILL -- "-$1"'
"""Waits for the end of its input, which is the end of the program; then ends the installer's group."""


class Failed(Exception):
    """An installer did not succeed; the message says why in its own words, or that it took too long."""


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    log: Path,
    say: Callable[[str], None],
    *,
    log_limit: int,
    timeout: float,
) -> None:
    """Run an installer to its end. Its output goes to ``say``, line by line (from a thread), and to the end of ``log``.

    Raises ``Failed``, and ``OSError`` when it cannot be started. Nothing of it is left in any case.
    """
    if timeout <= 0:
        raise Failed("it took too long")
    process = subprocess.Popen(
        command,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        start_new_session=True,
    )
    guard = None
    tail: collections.deque[str] = collections.deque(maxlen=_TAIL)
    assert process.stdout is not None
    reader = threading.Thread(
        target=_read, args=(process.stdout, log, log_limit, say, tail), name="mcp-install", daemon=True
    )
    try:
        guard = _guard(process.pid)
        reader.start()
        ended = _wait(process, timeout)
    finally:
        # The leader is not yet waited for, so its number is still the group's.
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        if guard is not None:
            guard.kill()
            guard.wait()
            assert guard.stdin is not None
            guard.stdin.close()
        process.wait()
        if reader.ident is not None:
            reader.join(_DRAIN)
        if not reader.is_alive():  # else something holds the other end, and closing would wait for it
            process.stdout.close()
    if not ended:
        raise Failed(f"it took longer than {timeout:.0f} s")
    if process.returncode != 0:
        raise Failed(_reason(list(tail)) or f"its installer ended with status {process.returncode}")


def _wait(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for the end of a process without taking it from the kernel's table; ``False`` when it takes too long."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(_LOOK)
    return False


def _guard(group: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", GUARD, "sandbox-chat", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.defpath},
        start_new_session=True,
    )


def _read(
    stream: IO[bytes], log: Path, log_limit: int, say: Callable[[str], None], tail: collections.deque[str]
) -> None:
    """Read what an installer says until its end. A log that cannot be written does not stop it."""
    with contextlib.ExitStack() as stack:
        file = None
        with contextlib.suppress(OSError):
            file = stack.enter_context(log.open("ab", buffering=0))
        while raw := _line(stream):
            line = _CREDENTIAL.sub("[secret]@", clean_line(raw.decode(errors="replace"), 500))
            if not line:
                continue
            tail.append(line)
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                say(line)
            if file is not None and file.tell() < log_limit:
                with contextlib.suppress(OSError):
                    file.write(line.encode() + b"\n")


def _line(stream: IO[bytes]) -> bytes:
    try:
        return stream.readline(_LONGEST_LINE)
    except ValueError:  # closed at the end of the installation
        return b""


def _reason(tail: Sequence[str]) -> str:
    """Return the line that tells best why an installer failed."""
    if full := next((line for line in tail if "no space left" in line.lower()), ""):
        return full
    telling = [line for line in tail if _TELLING.match(line) and not _NOISE.match(line)]
    away = [line[found.start() :] for line in tail if (found := _UNREACHABLE.search(line))]
    if away and telling and (_UNREACHABLE.search(" ".join(telling)) or _NOTHING_FOUND in telling[0]):
        return f"the package registry cannot be reached, check the network ({clean_line(away[-1], 120)})"
    return telling[0] if telling else tail[-1] if tail else ""
