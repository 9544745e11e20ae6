"""Private database servers for tests: real PostgreSQL and Redis of Debian's packages, on loopback, gone afterwards.

``postgresql()`` and ``redis()`` are context managers that give an address with a password in it. They run as an ordinary
user, with their files in a temporary folder. They end with the test in whatever way that ends: a shell waits beside each for
the end of its input and kills it then. Raise ``NotHere`` with the reason where the program is not installed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox_chat.scratch import Scratch

ORDINARY = 65534
"""User that the servers run as when this process is root."""
PATIENCE = 60.0
DATABASE = "trial"
_GUARD = 'read -r _; kill -s KILL -- "-$1"'


class NotHere(Exception):
    """No such server can be had on this machine; the message says why."""


def postgres_program(name: str) -> str:
    """Return the path of a program of PostgreSQL, which Debian keeps off the search path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    found = str(places[-1]) if places else shutil.which(name)
    if found is None:
        raise NotHere("PostgreSQL is not installed (Debian: postgresql)")
    return found


def redis_program() -> str:
    """Return the path of Redis."""
    found = shutil.which("redis-server")
    if found is None:
        raise NotHere("Redis is not installed (Debian: redis-server)")
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """A PostgreSQL server with an empty database; gives its address."""
    initdb, postgres, ready = (postgres_program(name) for name in ("initdb", "postgres", "pg_isready"))
    password, port = secrets.token_hex(16), free_port()
    with _folder() as folder:
        secret = folder / "password"
        secret.write_text(password)
        secret.chmod(0o600)
        _give(secret)
        data = folder / "data"
        made = subprocess.run(
            [initdb, "--pgdata", str(data), "--username=trial", f"--pwfile={secret}", "--auth=scram-sha-256",
             "--no-sync", "--encoding=UTF8", "--locale=C"],
            capture_output=True, text=True, timeout=PATIENCE * 2, cwd=folder, env=_environ(folder), **_as_user(),
        )  # fmt: skip
        if made.returncode != 0:
            raise RuntimeError(f"initdb: {made.stderr[-400:]}")
        command = [
            postgres,
            "-D",
            str(data),
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
            "-k",
            str(folder),
            "-c",
            "fsync=off",
        ]

        def answers() -> bool:
            asked = [ready, "-q", "-h", "127.0.0.1", "-p", str(port)]
            return subprocess.run(asked, env=_environ(folder), timeout=PATIENCE, check=False).returncode == 0

        with _served(command, folder, answers, signal.SIGINT):
            address = f"postgresql://trial:{password}@127.0.0.1:{port}"
            psql = [postgres_program("psql"), f"{address}/postgres", "-qc", f"create database {DATABASE}"]
            subprocess.run(psql, env=_environ(folder), timeout=PATIENCE, check=True)
            yield f"{address}/{DATABASE}"


@contextmanager
def redis() -> Iterator[str]:
    """An empty Redis server; gives its address."""
    program, password, port = redis_program(), secrets.token_hex(16), free_port()
    with _folder() as folder:
        config = f'bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {folder}\nsave ""\nappendonly no\ndaemonize no\n'

        def answers() -> bool:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
                    line.sendall(f"AUTH {password}\r\nPING\r\n".encode())
                    return line.recv(100).startswith(b"+OK")
            except OSError:
                return False

        with _served([program, "-"], folder, answers, signal.SIGTERM, said=config.encode()):
            yield f"redis://:{password}@127.0.0.1:{port}"


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


@contextmanager
def _folder() -> Iterator[Path]:
    with Scratch() as scratch:
        if os.geteuid() == 0:
            scratch.chmod(0o711)
        folder = scratch / "served"
        folder.mkdir(mode=0o700)
        _give(folder)
        yield folder


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, ORDINARY, ORDINARY)


def _as_user() -> dict[str, object]:
    return {"user": ORDINARY, "group": ORDINARY, "extra_groups": []} if os.geteuid() == 0 else {}


def _environ(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C"}


@contextmanager
def _served(
    command: list[str], folder: Path, answers: Callable[[], bool], number: int, said: bytes = b""
) -> Iterator[None]:
    """Run a server until the end of the block; ``said`` is its standard input."""
    log = folder.parent / "log"
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=folder, env=_environ(folder),
            start_new_session=True, **_as_user(),
        )  # fmt: skip
        stack.callback(_end, process, number)
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(_dismiss, guard)
        assert process.stdin is not None
        process.stdin.write(said)
        process.stdin.close()
        end = time.monotonic() + PATIENCE
        while not answers():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} does not answer: {log.read_text(errors='replace')[-400:]}")
            time.sleep(0.05)
        yield


def _end(process: subprocess.Popen[bytes], number: int) -> None:
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    guard.kill()
    guard.wait()
    assert guard.stdin is not None
    guard.stdin.close()
