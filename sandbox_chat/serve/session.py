"""A chat that is kept alive between the tasks of a user: an engine, and where its events go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection
from concurrent.futures import Executor
from typing import Protocol

from sandbox_chat import allowing
from sandbox_chat.events import ApprovalRequested, Event, SessionFinished, Sink
from sandbox_chat.journal.errors import SessionError, SessionInUse, SessionNotFound
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.serve.errors import Refused
from sandbox_chat.serve.metrics import Metrics, Tally
from sandbox_chat.serve.task import Task
from sandbox_chat.serve.users import Users
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.text import clean

log = logging.getLogger(__name__)


class Chat(Protocol):
    """What a session needs of an engine."""

    session_id: str

    def start(self) -> None:
        """Start it."""

    def send(self, prompt: str) -> str:
        """Send a prompt; returns the id of its turn."""

    def interrupt(self) -> None:
        """Stop the running turn."""

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Answer a question."""

    def close(self, timeout: float | None = None) -> None:
        """End it; blocks."""


class MakeChat(Protocol):
    """Makes an engine; blocks. Raises as ``Engine`` does."""

    def __call__(self, settings: Settings, sink: Sink, *, resume: str | None) -> Chat:
        """Make one."""


def make_engine(settings: Settings, sink: Sink, *, resume: str | None) -> Chat:
    """Make the real one."""
    from sandbox_chat.engine import Engine

    return Engine(settings, sink, resume=resume)


class Session:
    """One session of a user. Everything here happens on the server's loop, but for the making and closing of the engine.

    ``busy`` is the task that runs in it; ``id`` is empty until a new one is open.
    """

    def __init__(self, user: str, session_id: str, metrics: Metrics, allow: Collection[str]) -> None:
        self.user = user
        self.id = session_id
        self.busy: Task | None = None
        self.used = time.monotonic()
        self.removed = False
        self.engine: Chat | None = None
        self.opening = False
        self.closing: asyncio.Task[None] | None = None
        self.ended = False
        """The engine has ended, asked or not."""
        self._run = object()  # of the engine that is there; one that did not close in time may still speak
        self._tally = Tally(metrics)
        self._allow = allow

    @property
    def alive(self) -> bool:
        """True while there is an engine, also one that begins or ends."""
        return self.opening or self.engine is not None

    async def open(self, users: Users, make: MakeChat, executor: Executor) -> None:
        """Make the engine and start it. Raises ``Refused`` with the reason why there is none."""
        loop = asyncio.get_running_loop()
        self.opening, self.ended = True, False
        run = self._run = object()

        def sink(event: Event) -> None:
            with contextlib.suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(self._take, run, event)

        def build() -> Chat:
            settings = users.settings_of(self.user)
            engine = self.engine = make(settings, sink, resume=self.id or None)
            engine.start()
            return engine

        try:
            engine = await loop.run_in_executor(executor, build)
        except SessionNotFound:
            raise Refused("no_session") from None
        except SessionInUse:
            raise Refused("session_in_use") from None
        except (ConfigError, SandboxError, SessionError, OSError) as error:
            log.warning("a session could not be started", exc_info=error)
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise Refused("unavailable", clean(users.scrub(str(words)))[:500]) from None
        finally:
            self.opening = False
        self.id = engine.session_id

    def send(self, task: Task) -> None:
        """Give the task to the engine."""
        assert self.engine is not None
        task.session_id = self.id
        task.turn_id = self.engine.send(task.ask.task)
        if self.ended:
            task.lost()

    def _take(self, run: object, event: Event) -> None:
        if run is not self._run:
            return
        self._tally.take(event)
        if isinstance(event, ApprovalRequested) and self.engine is not None:
            if choice := allowing.answer(event, self._allow):
                self.engine.answer(event.approval_id, choice, "option")
            else:
                self.engine.answer(event.approval_id, event.default, "default")
        if self.busy is not None and (self.closing is None or self.busy.turn_id):
            self.busy.take(event)
        if isinstance(event, SessionFinished):
            self.ended = True
            self._lose_task()

    def _lose_task(self) -> None:
        """The engine has ended: a task that was given to it has no end any more. One that waits for another engine has."""
        if self.busy is not None and self.busy.turn_id:
            self.busy.lost()

    def close(self, executor: Executor) -> asyncio.Task[None]:
        """Begin to end the engine and its sandbox; the same task for all who ask."""
        if self.closing is None:
            self.closing = asyncio.ensure_future(self._close(executor))
        return self.closing

    async def _close(self, executor: Executor) -> None:
        engine = self.engine
        try:
            if engine is not None:
                await asyncio.get_running_loop().run_in_executor(executor, engine.close)
        except Exception:
            log.exception("a session could not be closed")
        finally:
            self.engine = None
            self.closing = None
            self._lose_task()
