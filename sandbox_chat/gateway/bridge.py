"""The way from code in a sandbox to the host: a socket in a file, whose connections go over one stream.

Standard library only. The host holds the other end of the stream (see ``channels``) and opens nothing: each connection
that is made to the file becomes a channel, and what is said over it is for the two ends. When the stream ends, this ends.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any, NoReturn

from .channels import CHANNELS, Breach, Carrier

_PR_SET_DUMPABLE = 4
_LINE = 48 << 10  # bytes of a piece that becomes a line


def serve(reader: int, writer: int, path: str, *, mode: int = 0o600) -> None:
    """Listen at ``path``, a file that is opened as ``mode`` says, and carry connections until the host is gone."""

    def refuse(_word: dict[str, Any]) -> None:
        raise Breach("The host says nothing here.")

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o777 & ~mode)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        try:
            listener.listen(4 * CHANNELS)
            carrier = Carrier(reader, writer, on_word=refuse, listener=listener)
            carrier.say({"op": "open"})
            carrier.run()
        finally:
            with contextlib.suppress(OSError):
                Path(path).unlink()


def main_as_text(path: str) -> NoReturn:
    """Be the way where the host gets only text: in bytes as they are, out a line of base64 for each piece.

    Code may run as another user there; who may make calls is told by its token. Does not return.
    """
    into, out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    source, sink = os.pipe()

    def spell() -> None:
        while part := os.read(source, _LINE):
            line = base64.b64encode(part) + b"\n"
            while line:
                line = line[os.write(out, line) :]
        os._exit(0)

    os.set_blocking(out, True)
    threading.Thread(target=spell, daemon=True).start()
    try:
        serve(into, sink, path, mode=0o666)
    finally:
        os._exit(0)


def main(reader: int, writer: int, path: str) -> NoReturn:
    """Be the way, with the host at the other end of ``reader`` and ``writer``. Does not return."""
    with contextlib.suppress(Exception):
        import ctypes

        # Code, whose user is the same, cannot take hold of the stream by /proc.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    into, out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (reader, writer))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in {0, 1, reader, writer}:
        os.dup2(null, fd)
    try:
        serve(into, out, path)
    finally:
        os._exit(0)
