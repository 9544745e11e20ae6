"""Starts an MCP server, and ends it with all that it started when the program ends, however that ends.

This file is run as a program of its own (``python -I -S launch_server.py CONTROL LOG LIMIT SECRETS COMMAND…``)
between the program and the server. It imports nothing of ours. The server has its input, output and environment from
the program directly, and a session of its own. What it writes on its standard error is kept here:

``CONTROL``
    a pipe whose other end only the program holds: its end is the order to end the server;
``LOG``, ``LIMIT``
    file for the standard error, and how many bytes of it are kept, the latest; an older part is in ``LOG.1``;
``SECRETS``
    names of variables, and places in the command as ``WORD:BEGIN:END``, with commas: what is there is not written.

At the end one JSON object goes to this program's own standard error: ``status`` (of the server's end, negative for a
signal), ``problem`` (why it could not be started), ``tail`` (the last that it wrote on its standard error).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import stat
import sys
import time

GRACE = 0.2
"""Seconds from the order to end until the server is asked to: its input has ended, and most end by that."""
TERM = 0.4
"""Seconds from then until it is killed."""
LAST = 3.0
"""Seconds that what is killed may take to be gone."""
TAIL = 2000
"""Characters of the end of the standard error that are reported."""
LINE = 8192
"""Bytes of the longest line that is written in one piece."""
PIECE = 65_536
SHORTEST = 4
"""Characters of the shortest secret: a shorter one would spoil the text and hide nothing."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGNS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


class Log:
    """A private file that keeps the latest of what is written. A disk that takes nothing costs only the file.

    Two programs may write to the same file; who begins it anew moves it, and the other follows.
    """

    def __init__(self, path: str, limit: int, secrets: list[str]) -> None:
        self._path = path
        self._half = max(limit // 2, 1)
        self._secrets = sorted((each for each in secrets if len(each) >= SHORTEST), key=len, reverse=True)
        self._fd = -1
        self._rest = b""
        self.tail = ""

    def take(self, data: bytes) -> None:
        """Write what the server wrote, as far as its lines are whole."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if lines:
            self._write(b"\n".join(lines) + b"\n")
        if len(self._rest) > LINE:
            self._write(self._rest + b"\n")
            self._rest = b""

    def end(self) -> None:
        """Write the last line, if it was not whole."""
        if self._rest:
            self._write(self._rest + b"\n")
            self._rest = b""

    def say(self, words: str) -> None:
        """Write a line of this program."""
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        self._put(f"--- {now} {words}\n".encode())

    def _write(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace").translate(_SIGNS)
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        self.tail = (self.tail + text)[-TAIL:]
        self._put(text.encode("utf-8", "replace"))

    def _put(self, data: bytes) -> None:
        if not self._path:
            return
        data = data[-self._half :]
        with contextlib.suppress(OSError):
            self._open(len(data))
            os.write(self._fd, data)

    def _open(self, size: int) -> None:
        held = os.fstat(self._fd) if self._fd >= 0 else None
        try:
            named = os.stat(self._path)  # noqa: PTH116 - this program starts quicker without pathlib
        except FileNotFoundError:
            named = None
        full = named is not None and stat.S_ISREG(named.st_mode) and named.st_size + size > self._half
        if held is not None:
            if named is not None and (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) and not full:
                return
            os.close(self._fd)
            self._fd = -1
        if full:
            os.replace(self._path, self._path + ".1")  # noqa: PTH105
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, 0o600)
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.fchmod(self._fd, 0o600)


def prctl(option: int, value: int) -> None:
    """Set a property of this process where the system knows such."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(command: list[str], errors: int) -> tuple[int, str]:
    """Start the server with its standard error at ``errors``. Returns its process id, and why it could not be started."""
    told, tell = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(tell)
        problem = os.read(told, 200).decode("utf-8", "replace")
        os.close(told)
        return pid, problem
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        os.dup2(errors, 2)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(tell, (error.strerror or "it cannot be run").encode())
    except ValueError:
        os.write(tell, b"its command holds a NUL")
    finally:
        os._exit(127)


def family() -> list[int]:
    """Return the process ids of all that descends from this process, as far as the system tells."""
    parents: dict[int, int] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
                parents[int(name)] = int(fields[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    found.discard(os.getpid())
    return list(found)


def send(pid: int, number: int) -> None:
    """Send a signal to the server's group and to everything that descends from it."""
    with contextlib.suppress(OSError):
        os.killpg(pid, number)
    for each in family():
        with contextlib.suppress(OSError):
            os.kill(each, number)


class Watch:
    """Waits for the server's end, or for the order to end it, and keeps what it writes meanwhile."""

    def __init__(self, pid: int, control: int, errors: int, log: Log) -> None:
        self.pid = pid
        self.status: int | None = None
        self.alone = False
        """Nothing is left of what the server started."""
        self._control = control
        self._errors = errors
        self._log = log
        self._woken, wake = os.pipe()
        for fd in (self._woken, wake, errors):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._poll = select.poll()
        for fd in (control, errors, self._woken):
            self._poll.register(fd, select.POLLIN)

    def wait(self, seconds: float | None, *, order: bool = True) -> bool:
        """Wait ``seconds`` for the server's end. Returns whether an order to end came; without ``order`` none does."""
        end = None if seconds is None else time.monotonic() + seconds
        self._reap()
        while self.status is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            if self._turn(left) and order:
                return True
        return False

    def gone(self, seconds: float) -> bool:
        """Wait ``seconds`` until nothing is left of what the server started."""
        end = time.monotonic() + seconds
        self._reap()
        while not self.alone and time.monotonic() < end:
            self._turn(0.02)
            self._reap()
        return self.alone

    def drain(self) -> None:
        """Take what is left in the pipe."""
        for _ in range(16):  # what a process outside may still write has no end
            if not self._take():
                break
        self._log.end()

    def _turn(self, left: float | None) -> bool:
        ordered = False
        for fd, _ in self._poll.poll(None if left is None else left * 1000):
            if fd == self._errors:
                if not self._take():
                    self._poll.unregister(fd)
            elif fd == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
                self._reap()
            elif not os.read(self._control, 1):
                self._poll.unregister(fd)
                ordered = True
        return ordered

    def _take(self) -> bool:
        try:
            data = os.read(self._errors, PIECE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._log.take(data)
        return bool(data)

    def _reap(self) -> None:
        while not self.alone:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.alone = True
                self.status = 0 if self.status is None else self.status
                return
            if not pid:
                return
            if pid == self.pid:
                self.status = os.waitstatus_to_exitcode(status)


def secret(place: str, command: list[str]) -> str:
    """Return the value of a variable, or the part of the command at ``WORD:BEGIN:END``."""
    word, colon, rest = place.partition(":")
    if not colon:
        return os.environ.get(place, "")
    begin, _, end = rest.partition(":")
    return command[int(word)][int(begin) : int(end)]


def report(log: Log, status: int | None, problem: str) -> None:
    """Tell the program how the server ended."""
    words = json.dumps({"status": status, "problem": problem, "tail": log.tail})
    with contextlib.suppress(OSError):
        os.write(2, words.encode() + b"\n")


def main() -> None:
    """Start the server, wait for its end or for the order to end it, and leave nothing of it."""
    control, path, limit, names, *command = sys.argv[1:]
    secrets = [secret(name, command) for name in names.split(",")]
    log = Log(path, int(limit), secrets)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.set_inheritable(int(control), False)
    errors, error_end = os.pipe()
    log.say("started")
    pid, problem = start(command, error_end)
    os.close(error_end)
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - so that the server's pipes end with the server
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    watch = Watch(pid, int(control), errors, log)
    if watch.wait(None):
        watch.wait(GRACE, order=False)
    for number, seconds in ((signal.SIGTERM, TERM), (signal.SIGKILL, LAST / 2), (signal.SIGKILL, LAST / 2)):
        if watch.alone or watch.gone(0):
            break
        send(pid, number)
        watch.gone(seconds)
    if sys.platform != "linux":  # there it is not known what is left of the group
        send(pid, signal.SIGKILL)
    watch.drain()
    status = watch.status
    ended = "was not started" if problem else f"ended with status {status}"
    log.say(ended if status is not None else "could not be ended")
    report(log, status, problem)


if __name__ == "__main__":
    try:
        main()
    except OSError as failure:
        if failure.errno != errno.EPIPE:
            raise
