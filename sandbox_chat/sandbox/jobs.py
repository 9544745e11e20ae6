"""One operation that waits for the sandbox worker, and the promise of its result."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from sandbox_chat.sandbox.base import Sandbox

T = TypeVar("T")


class Job(Generic[T]):
    """One operation and the promise of its result."""

    def __init__(self, name: str, work: Callable[[Sandbox], T]) -> None:
        self.name = name
        self.work = work
        self.stop = False
        self.working = False
        self._lock = threading.Lock()
        self._state = "queued"
        self._result: T | None = None
        self._error: BaseException | None = None
        self._watchers: list[Callable[[], None]] = []

    def take(self) -> bool:
        """Begin; False when it was cancelled before."""
        with self._lock:
            if self._state != "queued":
                return False
            self._state = "taken"
            return True

    def cancel(self) -> bool:
        """Take back an operation that has not begun; False when it has."""
        with self._lock:
            if self._state != "queued":
                return False
            self._state = "cancelled"
            return True

    @property
    def done(self) -> bool:
        """True when there is a result or an error."""
        return self._state == "done"

    def finish(self, result: T | None, error: BaseException | None) -> None:
        """Set the outcome and tell who waits."""
        with self._lock:
            if self._state == "done":
                return
            self._state, self._result, self._error = "done", result, error
            watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call ``watcher`` when it is done, at once if it is."""
        with self._lock:
            if self._state != "done":
                self._watchers.append(watcher)
                return
        watcher()

    def outcome(self) -> T:
        """Return the result or raise the error of a job that is done."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


def give_up(jobs: queue.SimpleQueue[Job[Any] | None], error: Exception) -> None:
    """Fail all operations that wait in a queue."""
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            return
        if job is not None and job.take():
            job.finish(None, error)
