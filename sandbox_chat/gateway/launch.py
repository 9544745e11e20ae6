"""Starts a gateway and waits until it is ready: what the command line uses, and other parts of the program too."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import catalog as catalogue
from . import config as configuration
from .clone import GITHUB
from .errors import ConfigError, StartError
from .log import open_log, tail
from .processes import end_below
from .token_file import check_place, check_token, make_folder, remove_token

__all__ = ["ConfigError", "Running", "StartError", "start"]

PORT = 50005
HOST = "0.0.0.0"  # noqa: S104 - a sandbox is reached from outside; the token is what protects the endpoint
TOKEN_FILE = Path("/etc/mcp-gateway/.token")
LOG_FILE = Path("/var/log/mcp-gateway.log")
TIMEOUT = 55.0
"""Seconds that the servers have to start."""
GRACE = 3.0
"""Seconds after that in which the gateway itself says how it went."""
_TO_END = 12.0  # s that a gateway has to end
_MOST_REPORT = 4 << 20  # bytes of what it says
_STARTER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "import importlib; importlib.import_module(sys.argv.pop(1)).main()"
)


@dataclass(frozen=True)
class Running:
    """A gateway that serves. ``tools`` are their public names."""

    pid: int
    port: int
    servers: tuple[str, ...]
    tools: tuple[str, ...]
    _process: subprocess.Popen[bytes] = field(repr=False)

    def stop(self, limit: float = _TO_END) -> None:
        """End the gateway and all of its servers, within ``limit`` seconds and a moment."""
        _end(self._process, limit)


def start(
    config: Mapping[str, Any],
    token: str,
    *,
    port: int = PORT,
    host: str = HOST,
    token_file: Path | None = TOKEN_FILE,
    log_file: Path = LOG_FILE,
    startup_timeout: float = TIMEOUT,
    catalog: Path | None = catalogue.EXTRA,
    clones: Path | None = None,
    github: str = GITHUB,
    tied: bool = False,
) -> Running:
    """Start a gateway in the background and return when every server has listed its tools.

    ``config`` is the ``mcp`` object: the name of each server, and its properties. ``port`` 0: a free one. Without
    a ``token_file`` there is none. ``startup_timeout`` in seconds. ``catalog`` is a file that adds to the catalogue.
    Repositories are cloned from ``github`` to ``clones``. A gateway that is ``tied`` ends with this process.
    Raises ``ConfigError`` before anything is started, and ``StartError`` with the end of the log after everything that
    was started has ended.
    """
    plans, warnings = configuration.plans(config, catalogue.load(catalog))
    check_token(token)
    with contextlib.ExitStack() as stack:
        begin = _log_size(log_file)
        lock = -1
        if token_file is not None:
            lock = _lock(token_file)
            stack.callback(os.close, lock)
        listening = stack.enter_context(_listening(host, port))
        port = listening.getsockname()[1]
        order = {
            "token": token,
            "token_file": "" if token_file is None else str(token_file.absolute()),
            "log_file": str(log_file.absolute()),
            "plans": [plan.to_json() for plan in plans],
            "warnings": warnings,
            "timeout": startup_timeout,
            "clones": str((clones or _clones()).absolute()),
            "github": github,
            "host": host,
            "tied": tied,
        }
        reading, ready = os.pipe()
        stack.callback(os.close, reading)
        try:
            process = _spawn(order, (ready, listening.fileno(), lock))
        except OSError as error:
            raise StartError(f"{sys.executable} cannot be started: {error.strerror}.") from None
        finally:
            os.close(ready)
        try:
            said = _wait(reading, startup_timeout + GRACE)
            if "error" in said:
                raise StartError(said["error"])
        except BaseException as error:
            _end(process, 1.0)
            if token_file is not None:
                remove_token(token_file, token)
            ending = tail(log_file, begin)
            if isinstance(error, StartError) and ending:
                raise StartError(f"{error}\n{ending}") from None
            raise
    return Running(process.pid, port, tuple(said["servers"]), tuple(said["tools"]), process)


def _spawn(order: Mapping[str, Any], numbers: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    """Start the gateway's processes. Configuration and token go over standard input."""
    package = __package__ or "gateway"
    root = Path(__file__).resolve().parents[package.count(".") + 1]
    environment = {name: value for name, value in os.environ.items() if name != "GATEWAY_ACCESS_TOKEN"}
    process = subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(root), f"{package}.daemon", *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        pass_fds=[number for number in numbers if number >= 0],
        start_new_session=True,
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # one that has ended says so by the other pipe
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        if not order["tied"]:
            process.stdin.close()
    return process


def _wait(reading: int, limit: float) -> dict[str, Any]:
    """What the gateway says when it is ready or has failed. Raises ``StartError``."""
    deadline = time.monotonic() + limit
    data = b""
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            raise StartError(f"The gateway was not ready within {limit:g} s.")
        part = os.read(reading, 1 << 16)
        if not part or len(data) > _MOST_REPORT:
            raise StartError("The gateway ended before it was ready.")
        data += part
    said = json.loads(data)
    assert isinstance(said, dict)
    return said


def _end(process: subprocess.Popen[bytes], limit: float) -> None:
    """Ask a gateway to end; when it does not, kill it and everything below it."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        end_below(process.pid, 1.0)
        process.kill()
        process.wait()


def _lock(token_file: Path) -> int:
    """Take the lock that a gateway holds as long as it runs, and remove the token of one that has ended."""
    path = token_file.with_name(f"{token_file.name}.lock")
    file = -1
    try:
        make_folder(token_file.parent)
        check_place(token_file)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        token_file.unlink(missing_ok=True)
    except OSError as error:
        if file >= 0:
            os.close(file)
        if isinstance(error, BlockingIOError):
            raise StartError(f"A gateway runs already: it holds {path}.") from None
        raise StartError(
            f"The token file {token_file} cannot be made ({error.strerror}): run as root, or choose another place "
            "with --token-file."
        ) from None
    return file


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens. Raises ``StartError`` when the port is in use."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, number)
    except OSError as error:
        raise StartError(f"{host} is no address to listen at: {error.strerror}.") from None
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(256)
        except OSError as error:
            raise StartError(
                f"Port {port} cannot be used ({error.strerror}); perhaps a gateway runs already."
            ) from None
        yield sock


def _log_size(log_file: Path) -> int:
    """Bytes of the log so far; makes sure that it can be written."""
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        file = open_log(log_file)
    except OSError as error:
        raise StartError(
            f"The log {log_file} cannot be written ({error.strerror}): run as root, or choose another place with "
            "--log-file."
        ) from None
    with contextlib.closing(os.fdopen(file, "ab")):
        return os.fstat(file).st_size


def _clones() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/mcp-gateway")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-gateway"
