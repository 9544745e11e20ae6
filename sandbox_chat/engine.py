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
import time
import uuid
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat import logs
from sandbox_chat.engine_code import KeptValues, make_bridge, make_kept, make_privacy, make_skills
from sandbox_chat.engine_code import check as check_code_mode
from sandbox_chat.engine_commands import Commands
from sandbox_chat.engine_endpoint import DEMO_MODEL, check_model, endpoint_of, start_demo
from sandbox_chat.engine_past import Past
from sandbox_chat.engine_servers import make_servers, names_of, server_configs
from sandbox_chat.events import (
    ControlsChanged,
    Event,
    Notice,
    Progress,
    SessionFinished,
    SessionStarted,
    Sink,
    Status,
    TurnFinished,
    TurnStarted,
    utc_now,
)
from sandbox_chat.last_prompt import LastPrompt, follow
from sandbox_chat.scratch import Scratch
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean

if TYPE_CHECKING:
    from sandbox_chat.agent.controls import Controls
    from sandbox_chat.agent.session import ChatSession, Endpoint
    from sandbox_chat.demo.server import MessagesServer

log = logging.getLogger(__name__)

REMOTE = ("e2b", "docker")
"""Back ends whose sandboxes may outlive a crashed run."""
SERVERS_CLOSE = 1.0
"""Seconds that the MCP servers get to end after the session has ended; then they are killed."""
WORKER_CLOSE = 1.0
"""Seconds that the sandbox gets to end after the session has ended: it is killed, not asked."""
LEAST_SAVING = 0.5
"""Seconds that keeping the workspace gets at the end at least; it was kept after the last turn."""
OUTPUT = "output"
"""Folder in the session's folder with the whole output of runs whose answer was cut."""


class Engine(Commands):
    """A chat session with all its parts.

    Raises at once, before anything is started: ``ConfigError`` (no model), ``SandboxUnavailable``
    (the sandbox asked for cannot exist here), ``SessionNotFound`` or ``SessionInUse`` (resume).
    Each message is a sentence for the user.

    ``sink`` takes the events of this run, ``replay`` the past ones of a resumed session, before
    the first of this run. Neither may block or raise. ``asks``: the face answers questions that nobody
    waits for; without it they are told as notices. ``tail_first``: only the last turns of a long session are replayed,
    and ``older`` gives the rest. ``fork``: go on with a copy of the session ``resume``, which is only read.
    ``read_only``: show that session and nothing else; no agent, no sandbox, and nothing is written.
    """

    def __init__(
        self,
        settings: Settings,
        sink: Sink,
        *,
        resume: str | None = None,
        replay: Sink | None = None,
        asks: bool = False,
        tail_first: bool = False,
        fork: bool = False,
        read_only: bool = False,
    ) -> None:
        from sandbox_chat.journal import Journal
        from sandbox_chat.sandbox import make_worker

        if not read_only:
            check_model(settings)
        self._warnings = list(settings.warnings)
        self._server_configs = [] if read_only else server_configs(settings, self._warnings)
        if not read_only:
            check_code_mode(settings, names_of(self._server_configs, settings))
        self.privacy = None if read_only else make_privacy(settings)
        self.settings = settings
        self.resumed = resume is not None
        self.read_only = read_only
        self.session_id = resume if resume and not fork else str(uuid.uuid4())
        super().__init__(
            None
            if read_only
            else make_worker(
                settings,
                on_state=self._sandbox_state,
                session_id=self.session_id,
                skills=make_skills(settings),
                kept=make_kept(settings, self.session_id, self.emit),
            )
        )
        if fork and resume is not None:  # after what may be refused: then there is no copy
            from sandbox_chat.engine_branch import branch

            branch(settings, resume, new_id=self.session_id)
        self._sink = sink
        self._replay = replay
        self._asks = asks
        self._tail_first = tail_first
        root = settings.data_path / "sessions"
        self._journal = (
            Journal.open(root, self.session_id, read_only=read_only)
            if resume
            else Journal.create(root, self.session_id)
        )
        self._values = KeptValues(settings, self.privacy, self._journal.folder, self.emit)
        self._seq = self._journal.last_seq
        self._said_problem = ""
        self._sandbox_starting = False
        self._demo: MessagesServer | None = None
        self._past = Past()
        self._controls: Controls | None = None  # that an earlier run left
        self._last_prompt: LastPrompt | None = None  # of this run
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._temporary_home: Scratch | None = None
        self._started = False
        self._closing = False

    @property
    def problem(self) -> str:
        """Why the session is not being saved, as a sentence; empty when all is well."""
        return self._journal.problem

    @property
    def has_older(self) -> bool:
        """True when ``older`` has events that were not replayed."""
        return self._past.has_older

    def older(self) -> Iterator[Event]:
        """Yield the events before those that were replayed, in order. Any thread; blocking. Raises ``OSError``."""
        yield from self._past.older()
        if warning := self._past.damage():
            self.emit(Notice(level="warning", text=clean(warning)))

    @property
    def last_prompt(self) -> LastPrompt | None:
        """The prompt that was given last, also in an earlier run; ``None`` before the first."""
        return self._last_prompt or self._past.last_prompt

    # -- life (any thread); the other commands are in ``Commands`` --------------------------------------

    def start(self) -> None:
        """Start the engine's thread and return at once."""
        with self._lock:
            if self._started or self._closing:
                return
            self._started = True
        self._thread.start()
        if self._worker is not None and not self._worker.info.costs:
            self._worker.warm()  # in the background, and a moment later: the screen comes first

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
            with contextlib.ExitStack() as ends:  # each, whatever fails; the last one comes first
                ends.callback(self._closed.set)
                if self._temporary_home is not None:
                    ends.callback(self._temporary_home.remove)
                ends.callback(self._journal.close)
                ends.callback(self.emit, SessionFinished())
                ends.callback(self._values.keep)
                ends.callback(self._give_up_unsent)
                if self._demo is not None:
                    ends.callback(self._demo.close)
                if self._worker is not None:
                    ends.callback(self._worker.close, WORKER_CLOSE)

    async def _run(self) -> None:
        self._stop = asyncio.Event()
        unread = self._bring_past() if self.resumed else ""
        self._controls = self._past.controls(self.settings)
        if self.read_only:
            await self._look()
            return
        self.emit(
            SessionStarted(
                session_id=self.session_id,
                model=DEMO_MODEL if self.settings.demo else self.settings.model,
                sandbox=self.settings.sandbox,
                demo=self.settings.demo,
            )
        )
        if (kept := self._controls) is not None:
            self.emit(ControlsChanged(model=kept.model, effort=kept.effort, thinking=kept.thinking))
        for warning in (unread, "" if self._past.has_older else self._past.damage()):
            if warning:
                self.emit(Notice(level="warning", text=clean(warning)))
        if self._past.attached:
            names = ", ".join(self._past.attached.values())
            words = f"The sandbox is a new one: files that were attached are not in it ({names}). Attach them again if they are needed."
            self.emit(Notice(level="info", text=words))
        self.emit(Status(component="agent", state="connecting"))
        for warning in self._warnings:
            self.emit(Notice(level="warning", text=clean(warning)))
        await self._values.bring()
        endpoint = await self._endpoint()
        self._servers = make_servers(self._server_configs, self.settings, self._worker, self.emit)
        session = self._session = self._make_session(endpoint)
        if self._servers is not None:
            # What code calls is found by the code.
            self._servers.on_tools = (
                session.renew_tools if self.settings.code_mode != "on" else lambda _: None
            )
        with self._lock:
            self._loop = asyncio.get_running_loop()
            early, self._early = self._early, []
        for action in early:
            action()
        if self._servers is not None:
            self._servers.begin()
        if self.settings.keep_days:
            threading.Thread(target=self._expire, name="retention", daemon=True).start()
        if self.settings.sandbox in REMOTE:
            self._keep_task(asyncio.ensure_future(self._look_for_leftovers()))
        if self._closing:
            self._stop.set()
        try:
            await self._until_stopped(self._connect(session))
        finally:
            by = time.monotonic() + self.settings.close_timeout
            await session.close()
            if self._worker is not None:
                await self._worker.saved(max(by - time.monotonic(), LEAST_SAVING))
            if self._servers is not None:
                await self._servers.close(SERVERS_CLOSE)

    async def _look(self) -> None:
        """Show a session that is open elsewhere, until this one is closed."""
        if (began := self._past.started) is not None:  # its model and its sandbox
            told = self._past.changed
            self.emit(began if told is None else dataclasses.replace(began, model=told.model))
        self.emit(Status(component="agent", state="closed"))
        assert self._stop is not None
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._early.clear()
        if not self._closing:
            await self._stop.wait()

    def _bring_past(self) -> str:
        """Replay what was said in earlier runs, and note what is carried on. Returns what is wrong with it."""
        try:
            self._past.load(self._journal, self._replay, tail_first=self._tail_first)
        except OSError as error:
            return f"What was said before cannot be read ({error.strerror}). It is not lost; the session goes on."
        return ""

    async def _connect(self, session: ChatSession) -> None:
        """Connect; a failure is shown and leaves the engine up, so that what was typed can still be saved."""
        from sandbox_chat.agent.session import AgentError

        try:
            await session.connect()
            self._tell_cold(session)
        except AgentError as error:
            text = clean(self.settings.scrub(str(error)))
            self.emit(Notice(level="error", text=text, kind=error.kind, about=error.about))

    def _tell_cold(self, session: ChatSession) -> None:
        """Say at a resume when the next prompt will be dear."""
        from sandbox_chat.agent.cold import cold_notice

        notice = cold_notice(
            self._past.earlier,
            self.settings,
            model=(self._controls or self.settings).model,
            now=utc_now(),
            models=session.models,
        )
        if notice is not None:
            self.emit(notice)

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
        if self.settings.demo:
            self._demo = await asyncio.to_thread(start_demo, self.settings.demo_pace)
        return endpoint_of(self.settings, self._demo)

    def _make_session(self, endpoint: Endpoint) -> ChatSession:
        from sandbox_chat.agent.session import ChatSession
        from sandbox_chat.tools.asking import Approvals

        self._approvals = Approvals(self._emit_question)
        code_mode = make_bridge(
            self.settings,
            self._servers,
            self._emit_question,
            self._approvals.ask,
            save_picture=self._journal.save_picture,
            privacy=self.privacy,
            origin=self.session_id,
            asks=self._asks,
        )
        return ChatSession(
            self.settings,
            session_id=self._past.agent_id or self.session_id,
            resume=self.resumed and self._past.spoken,
            endpoint=endpoint,
            worker=self._worker,
            save_picture=self._journal.save_picture,
            save_file=self._journal.save_file,
            emit=self.emit,
            home=self._agent_home(),
            earlier=self._past.earlier,
            budget=self._past.budget,
            ask=self._approvals.ask,
            output_dir=self._journal.folder / OUTPUT,
            others=self._servers,
            controls=self._controls,
            code_mode=code_mode,
            private=self.privacy,
        )

    def _emit_question(self, event: Event) -> None:
        """Emit what is asked, and the answer: the session's machine follows them too."""
        if self._session is not None:
            self._session.emit(event)

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

    def _expire(self) -> None:
        """Delete the sessions that have not been used for long, and say so."""
        from sandbox_chat.journal.keeping import expire

        days = self.settings.keep_days
        if count := expire(self.settings.data_path, days):
            what = "1 session that was" if count == 1 else f"{count} sessions that were"
            done = "was" if count == 1 else "were"
            text = f"{what} not used for {days} days {done} deleted, as keep_days is set."
            self.emit(Notice(level="info", text=text))

    async def _look_for_leftovers(self) -> None:
        """Tell of sandboxes that a crashed run left, and offer to end them where the face asks."""
        from sandbox_chat.tools.leftovers import offer

        assert self._approvals is not None
        await offer(self.settings, self.session_id, self.emit, self._approvals.ask if self._asks else None)

    # -- events ----------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Stamp an event, write it to the journal, show it. Any thread."""
        if isinstance(event, Progress):
            self._show(event)  # it passes: neither numbered nor recorded
            return
        if self.read_only and not isinstance(event, SessionStarted | Status | Notice | SessionFinished):
            return  # nothing happens in a session that is only looked at
        if isinstance(event, TurnStarted | TurnFinished):
            self._last_prompt = follow(self._last_prompt, event)
        with self._lock:
            self._seq += 1
            stamped = dataclasses.replace(event, seq=self._seq)
            logs.note(stamped)
            self._journal.append(stamped)
            self._show(stamped)
            if self._values.wants(event):
                self._command(lambda: self._keep_task(asyncio.ensure_future(self._values.keep_aside())))
            if self._worker is not None and isinstance(event, TurnFinished):
                self._command(self._worker.save)
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

    def _sandbox_state(self, state: str, text: str) -> None:
        self.emit(Status(component="sandbox", state=state, text=clean(self.settings.scrub(text))))
        session = self._session
        failed_start, self._sandbox_starting = self._sandbox_starting, state == "starting"
        if state in ("lost", "none") and session is not None:
            # What wanted a sandbox that could not be started says so itself.
            reason = "" if failed_start else clean(self.settings.scrub(text))
            self._command(lambda: session.sandbox_lost(reason))
