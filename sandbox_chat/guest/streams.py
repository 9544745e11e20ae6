"""``sys.stdout`` and ``sys.stderr`` of the code, and where output of late threads goes.

Text is written straight to file descriptor 1 or 2, as any program does, so that its order against the output of
C code and child processes is kept; nothing waits in a buffer. One ``print`` is one write. Only a thread that was
started by a run which has ended goes another way: what it writes is sent as a ``late`` frame with that run's id.
"""

from __future__ import annotations

import builtins
import codecs
import concurrent.futures
import fcntl
import functools
import io
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Any

from .link import Link

NO_OUTPUT = 4
"""Exit code of a guest whose output streams were taken from it for good."""
_LATE_CHUNK = 1 << 16
_write = os.write  # also when code replaces it
codecs.lookup("utf-16-le")  # now: when code has used up all descriptors, nothing can be imported
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
            data = text.encode()
        except UnicodeEncodeError:
            data = settle(text).encode()
        try:
            written = _write(self._fd, data)
        except BlockingIOError:
            written = 0
        if written != len(data):
            self._write_rest(memoryview(data)[written:])
        return len(text)

    def _write_rest(self, data: memoryview) -> None:
        while data:
            try:
                data = data[_write(self._fd, data) :]
            except BlockingIOError:  # a program that shares the pipe made it so
                poller = select.poll()
                poller.register(self._fd, select.POLLOUT)
                poller.poll(1000)


class Outlets:
    """The two output streams, and the way to put them back after code has replaced or closed them.

    Without that, ``sys.stdout = None`` or ``os.close(1)`` in one run would break every later one.
    """

    def __init__(self, out: Stream, err: Stream) -> None:
        """Also makes ``print`` one that writes each line with its end at once."""
        builtins.print = _whole_print(builtins.print)
        self._streams = {"stdout": out, "stderr": err}
        self._spares = {
            name: fcntl.fcntl(stream.fileno(), fcntl.F_DUPFD_CLOEXEC, _SPARE_FROM)
            for name, stream in self._streams.items()
        }
        self._places = {name: _place(fd) for name, fd in self._spares.items()}

    def restore(self) -> None:
        """Make both what they were at the beginning."""
        for name, stream in self._streams.items():
            stream.__dict__.pop("write", None)  # IPython puts a wrapper there while a run lasts
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
            fd, spare = stream.fileno(), self._spares[name]
            if _place(fd) == self._places[name]:
                continue
            if _place(spare) != self._places[name]:
                os._exit(NO_OUTPUT)  # swapped or closed as well: nothing could ever be printed again
            os.dup2(spare, fd)


def _whole_print(plain: Any) -> Any:
    """Return a ``print`` that gives a ``Stream`` its whole text in one write: half the system calls."""

    @functools.wraps(plain)
    def print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
        __tracebackhide__ = True
        stream = getattr(sys, "stdout", None) if file is None else file
        if type(stream) is not Stream or type(sep) is not str or type(end) is not str:
            plain(*values, sep=sep, end=end, file=file, flush=flush)
        elif len(values) == 1:
            stream.write(str(values[0]) + end)
        else:
            stream.write(sep.join(map(str, values)) + end)

    return print


def _place(fd: int) -> tuple[int, int]:
    """Return what is open under ``fd``, as numbers; zeros when nothing is."""
    try:
        found = os.fstat(fd)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


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
