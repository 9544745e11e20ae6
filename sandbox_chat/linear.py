"""The chat line by line, for screen readers and the plainest terminals: prompts in, lines of text out.

The same engine, session and journal as the full screen. Nothing is drawn: no escape sequence is ever written, nothing
is written over, and there is no colour. Lines are edited with readline where it is there.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import select
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from sandbox_chat import events as ev
from sandbox_chat import questions, words
from sandbox_chat.interrupts import Leave, Signals
from sandbox_chat.linear_commands import Commands, unescaped
from sandbox_chat.linear_controls import SHORT, Opening
from sandbox_chat.narrator import Narrator
from sandbox_chat.settings import Settings
from sandbox_chat.text import clean, clean_line
from sandbox_chat.words import tr, tr_count

if TYPE_CHECKING:
    from sandbox_chat.engine import Engine

PASTE_GAP = 0.05
"""Seconds within which another line must come after one for both to be a paste."""
LEAVE_WINDOW = 2.0
"""Seconds within which a second Ctrl+C at the prompt ends the program."""


class _Interrupted(Exception):
    """Ctrl+C while a line was being read."""


class Lines:
    """Reads lines and writes them. Prompts of several lines are put together here."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self.typed_by_hand = source.isatty()
        self.reading = False
        self._source = source
        self._out = out
        self._draft: list[str] = []
        self._edited = self.typed_by_hand and out is sys.stdout and out.isatty() and _edit_lines()

    def say(self, line: str) -> None:
        """Write one line. What a user gave and is told back has come by no border, so it is cleaned here."""
        self._out.write(clean(line) + "\n")
        self._out.flush()

    def ring(self) -> None:
        """Ring the terminal's bell."""
        self._out.write("\a")
        self._out.flush()

    def ask(self, question: str) -> str:
        """Read one line after ``question``. Raises ``EOFError`` at the end, ``_Interrupted`` at Ctrl+C."""
        self.reading = True
        try:
            if self._edited:
                return input(question)
            self._out.write(question)
            self._out.flush()
            line = self._source.readline()
            if not line:
                raise EOFError
            return line.removesuffix("\n")
        finally:
            self.reading = False

    def prompt(self) -> str:
        """Read a prompt: a line, or several that were pasted or joined by backslashes."""
        if self._draft:
            self.say(tr("linear.kept", text=clean_line("\n".join(self._draft), SHORT)))
        while True:
            line = self.ask(tr("linear.prompt"))
            if self._draft and line.strip() == "/clear":
                self._draft.clear()
                self.say(tr("linear.cleared"))
                continue
            if self.typed_by_hand and self._more():
                self._draft.append(line)
                while self._more():
                    self._draft.append(self.ask(""))
                self.say(tr("linear.pasted", lines=len(self._draft)))
                continue
            if line.endswith("\\"):
                self._draft.append(line[:-1])
                continue
            if line or not self._draft:
                self._draft.append(line)
            text = "\n".join(self._draft)
            self._draft.clear()
            return text

    def drop(self) -> bool:
        """Forget the lines of an unfinished prompt; returns whether there were any."""
        found = bool(self._draft)
        self._draft.clear()
        return found

    def hold_back(self) -> None:
        """Keep what was typed up to now for the next prompt: it is no answer to what is asked only then.

        By hand only: at a pipe each line is for what asks next.
        """
        if not self.typed_by_hand:
            return
        typed = _typed(self._source.fileno()).decode(self._source.encoding, "replace")
        lines = typed.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
        if any(line.strip() for line in lines):
            self._draft += lines

    def _more(self) -> bool:
        self.reading = True  # Ctrl+C belongs to the prompt still
        try:
            return bool(select.select([self._source], [], [], PASTE_GAP)[0])
        except (OSError, ValueError):
            return False
        finally:
            self.reading = False


def _typed(terminal: int) -> bytes:
    """Return what was typed at a terminal and not read yet, also a line that has not ended. Waits for nothing."""
    try:
        import termios
    except ImportError:
        return b""
    found = b""
    with contextlib.suppress(OSError, termios.error):
        before, piece = termios.tcgetattr(terminal), termios.tcgetattr(terminal)
        piece[3] &= ~termios.ICANON
        piece[6][termios.VMIN] = piece[6][termios.VTIME] = 0
        try:
            termios.tcsetattr(terminal, termios.TCSANOW, piece)
            while data := os.read(terminal, 4096):
                found += data
        finally:
            termios.tcsetattr(terminal, termios.TCSANOW, before)
    return found


def _edit_lines() -> bool:
    """Load readline such that it writes no escape sequences; return whether it is there."""
    before = os.environ.get("TERM")
    os.environ["TERM"] = "dumb"  # it is read once, when the first line is
    try:
        import readline
    except ImportError:
        return False
    finally:
        if before is None:
            del os.environ["TERM"]
        else:
            os.environ["TERM"] = before
    for setting in ("enable-bracketed-paste off", "enable-active-region off", "bell-style none"):
        readline.parse_and_bind(f"set {setting}")
    readline.parse_and_bind("tab: self-insert")
    return True


class Chat(Commands):
    """One chat at a line-based terminal."""

    lines: Lines

    def __init__(self, settings: Settings, lines: Lines) -> None:
        self.settings = settings
        self.lines = lines
        self.events: queue.SimpleQueue[ev.Event | None] = queue.SimpleQueue()
        self.past: list[ev.Event] = []
        self.engine: Engine | None = None
        self.opening: Opening | None = None
        self.again = ""
        self.signals = Signals(on_interrupt=self._interrupted)
        self._narrator = Narrator(lines.say)
        self._finished = False
        self._asked_at = float("-inf")

    def _interrupted(self) -> None:
        if self.lines.reading:
            self.signals.interrupted_at = 0.0  # each one is told of; a second one soon after ends
            raise _Interrupted
        self.events.put(None)

    def talk(self, engine: Engine) -> None:
        """Begin, and answer prompts until the end."""
        self.engine = engine
        self._introduce()
        engine.start()
        self._connect()
        while not self._finished and self.opening is None:
            self._drain()
            self.signals.interrupted_at = 0.0
            try:
                text = self.lines.prompt()
            except EOFError:
                self.lines.say("")
                return
            except _Interrupted:
                self._leave_asked()
                continue
            self._drain()  # what came while the line was typed
            if self.signals.interrupted_at:  # just after it: it is not sent
                self._leave_asked()
                continue
            if not self._command(text) and text.strip():
                self._turn(clean(unescaped(text)).strip("\n"))

    def _introduce(self) -> None:
        settings = self.settings
        model = tr("linear.model", model=settings.model) if settings.model else tr("linear.default_model")
        kind = settings.sandbox
        place = {"off": "linear.no_sandbox", "unsafe-local": "linear.unsafe"}.get(kind, "linear.sandbox")
        parts = [tr("linear.demo") if settings.demo else model, tr(place, kind=kind)]
        where = tr("linear.comma").join(parts)
        self.lines.say(tr("linear.welcome", where=where))

    def _resumed(self) -> None:
        turns = sum(isinstance(event, ev.TurnStarted) for event in self.past)
        if turns:
            self.lines.say(tr("linear.resumed", turns=tr_count("linear.turns", turns)))

    def replayed(self, event: ev.Event) -> None:
        """Take an event of an earlier run; on the engine's thread, before the first one of this run."""
        self.past.append(event)
        if isinstance(event, ev.TurnFinished | ev.TurnSettled):
            self._narrator.count(event)

    def _connect(self) -> None:
        """Wait until the agent is ready, or is known not to be."""
        self.lines.say(tr("linear.connecting"))
        for event in self._next():
            if isinstance(event, ev.ControlsChanged):
                self._say_kept(event)
            if isinstance(event, ev.Status) and event.component == "agent":
                if event.state == "ready":
                    self._resumed()
                    self.lines.say(tr("linear.ready"))
                    return
                if event.state in ("lost", "closed"):
                    self.lines.say(tr("linear.lost", text=event.text))
                    return
            if isinstance(event, ev.Notice) and event.level == "error":
                return

    def _leave_asked(self) -> None:
        now = time.monotonic()
        self.lines.say("")
        if self.lines.drop():
            self.lines.say(tr("linear.cleared"))
        elif now - self._asked_at < LEAVE_WINDOW:
            raise Leave(0)
        else:
            self._asked_at = now
            self.lines.say(tr("linear.once_more"))

    # -- events ----------------------------------------------------------------------------------------

    def _next(self) -> Iterator[ev.Event]:
        """Tell events as they come, one after the other; ends with the session, or a while after an interruption."""
        assert self.engine is not None
        self.signals.interrupted_at = 0.0
        while not self._finished:
            wait = None
            if self.signals.interrupted_at:
                wait = max(0.0, self.signals.interrupted_at + self.settings.close_timeout - time.monotonic())
            try:
                event = self.events.get(timeout=wait)
            except queue.Empty:
                return
            if event is None:
                self.lines.say(tr("linear.stopping"))
                self.engine.interrupt()
                continue
            self._take(event)
            yield event

    def _take(self, event: ev.Event) -> None:
        self.past.append(event)
        self._finished = self._finished or isinstance(event, ev.SessionFinished)
        self._narrator.take(event)
        if isinstance(event, ev.ApprovalRequested):
            self._answer(questions.shown(event))

    def _drain(self) -> None:
        """Tell what happened since the turn ended."""
        while not self.events.empty():
            event = self.events.get()
            if event is not None:
                self._take(event)

    def _turn(self, prompt: str) -> None:
        assert self.engine is not None
        self.again = ""
        self._follow(self.engine.send(prompt))

    def _follow(self, turn_id: str) -> None:
        for event in self._next():
            if isinstance(event, ev.TurnFinished) and event.turn_id == turn_id:
                if self.settings.notify == "bell" and event.duration_ms >= 1000 * self.settings.notify_after:
                    self.lines.ring()
                return

    def _answer(self, asked: ev.ApprovalRequested) -> None:
        """Ask the user; the last choice does nothing and is what Ctrl+C stands for, the default what an end stands for."""
        assert self.engine is not None
        self.lines.say(tr("linear.asked", question=asked.question))
        for line in asked.detail.splitlines():
            self.lines.say(f"  {line}")
        for number, choice in enumerate(asked.choices, 1):
            self.lines.say(tr("linear.choice", number=number, label=choice.label))
        chosen, by = "", "user"
        self.lines.hold_back()
        self.signals.interrupted_at = 0.0
        while not chosen:
            try:
                word = self.lines.ask(tr("linear.answer")).strip()
            except EOFError:
                chosen, by = asked.default, "default"
            except _Interrupted:
                self.lines.say("")
                chosen = asked.choices[-1].name
            else:
                chosen = next((c.name for n, c in enumerate(asked.choices, 1) if word == str(n)), "")
                if not chosen:
                    self.lines.say(tr("linear.not_a_choice", count=len(asked.choices)))
        label = next((choice.label for choice in asked.choices if choice.name == chosen), chosen)
        self.lines.say(tr("linear.answered", label=label))
        self.engine.answer(asked.approval_id, chosen, by)


def run(settings: Settings, *, resume: str | None = None, fork: bool = False) -> int:
    """Chat on stdin and stdout until the user leaves; returns the exit code.

    0 after an orderly end, 128 + n after signal n. Raises ``ConfigError``, ``SessionError`` and ``SandboxUnavailable``
    with a sentence before anything was started, and ``BrokenPipeError`` when nobody reads any more.
    """
    words.use(words.choose(settings.language, os.environ))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    lines = Lines(sys.stdin, sys.stdout)
    opening: Opening | None = Opening(resume, fork=fork)
    code = 0
    while opening is not None:
        chat = Chat(settings, lines)
        code = _chat(chat, opening)
        opening = chat.opening if code == 0 else None
    return code


def _chat(chat: Chat, opening: Opening) -> int:
    """Chat in one session until the user leaves it; returns the exit code."""
    from sandbox_chat.engine import Engine

    if opening.words:
        chat.lines.say(opening.words)
    chat.again = opening.again
    engine: Engine | None = None
    code = 0
    try:
        with chat.signals:
            try:
                engine = Engine(
                    chat.settings,
                    chat.events.put,
                    resume=opening.session_id,
                    replay=chat.replayed,
                    asks=True,
                    fork=opening.fork,
                )
                chat.talk(engine)
            except Leave as leave:
                code, chat.opening = leave.code, None
            finally:
                chat.signals.held = True
                if engine is not None:
                    engine.close()
                chat.signals.held = False
    except Leave as leave:  # a signal just between two of these steps
        code, chat.opening = leave.code, None
        if engine is not None:
            engine.close()
    if engine is not None and any(isinstance(event, ev.TurnStarted) for event in chat.past):
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            chat.lines.say(engine.problem or tr("linear.saved", session=engine.session_id))
    return code
