"""A session as a story: events put together to whole items, in the order in which they began.

What was withdrawn is not in it. An item is given out when it is whole, so little of a long session is held.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sandbox_chat import events as ev
from sandbox_chat.journal.export.items import (
    RUN_CODE,
    Answer,
    Attachment,
    Background,
    Call,
    CutOff,
    Item,
    Opened,
    Outcome,
    Part,
    Prompt,
    Remark,
    Section,
    Thinking,
    TurnEnd,
)
from sandbox_chat.journal.export.scrub import Scrubber
from sandbox_chat.kept import Kept
from sandbox_chat.nested import NestedCalls
from sandbox_chat.plain import answer_text, cost_text, ends_with, sections, tool_name, tool_parts
from sandbox_chat.text import bound, clean_line
from sandbox_chat.words import tr

NEW_SHELL = "This call ran in a new shell"
"""How the note of a call begins that ran after the variables were lost."""
OUTPUT_LIMIT = 1_000_000
"""Characters of the live output of a call without an answer that are kept."""


@dataclass
class _Running:
    """A call without an answer yet. It keeps its place among the items."""

    event: ev.ToolStarted
    number: int
    fresh: bool
    output: Kept = field(default_factory=Kept)
    size: int = 0
    questions: list[str] = field(default_factory=list)
    nested: NestedCalls = field(default_factory=NestedCalls)
    done: Call | None = None


NESTED_ROWS = 20
"""Lines of the result of a call that code made."""


class Story:
    """Tells a session once. ``turns`` and ``calls`` say how many there were."""

    def __init__(self, scrub: Scrubber) -> None:
        self.turns = 0
        self.calls = 0
        self._scrub = scrub
        self._queue: deque[Item | _Running] = deque()
        self._running: dict[str, _Running] = {}
        self._ended: dict[str, tuple[str, int]] = {}
        self._late: dict[str, Kept] = {}
        self._thinking: list[str] = []
        self._text: list[str] = []
        self._steered: list[Prompt] = []  # those that follow the text
        self._retry: Remark | None = None
        self._questions: dict[str, ev.ApprovalRequested] = {}
        self._in_turn = False
        self._opened = False
        self._demo = False
        self._new_shell = False

    def items(self, past: Iterable[ev.Event]) -> Iterator[Item]:
        """Yield the items of the events ``past``."""
        for event in past:
            self._take(event)
            yield from self._whole()
        self._close(last=True)
        yield from self._whole()

    def _whole(self) -> Iterator[Item]:
        while self._queue:
            head = self._queue[0]
            if isinstance(head, _Running):
                if head.done is None:
                    return
                head = head.done
            self._queue.popleft()
            yield head

    def _add(self, item: Item | _Running) -> None:
        if self._retry is not None:
            retry, self._retry = self._retry, None
            self._queue.append(retry)
        self._queue.append(item)

    # -- events ----------------------------------------------------------------------------------------

    def _take(self, event: ev.Event) -> None:
        if self._late and not isinstance(event, ev.ToolOutput):
            self._tell_late()
        match event:
            case ev.TextDelta(text=text):
                self._text.append(text)
            case ev.Text(text=text):
                self._text = [text]
                self._end_text(cut=False)
            case ev.ThinkingDelta(text=text):
                self._thinking.append(text)
            case ev.ToolStarted():
                self._started(event)
            case ev.ToolOutput():
                self._output(event)
            case ev.NestedStarted():
                if (running := self._running.get(event.tool_use_id)) is not None:
                    running.nested.start(event)
            case ev.NestedFinished():
                if (running := self._running.get(event.tool_use_id)) is not None:
                    running.nested.finish(event)
            case ev.ToolFinished():
                self._finished(event)
            case ev.TurnStarted():
                self._close(last=False)
                self.turns += 1
                self._in_turn = True
                self._add(Prompt(self.turns, self._scrub(event.prompt), event.at))
            case ev.Steered():
                self._steered.append(Prompt(self.turns, self._scrub(event.prompt), event.at, steered=True))
                if not self._text:  # else behind the text that is being written, which comes whole
                    self._end_text(cut=False)
            case ev.TurnFinished():
                self._end_turn(event)
            case ev.Retry():
                self._text, self._thinking = [], []
                reason = self._scrub(event.reason).rstrip(".")
                text = tr("export.retry", reason=f"{reason[:1].upper()}{reason[1:]}", attempt=event.attempt)
                self._retry = Remark("warning", text)
            case ev.SessionStarted():
                self._close(last=False)
                self._opened_again(event)
            case ev.SessionFinished():
                self._close(last=False)
            case _:
                self._remark(event)

    def _remark(self, event: ev.Event) -> None:
        match event:
            case ev.Notice():
                self._add(Remark(event.level, self._scrub(event.text)))
            case ev.Attached():
                name, path, error = map(self._scrub, (event.name, event.path, event.error))
                self._add(Attachment(dataclasses.replace(event, name=name, path=path, error=error)))
            case ev.ApprovalRequested():
                self._questions[event.approval_id] = event
            case ev.ApprovalAnswered():
                self._answered(event)
            case ev.SessionForked():
                self._add(Remark("info", tr("export.forked", origin=clean_line(event.origin))))
            case ev.ControlsChanged():
                model = self._scrub(clean_line(event.model)) or tr("export.default_model")
                self._add(Remark("info", tr("export.model_changed", model=model)))
            case ev.TurnSettled() if not self._demo and event.cost_usd is not None:
                self._add(Remark("info", tr("export.settled", cost=cost_text(event.cost_usd))))
            case ev.Cleared():
                self._add(Remark("info", tr("export.cleared")))
            case ev.Compacted():
                self._add(Remark("info", tr("export.compacted")))
            case _:
                return

    def _opened_again(self, event: ev.SessionStarted) -> None:
        again, self._opened = self._opened or self.turns > 0, True
        self._demo = event.demo
        self._new_shell = again
        model = self._scrub(clean_line(event.model))
        self._add(Opened(event.at, event.session_id, model, clean_line(event.sandbox), event.demo, again))

    # -- text ------------------------------------------------------------------------------------------

    def _end_text(self, *, cut: bool) -> None:
        thinking, self._thinking = "".join(self._thinking).strip("\n"), []
        text, self._text = "".join(self._text).strip("\n"), []
        if thinking.strip():
            self._add(Thinking(self._scrub(thinking)))
        if text.strip():
            self._add(Answer(self._scrub(text), cut))
        steered, self._steered = self._steered, []
        for prompt in steered:
            self._add(prompt)

    # -- calls -----------------------------------------------------------------------------------------

    def _started(self, event: ev.ToolStarted) -> None:
        self._end_text(cut=False)
        if event.tool_use_id in self._running:
            return
        self.calls += 1
        fresh = False
        if tool_name(event.name) == RUN_CODE:
            fresh, self._new_shell = self._new_shell, False
        running = _Running(event, self.calls, fresh)
        self._running[event.tool_use_id] = running
        self._add(running)

    def _output(self, event: ev.ToolOutput) -> None:
        if event.late:
            if event.tool_use_id in self._ended or event.tool_use_id in self._running:
                self._late.setdefault(event.tool_use_id, Kept()).add(event.stream, event.text, event.rewind)
            return
        running = self._running.get(event.tool_use_id)
        if running is not None and running.size < OUTPUT_LIMIT:
            running.size += len(event.text)
            running.output.add(event.stream, event.text, event.rewind)

    def _tell_late(self) -> None:
        late, self._late = self._late, {}
        for call_id, kept in late.items():
            found = self._ended.get(call_id)
            if found is None and (running := self._running.get(call_id)) is not None:
                found = (tool_name(running.event.name), running.number)
            if found is not None and kept.text.strip():
                self._add(Background(*found, self._scrub(kept.text.rstrip("\n"))))

    def _finished(self, event: ev.ToolFinished) -> None:
        running = self._running.pop(event.tool_use_id, None)
        if running is None:
            return  # a result whose call was never seen
        outcome: Outcome = "interrupted" if event.interrupted else "failed" if event.is_error else "ok"
        self._done(running, outcome, event.content, event.duration_ms)

    def _done(
        self, running: _Running, outcome: Outcome, content: tuple[ev.Content, ...], duration_ms: int
    ) -> None:
        event = running.event
        parts: list[Part] = []
        for part in content:
            if isinstance(part, ev.TextContent):
                parts += [
                    Section(name, self._scrub(text)) for name, text in sections(part) if name != "success"
                ]
            elif isinstance(part, ev.TableContent):
                parts.append(self._table(part))
            elif isinstance(part, ev.FileContent):
                parts.append(dataclasses.replace(part, title=self._scrub(part.title)))
            else:
                parts.append(part)
        names = {part.name for part in parts if isinstance(part, Section)}
        fresh = running.fresh or any(
            isinstance(part, Section) and part.name == "note" and part.text.startswith(NEW_SHELL)
            for part in parts
        )
        traceback = next((p.text for p in parts if isinstance(p, Section) and p.name == "traceback"), "")
        parts = [
            part
            for part in parts
            if not (isinstance(part, Section) and part.name == "error" and ends_with(traceback, part.text))
        ]
        if running.nested:
            running.nested.stop()
            calls = "\n".join(running.nested.lines(results=NESTED_ROWS))
            parts.insert(0, Section("calls", self._scrub(calls)))
        output = ""
        if not names & {"stdout", "stderr"} and outcome != "ok":
            output = self._scrub(bound(running.output.text, OUTPUT_LIMIT).rstrip("\n"))
        name = self._scrub(clean_line(tool_name(event.name)))
        given = self._scrub.data(event.input) if self._scrub.active else event.input
        self._ended[event.tool_use_id] = (name, running.number)
        running.done = Call(
            running.number, event.tool_use_id, name, given, outcome, tuple(parts), output, duration_ms, fresh,
            tuple(running.questions), tool_parts(event.name)[0], running.nested.count,
        )  # fmt: skip

    def _table(self, part: ev.TableContent) -> ev.TableContent:
        if not self._scrub.active:
            return part
        columns = tuple(map(self._scrub, part.columns))
        rows = tuple(tuple(map(self._scrub, row)) for row in part.rows)
        return dataclasses.replace(part, columns=columns, rows=rows)

    def _answered(self, event: ev.ApprovalAnswered) -> None:
        asked = self._questions.pop(event.approval_id, None)
        if asked is None:
            return
        words = self._scrub(f"{asked.question} → {answer_text(asked, event)}")
        running = self._running.get(asked.tool_use_id)
        if running is not None:
            running.questions.append(words)
        else:
            self._add(Remark("info", words))

    # -- ends ------------------------------------------------------------------------------------------

    def _end_turn(self, event: ev.TurnFinished) -> None:
        self._end_text(cut=event.interrupted or event.is_error)
        self._lose_calls()
        self._in_turn = False
        self._add(TurnEnd(dataclasses.replace(event, error=self._scrub(event.error)), self._demo))

    def _close(self, *, last: bool) -> None:
        """End what is still open: its program was killed, or it still runs."""
        self._tell_late()
        self._end_text(cut=True)
        self._lose_calls()
        self._questions.clear()
        if self._retry is not None:
            retry, self._retry = self._retry, None
            self._queue.append(retry)
        if self._in_turn:
            self._in_turn = False
            self._add(CutOff(last))

    def _lose_calls(self) -> None:
        for running in self._running.values():
            self._done(running, "lost", (), 0)
        self._running.clear()
