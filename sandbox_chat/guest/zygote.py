"""The warm parent: imports what most code needs, once, and forks each sandbox into namespaces of its own.

It never runs the code of anybody. It is asked over a control connection (a sequenced socket; one JSON object a
message, descriptors beside it) and answers each request with a handle on the new process:

Host to parent
    ``{"room", "filter", "config"}`` + four descriptors: the guest's socket, its two output pipes, a status pipe.
    ``room`` is for ``nest.settle``, ``filter`` a system call filter in base64, ``config`` for ``main.answer``.

Parent to host
    ``{"op": "ready", "loaded", "seconds"}`` or ``{"op": "unfit", "reason"}``, once.
    ``{"op": "forked"}`` + a process descriptor, or ``{"op": "refused", "reason"}``.

On the status pipe a new sandbox says ``+`` when it is closed off, or ``-`` and a sentence; and at its end the
exit code of its Python (128 + n for a signal n) as a line. Its writer is the first process of the sandbox's
namespace, which only waits; nothing inside can reach that process.

One private part of a library is used, in this file alone: matplotlib's ``_get_font``, to close the fonts that it
holds open before the first fork. It does so itself in each child, when their numbers may be those of other files.
Until matplotlib closes a font's file once it is read.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, NoReturn

from . import files, helper, link, nest, processes, protocol, streams
from .main import answer, ready_shell, set_limits, warm_up

READY = (files, helper, link, processes, protocol, streams)
"""What a guest needs, loaded before the fork."""
_MAX_MESSAGE = 1 << 17
_FDS = 4


def serve(config: dict[str, Any]) -> NoReturn:
    """Be the warm parent; ``config`` holds ``fd``, the control connection, and ``home``, the home folder inside."""
    begun = time.monotonic()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets ended children by itself
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    control = socket.socket(fileno=int(config["fd"]))
    control.set_inheritable(False)
    home = str(config["home"])
    keep = _files(home)
    gc.disable()  # nothing of what is loaded now is garbage
    shell = ready_shell()
    loaded = warm_up(shell)
    reason = _quiet(control.fileno())
    folders = _folders(home)
    gc.collect()
    gc.freeze()
    word = {"op": "unfit", "reason": reason} if reason else {"op": "ready", "loaded": loaded}
    control.send(json.dumps({**word, "seconds": round(time.monotonic() - begun, 3)}).encode())
    while True:
        message, fds, _flags, _address = socket.recv_fds(control, _MAX_MESSAGE, _FDS, socket.MSG_CMSG_CLOEXEC)
        if not message:
            os._exit(0)
        request = json.loads(message)
        try:
            pid, pidfd = nest.clone()
        except nest.NestError as problem:
            control.send(json.dumps({"op": "refused", "reason": str(problem)}).encode())
        else:
            if pid == 0:
                os.close(control.detach())
                request["room"] |= {"home": home, "folders": folders, "keep": keep}
                _become(shell, request, fds)
            socket.send_fds(control, [b'{"op":"forked"}'], [pidfd])
            os.close(pidfd)
        for fd in fds:
            os.close(fd)


def _quiet(control: int) -> str:
    """Make this process fit for being forked: no threads, nothing open. Returns why it is not, or nothing."""
    with contextlib.suppress(Exception):  # its files are closed here, where their numbers are still theirs
        sys.modules["matplotlib.font_manager"]._get_font.cache_clear()
    gc.collect()
    # Libraries of linear algebra end their threads before a fork, and start them anew where they are needed.
    child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + 1.0
    while nest.tasks() > 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    if threading.active_count() > 1 or nest.tasks() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate()[1:])
        return f"a library keeps a thread running ({names or 'not one of Python'})"
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        fd = int(name)
        if fd > 2 and fd not in (control, null):  # a library's: not handed on, but its number stays taken
            with contextlib.suppress(OSError):
                os.fstat(fd)
                os.dup2(null, fd, inheritable=False)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    return ""


def _become(shell: Any, request: dict[str, Any], fds: list[int]) -> NoReturn:
    """In the new process: close it off, and split into the one that waits and the guest. Does not return."""
    guest_fd, out, err, status = fds
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nest.settle(request["room"])
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        nest.confine(base64.b64decode(request["filter"]))
        os.setsid()
        os.write(status, b"+")
        guest = os.fork()
    except BaseException as problem:
        with contextlib.suppress(OSError):
            os.write(status, f"-{type(problem).__name__}: {problem}".encode()[:2000])
        os._exit(1)
    if guest == 0:
        try:
            os.close(status)
            nest.open_up()
            _reseed()
            set_limits(request["config"]["limits"])
            gc.enable()
            answer(shell, socket.socket(fileno=guest_fd), request["config"])
        finally:
            os._exit(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2, guest_fd):
        os.dup2(null, fd)
    while True:
        pid, how = os.wait()
        if pid == guest:
            break
    code = os.waitstatus_to_exitcode(how)
    with contextlib.suppress(OSError):
        os.write(status, f"{code if code >= 0 else 128 - code}\n".encode())
    os._exit(0)


def _reseed() -> None:
    """Give this sandbox random numbers of its own. (Python's own module does so at a fork.)"""
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def _files(home: str) -> list[str]:
    """Files that were put into the home folder before anything ran, by their names in it."""
    found = []
    for folder, _, names in os.walk(home):
        found += [os.path.relpath(f"{folder}/{name}", home) for name in names]
    return found


def _folders(home: str) -> list[str]:
    """Folders that libraries have made in the home folder, the outer ones first."""
    return sorted(os.path.relpath(folder, home) for folder, _, _ in os.walk(home) if folder != home)
