"""A saved session as text or JSON: a readable transcript, or its events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

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
    Retry,
    SessionStarted,
    Steered,
    Text,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnSettled,
    TurnStarted,
)
from sandbox_chat.journal import SessionNotFound, resolve
from sandbox_chat.journal.files import read_events
from sandbox_chat.journal.lines import Damage
from sandbox_chat.kept import Kept
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import (
    answer_text,
    attached_text,
    content_text,
    cost_text,
    duration_text,
    local_time,
    outcome,
    size_text,
    tool_name,
    turn_line,
)


def show(root: Path, wanted: str | None, *, as_json: bool = False) -> int:
    """Print the session that ``wanted`` names (``None``: the newest); return the exit code.

    As JSON: its events, one a line, with absolute picture paths. Raises ``SessionNotFound``.
    """
    folder = root / resolve(root, wanted)
    damage = Damage()
    past = _readable(read_events(folder, damage), folder)
    for line in _json_lines(past) if as_json else transcript(past):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if damage.skipped:
        sys.stderr.write(f"sandbox-chat: {damage.skipped} damaged place(s) in the record were passed over.\n")
    return 0


def _readable(past: Iterable[Event], folder: Path) -> Iterator[Event]:
    """Yield the events; that they cannot be read is said as ``SessionNotFound``."""
    try:
        yield from past
    except OSError as error:
        raise SessionNotFound(
            f"Session {folder.name} cannot be read ({error.strerror}). Check the permissions of {folder}."
        ) from None


def _json_lines(past: Iterable[Event]) -> Iterator[str]:
    return (to_json(event) for event in past)


def transcript(past: Iterable[Event]) -> Iterator[str]:
    """Yield the lines of a readable transcript: prompts, answers, tool calls with code and output, costs."""
    return _Transcript().lines(past)


NESTED_ROWS = 6
"""Lines of the result of a call that code made."""


class _Transcript:
    """Turns events into lines. Holds the block that is being written and the calls that run."""

    def __init__(self) -> None:
        self._open = ""
        self._steered: list[str] = []  # prompts that follow the open block
        self._names: dict[str, str] = {}
        self._calls: dict[str, NestedCalls] = {}
        self._live: dict[str, Kept] = {}
        self._late: dict[str, Kept] = {}  # background output that is not written down yet
        self._ended: dict[str, str] = {}  # names of the calls that have ended
        self._questions: dict[str, ApprovalRequested] = {}
        self._said = ("", "", False)

    def lines(self, past: Iterable[Event]) -> Iterator[str]:
        for event in past:
            yield from self._event(event)
        yield from self._background()
        yield from self._close_block("[the answer was cut off here]")
        yield from self._lost_calls()

    def _event(self, event: Event) -> Iterator[str]:
        if not isinstance(event, ToolOutput):
            yield from self._background()
        match event:
            case ToolOutput(late=True):
                kept = self._late.setdefault(event.tool_use_id, Kept())
                kept.add(event.stream, event.text, event.rewind)
            case SessionStarted():
                yield from self._close_block()
                if self._said != (event.model, event.sandbox, event.demo):
                    if any(self._said):
                        yield ""
                    self._said = (event.model, event.sandbox, event.demo)
                    model = "demo, no model" if event.demo else event.model or "default model"
                    yield f"session {event.session_id} · {local_time(event.at)} · {model} · sandbox {event.sandbox}"
                else:
                    yield from ("", f"resumed {local_time(event.at)}")
            case TurnStarted():
                yield from self._close_block("[the answer was cut off here]")
                yield from self._lost_calls()
                yield from _prompt(event.prompt)
            case Steered():
                self._steered.append(event.prompt)
                if not self._open:  # else behind the text that is being written, which comes whole
                    yield from self._close_block()
            case TextDelta(text=text):
                self._open += text
            case Text(text=text):
                self._open = text
                yield from self._close_block()
            case Retry():
                self._open = ""
            case ToolStarted():
                yield from self._close_block()
                self._names[event.tool_use_id] = tool_name(event.name)
                yield from ("", f"▸ {tool_name(event.name)}", *_indented(_arguments(event.input)))
            case ToolOutput():
                kept = self._live.setdefault(event.tool_use_id, Kept())
                kept.add(event.stream, event.text, event.rewind)
            case NestedStarted():
                self._calls.setdefault(event.tool_use_id, NestedCalls()).start(event)
            case NestedFinished():
                self._calls.setdefault(event.tool_use_id, NestedCalls()).finish(event)
            case ToolFinished():
                yield from self._tool(event)
            case Attached():
                yield from self._close_block()
                yield from ("", f"! {attached_text(event)}")
            case ApprovalRequested():
                self._questions[event.approval_id] = event
            case ApprovalAnswered():
                if asked := self._questions.pop(event.approval_id, None):
                    yield from self._close_block()
                    yield f"  ? {asked.question} → {answer_text(asked, event)}"
            case Notice():
                yield from self._close_block()
                yield from ("", f"! {event.text}")
            case TurnFinished():
                yield from self._close_block()
                if event.error:
                    yield from ("", f"! {event.error}")
                yield from ("", f"  [{turn_line(event)}]")
            case TurnSettled() if event.cost_usd is not None:
                yield from ("", f"  [the turn that was stopped cost {cost_text(event.cost_usd)}]")
            case _:
                return

    def _close_block(self, mark: str = "") -> Iterator[str]:
        text, self._open = self._open.strip("\n"), ""
        if text.strip():
            yield from ("", *text.splitlines())
            if mark:
                yield mark
        steered, self._steered = self._steered, []
        for prompt in steered:
            yield from _prompt(prompt)

    def _tool(self, event: ToolFinished) -> Iterator[str]:
        self._live.pop(event.tool_use_id, None)
        name = self._ended[event.tool_use_id] = self._names.pop(event.tool_use_id, "tool")
        if calls := self._calls.pop(event.tool_use_id, None):
            calls.stop()
            yield from (f"    {line}" for line in calls.lines(results=NESTED_ROWS))
        yield f"  {name}: {outcome(event)}, {duration_text(event.duration_ms)}"
        yield from _indented(content_text(event.content))
        for part in event.content:
            if isinstance(part, ImageContent):
                yield f"    picture {part.width}×{part.height}: {part.path}"
            elif isinstance(part, FileContent):
                yield f"    {part.title}, {size_text(part.size)}: {part.path}"

    def _background(self) -> Iterator[str]:
        """Background output, once nothing more of it follows at once."""
        late, self._late = self._late, {}
        for tool_use_id, kept in late.items():
            yield from self._close_block()
            name = self._ended.get(tool_use_id) or self._names.get(tool_use_id, "tool")
            yield f"  {name}, background output:"
            yield from _indented(kept.text)

    def _lost_calls(self) -> Iterator[str]:
        """Calls that never finished, because the program was killed: their output until then."""
        for tool_use_id, name in self._names.items():
            yield f"  {name}: did not finish"
            yield from _indented(self._live.get(tool_use_id, Kept()).text)
        self._names.clear()
        self._live.clear()


def _prompt(text: str) -> Iterator[str]:
    first, *rest = text.splitlines() or [""]
    yield from ("", f"› {first}", *(f"  {line}" for line in rest))


def _arguments(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments for reading: code and other long text as it is, the rest as ``name: value``."""
    parts = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name == "code":
            parts.append(text)
        elif "\n" in text:
            parts.append(f"{name}:\n{text}")
        else:
            parts.append(f"{name}: {text}")
    return "\n".join(parts)


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}" if line else "" for line in text.splitlines())
