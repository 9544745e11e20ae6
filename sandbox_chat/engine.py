"""One running chat: agent, tools, sandbox, demo and journal put together for a face.

A face (terminal, headless) makes an ``Engine``, gives it a sink for events, and calls ``send``,
``interrupt``, ``close``. Everything slow happens on the engine's own thread and on the sandbox
worker's; the sink is called on those threads, one event at a time, each already in the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import threading
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat.events import (
    Attached,
    Event,
    Notice,
    Progress,
    SessionFinished,
    SessionStarted,
    Sink,
    Status,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import ConfigError, Secret, Settings
from sandbox_chat.text import clean

if TYPE_CHECKING:
    from sandbox_chat.agent.session import ChatSession, Endpoint
    from sandbox_chat.demo.server import MessagesServer
    from sandbox_chat.tools.asking import Approvals

log = logging.getLogger(__name__)

DEMO_MODEL = "demo"
REMOTE = ("e2b", "docker")
"""Back ends whose sandboxes may outlive a crashed run."""
WORKER_CLOSE = 1.0
"""Seconds that the sandbox gets to end after the session has ended: it is killed, not asked."""
OUTPUT = "output"
"""Folder in the session's folder with the whole output of runs whose answer was cut."""
NO_MODEL = (
    "No model is configured. Set ANTHROPIC_API_KEY (or ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN for a "
    "gateway) in the environment or in .env, or use --demo, which needs no key."
)


class Engine:
    """A chat session with all its parts.

    Raises at once, before anything is started: ``ConfigError`` (no model), ``SandboxUnavailable``
    (the sandbox asked for cannot exist here), ``SessionNotFound`` or ``SessionInUse`` (resume).
    Each message is a sentence for the user.

    ``sink`` takes the events of this run, ``replay`` the past ones of a resumed session, before
    the first of this run. Neither may block or raise. ``asks``: the face answers questions that nobody
    waits for; without it they are told as notices.
    """

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        *,
        resume: str | None = None,
        replay: Sink | None = None,
        asks: bool = False,
    ) -> None:
        from sandbox_chat.journal import Journal
        from sandbox_chat.sandbox import make_worker

        if not settings.demo and not settings.has_model:
            raise ConfigError(NO_MODEL)
        self.settings = settings
        self.resumed = resume is not None
        self.session_id = resume or str(uuid.uuid4())
        self._sink = sink
        self._replay = replay
        self._lock = threading.RLock()  # orders stamping, journal and sink between the two threads
        self._asks = asks
        self._worker = make_worker(settings, on_state=self._sandbox_state, session_id=self.session_id)
        root = settings.data_path / "sessions"
        self._journal = (
            Journal.open(root, self.session_id) if resume else Journal.create(root, self.session_id)
        )
        self._seq = self._journal.last_seq
        self._said_problem = ""
        self._sandbox_starting = False
        self._demo: MessagesServer | None = None
        self._session: ChatSession | None = None
        self._approvals: Approvals | None = None
        self._earlier: TurnFinished | None = None  # of a resumed session: its totals go on
        self._attached_before: dict[str, str] = {}  # names of files in the sandbox of the run before, by path
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._unsent: dict[str, str] = {}  # prompts by turn id that the session has not got yet
        self._early: list[Callable[[], None]] = []  # commands that came before the loop was up
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._temporary_home: Scratch | None = None
        self._started = False
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = threading.Event()

    @property
    def problem(self) -> str:
        """Why the session is not being saved, as a sentence; empty when all is well."""
        return self._journal.problem

    # -- commands (any thread) -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the engine's thread and return at once."""
        with self._lock:
            if self._started or self._closing:
                return
            self._started = True
        self._thread.start()
        if self._worker is not None and not self._worker.info.costs:
            self._worker.warm()  # in the background, and a moment later: the screen comes first

    def send(self, prompt: str) -> str:
        """Accept a prompt and return its turn id. It is sent when the turns before it are done."""
        turn_id = uuid.uuid4().hex[:12]
        with self._lock:
            self._unsent[turn_id] = prompt
        self._command(lambda: self._send(turn_id, prompt))
        return turn_id

    def interrupt(self) -> None:
        """Stop the running turn; what was written of the answer is kept."""
        self._command(lambda: self._spawn(lambda session: session.interrupt()))

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""
        self._command(lambda: self._spawn(lambda session: session.set_model(name)))

    def attach(self, path: str, target: str = "") -> str:
        """Put a file of the user's into the sandbox, at ``target`` if that is not empty; ``Attached`` tells the end.

        Returns its id. The model hears of it with the next prompt, which waits until the file is there.
        """
        attach_id = f"attach-{uuid.uuid4().hex[:12]}"
        self._command(lambda: self._attach(attach_id, path, target))
        return attach_id

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Answer a question (``ApprovalRequested``) with the name of one of its choices."""
        self._command(lambda: self._approvals.answer(approval_id, choice, by) if self._approvals else None)

    def prestart_sandbox(self) -> None:
        """Start the sandbox in the background, because a prompt is being typed. Not one that is billed while it lives."""
        if self._worker is not None and not self._worker.info.costs:
            self._command(self._worker.prestart)  # not before the session is begun: its states are events

    def close(self, timeout: float | None = None) -> None:
        """End the session, the CLI and the sandbox. Blocks for at most about ``timeout`` seconds (a setting)."""
        timeout = self.settings.close_timeout if timeout is None else timeout
        with self._lock:
            first = not self._closing
            self._closing = True
            started = self._started
        if not started:
            if first:
                self._finish_unstarted(timeout)
            return
        if first:
            self._command(lambda: self._stop.set() if self._stop else None)
        # The session keeps the deadline; the sandbox, which is killed, and the bookkeeping need a little more.
        if not self._closed.wait(timeout + WORKER_CLOSE + 1.0):
            log.warning("the engine did not close in time")
            if self._worker is not None:
                self._worker.close(timeout=0.5)

    def _finish_unstarted(self, timeout: float) -> None:
        if self._worker is not None:
            self._worker.close(timeout)
        self._journal.close()
        self._closed.set()

    def _command(self, action: Callable[[], Any]) -> None:
        with self._lock:
            loop = self._loop
            if loop is None:
                if not self._closed.is_set():
                    self._early.append(action)
                return
        with contextlib.suppress(
            RuntimeError
        ):  # the loop was closed meanwhile: there is nothing left to command
            loop.call_soon_threadsafe(action)

    # -- the engine's thread ---------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:
            log.exception("the engine failed")
            self.emit(
                Notice(
                    level="error",
                    text=f"The session ended because of an internal fault ({type(error).__name__}: "
                    f"{clean(self.settings.scrub(str(error)))[:300]}). What was shown is saved; resume it to go on.",
                )
            )
            self.emit(Status(component="agent", state="closed"))
        finally:
            with self._lock:
                self._loop = None
            if self._worker is not None:
                self._worker.close(WORKER_CLOSE)
            if self._demo is not None:
                self._demo.close()
            self._give_up_unsent()
            self.emit(SessionFinished())
            self._journal.close()
            if self._temporary_home is not None:
                self._temporary_home.remove()
            self._closed.set()

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        if self.resumed:
            self._load_past()
        self.emit(
            SessionStarted(
                session_id=self.session_id,
                model=DEMO_MODEL if self.settings.demo else self.settings.model,
                sandbox=self.settings.sandbox,
                demo=self.settings.demo,
            )
        )
        if self._attached_before:
            names = ", ".join(self._attached_before.values())
            words = f"The sandbox is a new one: files that were attached are not in it ({names}). Attach them again if they are needed."
            self.emit(Notice(level="info", text=words))
        self.emit(Status(component="agent", state="connecting"))
        for warning in self.settings.warnings:
            self.emit(Notice(level="warning", text=clean(warning)))
        endpoint = await self._endpoint()
        session = self._session = self._make_session(endpoint)
        with self._lock:
            self._loop = asyncio.get_running_loop()
            early, self._early = self._early, []
        for action in early:
            action()
        if self.settings.sandbox in REMOTE:
            self._keep_task(asyncio.ensure_future(self._look_for_leftovers()))
        if self._closing:
            self._stop.set()
        try:
            await self._until_stopped(self._connect(session))
        finally:
            await session.close()

    async def _connect(self, session: ChatSession) -> None:
        """Connect; a failure is shown and leaves the engine up, so that what was typed can still be saved."""
        from sandbox_chat.agent.session import AgentError

        try:
            await session.connect()
        except AgentError as error:
            self.emit(Notice(level="error", text=clean(self.settings.scrub(str(error)))))

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` and wait for the order to stop, which also cuts the work short."""
        assert self._stop is not None
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                await stop
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    async def _endpoint(self) -> Endpoint:
        from sandbox_chat.agent.session import Endpoint

        settings = self.settings
        if settings.demo:
            self._demo = await asyncio.to_thread(start_demo, settings.demo_pace)
            return Endpoint(
                base_url=self._demo.url,
                auth_token=Secret(self._demo.token),
                api_key=Secret(""),
                model=DEMO_MODEL,
                use_login=False,
            )
        return Endpoint(
            base_url=settings.anthropic_base_url,
            auth_token=settings.anthropic_auth_token,
            api_key=settings.anthropic_api_key,
            model=settings.model,
            use_login=settings.claude_login,
        )

    def _make_session(self, endpoint: Endpoint) -> ChatSession:
        from sandbox_chat.agent.session import ChatSession
        from sandbox_chat.tools.asking import Approvals

        self._approvals = Approvals(self.emit)
        return ChatSession(
            self.settings,
            session_id=self.session_id,
            resume=self.resumed,
            endpoint=endpoint,
            worker=self._worker,
            save_picture=self._journal.save_picture,
            save_file=self._journal.save_file,
            emit=self.emit,
            home=self._agent_home(),
            earlier=self._earlier,
            ask=self._approvals.ask,
            output_dir=self._journal.folder / OUTPUT,
        )

    def _agent_home(self) -> Path:
        """Folder of the CLI's own record: kept with the sessions, or for this run only if that cannot be written."""
        home = self.settings.data_path / "claude"
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(home, os.W_OK | os.X_OK):
                return home
        except OSError:
            pass
        self._temporary_home = Scratch()
        return self._temporary_home.path

    def _send(self, turn_id: str, prompt: str) -> None:
        with self._lock:
            if self._session is None or self._unsent.pop(turn_id, None) is None:
                return
        self._spawn(lambda session: session.send(turn_id, prompt))

    def _give_up_unsent(self) -> None:
        """Tell the end of prompts that the session never got: they are in the record and can be sent again."""
        with self._lock:
            unsent, self._unsent = self._unsent, {}
        for turn_id, prompt in unsent.items():
            self.emit(TurnStarted(turn_id=turn_id, prompt=clean(prompt)))
            self.emit(
                TurnFinished(
                    turn_id=turn_id,
                    subtype="error_during_execution",
                    is_error=True,
                    interrupted=False,
                    num_turns=0,
                    duration_ms=0,
                    cost_usd=0.0,
                    total_cost_usd=None,
                    error="The session ended before this prompt was sent. Resume it and send the prompt again.",
                )
            )

    def _spawn(self, action: Callable[[ChatSession], Coroutine[Any, Any, None]]) -> None:
        """Start a command of the session as a task of the engine's loop."""
        if self._session is None:
            return
        self._keep_task(asyncio.ensure_future(action(self._session)))

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._command_done)

    def _attach(self, attach_id: str, path: str, target: str) -> None:
        if self._session is not None:
            self._session.attachments.add(attach_id, path, target)

    async def _look_for_leftovers(self) -> None:
        """Tell of sandboxes that a crashed run left, and offer to end them where the face asks."""
        from sandbox_chat.tools.leftovers import offer

        assert self._approvals is not None
        await offer(self.settings, self.session_id, self.emit, self._approvals.ask if self._asks else None)

    def _command_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a command failed", exc_info=error)
            text = clean(self.settings.scrub(str(error)))[:300]
            self.emit(Notice(level="error", text=f"That did not work ({type(error).__name__}: {text})."))

    # -- events ----------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Stamp an event, write it to the journal, show it. Any thread."""
        if isinstance(event, Progress):
            self._show(event)  # it passes: neither numbered nor recorded
            return
        with self._lock:
            self._seq += 1
            stamped = dataclasses.replace(event, seq=self._seq)
            self._journal.append(stamped)
            self._show(stamped)
            problem = self._journal.problem
            if problem != self._said_problem:
                self._said_problem = problem
                text = problem or "The session is being saved again."
                self.emit(Notice(level="warning" if problem else "info", text=clean(text)))

    def _show(self, event: Event) -> None:
        try:
            self._sink(event)
        except Exception:
            log.exception("the face failed to take an event")

    def _load_past(self) -> None:
        """Show what happened in earlier runs, and note the totals that are carried on."""
        for event in self._journal.events():
            if isinstance(event, TurnFinished):
                self._earlier = event
            elif isinstance(event, SessionStarted):
                self._attached_before.clear()  # what an earlier run had was told of when it was resumed
            elif isinstance(event, Attached) and not event.error:
                self._attached_before[event.path] = event.name
            if self._replay is not None:
                self._replay(event)

    def _sandbox_state(self, state: str, text: str) -> None:
        self.emit(Status(component="sandbox", state=state, text=clean(self.settings.scrub(text))))
        session = self._session
        failed_start, self._sandbox_starting = self._sandbox_starting, state == "starting"
        if state in ("lost", "none") and session is not None:
            # What wanted a sandbox that could not be started says so itself.
            reason = "" if failed_start else clean(self.settings.scrub(text))
            self._command(lambda: session.sandbox_lost(reason))


def start_demo(pace: float) -> MessagesServer:
    """Start the demo model's endpoint on loopback. ``pace``: seconds between two words."""
    from sandbox_chat.demo.model import DemoModel
    from sandbox_chat.demo.server import MessagesServer

    server = MessagesServer(DemoModel(pace=pace))
    server.start()
    return server
