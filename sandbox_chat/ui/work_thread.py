"""One thread that does one thing after the other and never keeps the program from ending."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class WorkThread:
    """Runs functions in a daemon thread, which starts with the first of them.

    The executors of the standard library are waited for when the interpreter ends, however long a picture or a lexer takes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have ``work`` done. The future gets what it returns or raises; cancelled before it begins, it does not begin."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._work.put((future, work))
        return future

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, or raise what it raises. If the caller is cancelled before it begins, it does not."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """End the thread after what was given to it. A later ``run`` starts another one."""
        if self._thread is not None:
            self._work.put(None)
            self._thread = None
            self._work = queue.SimpleQueue()

    def _run(self) -> None:
        work = self._work
        while (item := work.get()) is not None:
            future, function = item
            if not future.set_running_or_notify_cancel():
                continue
            # The loop that waits may be gone by the time that the result is there.
            with contextlib.suppress(RuntimeError):
                try:
                    result = function()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
