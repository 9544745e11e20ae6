"""What a face may order of a running chat. Any thread may; the order is carried out on the engine's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from sandbox_chat.events import Event, Notice, SessionRenamed, TurnFinished, TurnStarted
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line, from_name

if TYPE_CHECKING:
    from sandbox_chat.agent.session import ChatSession
    from sandbox_chat.mcp.host import Servers
    from sandbox_chat.sandbox.worker import SandboxWorker
    from sandbox_chat.tools.asking import Approvals
    from sandbox_chat.tools.privacy import Privacy

log = logging.getLogger(__name__)

NAME_LIMIT = 200
"""Characters of a model's name, and of the words about it."""
TITLE_LIMIT = 80
"""Characters of a title that the user gives a session."""


class Commands:
    """The commands of ``Engine``, and how they reach its thread. Those that come before its loop is up wait for it."""

    settings: Settings
    emit: Callable[[Event], None]
    privacy: Privacy | None
    """Hides personal data; ``None`` when nothing does."""

    def __init__(self, worker: SandboxWorker | None) -> None:
        self._worker = worker
        self._lock = threading.RLock()  # orders stamping, journal and sink between the threads
        self._session: ChatSession | None = None
        self._approvals: Approvals | None = None
        self._servers: Servers | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unsent: dict[str, str] = {}  # prompts by turn id that the session has not got yet
        self._early: list[Callable[[], None]] = []  # commands that came before the loop was up
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = threading.Event()

    def send(self, prompt: str) -> str:
        """Accept a prompt and return its turn id. It is sent when the turns before it are done."""
        turn_id = uuid.uuid4().hex[:12]
        with self._lock:
            self._unsent[turn_id] = prompt
        self._command(lambda: self._send(turn_id, prompt))
        return turn_id

    def steer(self, prompt: str) -> str:
        """Send a prompt into the running turn (``Steered`` tells it); when none runs, it is a turn of its own.

        Returns the id of that turn.
        """
        turn_id = uuid.uuid4().hex[:12]
        with self._lock:
            self._unsent[turn_id] = prompt
        self._command(lambda: self._send(turn_id, prompt, steer=True))
        return turn_id

    def interrupt(self) -> None:
        """Stop the running turn; what was written of the answer is kept."""
        self._command(lambda: self._spawn(lambda session: session.interrupt()))

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""
        self._command(lambda: self._spawn(lambda session: session.set_model(name)))

    def set_controls(
        self, *, model: str | None = None, effort: str | None = None, thinking: str | None = None
    ) -> None:
        """Use another model, effort or thinking from the next turn on, as in the settings; ``None``: as it is."""
        self._command(
            lambda: self._spawn(
                lambda session: session.set_controls(model=model, effort=effort, thinking=thinking)
            )
        )

    @property
    def models(self) -> tuple[tuple[str, str], ...]:
        """Names of the models that the agent's program knows, each with a few words; empty before it runs."""
        session = self._session
        known = session.models if session is not None else []
        found = [
            (item.get("value"), item.get("description") or item.get("displayName") or "") for item in known
        ]
        return tuple(
            (clean_line(name, NAME_LIMIT), clean_line(str(about), NAME_LIMIT))
            for name, about in found
            if isinstance(name, str) and name and name != "default"
        )

    def real_values(self) -> Mapping[str, str] | None:
        """Return what each token stands for, to be shown to the user and kept nowhere; ``None`` when nothing is hidden.

        Any thread; it may wait for a moment.
        """
        return self.privacy.vault.values() if self.privacy is not None else None

    def restart_sandbox(self) -> None:
        """End the sandbox, with what is in it; the next use makes another one."""
        if self._worker is not None:
            self._command(self._worker.restart)

    def restart_server(self, name: str) -> None:
        """End an MCP server and start it again; ``ServerChanged`` tells how that went."""
        self._command(lambda: self._spawn_server(lambda servers: servers.restart(name)))

    def switch_server(self, name: str, on: bool) -> None:
        """Switch an MCP server off or on for this session."""
        self._command(lambda: self._spawn_server(lambda servers: servers.switch(name, on)))

    def clear(self) -> None:
        """Let the agent forget what was said, when the turns before have ended; ``Cleared`` tells it."""
        self._command(lambda: self._spawn(lambda session: session.clear()))

    def compact(self, wish: str = "") -> str:
        """Replace what the agent remembers by a summary; ``wish``: what matters in it. Returns the id of its turn."""
        turn_id = uuid.uuid4().hex[:12]
        self._command(lambda: self._spawn(lambda session: session.compact(turn_id, self._own_words(wish))))
        return turn_id

    def set_budget(self, limit: float) -> None:
        """Let the session cost ``limit`` dollars in all, its earlier runs included; 0: no limit."""
        self._command(lambda: self._spawn(lambda session: session.set_budget(limit)))

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

    def rename(self, title: str) -> None:
        """Give the session another title; an empty one brings that of its first prompt back."""
        kept = from_name(title, TITLE_LIMIT)
        self._command(lambda: self.emit(SessionRenamed(title=kept)))

    def forget_answer(self, approval_id: str) -> None:
        """Let an answer that was given for the rest of the session hold no longer; see ``ApprovalForgotten``."""
        self._command(lambda: self._approvals.forget(approval_id) if self._approvals else None)

    def prestart_sandbox(self) -> None:
        """Start the sandbox in the background, because a prompt is being typed. Not one that is billed while it lives."""
        if self._worker is not None and not self._worker.info.costs:
            self._command(self._worker.prestart)  # not before the session is begun: its states are events

    # -- on the way to the session ---------------------------------------------------------------------

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

    def _send(self, turn_id: str, prompt: str, *, steer: bool = False) -> None:
        with self._lock:
            if self._session is None or self._unsent.pop(turn_id, None) is None:
                return
        words = self._own_words(prompt)
        self._spawn(lambda session: (session.steer if steer else session.send)(turn_id, words))

    def _own_words(self, text: str) -> str:
        """Return what the user wrote as it is sent and recorded: without personal data, if they wish that."""
        return self.privacy.prompt(text) if self.privacy is not None and self.settings.pii_prompt else text

    def _give_up_unsent(self) -> None:
        """Tell the end of prompts that the session never got: they are in the record and can be sent again."""
        with self._lock:
            unsent, self._unsent = self._unsent, {}
        for turn_id, prompt in unsent.items():
            self.emit(TurnStarted(turn_id=turn_id, prompt=clean(self._own_words(prompt))))
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

    def _spawn_server(self, action: Callable[[Servers], Coroutine[Any, Any, None]]) -> None:
        """Start a command of the MCP servers as a task of the engine's loop."""
        if self._servers is not None:
            self._keep_task(asyncio.ensure_future(action(self._servers)))

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._command_done)

    def _attach(self, attach_id: str, path: str, target: str) -> None:
        if self._session is not None:
            self._session.attachments.add(attach_id, path, target)

    def _command_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a command failed", exc_info=error)
            text = clean(self.settings.scrub(str(error)))[:300]
            self.emit(Notice(level="error", text=f"That did not work ({type(error).__name__}: {text})."))
