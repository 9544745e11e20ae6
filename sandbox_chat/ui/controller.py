"""The chat as the screen drives it: engine, state, and the prompts that wait. Knows no Textual.

A prompt goes to the engine when no turn runs; one that is typed earlier waits here, in sight, where
it can still be taken back. After an interruption or a failure the waiting ones are held until the
person says so: they were written for an answer that did not come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sandbox_chat.events import Event, SessionFinished, Sink, TurnFinished, TurnStarted
from sandbox_chat.settings import Settings
from sandbox_chat.text import from_name
from sandbox_chat.ui.state import ChatState
from sandbox_chat.words import tr


class EngineLike(Protocol):
    """What the interface needs of an engine; see ``sandbox_chat.engine.Engine``."""

    session_id: str
    resumed: bool

    @property
    def problem(self) -> str:
        """Why the session is not being saved; empty when it is."""

    def start(self) -> None:
        """Begin; returns at once."""

    def send(self, prompt: str) -> str:
        """Send a prompt; returns its turn id."""

    def interrupt(self) -> None:
        """Stop the running turn."""

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""

    def attach(self, path: str, target: str = "") -> str:
        """Put a file of the user's into the sandbox; returns its id, ``Attached`` tells the end."""

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Answer a question."""

    def prestart_sandbox(self) -> None:
        """Start the sandbox early, because code is likely to run."""

    def close(self, timeout: float | None = None) -> None:
        """End everything; blocking, idempotent."""


class EngineFactory(Protocol):
    """Makes an engine; raises an error whose message is a sentence for the user."""

    def __call__(
        self, settings: Settings, sink: Sink, *, resume: str | None = None, replay: Sink | None = None
    ) -> EngineLike:
        """Make the engine without starting it."""


class Chat:
    """One chat. All methods are called on the terminal's loop.

    ``waiting`` are the prompts that were typed too early, oldest first; ``held`` says why they do not
    go on by themselves (empty when they do). ``restored`` is called with a prompt that got no answer.
    """

    def __init__(self, *, restored: Callable[[str], None] | None = None) -> None:
        self.state = ChatState()
        self.engine: EngineLike | None = None
        self.waiting: list[str] = []
        self.held = ""
        self.stopping = False
        self._restored = restored
        self._sent: dict[str, str] = {}
        self._early: list[str] = []
        self._early_files: list[tuple[str, str]] = []
        self._prestarted = False
        self._over = False

    @property
    def busy(self) -> bool:
        """True while a turn runs or has just been sent."""
        return bool(self._sent or self._early) or self.state.busy

    @property
    def unconfirmed(self) -> list[str]:
        """Prompts that were sent and not yet taken by the engine, as when it is still starting."""
        return [*self._sent.values(), *self._early]

    def attach(self, engine: EngineLike) -> None:
        """Use ``engine``; files and prompts that were sent before are given to it."""
        self.engine = engine
        for path, target in self._early_files:
            engine.attach(path, target)
        self._early_files = []
        early, self._early = self._early, []
        for prompt in early:
            self._send(prompt)

    def submit(self, prompt: str) -> bool:
        """Take a prompt. Returns true when it was sent (or given back, if the session is over), false when it waits."""
        if self.busy or self.waiting:
            self.waiting.append(prompt)
            if not self.busy:
                self.resume_waiting()
            return False
        self._send(prompt)
        return True

    def resume_waiting(self) -> bool:
        """Let the prompts that wait go on, also after an interruption. Returns true if one was sent."""
        self.held = ""
        return self._next()

    def take_back(self) -> str | None:
        """Take the newest waiting prompt out of the queue, to edit it or to drop it."""
        return self.waiting.pop() if self.waiting else None

    def interrupt(self) -> bool:
        """Stop the running turn, or files on their way into the sandbox. Returns false when nothing runs."""
        if self.engine is None or not (self.busy or self.state.attaching):
            return False
        self.stopping = self.busy
        self.engine.interrupt()
        return True

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""
        if self.engine is not None:
            self.engine.set_model(name)
            self.state.model = from_name(name)

    def attach_file(self, path: str, target: str) -> bool:
        """Put a file into the sandbox. Returns false when the session is over."""
        if self._over:
            return False
        if self.engine is None:
            self._early_files.append((path, target))
        else:
            self.engine.attach(path, target)
        return True

    def answer(self, approval_id: str, choice: str) -> None:
        """Answer a question."""
        if self.engine is not None:
            self.engine.answer(approval_id, choice)

    def typing(self) -> None:
        """The person types: start the sandbox, once."""
        if not self._prestarted and self.engine is not None:
            self._prestarted = True
            self.engine.prestart_sandbox()

    def apply(self, events: Sequence[Event], *, past: int = 0) -> None:
        """Take events of the engine into the state, and send what waits when a turn has ended.

        The first ``past`` events are replayed: they change the state, and nothing is done about them.
        """
        for number, event in enumerate(events):
            self.state.apply(event)
            if number < past:
                continue
            if isinstance(event, TurnStarted):
                self._sent.pop(event.turn_id, None)
            elif isinstance(event, TurnFinished):
                self._finished(event)
            elif isinstance(event, SessionFinished):
                self._session_over()

    def _session_over(self) -> None:
        """The engine has ended, by itself or because it was asked to: what it never took is given back."""
        self._over = True
        self.stopping = False
        sent, self._sent = list(self._sent.values()), {}
        for prompt in sent:
            self._give_back(prompt)

    def _give_back(self, prompt: str) -> None:
        if self._restored is not None:
            self._restored(prompt)

    def _finished(self, event: TurnFinished) -> None:
        self._sent.pop(event.turn_id, None)
        turn = next((t for t in self.state.turns if t.id == event.turn_id), None)
        if not self.state.busy:
            self.stopping = False
        if turn is not None and not turn.answered and event.is_error and not event.interrupted:
            self._give_back(turn.prompt)
        if self.waiting and (event.is_error or event.interrupted):
            self.held = tr("waiting.interruption" if event.interrupted else "waiting.failure")
        self._next()

    def _next(self) -> bool:
        if self.held or self.busy or not self.waiting:
            return False
        self._send(self.waiting.pop(0))
        return True

    def _send(self, prompt: str) -> None:
        if self.engine is None:
            self._early.append(prompt)
            return
        if self._over:
            self._give_back(prompt)
            return
        self._sent[self.engine.send(prompt)] = prompt
