"""``sys.stdout`` and ``sys.stderr`` of the code, and where output of late threads goes.

Text is written straight to file descriptor 1 or 2, as any program does, so that its order against
the output of C code and child processes is kept. Only a thread that was started by a run which has
ended goes another way: what it writes is sent as a ``late`` frame with that run's id.
"""

from __future__ import annotations

import concurrent.futures
import fcntl
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from .link import Link

_LATE_CHUNK = 1 << 16
_SPARE_FROM = 200  # descriptors from here on are out of the way of code that closes a few


def settle(text: str) -> str:
    """Return ``text`` fit for UTF-8: surrogate pairs are joined, lone ones become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Stream(io.TextIOBase):
    """A text stream over a file descriptor, unbuffered, that never fails on a character."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, fd: int, name: str, link: Link, cell_of_thread: Callable[[], int]) -> None:
        super().__init__()
        self._fd = fd
        self.name = f"<{name}>"
        self.mode = "w"
        self.buffer = io.FileIO(fd, "w", closefd=False)
        self._stream = name
        self._link = link
        self._cell_of_thread = cell_of_thread

    def writable(self) -> bool:
        """True."""
        return True

    def fileno(self) -> int:
        """The file descriptor, for programs that are started with this stream."""
        return self._fd

    def isatty(self) -> bool:
        """False: it is a pipe."""
        return False

    def reconfigure(self, **_options: Any) -> None:
        """Accepted and ignored, as nothing of it is open to choice."""

    def close(self) -> None:
        """Do nothing: code that closes ``sys.stdout`` does not lose the output of what follows."""

    def write(self, text: str, /) -> int:
        """Write ``text`` at once. Returns its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text:
            return 0
        cell = self._cell_of_thread()
        if cell and cell != self._link.cell and self._link.here:
            late = settle(text)
            for start in range(0, len(late), _LATE_CHUNK):
                part = late[start : start + _LATE_CHUNK]
                self._link.send({"op": "late", "id": cell, "stream": self._stream, "text": part})
            return len(text)
        try:
            data = memoryview(text.encode())
        except UnicodeEncodeError:
            data = memoryview(settle(text).encode())
        while data:
            data = data[os.write(self._fd, data) :]
        return len(text)


class Outlets:
    """The two output streams, and the way to put them back after code has replaced or closed them.

    Without that, ``sys.stdout = None`` or ``os.close(1)`` in one run would break every later one.
    """

    def __init__(self, out: Stream, err: Stream) -> None:
        self._streams = {"stdout": out, "stderr": err}
        self._spares = {
            name: fcntl.fcntl(stream.fileno(), fcntl.F_DUPFD_CLOEXEC, _SPARE_FROM)
            for name, stream in self._streams.items()
        }

    def restore(self) -> None:
        """Make both what they were at the beginning."""
        for name, stream in self._streams.items():
            stream.__dict__.pop("write", None)  # IPython puts a wrapper there while a run lasts
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
            fd, spare = stream.fileno(), self._spares[name]
            try:
                if not _same(fd, spare):
                    os.dup2(spare, fd)
            except OSError:  # the spare was closed as well: then there is nothing to be done
                continue


def _same(fd: int, other: int) -> bool:
    wanted = os.fstat(other)
    try:
        return os.path.samestat(os.fstat(fd), wanted)
    except OSError:
        return False


class ThreadCells:
    """Which run a thread belongs to: the one that started it, or that gave it its present work."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._local = threading.local()

    def current(self) -> int:
        """Id of the run that this thread works for; 0 for the main thread, which always works for the present one."""
        return int(getattr(self._local, "cell", 0))

    def install(self) -> None:
        """Make new threads, and work given to thread pools, remember their run."""
        cells, start, submit = (
            self,
            threading.Thread.start,
            concurrent.futures.ThreadPoolExecutor.submit,
        )

        def start_thread(thread: threading.Thread) -> None:
            cell, run = cells._starter(), thread.run

            def run_with_cell() -> None:
                thread.__dict__.pop("run", None)
                cells._local.cell = cell
                run()

            thread.__dict__["run"] = run_with_cell  # shadows the method until the thread has begun
            start(thread)

        def submit_work(
            pool: concurrent.futures.ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kw: Any
        ) -> concurrent.futures.Future[Any]:
            cell = cells._starter()

            def work() -> Any:
                before = cells.current()
                cells._local.cell = cell
                try:
                    return fn(*args, **kw)
                finally:
                    cells._local.cell = before

            return submit(pool, work)

        for owner, name, function in (
            (threading.Thread, "start", start_thread),
            (concurrent.futures.ThreadPoolExecutor, "submit", submit_work),
        ):
            setattr(owner, name, function)

    def _starter(self) -> int:
        return self.current() or self._link.last_cell
