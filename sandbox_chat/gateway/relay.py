"""The gateway's keeper inside a sandbox: starts it when it is told to, and carries the host's connections to it.

Standard library only. The host holds the other end of its stream (see ``channels``) and sends ``{"op": "start", "id",
"config", "token", "timeout"}``. The answer is ``{"op": "ready", "id", "servers", "tools"}`` (their numbers) or ``{"op": "failed", "id",
"text", "missing"}``; ``missing`` are packages that the gateway needs and that are not installed. A gateway that
is well is left as it is. When the stream ends, this ends, and with it the gateway and all of its servers.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from .channels import Carrier

PORT = 50005
"""Where the gateway listens, on loopback inside the sandbox."""
NEEDED = ("mcp", "uvicorn", "starlette")
"""Packages that the gateway needs."""
MAX_TEXT = 8000
"""Characters of the text of a failure: its end, where the reason is."""
GRACE = 10.0
"""Seconds beyond its own time limit after which a start that has not ended is given up."""
FOLDER = ".mcp-gateway"
"""Folder in the home folder inside: the gateway's log and token, and its servers' programs."""
_MAX_REPORT = 1 << 16
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_KILL_PASSES = 50
_SCRIPT = """#!{python}
import sys
from {module} import {first}
sys.argv[0] = {name!r}
sys.exit({call}())
"""


class Relay:
    """Keeps one gateway. All in one thread."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._carrier = Carrier(
            reader,
            writer,
            on_word=self._on_word,
            connect=lambda: ("127.0.0.1", PORT),
            on_tick=self._tick,
            longest_word=8 << 20,
        )
        self._starter = 0
        """Process that starts the gateway, 0 when none does."""
        self._report = -1
        self._said = bytearray()
        self._number = 0
        self._deadline = 0.0
        self._ready: dict[str, Any] | None = None

    def run(self) -> NoReturn:
        """Serve until the host is gone."""
        try:
            self._carrier.run()
        finally:
            end_all()
            os._exit(0)

    def _on_word(self, word: dict[str, Any]) -> None:
        if word.get("op") != "start" or self._starter:
            return
        self._number = int(word["id"])
        if self._ready is not None and answers():
            self._carrier.say({**self._ready, "id": self._number})
            return
        self._ready = None
        end_all()
        self._deadline = time.monotonic() + float(word["timeout"]) + GRACE
        report, write = os.pipe()
        self._said.clear()
        self._starter = os.fork()
        if self._starter == 0:
            for fd in {report, self._reader, self._writer}:
                os.close(fd)
            start(word, write)
        os.close(write)
        os.set_blocking(report, False)
        self._report = report

    def _tick(self) -> None:
        if not self._starter:
            reap()
            return
        over = self._listen()
        if not over and time.monotonic() < self._deadline:
            return
        os.close(self._report)
        self._starter = 0
        try:
            said = json.loads(bytes(self._said))
        except ValueError:
            text = "The gateway gave no word." if over else "The gateway did not start in time."
            said = {"op": "failed", "text": text}
        if said.get("op") == "ready":
            self._ready = said
        else:
            end_all()
        reap()
        self._carrier.say({**said, "id": self._number})

    def _listen(self) -> bool:
        """Read what the starting process reports; True at the end of it."""
        while True:
            try:
                part = os.read(self._report, 4096)
            except BlockingIOError:
                return False
            self._said += part
            if not part or len(self._said) > _MAX_REPORT:
                return True


def start(word: dict[str, Any], report: int) -> NoReturn:
    """In a process of its own: start the gateway and write to ``report`` what came of it."""
    said: dict[str, Any]
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()
        said = _start(word)
    except BaseException as error:
        said = {"op": "failed", "text": f"{type(error).__name__}: {error}"[-MAX_TEXT:]}
    with contextlib.suppress(OSError):
        data = json.dumps(said).encode("ascii")
        while data:
            data = data[os.write(report, data) :]
    os._exit(0)


def _start(word: dict[str, Any]) -> dict[str, Any]:
    import importlib
    import importlib.util

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return {"op": "failed", "text": "", "missing": missing}
    folder = Path.home() / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(0o700)
    os.environ["PATH"] = f"{write_programs(folder / 'bin')}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    # Not known to whoever only imports this module.
    launch: Any = importlib.import_module(".launch", __package__)
    log = folder / "log"
    try:
        running = launch.start(
            word["config"],
            str(word["token"]),
            port=PORT,
            host="127.0.0.1",
            token_file=folder / "token",
            log_file=log,
            startup_timeout=float(word["timeout"]),
            catalog=None,
        )
    except launch.StartError as error:
        return {"op": "failed", "text": str(error)[-MAX_TEXT:]}
    return {"op": "ready", "servers": len(running.servers), "tools": len(running.tools)}


def write_programs(folder: Path) -> Path:
    """Write the programs of the installed packages into ``folder`` and return it.

    Only the packages are in a sandbox, not the ``bin`` beside them, whose scripts name another interpreter.
    """
    import importlib.metadata

    folder.mkdir(mode=0o700, exist_ok=True)
    for entry in importlib.metadata.entry_points(group="console_scripts"):
        path = folder / entry.name
        if path.parent != folder or path.exists() or not entry.attr:
            continue
        text = _SCRIPT.format(
            python=sys.executable,
            module=entry.module,
            first=entry.attr.partition(".")[0],
            name=entry.name,
            call=entry.attr,
        )
        with contextlib.suppress(OSError):
            path.write_text(text, "utf-8")
            path.chmod(stat.S_IRWXU)
    return folder


def answers() -> bool:
    """Whether something takes connections where the gateway does."""
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=2.0).close()
    except OSError:
        return False
    return True


def reap() -> None:
    """Wait for children that have ended: orphans of the gateway's become this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def end_all() -> None:
    """Kill every process below this one, also those that have a session of their own, until there is none."""
    poller = select.poll()
    for _ in range(_KILL_PASSES):
        found = below(os.getpid())
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap()
        if not found:
            return
        poller.poll(10)


def below(top: int) -> list[int]:
    """Ids of the living processes below ``top``."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    grown = [top]
    while grown:
        more = children.get(grown.pop(), [])
        found += more
        grown += more
    return found


def main(reader: int, writer: int) -> NoReturn:
    """Be the keeper, with the host at the other end of ``reader`` and ``writer``. Does not return."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Code, whose user is the same, cannot take hold of the stream by /proc.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nothing that is started here gets hold of the stream, also where it came as the standard streams.
    ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (reader, writer)]
    null = os.open(os.devnull, os.O_RDWR)
    for fd in {0, 1, reader, writer}:
        os.dup2(null, fd)
    Relay(*ends).run()
