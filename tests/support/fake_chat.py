"""Engines that the server's tests put in the place of the real one: what a prompt does is written in it."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass, field

from sandbox_chat.events import (
    ApprovalRequested,
    Choice,
    Event,
    SessionFinished,
    SessionStarted,
    Sink,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from sandbox_chat.journal.errors import SessionInUse
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.serve.session import Chat
from sandbox_chat.settings import Settings

ASKED = ApprovalRequested(
    approval_id="a1",
    kind="overwrite",
    question="x exists already. Replace it?",
    detail="/x",
    choices=(Choice("replace", "r", "replace it"), Choice("keep_both", "k", "keep both")),
    default="keep_both",
)


class FakeChat:
    """One engine. Prompts: ``wait`` until ``go`` or an interruption; ``deaf`` the same, but for the interruption;
    ``flood`` events until an interruption; ``die``; ``fail``; ``ask`` a question; anything else is repeated as the answer.
    """

    def __init__(self, chats: Chats, settings: Settings, sink: Sink, resume: str | None) -> None:
        self.settings = settings
        self.session_id = resume or str(uuid.uuid4())
        self.resumed = resume is not None
        self.prompts: list[str] = []
        self.answers: list[tuple[str, str, str]] = []
        self.go = threading.Event()
        self.stopped = threading.Event()
        self.closed = False
        self._chats = chats
        self._sink = sink
        self._seq = 0

    def emit(self, event: Event) -> None:
        """Give out an event."""
        self._seq += 1
        object.__setattr__(event, "seq", self._seq)
        self._sink(event)

    def start(self) -> None:
        """Begin."""
        folder = self.settings.data_path / "sessions" / self.session_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "events.jsonl").touch()
        self.emit(SessionStarted(session_id=self.session_id, model="m", sandbox="off", demo=True))

    def send(self, prompt: str) -> str:
        """Take a prompt."""
        turn = uuid.uuid4().hex[:12]
        self.prompts.append(prompt)
        self._chats.order.append((self.session_id, prompt))
        threading.Thread(target=self._answer, args=(turn, prompt), daemon=True).start()
        return turn

    def _answer(self, turn: str, prompt: str) -> None:
        self._chats.started(1)
        self.emit(TurnStarted(turn_id=turn, prompt=prompt))
        match prompt.split(" ", maxsplit=1)[0]:
            case "wait":
                while not self.go.wait(0.005) and not self.stopped.is_set():
                    pass
            case "deaf":
                self.go.wait()
            case "flood":
                while not self.stopped.wait(0.001):
                    self.emit(TextDelta(text="x" * 10_000))
            case "die":
                self._chats.started(-1)
                self.emit(SessionFinished())
                return
            case "ask":
                self.emit(ASKED)
                self.go.wait(10)
            case "call":
                self.emit(ToolStarted(tool_use_id="u", name="mcp__sandbox__run_code", input={}))
                self.emit(
                    ToolFinished(tool_use_id="u", is_error=False, content=(TextContent("1"),), duration_ms=7)
                )
        interrupted, failed = self.stopped.is_set(), prompt.startswith("fail")
        self.stopped.clear()
        self.emit(TextDelta(text="a piece"))
        if not interrupted:
            self.emit(Text(text=f"You said: {prompt}"))
        self._chats.started(-1)
        self.emit(
            TurnFinished(
                turn_id=turn,
                subtype="error_during_execution" if failed or interrupted else "success",
                is_error=failed,
                interrupted=interrupted,
                num_turns=1,
                duration_ms=5,
                cost_usd=0.25,
                total_cost_usd=0.25,
                usage=Usage(10, 5, 0, 0),
                error="It failed." if failed else "",
            )
        )

    def interrupt(self) -> None:
        """Stop the turn."""
        self.stopped.set()

    def answer(self, approval_id: str, choice: str, by: str = "user") -> None:
        """Note the answer to a question."""
        self.answers.append((approval_id, choice, by))
        self.go.set()

    def close(self, timeout: float | None = None) -> None:
        """End."""
        self.stopped.set()
        self.go.set()
        self.closed = True
        self.emit(SessionFinished())


@dataclass
class Chats:
    """All engines that were made, the order of what they were asked, and how many ran at most."""

    made: list[FakeChat] = field(default_factory=list)
    order: list[tuple[str, str]] = field(default_factory=list)
    fails: str = ""
    running: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self, settings: Settings, sink: Sink, *, resume: str | None) -> Chat:
        """Make an engine, or fail as the real one does."""
        if self.fails == "sandbox":
            raise SandboxUnavailable("There is no bubblewrap here.")
        if self.fails == "in use":
            raise SessionInUse("Another program has it.")
        if self.fails:
            raise RuntimeError(self.fails)
        chat = FakeChat(self, settings, sink, resume)
        self.made.append(chat)
        return chat

    def started(self, more: int) -> None:
        """Count turns that run."""
        with self._lock:
            self.running += more
            self.most = max(self.most, self.running)

    def of(self, session: str) -> FakeChat:
        """The engine that was made last for a session."""
        return [each for each in self.made if each.session_id == session][-1]
