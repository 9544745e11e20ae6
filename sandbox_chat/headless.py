"""One prompt without a screen: the same session, printed as plain text or as one event a line.

Plain: the answer goes to stdout as it is written; tool calls, notices and the cost go to stderr.
JSON: each event is one line on stdout, flushed, and nothing else is written there.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import sys
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TextIO

from sandbox_chat import allowing
from sandbox_chat.events import (
    ApprovalRequested,
    Attached,
    Event,
    Notice,
    ServerChanged,
    SessionFinished,
    TurnFinished,
)
from sandbox_chat.interrupts import INTERRUPTED, Leave, Signals
from sandbox_chat.printers import JsonPrinter, PlainPrinter, Printer
from sandbox_chat.settings import ConfigError, Settings

if TYPE_CHECKING:
    from sandbox_chat.engine import Engine

OK, FAILED, PIPE_CLOSED = 0, 1, 141

PROMPT_LIMIT = 2_000_000
"""Characters of the longest prompt that is accepted: beyond any model's context, so surely a mistake."""


def read_prompt(argument: str) -> str:
    """Return the prompt: the argument, or all of stdin for ``-``. Raises ``ConfigError`` if it is empty."""
    if argument == "-":
        prompt = sys.stdin.buffer.read(4 * PROMPT_LIMIT + 1).decode("utf-8", "replace")
        source = "stdin"
    else:
        prompt = argument.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        source = "the command line"
    prompt = prompt.removeprefix("\ufeff").rstrip("\n")
    if not prompt.strip():
        raise ConfigError(f'The prompt from {source} is empty. Use: sandbox-chat run "your prompt"')
    if len(prompt) > PROMPT_LIMIT:
        raise ConfigError(
            f"The prompt from {source} is longer than {PROMPT_LIMIT:,} characters, which no model can read. "
            "Shorten it."
        )
    return prompt


def check_files(paths: Sequence[str], settings: Settings) -> None:
    """Look at the files that are to be attached before anything is started. Raises ``ConfigError`` with a sentence."""
    if not paths:
        return
    from sandbox_chat.tools.attach import AttachError, open_source

    if settings.sandbox == "off":
        raise ConfigError("Nothing can be attached with --sandbox off. Use --sandbox local.")
    for path in paths:
        try:
            file, _ = open_source(path, settings.attach_limit)
        except AttachError as error:
            raise ConfigError(str(error)) from None
        file.close()


def check_allowed(allow: Collection[str], settings: Settings) -> allowing.UnknownTools | None:
    """Look whether ``allow`` names MCP servers that are on, before anything is started. Raises ``ConfigError`` with a sentence.

    Returns what looks at the tools once they are known; ``None`` when no server is named.
    """
    if not any(word.startswith("mcp:") for word in allow):
        return None
    from sandbox_chat.engine_servers import servers_on

    on = servers_on(settings)
    if problem := allowing.problem(allow, on):
        raise ConfigError(problem)
    return allowing.UnknownTools(allow, on)


def run(
    settings: Settings,
    prompt: str,
    *,
    resume: str | None = None,
    fork: bool = False,
    as_json: bool = False,
    attach: Sequence[str] = (),
    allow: Collection[str] = (),
) -> int:
    """Answer one prompt and return the exit code. ``attach``: files to put into the sandbox before.

    ``fork``: go on with a copy of the session ``resume``.
    ``allow`` names what may be done without being asked (see ``allowing``); all else gets the answer that destroys nothing.

    0 the turn went well, 1 it failed, 130 it was interrupted, 128 + n after signal n, 141 when the
    reader of stdout has gone. Raises ``ConfigError``, ``SessionError`` and ``SandboxUnavailable``
    with a sentence before anything was started.
    """
    prompt = read_prompt(prompt)
    check_files(attach, settings)
    unknown = check_allowed(allow, settings)
    from sandbox_chat.engine import Engine

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8" if as_json else None, errors="backslashreplace")
    printer: Printer = JsonPrinter(sys.stdout) if as_json else PlainPrinter(sys.stdout, sys.stderr)
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    engine: Engine | None = None
    # Only a mark is put from the signal handler: it may run in the middle of anything.
    signals = Signals(on_interrupt=lambda: events.put(None))
    try:
        with signals:
            code = OK
            try:
                engine = Engine(settings, events.put, resume=resume, fork=fork)
                engine.start()
                code = _follow(
                    engine,
                    prompt,
                    attach=attach,
                    allow=allow,
                    unknown=unknown,
                    events=events,
                    printer=printer,
                    signals=signals,
                    patience=settings.close_timeout,
                )
            except Leave as leave:
                code = leave.code
            except OSError as error:  # only stdout and stderr are written here
                code = PIPE_CLOSED if isinstance(error, BrokenPipeError) else _cannot_write(error)
            finally:
                signals.held = True
                if engine is not None:
                    engine.close()
                signals.held = False
            return _print_rest(events, printer, code)
    except Leave as leave:  # a signal just between two of these steps
        if engine is not None:
            engine.close()
        return leave.code


def _cannot_write(error: OSError) -> int:
    _abandon(sys.stdout)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"sandbox-chat: The output cannot be written ({error.strerror}).\n")
    return FAILED


def _answer(engine: Engine, asked: ApprovalRequested, allow: Collection[str]) -> None:
    """Answer a question that nobody is there to answer."""
    if choice := allowing.answer(asked, allow):
        engine.answer(asked.approval_id, choice, "option")
    else:
        engine.answer(asked.approval_id, asked.default, "default")


def _follow(
    engine: Engine,
    prompt: str,
    *,
    attach: Sequence[str],
    allow: Collection[str],
    unknown: allowing.UnknownTools | None,
    events: queue.SimpleQueue[Event | None],
    printer: Printer,
    signals: Signals,
    patience: float,
) -> int:
    """Attach, send, and print events until the turn is finished; return its exit code.

    The prompt is not sent when a file could not be attached: the answer would cost and miss it. After an interrupt the turn has ``patience`` seconds to finish.
    """
    missing = {engine.attach(path) for path in attach}
    turn_id = "" if missing else engine.send(prompt)
    while True:
        wait = None
        if signals.interrupted_at:
            wait = max(0.0, signals.interrupted_at + patience - time.monotonic())
        try:
            event = events.get(timeout=wait)
        except queue.Empty:
            return INTERRUPTED
        if event is None:
            engine.interrupt()
            continue
        printer.take(event)
        if isinstance(event, ApprovalRequested):
            _answer(engine, event, allow)
        if isinstance(event, ServerChanged) and unknown is not None:
            for text in unknown.take(event):
                engine.emit(Notice(level="warning", text=text))
        if isinstance(event, Attached) and event.attach_id in missing:
            missing.discard(event.attach_id)
            if event.error:
                return INTERRUPTED if signals.interrupted_at else FAILED
            if not missing:
                turn_id = engine.send(prompt)
        if isinstance(event, TurnFinished) and event.turn_id == turn_id:
            if event.interrupted or signals.interrupted_at:
                return INTERRUPTED
            return FAILED if event.is_error else OK
        if isinstance(event, SessionFinished):
            return INTERRUPTED if signals.interrupted_at else FAILED


def _print_rest(events: queue.SimpleQueue[Event | None], printer: Printer, code: int) -> int:
    """Print what came while the session closed, up to its last event."""
    if code == PIPE_CLOSED:
        _abandon(sys.stdout)
        return code
    try:
        while not events.empty():
            event = events.get()
            if event is not None:
                printer.take(event)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            return code or _cannot_write(error)
        _abandon(sys.stdout)
        return code or PIPE_CLOSED
    except Leave as leave:
        _abandon(sys.stdout)
        return leave.code
    return code


def _abandon(stream: TextIO) -> None:
    """Let the rest of what ``stream`` holds go nowhere, so that the end of the program does not fail on it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return
