"""A turn without a screen, printed: as plain text, or as one event a line. What ``headless`` shows events with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, TextIO

from sandbox_chat import allowing
from sandbox_chat.ansi import Piece
from sandbox_chat.event_json import to_json
from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Attached,
    Event,
    FileContent,
    ImageContent,
    NestedFinished,
    NestedStarted,
    Notice,
    Progress,
    Retry,
    SessionFinished,
    SessionStarted,
    Text,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
)
from sandbox_chat.kept import Kept
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import (
    answer_text,
    attached_text,
    content_text,
    duration_text,
    error_line,
    last_line,
    limit_notes,
    outcome,
    progress_text,
    size_text,
    tool_name,
    turn_line,
)
from sandbox_chat.sgr import to_terminal
from sandbox_chat.text import clean_line

NESTED_LINES = 20
"""Calls that the code of a run makes which are printed one by one; of more only those that fail, and how many there were."""


class Printer(Protocol):
    """Shows events. May raise ``BrokenPipeError`` when the reader has gone."""

    def take(self, event: Event) -> None:
        """Show one event."""


class JsonPrinter:
    """Prints each event as one line of JSON."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def take(self, event: Event) -> None:
        """Print one event."""
        self._out.write(to_json(event) + "\n")
        self._out.flush()


class PlainPrinter:
    """Prints the answer to ``out`` and all that goes with it to ``err``.

    Of background output only whole lines are printed: one that is written over is not settled yet. Its colours
    are printed to a terminal, unless ``NO_COLOR`` is set.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._shared = _is_terminal(out) and _is_terminal(err)
        self._coloured = _is_terminal(err) and not os.environ.get("NO_COLOR")
        self._late: dict[str, Kept] = {}
        self._open = ""  # what was printed of the block that is being written
        self._blocks = 0
        self._mid_line = False
        self._names: dict[str, str] = {}
        self._calls: dict[str, NestedCalls] = {}
        self._questions: dict[str, ApprovalRequested] = {}
        self._session_id = ""

    def take(self, event: Event) -> None:
        """Show one event, if it is one that plain text shows."""
        match event:
            case TextDelta(text=text):
                self._piece(text)
            case Text(text=text):
                self._whole(text)
            case Retry():
                self._end_block()
                wait = duration_text(event.delay_ms)
                self._aside(f"asking again in {wait} (attempt {event.attempt}): {clean_line(event.reason)}")
            case ToolStarted():
                self._names[event.tool_use_id] = tool_name(event.name)
                self._end_block()
            case NestedStarted() | NestedFinished():
                self._nested(event)
            case ToolFinished():
                self._tool(event)
            case ToolOutput(late=True):
                kept = self._late.setdefault(event.tool_use_id, Kept())
                kept.add(event.stream, event.text, event.rewind, event.styles)
                self._background(event.tool_use_id, kept.take_lines())
            case Progress(over=False):
                self._aside(f"  {event.label}: {progress_text(event)}")
            case Attached():
                self._aside(f"{'error: ' if event.error else ''}{attached_text(event)}")
            case ApprovalRequested():
                self._questions[event.approval_id] = event
            case ApprovalAnswered():
                if asked := self._questions.pop(event.approval_id, None):
                    self._aside(f"? {asked.question} → {answer_text(asked, event)}")
                    if event.by == "default" and (word := allowing.option(asked)):
                        self._aside(f"  Allow it with: --allow {word}")
            case Notice():
                self._aside(f"{event.level}: {event.text}")
            case SessionFinished():
                self._all_background()
            case TurnFinished():
                self._end_block()
                self._all_background()
                if event.error:
                    self._aside(f"error: {event.error}")
                self._aside(f"{turn_line(event)} · session {self._session_id}")
            case SessionStarted():
                self._session_id = event.session_id
                if event.demo:
                    self._aside("demo: rules answer here, no model")
                if event.sandbox == "unsafe-local":
                    self._aside("warning: code runs without isolation (unsafe-local)")
            case _:
                return

    def _write(self, text: str) -> None:
        if not text:
            return
        self._out.write(text)
        self._out.flush()
        self._mid_line = not text.endswith("\n")

    def _piece(self, text: str) -> None:
        if not self._open and text:
            if self._blocks:
                self._write("\n")
            self._blocks += 1
        self._open += text
        self._write(text)

    def _whole(self, text: str) -> None:
        """Print what is missing of the whole block; all of it when other text was streamed before."""
        if self._open and not text.startswith(self._open):
            self._end_block()
        self._piece(text[len(self._open) :])
        self._end_block()

    def _end_block(self) -> None:
        if self._mid_line:
            self._write("\n")
        self._open = ""

    def _nested(self, event: NestedStarted | NestedFinished) -> None:
        calls = self._calls.setdefault(event.tool_use_id, NestedCalls())
        if isinstance(event, NestedStarted):
            calls.start(event)
        elif (done := calls.finish(event)) is not None and (
            calls.count <= NESTED_LINES or done.outcome == "failed"
        ):
            self._aside(f"  · {done.line()}")

    def _tool(self, event: ToolFinished) -> None:
        calls = self._calls.pop(event.tool_use_id, None)
        if calls is not None and calls.count > NESTED_LINES:
            self._aside(f"  · {calls.count:,} calls by the code, {calls.failed:,} failed")
        name = self._names.get(event.tool_use_id, "tool")
        line = f"· {name} {duration_text(event.duration_ms)} {outcome(event)}"
        if event.is_error and not event.interrupted:
            line += (
                f": {clean_line(error_line(event.content) or last_line(content_text(event.content)), 500)}"
            )
        self._aside(line)
        for note in limit_notes(event.content):
            self._aside(f"  {clean_line(note, 500)}")
        for part in event.content:
            if isinstance(part, ImageContent):
                self._aside(f"  picture {part.width}×{part.height}: {part.path}")
            elif isinstance(part, FileContent):
                self._aside(f"  {part.title}, {size_text(part.size)}: {part.path}")

    def _all_background(self) -> None:
        for tool_use_id, kept in self._late.items():
            self._background(tool_use_id, kept.take_lines(all_of_it=True))
        self._late.clear()

    def _background(self, tool_use_id: str, lines: Sequence[Piece]) -> None:
        if lines:
            name = self._names.get(tool_use_id, "tool")
            shown = [to_terminal(line.text, line.styles) if self._coloured else line.text for line in lines]
            self._aside("\n".join([f"· {name} background output:", *(f"  {line}" for line in shown)]))

    def _aside(self, text: str) -> None:
        if self._shared and self._mid_line:
            self._write("\n")
        self._err.write(text + "\n")
        self._err.flush()


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False
