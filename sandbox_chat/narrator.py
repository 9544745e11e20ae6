"""A chat as lines of plain text, for people who listen to it: what ``linear`` prints. No escape sequences, no cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sandbox_chat import events as ev
from sandbox_chat import failures, questions
from sandbox_chat.allowed import Allowed
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import (
    all_sections,
    arguments_json,
    arguments_line,
    attached_text,
    cost_text,
    duration_text,
    error_line,
    limit_notes,
    size_text,
    tool_name,
    tool_parts,
)
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr, tr_count

LIVE_LINES = 200
"""Lines of one call's output that are read out as they come; all of it can be asked for afterwards."""
NESTED_LINES = 20
"""Calls that the code of a run makes which are told one by one; of more only those that fail, and how many there were."""
RESULT_LINES = 40
"""Lines of a result that are read out."""


@dataclass
class Call:
    """A tool call: its name, its code, and what it has written."""

    name: str
    code: str = ""
    output: list[str] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    """The line of each stream that has not ended yet."""
    answer: list[str] = field(default_factory=list)
    """What it gave back beside its output: the result, or why it failed with the whole traceback."""

    def all_output(self) -> list[str]:
        """Return every line, those that have not ended too, and the answer."""
        return [*self.output, *(line for line in self.open.values() if line), *self.answer]


class Narrator:
    """Turns events into lines and hands each to ``say``. Answers are told a line at a time, as they are finished."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._written = ""  # of the block that is being written
        self._told = 0  # characters of it that have been told
        self._speaking = False  # the last thing told was of the answer
        self._calls: dict[str, Call] = {}
        self._questions: dict[str, ev.ApprovalRequested] = {}
        self._nested_calls: dict[str, NestedCalls] = {}
        self._demo = False
        self._known = 0.0
        self._unknown: set[str] = set()
        self.calls: list[Call] = []
        """All calls, oldest first."""
        self.allowed = Allowed()
        """Answers that hold for the rest of the session."""
        self.servers: dict[str, ev.ServerChanged] = {}
        """What was told last of each MCP server, by name."""

    def take(self, event: ev.Event) -> None:
        """Tell one event, if there is something to tell of it."""
        if isinstance(event, ev.ApprovalRequested):
            event = questions.shown(event)
        self.allowed.take(event)
        match event:
            case ev.TextDelta(text=text):
                self._written += text
                self._tell(whole=False)
            case ev.Text(text=text):
                self._block(text)
            case ev.ToolInputDelta():
                self._tell(whole=True)
            case ev.ToolStarted():
                self._started(event)
            case ev.ToolOutput():
                self._output(event)
            case ev.NestedStarted() | ev.NestedFinished():
                self._nested(event)
            case ev.ToolFinished():
                self._finished(event)
            case ev.Retry():
                self._tell(whole=True)
                self._written, self._told = "", 0
                wait = duration_text(event.delay_ms)
                reason = clean_line(failures.shown(event))
                self._aside(tr("linear.retry", wait=wait, attempt=event.attempt, reason=reason))
            case ev.Attached():
                text = attached_text(event)
                self._aside(tr("linear.error", text=text) if event.error else text)
            case ev.ApprovalRequested():
                self._questions[event.approval_id] = event
            case ev.ApprovalAnswered(by="cancelled"):
                if asked := self._questions.pop(event.approval_id, None):
                    self._aside(tr("linear.withdrawn", question=asked.question))
            case ev.Notice():
                self._aside(tr(f"linear.{event.level}", text=failures.shown(event)))
            case ev.Status(component="agent", state="silent"):
                self._aside(tr("linear.silent"))
            case ev.Cleared():
                self._aside(tr("linear.info", text=tr("notices.cleared")))
            case ev.Compacted():
                key = "notices.compacted_by_itself" if event.automatic else "notices.compacted"
                self._aside(tr("linear.info", text=tr(key, tokens="")))
            case ev.TurnFinished():
                self._turn(event)
            case ev.TurnSettled():
                self._settled(event)
            case ev.ServerChanged():
                self.servers[event.name] = event
            case ev.SessionStarted():
                self.servers.clear()
                self._demo = event.demo
            case _:
                return

    def cost(self) -> str:
        """Return what the session has cost in a few words."""
        if self._demo:
            return tr("linear.no_cost")
        if self._unknown:
            turns = tr_count("linear.turns", len(self._unknown))
            return tr("linear.part_cost", cost=cost_text(self._known), turns=turns)
        return cost_text(self._known)

    def count(self, event: ev.TurnFinished | ev.TurnSettled) -> bool:
        """Add the cost of a turn to that of the session; of one whose end was told before its cost was known, once.

        Returns whether it was known and counted.
        """
        if event.cost_usd is None:
            if isinstance(event, ev.TurnFinished):
                self._unknown.add(event.turn_id)
            return False
        if isinstance(event, ev.TurnSettled) and event.turn_id not in self._unknown:
            return False
        self._unknown.discard(event.turn_id)
        self._known += event.cost_usd
        return True

    def _settled(self, event: ev.TurnSettled) -> None:
        """Say what a turn cost whose end was told before that was known."""
        if self.count(event) and not self._demo:
            self._aside(tr("linear.settled", turn=cost_text(event.cost_usd), session=self.cost()))

    # -- the answer ------------------------------------------------------------------------------------

    def _block(self, text: str) -> None:
        if not text.startswith(self._written):
            self._tell(whole=True)
            self._told = 0
        self._written = text
        self._tell(whole=True)
        self._written, self._told = "", 0

    def _tell(self, *, whole: bool) -> None:
        """Tell the lines of the open block that have ended, or all that there is."""
        end = len(self._written) if whole else self._written.rfind("\n", self._told) + 1
        if end <= self._told:
            return
        told = self._written[self._told : end]
        self._told = end
        if not self._speaking:
            self._say("")
            self._speaking = True
        for line in told.removesuffix("\n").split("\n"):
            self._say(line)

    def _aside(self, text: str) -> None:
        self._tell(whole=True)
        if self._speaking:
            self._say("")
            self._speaking = False
        for line in text.splitlines() or [""]:
            self._say(line)

    # -- calls -----------------------------------------------------------------------------------------

    def _started(self, event: ev.ToolStarted) -> None:
        self._tell(whole=True)
        self._written, self._told = "", 0
        server, _ = tool_parts(event.name)
        code = arguments_json(event.input) if server else event.input.get("code")
        call = Call(tool_name(event.name), code if isinstance(code, str) else "")
        self._calls[event.tool_use_id] = call
        self.calls.append(call)
        texts = (v for v in event.input.values() if isinstance(v, str) and v.strip())
        given = arguments_line(event.input) if server else next(texts, "")
        first = clean_line(next((line for line in given.splitlines() if line.strip()), ""), 100)
        lines = len(call.code.splitlines())
        key = "linear.started_with" if first else "linear.started"
        key = "linear.started_code" if lines > 1 and not server else key
        self._aside(tr(key, name=call.name, first=first, lines=lines))

    def _output(self, event: ev.ToolOutput) -> None:
        call = self._calls.get(event.tool_use_id)
        if call is None:
            return
        if event.late and not any(call.open.values()):
            self._aside(tr("linear.late", name=call.name))
        text = call.open.get(event.stream, "")
        text = text[: max(0, len(text) - event.rewind)] + event.text
        *ended, rest = text.split("\n")
        call.open[event.stream] = rest
        for line in ended:
            self._live(call, line)

    def _live(self, call: Call, line: str) -> None:
        call.output.append(line)
        if len(call.output) <= LIVE_LINES:
            self._aside(f"  {line}")
        elif len(call.output) == LIVE_LINES + 1:
            self._aside(tr("linear.more_output"))

    def _nested(self, event: ev.NestedStarted | ev.NestedFinished) -> None:
        """Tell the first calls that the code makes one by one, when they have ended; of more only how many there were."""
        calls = self._nested_calls.setdefault(event.tool_use_id, NestedCalls())
        if isinstance(event, ev.NestedStarted):
            calls.start(event)
            return
        done = calls.finish(event)
        if done is not None and (calls.count <= NESTED_LINES or done.outcome == "failed"):
            self._aside(f"  {done.line()}")

    def _finished(self, event: ev.ToolFinished) -> None:
        calls = self._nested_calls.pop(event.tool_use_id, None)
        if calls is not None and calls.count > NESTED_LINES:
            self._aside(f"  {tr_count('cards.nested', calls.count)}")
        call = self._calls.get(event.tool_use_id)
        if call is None:
            return
        for stream, line in list(call.open.items()):
            if line:
                call.open[stream] = ""
                self._live(call, line)
        call.answer = _answer_lines(event, live=bool(call.output))
        for line in self._result(event, call.answer):
            self._aside(line)
        how = "interrupted" if event.interrupted else "failed" if event.is_error else "ok"
        reason = clean_line(error_line(event.content), 500) if how == "failed" else ""
        key = f"linear.ended_{how}" if how != "failed" or not reason else "linear.ended_why"
        self._aside(tr(key, name=call.name, time=duration_text(event.duration_ms), reason=reason))
        for note in limit_notes(event.content):
            self._aside(f"  {clean_line(note, 500)}")

    def _result(self, event: ev.ToolFinished, lines: list[str]) -> Iterator[str]:
        """Yield what a call gave back beside its output: text, pictures, tables, files."""
        if not event.is_error:
            yield from (f"  {line}" for line in lines[:RESULT_LINES])
            if len(lines) > RESULT_LINES:
                yield tr("linear.more_lines", count=f"{len(lines) - RESULT_LINES:,}")
        for part in event.content:
            match part:
                case ev.ImageContent():
                    yield tr("linear.picture", width=part.width, height=part.height, path=part.path)
                case ev.TableContent():
                    yield tr("linear.table", rows=f"{part.row_count:,}", columns=f"{part.column_count:,}")
                case ev.FileContent():
                    yield tr("linear.file", title=part.title, size=size_text(part.size), path=part.path)

    # -- turns -----------------------------------------------------------------------------------------

    def _turn(self, event: ev.TurnFinished) -> None:
        self._tell(whole=True)
        self._written, self._told = "", 0
        self.count(event)
        if event.error:
            self._aside(tr("linear.error", text=failures.shown(event)))
        elif event.interrupted:
            self._aside(tr("linear.interrupted"))
        parts = [duration_text(event.duration_ms)]
        if self._demo:
            parts.append(tr("linear.no_cost"))
        else:
            turn = cost_text(event.cost_usd)
            parts.append(tr("linear.cost", turn=turn, session=self.cost()))
        read = event.usage.input + event.usage.cache_read + event.usage.cache_creation
        parts.append(tr("linear.tokens", read=f"{read:,}", written=f"{event.usage.output:,}"))
        if event.context.max > 0:
            parts.append(tr("linear.context", percent=round(100 * event.context.used / event.context.max)))
        self._aside(tr("linear.turn", parts=tr("linear.comma").join(parts)))


def _answer_lines(event: ev.ToolFinished, *, live: bool) -> list[str]:
    """Return the lines of an answer that were not told as output; of a failed call the reason and the traceback."""
    wanted = {"result", "traceback", "error", "tool_error"} if event.is_error else {"result"}
    if not live:
        wanted |= {"", "stdout", "stderr"} if event.is_error else {"", "stdout"}
    return [
        line for name, text in all_sections(event.content) if name in wanted for line in text.splitlines()
    ]


def call_lines(call: Call, what: str) -> list[str]:
    """Return the code of a call, or its output (``what``), as lines; a sentence when there is none."""
    lines = call.code.splitlines() if what == "code" else call.all_output()
    return [f"  {line}" for line in lines] or [tr(f"linear.no_{what}", name=call.name)]
