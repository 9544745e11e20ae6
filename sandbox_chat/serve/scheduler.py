"""Which task runs when: a bounded queue, a limit on what runs, and the sessions that are kept alive.

Tasks of one session run one after another in the order in which they came; different sessions run side by side. Of those
that may run, one of the user with the fewest running tasks comes first, then the one that came first. All of it happens on
the server's loop; engines are made and closed on threads.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from sandbox_chat.serve import report
from sandbox_chat.serve.asking import Ask
from sandbox_chat.serve.errors import Refused
from sandbox_chat.serve.metrics import Metrics
from sandbox_chat.serve.session import MakeChat, Session, make_engine
from sandbox_chat.serve.task import Outcome, Task
from sandbox_chat.serve.users import Users
from sandbox_chat.settings import Settings

log = logging.getLogger(__name__)

State = Literal["starting", "ok", "draining"]
GRACE = 5.0
"""Seconds that an interrupted task gets to end beyond ``close_timeout``; then its session is closed."""
_LONGEST_WAIT = 60
"""Seconds that ``Retry-After`` says at most."""
_LOOK_EVERY = 15.0
"""Seconds between two looks for sessions that are not used, at most."""


class Scheduler:
    """Runs the tasks of all users. ``make`` makes an engine; ``allow`` is what may be done without asking."""

    def __init__(
        self,
        settings: Settings,
        *,
        allow: Collection[str] = (),
        make: MakeChat = make_engine,
        state: State = "ok",
    ) -> None:
        self.state: State = state
        self.users = Users(settings)
        self.metrics = Metrics(
            lambda: len(self._running), lambda: len(self._waiting), lambda: len(self._alive())
        )
        self._settings = settings
        self._limit = min(settings.http_tasks, settings.http_sessions)
        self._allow = tuple(allow)
        self._make = make
        self._waiting: dict[Task, Session] = {}  # in the order in which they came
        self._running: dict[Task, Session] = {}
        self._sessions: set[Session] = set()  # alive, or with tasks
        self._mean = 5.0  # seconds that a task runs, the last ones counting most
        self._admitting = asyncio.Lock()
        self._executor = ThreadPoolExecutor(
            settings.http_sessions + self._limit, thread_name_prefix="sessions"
        )
        self._work: set[asyncio.Task[None]] = set()

    # -- what there is ---------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks run and wait, and how many sessions are alive."""
        return {
            "running": len(self._running),
            "queued": len(self._waiting),
            "sessions": len(self._alive()),
        }

    def _alive(self) -> list[Session]:
        return [each for each in self._sessions if each.alive]

    # -- from outside ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Run what waits, if the server was still starting."""
        if self.state == "starting":
            self.state = "ok"
            self._dispatch()

    def accept(self, ask: Ask, *, stream: bool = False) -> Task:
        """Take a task. Raises ``Refused`` when it cannot be taken."""
        try:
            return self._accept(ask, stream)
        except Refused as refused:
            self.metrics.refused.labels(refused.code).inc()
            raise

    def _accept(self, ask: Ask, stream: bool) -> Task:
        if self.state == "draining":
            raise Refused("draining", retry_after=math.ceil(self._settings.http_drain) + 1)
        session = self._session(ask)
        task = Task(ask, stream=stream)
        self._sessions.add(session)
        self._waiting[task] = session
        self._dispatch()
        if task in self._waiting and len(self._waiting) > self._settings.http_queue:
            del self._waiting[task]
            self._tidy(session)
            raise Refused("queue_full", retry_after=self._retry_after())
        self.metrics.accepted.inc()
        return task

    def _session(self, ask: Ask) -> Session:
        """Return the session that is asked for. Raises ``Refused``."""
        if ask.session:
            known = self._known(ask.session)
            if known is not None and known.user == ask.user and not known.removed:
                return known
            if known is not None or not self.users.has(ask.user, ask.session):
                raise Refused("no_session")
        return Session(ask.user, ask.session, self.metrics, self._allow)

    def _known(self, session_id: str) -> Session | None:
        return next((each for each in self._sessions if each.id == session_id), None)

    def _retry_after(self) -> int:
        """Return in how many seconds there may be room: when those that wait now have run."""
        return max(1, min(_LONGEST_WAIT, math.ceil(self._mean * (len(self._waiting) + 1) / self._limit)))

    def leave(self, task: Task) -> None:
        """The client of a task has gone: it is not run, or interrupted."""
        if (session := self._waiting.pop(task, None)) is not None:
            self._end(task, session, "left")
        else:
            task.stop("left")

    async def remove(self, session_id: str, user: str = "") -> None:
        """End a session with its sandbox and its tasks, and let it be no longer there; its record is kept.

        Raises ``Refused`` when there is none, or it is not that of ``user``, where one is named.
        """
        session = self._known(session_id)
        if session is None:
            if user:
                folder = self.users.folder(user) if self.users.has(user, session_id) else None
            else:
                folder = await asyncio.to_thread(self.users.owner_folder, session_id)
            if folder is None:
                raise Refused("no_session")
        else:
            if session.removed or (user and session.user != user):
                raise Refused("no_session")
            session.removed = True
            folder = self.users.folder(session.user)
        try:
            await asyncio.to_thread(self.users.remove, folder, session_id)
        except OSError as error:
            if session is not None:
                session.removed = False
            raise Refused("unavailable", f"The session cannot be removed ({error.strerror}).") from None
        session = session or self._known(session_id)  # a task may have opened it meanwhile
        if session is None:
            return
        session.removed = True
        for task in [task for task, its in self._waiting.items() if its is session]:
            del self._waiting[task]
            self._end(task, session, "removed", Refused("session_removed"))
        if (busy := session.busy) is not None:
            busy.stop("removed")
            await busy.done.wait()
        await self._close(session)
        self._sessions.discard(session)
        self._dispatch()

    # -- running ---------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Begin what may run now."""
        while self.state == "ok" and len(self._running) < self._limit and (task := self._next()) is not None:
            session = self._waiting.pop(task)
            session.busy = task
            self._running[task] = session
            task.started = time.monotonic()
            self.metrics.waiting.observe(task.waited)
            self._spawn(self._run(task, session))

    def _next(self) -> Task | None:
        running = Counter(each.user for each in self._running.values())
        first: dict[Session, Task] = {}
        for task, session in self._waiting.items():
            if session.busy is None and not session.removed:
                first.setdefault(session, task)
        return min(first.values(), key=lambda each: running[each.ask.user], default=None)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _run(self, task: Task, session: Session) -> None:
        problem: Refused | None = None
        try:
            outcome = await self._perform(task, session)
            if not task.turn_id:
                problem = _unsent(outcome)
        except Refused as refused:
            outcome, problem = "unavailable", refused
        except Exception:
            log.exception("a task failed")
            outcome, problem = "failed", Refused("internal")
        del self._running[task]
        session.busy = None
        session.used = time.monotonic()
        self._mean += (task.ran - self._mean) / 8
        self.metrics.duration.observe(task.ran)
        self._end(task, session, outcome, problem)
        if session.ended:
            self._close(session)
        self._dispatch()

    async def _perform(self, task: Task, session: Session) -> Outcome:
        """Run one task in its session. Raises ``Refused`` when there is no result."""
        deadline = task.started + self._settings.http_task_timeout
        await self._open(session)
        if not task.stopped.is_set():
            session.send(task)
            over, stopped = (asyncio.ensure_future(each.wait()) for each in (task.turn_over, task.stopped))
            left = max(0.0, deadline - time.monotonic())
            await asyncio.wait({over, stopped}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if not over.done():
                task.stop("timeout")
                await self._interrupt(session, over)
            over.cancel()
        reason = task.stop_reason
        turn = task.finished
        if reason is not None and (turn is None or turn.interrupted):
            return reason
        return "failed" if turn is None or turn.is_error else "ok"

    async def _interrupt(self, session: Session, over: asyncio.Future[Any]) -> None:
        """Stop the running turn; a session that does not let itself be interrupted is closed."""
        if session.engine is not None:
            session.engine.interrupt()
        await asyncio.wait({over}, timeout=self._settings.close_timeout + GRACE)
        if not over.done():
            log.warning("a task could not be interrupted; its session is closed")
            await self._close(session)

    async def _open(self, session: Session) -> None:
        """Have the session's engine run; of others, the one unused longest makes room."""
        if session.closing is not None:
            await asyncio.shield(session.closing)
        if session.engine is not None and session.ended:
            await self._close(session)
        if session.engine is not None:
            return
        async with self._admitting:
            while len(alive := self._alive()) >= self._settings.http_sessions:
                ending = [each.closing for each in alive if each.closing is not None]
                unused = [each for each in alive if each.busy is None and each.closing is None]
                if not ending:
                    wanted = set(self._waiting.values())
                    least = min(unused, key=lambda each: (each in wanted, each.used))
                    ending = [self._close(least)]
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            session.opening = True
        await session.open(self.users, self._make, self._executor)

    def _end(self, task: Task, session: Session, outcome: Outcome, problem: Refused | None = None) -> None:
        """Count and tell the end of a task, whether it ran or not."""
        self.metrics.finished.labels(outcome).inc()
        task.end(outcome, problem)
        report.task_ended(task, session.user)
        self._tidy(session)

    def _close(self, session: Session) -> asyncio.Task[None]:
        """Begin to close a session; then it is forgotten, unless a task wants it."""
        closing = session.close(self._executor)
        closing.add_done_callback(lambda _: self._tidy(session))
        return closing

    def _tidy(self, session: Session) -> None:
        """Forget a session of which there is nothing to know."""
        if not session.alive and session.busy is None and session not in self._waiting.values():
            self._sessions.discard(session)

    # -- life ------------------------------------------------------------------------------------------

    async def look_after(self) -> None:
        """Close what is not used any more, for as long as the server runs."""
        limit = self._settings.http_idle
        while True:
            await asyncio.sleep(min(limit / 4, _LOOK_EVERY))
            now = time.monotonic()
            for each in self._alive():
                if each.busy is None and each.closing is None and (each.ended or now - each.used > limit):
                    self._close(each)

    async def drain(self) -> None:
        """Take nothing more, answer what waits, let finish what runs, and close all sessions."""
        self.state = "draining"
        waiting, self._waiting = dict(self._waiting), {}
        again = math.ceil(self._settings.http_drain) + 1
        for task, session in waiting.items():
            self._end(task, session, "drained", Refused("draining", retry_after=again))
        await self._until_idle(self._settings.http_drain)
        for task in self._running:
            task.stop("drained")
        await self._until_idle(self._settings.close_timeout + 2 * GRACE)
        await asyncio.gather(*(self._close(each) for each in self._alive()))
        self._executor.shutdown(wait=False)

    async def _until_idle(self, seconds: float) -> None:
        if running := [asyncio.ensure_future(each.done.wait()) for each in self._running]:
            _, late = await asyncio.wait(running, timeout=seconds)
            for each in late:
                each.cancel()


def _unsent(outcome: Outcome) -> Refused:
    """Return why a task that was stopped before it was sent has no result."""
    if outcome == "removed":
        return Refused("session_removed")
    if outcome == "drained":
        return Refused("draining", retry_after=1)
    return Refused("unavailable", "The task was stopped before it ran.")
