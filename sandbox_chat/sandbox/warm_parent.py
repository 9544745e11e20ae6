"""The warm parent from outside: asking it for sandboxes, and the handle on each."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable
from typing import Any

from sandbox_chat.sandbox import spawn

READY_TIMEOUT = 120.0
"""Seconds that a parent may take to become ready, on a very busy machine."""
FORK_TIMEOUT = 5.0
"""Seconds that a fork may take before the parent is given up and a cold sandbox is started."""
_SAID = 2000  # bytes of a complaint that are read
_MAX_MESSAGE = 1 << 16
_KILLED = -int(signal.SIGKILL)
_SLICE = 0.05


class Refused(Exception):
    """No sandbox came of a request; the message says why."""


class Child:
    """A warm sandbox's first process, from outside. Held by a descriptor, never by a number that could be given again."""

    def __init__(self, pidfd: int, status: int) -> None:
        """``status`` is the read end of the pipe on which its end is told."""
        self.pid = _pid_of(pidfd)
        self._pidfd = pidfd
        self._status = status
        self._lock = threading.Lock()
        self._code: int | None = None

    def poll(self) -> int | None:
        """See ``spawn.Process``."""
        with self._lock:
            if self._code is None and readable(self._pidfd, 0):
                self._end()
            return self._code

    def wait(self, timeout: float | None = None) -> int:
        """See ``spawn.Process``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("the sandbox", timeout or 0.0)
            # Without the lock: another thread may end the wait, and the number then means nothing for a moment.
            readable(self._pidfd, _SLICE if deadline is None else min(_SLICE, deadline - time.monotonic()))
        return code

    def kill(self) -> None:
        """See ``spawn.Process``."""
        with self._lock:
            if self._code is None:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _end(self) -> None:
        said = b""
        with contextlib.suppress(OSError):
            os.set_blocking(self._status, False)
            said = os.read(self._status, 64)
        text = said.strip().decode("ascii", "replace")
        self._code = int(text) if text.isdigit() else _KILLED
        os.close(self._pidfd)
        os.close(self._status)


class Parent:
    """One life of a warm parent. ``fork`` may be called by any one thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, err: int) -> None:
        self.process = process
        self._control = control
        self._err = err
        try:
            self._pidfd = os.pidfd_open(process.pid)
        except OSError:  # a kernel before 5.3, or no descriptor is left
            self._pidfd = -1
            self.end()
            raise

    def ready(self, stop: int) -> dict[str, Any]:
        """Wait for its first word and return it. Raises ``Refused``; ``stop`` becomes readable to give up."""
        ready = readable_of((self._control.fileno(), stop), READY_TIMEOUT)
        if stop in ready:
            raise Refused("It was closed while it started.")
        if not ready:
            raise Refused(f"It was not ready within {READY_TIMEOUT:g} s.")
        message = self._control.recv(_MAX_MESSAGE)
        if not message:
            raise Refused(self._complaint() or "It ended while it started.")
        word = json.loads(message)
        assert isinstance(word, dict)
        if word.get("op") != "ready":
            raise Refused(f"It cannot be used: {word.get('reason')}.")
        return word

    def fork(self, request: bytes) -> spawn.Started:
        """Get a sandbox. Raises ``Refused`` with the reason, or ``OSError`` when the parent is gone."""
        status, status_theirs = os.pipe()
        child: Child | None = None
        try:
            with spawn.wired() as wires:
                self._control.settimeout(FORK_TIMEOUT)
                socket.send_fds(self._control, [request], [wires.sock, wires.out, wires.err, status_theirs])
                message, fds, _flags, _address = socket.recv_fds(
                    self._control, _MAX_MESSAGE, 1, socket.MSG_CMSG_CLOEXEC
                )
                if not message:
                    raise Refused("It has ended.")
                if not fds:
                    raise Refused(str(json.loads(message).get("reason")))
                child = Child(fds[0], status)
                os.close(status_theirs)
                status_theirs = -1
                self._closed_off(status)
                if not child.pid:
                    raise Refused("A sandbox ended as soon as it was made.")
                return wires.started(child)
        except BaseException:
            if child is not None:
                child.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(spawn.DISCARD_WAIT)  # which closes what is held of it
            else:
                os.close(status)
            raise
        finally:
            if status_theirs >= 0:
                os.close(status_theirs)

    def _closed_off(self, status: int) -> None:
        """Wait until the new sandbox says that it is closed off. Raises ``Refused`` when it could not be."""
        deadline = time.monotonic() + FORK_TIMEOUT
        if not readable(status, FORK_TIMEOUT):
            raise Refused("A sandbox did not come up in time.")
        mark = os.read(status, 1)
        if mark == b"+":
            return
        said = b""
        while mark and len(said) < _SAID and readable(status, max(0.0, deadline - time.monotonic())):
            if not (part := os.read(status, _SAID)):
                break
            said += part
        raise Refused(said.decode("utf-8", "replace") or "A sandbox ended while it was made.")

    def wait(self, stop: int) -> None:
        """Wait until it ends or ``stop`` becomes readable."""
        readable_of((self._pidfd, stop), None)

    def end(self) -> None:
        """End it and every sandbox that came from it, and close what is held of it. Once, when nobody uses it."""
        self.process.kill()
        self.process.wait()
        self._control.close()
        os.close(self._err)
        if self._pidfd >= 0:
            os.close(self._pidfd)

    def _complaint(self) -> str:
        with contextlib.suppress(OSError):
            os.set_blocking(self._err, False)
            self.process.wait(timeout=1.0)
            return " ".join(os.read(self._err, _SAID).decode("utf-8", "replace").split())
        return ""


def readable(fd: int, seconds: float | None) -> bool:
    """Wait until ``fd`` can be read or its other end is gone, at most ``seconds``; returns whether."""
    return bool(readable_of((fd,), seconds))


def readable_of(fds: Iterable[int], seconds: float | None) -> set[int]:
    """The same for several; returns which. (``select`` takes no number from 1024 on.)"""
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return {fd for fd, _ in poller.poll(None if seconds is None else max(0.0, seconds) * 1000)}


def _pid_of(pidfd: int) -> int:
    """Return the process id behind a descriptor; 0 when the process has ended."""
    with open(f"/proc/self/fdinfo/{pidfd}") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("Pid:"):
                return max(0, int(line.split()[1]))
    return 0
