"""The chat as the screen drives it: engine, state, and the prompts that wait. Knows no Textual.

A prompt goes to the engine when no turn runs; one that is typed earlier waits here, in sight, where
it can still be edited, moved and removed. After an interruption or a failure the waiting ones are held until the
person says so: they were written for an answer that did not come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from sandbox_chat.events import BudgetChanged, Event, SessionFinished, Sink, TurnFinished, TurnStarted
from sandbox_chat.last_prompt import is_order
from sandbox_chat.settings import Settings
from sandbox_chat.text import from_name
from sandbox_chat.ui.queue import Prompt, Queue
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.tokens import Part, files
from sandbox_chat.words import tr

ROUNDING = 1e-9
"""Dollars by which a sum of costs may seem to miss the budget."""


class EngineLike(Protocol):
    """What the interface needs of an engine; see ``sandbox_chat.engine.Engine``."""

    session_id: str
    resumed: bool
    read_only: bool
    """The session is only looked at: nothing is sent, nothing is written."""

    @property
    def problem(self) -> str:
        """Why the session is not being saved; empty when it is."""

    @property
    def has_older(self) -> bool:
        """True when not all of a long past was replayed; known with the first event of the replay."""

    def older(self) -> Iterable[Event]:
        """Give the events before those that were replayed. Blocking, in any thread; raises ``OSError``."""

    def start(self) -> None:
        """Begin; returns at once."""

    def send(self, prompt: str) -> str:
        """Send a prompt; returns its turn id."""

    def steer(self, prompt: str) -> str:
        """Send a prompt into the running turn; returns the id of its own turn, which it is when none runs."""

    def interrupt(self) -> None:
        """Stop the running turn."""

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""

    def set_controls(
        self, *, model: str | None = None, effort: str | None = None, thinking: str | None = None
    ) -> None:
        """Use another model, effort or thinking from the next turn on; ``None``: as it is."""

    @property
    def models(self) -> tuple[tuple[str, str], ...]:
        """Names of the models that the agent's program knows, each with a few words; empty before it runs."""

    def restart_server(self, name: str) -> None:
        """End an MCP server and start it again; ``ServerChanged`` tells how that went."""

    def switch_server(self, name: str, on: bool) -> None:
        """Switch an MCP server off or on for this session."""

    def real_values(self) -> Mapping[str, str] | None:
        """Return what each token of personal data stands for; ``None`` when nothing is hidden. In a thread."""

    def restart_sandbox(self) -> None:
        """End the sandbox, with what is in it; the next use makes another one."""

    def clear(self) -> None:
        """Let the agent forget what was said."""

    def compact(self, wish: str = "") -> str:
        """Replace what the agent remembers by a summary; returns the id of the turn in which it does so."""

    def attach(self, path: str, target: str = "") -> str:
        """Put a file of the user's into the sandbox; returns its id, ``Attached`` tells the end."""

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Answer a question."""

    def set_budget(self, limit: float) -> None:
        """Let the session cost ``limit`` dollars in all; 0: no limit."""

    def forget_answer(self, approval_id: str) -> None:
        """Let an answer that was given for the rest of the session count no longer."""

    def rename(self, title: str) -> None:
        """Give the session another title; an empty one brings that of its first prompt back."""

    def prestart_sandbox(self) -> None:
        """Start the sandbox early, because code is likely to run."""

    def close(self, timeout: float | None = None) -> None:
        """End everything; blocking, idempotent."""


class EngineFactory(Protocol):
    """Makes an engine; raises an error whose message is a sentence for the user."""

    def __call__(
        self,
        settings: Settings,
        sink: Sink,
        *,
        resume: str | None = None,
        replay: Sink | None = None,
        fork: bool = False,
        read_only: bool = False,
    ) -> EngineLike:
        """Make the engine without starting it. ``fork``: of a copy of the session; ``read_only``: to look at it."""


class Chat:
    """One chat. All methods are called on the terminal's loop.

    ``queue`` holds the prompts that were typed too early. ``restored`` is called with a prompt that got no answer, and
    returns whether it was taken; else it waits before all others. ``keep`` is called with all prompts that nobody
    has taken yet, whenever these are others. ``held_for_budget``: they are held because the budget is used up.
    ``default_budget`` is the setting's, in dollars.
    """

    def __init__(
        self,
        *,
        restored: Callable[[Prompt], bool] | None = None,
        keep: Callable[[Sequence[Prompt]], None] | None = None,
    ) -> None:
        self.state = ChatState()
        self.engine: EngineLike | None = None
        self.queue = Queue(self._changed)
        self.held_for_budget = False
        self.default_budget = 0.0
        self.keep = keep
        self._restored = restored
        self._sent: dict[str, Prompt] = {}
        self._early: list[Prompt] = []
        self._early_files: list[tuple[str, str]] = []
        self._prestarted = False
        self._over = False
        self._leaving = False
        self._stop_asked = False
        self._after_stop = False  # a prompt was given since: it goes on by itself

    @property
    def read_only(self) -> bool:
        """True when the session is only looked at."""
        return self.engine is not None and self.engine.read_only

    @property
    def waiting(self) -> list[str]:
        """The prompts that were typed too early, in the order in which they go out."""
        return [prompt.text for prompt in self.queue]

    @property
    def held(self) -> str:
        """Why the waiting prompts do not go on by themselves; empty when they do."""
        return self.queue.held

    @property
    def busy(self) -> bool:
        """True while a turn runs or has just been sent."""
        return bool(self._sent or self._early) or self.state.busy

    @property
    def stopping(self) -> bool:
        """True from the order to stop the turn until it has ended."""
        return self._stop_asked or self.state.phase == "interrupting"

    @property
    def unconfirmed(self) -> list[str]:
        """Prompts that were sent and not yet taken by the engine, as when it is still starting."""
        return [prompt.text for prompt in self._untaken]

    @property
    def _untaken(self) -> list[Prompt]:
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
        self._changed()  # what waits does so in this session, whose id is known now

    def leave(self) -> None:
        """The session is about to be left: nothing that waits goes out any more."""
        self._leaving = True

    def submit(self, text: str, parts: Sequence[Part] = ()) -> bool:
        """Take a prompt; ``parts`` are how it stands in the composer, with the files to be attached.

        Returns true when it was sent (or given back, if the session is over), false when it waits. One that was
        held lets the others go on: those that wait in this run go out before it.
        """
        prompt = Prompt(text, tuple(parts))
        self._after_stop = self._after_stop or self.stopping
        if self.busy or self.queue.due or self.over_budget:
            self.queue.add(prompt)
            if not self.busy:
                self.held_for_budget = False
                self.queue.go_on()
                self._next()
            return False
        self._send(prompt)
        return True

    def resume_waiting(self, *, left: bool = True) -> bool:
        """Let the prompts that wait go on, also after an interruption. Returns true if one was sent.

        ``left``: also those that an earlier run left.
        """
        self.held_for_budget = False
        self.queue.go_on(left=left)
        return self._next()

    def put_back(self, parts: Sequence[Part] | None = None) -> None:
        """End the editing of a prompt that waits: with ``parts`` in its place, or as it was."""
        self.queue.put_back(parts)
        self._next()

    def move(self, prompt_id: str, by: int) -> bool:
        """Move a prompt in the queue by so many places. Returns whether it moved."""
        moved = self.queue.move(prompt_id, by)
        self._next()
        return moved

    def remove(self, prompt_id: str) -> Prompt | None:
        """Take a prompt out of the queue, and return it."""
        prompt = self.queue.remove(prompt_id)
        self._next()
        return prompt

    def steer(self, text: str, parts: Sequence[Part] = ()) -> bool:
        """Send a prompt into the running turn. Returns false, and sends nothing, when there is none that takes one."""
        if self.engine is None or self._over or self.stopping or not self.state.busy:
            return False
        for path in files(parts):
            self.engine.attach(path, "")
        self.engine.steer(text)
        return True

    def interrupt(self) -> bool:
        """Stop the running turn, or files on their way into the sandbox. Returns false when nothing runs.

        A prompt that waits for the engine to be made is given back.
        """
        if self.engine is None and self._early:
            early, self._early = self._early, []
            for prompt in reversed(early):
                self._give_back(prompt)
            return True
        if self.engine is None or not (self.busy or self.state.attaching):
            return False
        self._stop_asked = self.busy
        self.engine.interrupt()
        return True

    def set_model(self, name: str) -> None:
        """Use another model from the next turn on."""
        if self.engine is not None:
            self.engine.set_model(name)
            self.state.model = from_name(name)

    def model(self, settings: Settings) -> str:
        """Return the model from the next turn on, as in the settings; empty: the agent's own."""
        return self.state.model if self.state.session_id else settings.model

    def effort(self, settings: Settings) -> str:
        """Return the effort from the next turn on, as in the settings; empty: the agent's own."""
        return self.state.effort if self.state.controlled else settings.effort

    def thinking(self, settings: Settings) -> str:
        """Return how the model may think from the next turn on, as in the settings; empty: the agent's own."""
        return self.state.thinking if self.state.controlled else settings.thinking

    def set_controls(self, *, effort: str | None = None, thinking: str | None = None) -> None:
        """Use another effort or thinking from the next turn on; ``None``: as it is."""
        if self.engine is not None:
            self.engine.set_controls(effort=effort, thinking=thinking)

    def retry(self) -> bool:
        """Send the last prompt again. Returns false when there is none, or a turn runs.

        Where it was given back and waits, that is the one that goes on; others that an earlier run left do not.
        """
        prompts = (turn.prompt for turn in reversed(self.state.turns))
        prompt = next((each for each in prompts if not is_order(each)), "")
        if self.busy or not prompt:
            return False
        first, due = next(iter(self.queue), None), next((each for each in self.queue if not each.left), None)
        back = next((each for each in (due, first) if each is not None and each.text == prompt), None)
        if back is not None:
            self.queue.release(back.id)
            return self.resume_waiting(left=False)
        if self.over_budget:
            return self.submit(prompt) or True
        self._send(Prompt(prompt))
        return True

    def rename(self, title: str) -> None:
        """Give the session another title; an empty one brings that of its first prompt back."""
        if self.engine is not None:
            self.engine.rename(title)

    @property
    def limit(self) -> float:
        """Dollars that the session may cost in all; 0: no limit."""
        return self.default_budget if self.state.budget is None else self.state.budget

    @property
    def over_budget(self) -> bool:
        """True when the budget is used up, so that no further prompt is sent."""
        return not self.state.demo and 0 < self.limit <= self.state.cost[0] + ROUNDING

    def set_budget(self, limit: float) -> None:
        """Let the session cost ``limit`` dollars in all; 0: no limit."""
        if self.engine is not None:
            self.engine.set_budget(limit)

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

    def forget_answer(self, approval_id: str) -> None:
        """Let an answer that was given for the session count no longer."""
        if self.engine is not None:
            self.engine.forget_answer(approval_id)

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
                if self._sent.pop(event.turn_id, None) is not None:
                    self._changed()
            elif isinstance(event, TurnFinished):
                self._finished(event)
            elif isinstance(event, BudgetChanged):
                self._budget_changed()
            elif isinstance(event, SessionFinished):
                self._session_over()

    def _budget_changed(self) -> None:
        """Prompts that were held for the budget go on, if there is room now."""
        if self.held_for_budget and not self.over_budget:
            self.held_for_budget = False
            self.queue.go_on()
            self._next()

    def _session_over(self) -> None:
        """The engine has ended, by itself or because it was asked to: what it never took is given back."""
        self._over = True
        self._stop_asked = False
        sent, self._sent = list(self._sent.values()), {}
        for prompt in reversed(sent):
            self._give_back(prompt)
        self.queue.hold(tr("waiting.over"))
        self._changed()

    def _give_back(self, prompt: Prompt) -> None:
        if self._restored is None or not self._restored(prompt):
            self.queue.add(prompt, first=True)

    def _finished(self, event: TurnFinished) -> None:
        self._sent.pop(event.turn_id, None)
        turn = next((t for t in self.state.turns if t.id == event.turn_id), None)
        if not self.state.busy:
            self._stop_asked = False
        if turn is not None and not turn.answered and event.is_error and not event.interrupted:
            self._give_back(Prompt(turn.prompt))
        goes_on, self._after_stop = self._after_stop and event.interrupted, False
        if (event.is_error or event.interrupted) and not goes_on:
            self.queue.hold(tr("waiting.interruption" if event.interrupted else "waiting.failure"))
        self._next()

    def _next(self) -> bool:
        if self.queue.due and not self.queue.held and not self.busy and self.over_budget:
            self.queue.hold(tr("budget.held"))
            self.held_for_budget = True
        prompt = None if self.busy or self._over or self._leaving else self.queue.take()
        if prompt is None:
            return False
        self._send(prompt)
        return True

    def _send(self, prompt: Prompt) -> None:
        if self.engine is None:
            self._early.append(prompt)
        elif self._over:
            self._give_back(prompt)
        else:
            for path in prompt.files:
                self.engine.attach(path, "")
            self._sent[self.engine.send(prompt.text)] = prompt
        self._changed()

    def _changed(self) -> None:
        if self.keep is not None:
            self.keep([*self._untaken, *self.queue])
