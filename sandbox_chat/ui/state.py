"""What the screen knows: a pure reducer from events to one state.

The state depends on the events alone, never on a clock, so a replayed journal gives the same state
as the live chat did. Times come from the events' ``at``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sandbox_chat import events as ev
from sandbox_chat import questions
from sandbox_chat.allowed import Allowed
from sandbox_chat.phases import Machine, Phase
from sandbox_chat.text import clean_line
from sandbox_chat.ui.arguments import PartialArguments
from sandbox_chat.ui.calls import OLD_LIMIT, TOTAL_LIMIT, ToolCall, Turn

DRAFT_LIMIT = 200_000
"""Characters of arguments kept while the model writes them; the whole comes with ``tool_started``."""

TITLE_LIMIT = 60
AGENT = ("connecting", "ready", "lost", "closed")
"""States of the agent's program; other words of its status tell of a turn."""
HEARD = (
    ev.TurnStarted, ev.TextDelta, ev.ThinkingDelta, ev.Text, ev.ToolInputDelta, ev.ToolStarted, ev.ToolOutput, ev.ToolFinished,
    ev.ApprovalAnswered, ev.Retry, ev.TurnFinished,
)  # fmt: skip
"""Events with which a turn goes on."""


@dataclass
class ChatState:
    """Everything that the panes show. Changed only by ``apply``."""

    session_id: str = ""
    model: str = ""
    effort: str = ""
    thinking: str = ""
    controlled: bool = False
    """The user chose model, effort or thinking in this session; those of an earlier run are told anew if they go on."""
    sandbox_kind: str = ""
    demo: bool = False
    title: str = ""
    made_title: str = ""
    """The title made from the first prompt, or for a branch, which stands while the user gives no other."""
    renamed: bool = False
    agent: str = ""
    agent_text: str = ""
    sandbox: str = "none"
    turns: list[Turn] = field(default_factory=list)
    tools: dict[str, ToolCall] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    """What the session is doing."""
    retry: ev.Retry | None = None
    """Why a request is tried again, while it is."""
    silent: datetime | None = None
    """Since when it is known that nothing comes from the agent; ``None`` while something does."""
    context: ev.ContextUse = field(default_factory=ev.ContextUse)
    models: tuple[ev.ModelUse, ...] = ()
    budget: float | None = None
    """Dollars that the session may cost, if the user said so for it; 0: no limit."""
    finished: bool = False
    tool_revision: int = 0
    """Grows with every change of any tool call."""
    questions: dict[str, ev.ApprovalRequested] = field(default_factory=dict)
    """Open questions to the user by their id, oldest first."""
    allowed: Allowed = field(default_factory=Allowed)
    """Answers that hold for the rest of the session."""
    servers: dict[str, ev.ServerChanged] = field(default_factory=dict)
    """What was told last of each MCP server that this run of the program knows, by name."""
    remarks: int = 0
    """Entries of the transcript that belong to no turn and are to be seen before the first one."""
    partial: bool = field(default=False, compare=False)
    """True while only the last turns are known: sums over the session are not."""
    transfers: dict[str, ev.Progress] = field(default_factory=dict, compare=False)
    """Files on their way, by subject. They pass and are not in a replayed state."""
    _heard: datetime | None = field(default=None, repr=False, compare=False)
    """When the turn went on last."""
    _ended: int = field(default=0, repr=False, compare=False)
    """So many turns from the first on have surely ended: they are not looked at for each event again."""
    _open: dict[str, ToolCall] = field(default_factory=dict, repr=False, compare=False)
    """Calls that may not have ended, for the same reason."""
    _sums: tuple[int, ev.Usage, tuple[float, int]] | None = field(default=None, repr=False, compare=False)
    """How often turns had ended when tokens and cost were added up, and the sums."""
    _outputs: deque[ToolCall] = field(default_factory=deque, repr=False, compare=False)
    """Calls that have ended and hold their whole live output, oldest first."""
    _output_size: int = field(default=0, repr=False, compare=False)
    _ends: int = field(default=0, repr=False, compare=False)
    """How often a turn has ended."""

    # -- reading -----------------------------------------------------------------------------------------

    @property
    def turn(self) -> Turn | None:
        """The turn that runs now: the oldest one that has not ended."""
        while self._ended < len(self.turns) and self.turns[self._ended].ended:
            self._ended += 1
        return self.turns[self._ended] if self._ended < len(self.turns) else None

    @property
    def last_turn(self) -> Turn | None:
        """The newest turn that has ended."""
        return next((turn for turn in reversed(self.turns) if turn.ended), None)

    @property
    def busy(self) -> bool:
        """True while a turn runs."""
        return self.machine.busy

    @property
    def phase(self) -> Phase:
        """What is going on now; see ``phases.py``."""
        return self.machine.phase

    @property
    def since(self) -> datetime | None:
        """When that began."""
        return self.machine.since

    @property
    def coding(self) -> bool:
        """True while the model writes the arguments of a call."""
        return self.phase == "streaming" and any(tool.status == "writing" for tool in self.running_tools)

    @property
    def running_tools(self) -> list[ToolCall]:
        """Calls that have not ended, oldest first."""
        for tool_id in [key for key, tool in self._open.items() if not tool.open or key not in self.tools]:
            del self._open[tool_id]
        return list(self._open.values())

    @property
    def attaching(self) -> list[ev.Progress]:
        """Files of the user's on their way into the sandbox that take a while."""
        return [transfer for subject, transfer in self.transfers.items() if subject not in self.tools]

    def asks(self, tool_use_id: str) -> bool:
        """True while a call waits for an answer of the user."""
        return any(asked.tool_use_id == tool_use_id for asked in self.questions.values())

    @property
    def usage(self) -> ev.Usage:
        """Tokens of the whole session."""
        return self._summed()[1]

    @property
    def cost(self) -> tuple[float, int]:
        """Known cost of the session in US dollars, and how many turns have no known price."""
        return self._summed()[2]

    def _summed(self) -> tuple[int, ev.Usage, tuple[float, int]]:
        """Add up the turns, once after each end of one."""
        if self._sums is None or self._sums[0] != self._ends:
            turns = self.turns
            usage = ev.Usage(
                input=sum(t.usage.input for t in turns),
                output=sum(t.usage.output for t in turns),
                cache_read=sum(t.usage.cache_read for t in turns),
                cache_creation=sum(t.usage.cache_creation for t in turns),
            )
            known = sum(t.cost_usd for t in turns if t.cost_usd is not None)
            unknown = sum(1 for t in turns if t.ended and t.cost_usd is None)
            self._sums = (self._ends, usage, (known, unknown))
        return self._sums

    # -- changing ----------------------------------------------------------------------------------------

    def become(self, other: ChatState) -> None:
        """Take everything from a state that was made of more events, which is not to be used again."""
        revision = max(self.tool_revision, other.tool_revision) + 1
        vars(self).update(vars(other))
        self.tool_revision = revision

    def apply_all(self, events: Iterable[ev.Event]) -> None:
        """Apply events in order."""
        for event in events:
            self.apply(event)

    def apply(self, event: ev.Event) -> None:
        """Apply one event. Events of a kind that is not known change nothing."""
        self.machine.apply(event)
        if self.machine.phase != "retrying":
            self.retry = None
        if isinstance(event, HEARD):
            self._heard, self.silent = event.at, None
        match event:
            case ev.Text():
                self._answered()
            case ev.ToolInputDelta():
                self._tool_draft(event)
            case ev.ToolOutput():
                if tool := self.tools.get(event.tool_use_id):
                    (tool.late if event.late else tool.output).add(
                        event.stream, event.text, event.styles, event.rewind
                    )
                    self._touch(tool)
            case ev.NestedStarted() | ev.NestedFinished():
                self._nested(event)
            case ev.Progress():
                self._progress(event)
            case ev.ApprovalRequested():
                asked = questions.shown(event)
                self.allowed.take(asked)
                self.questions[event.approval_id] = asked
                self._touch_call(event.tool_use_id)
            case ev.ApprovalAnswered():
                self.allowed.take(event)
                if over := self.questions.pop(event.approval_id, None):
                    self._touch_call(over.tool_use_id)
            case ev.ApprovalForgotten():
                self.allowed.take(event)
            case ev.Attached():
                self.remarks += 1
                self.transfers.pop(event.attach_id, None)
            case ev.ToolStarted():
                self._tool_started(event)
            case ev.ToolFinished():
                self._tool_finished(event)
            case ev.TurnStarted():
                self._turn_started(event)
            case ev.TurnFinished():
                self._turn_finished(event)
            case ev.TurnSettled():
                self._turn_settled(event)
            case ev.Retry():
                self._withdraw()
                self.retry = event if self.phase == "retrying" else None
            case ev.Status():
                self._status(event)
            case ev.SessionRenamed():
                title = clean_line(event.title, TITLE_LIMIT)
                self.renamed, self.title = bool(title), title or self.made_title
            case ev.SessionForked():
                self.made_title = clean_line(event.title, TITLE_LIMIT) or self.made_title
                self.title = self.title if self.renamed else self.made_title
            case ev.SessionStarted():
                self.allowed.take(event)
                self._session_started(event)
            case ev.ControlsChanged():
                self.model, self.effort, self.thinking = event.model, event.effort, event.thinking
                self.controlled = True
            case ev.ServerChanged():
                self.servers[event.name] = event
            case ev.BudgetChanged():
                self.budget = event.limit_usd
            case ev.SessionFinished():
                self._settle()
                self.finished = True
            case _:
                pass

    def _answered(self) -> None:
        """Something of the answer is there that nothing withdraws: a whole block, a call that runs."""
        if turn := self.turn:
            turn.answered = True

    def _tool(self, tool_use_id: str, name: str, at: datetime) -> ToolCall:
        tool = self.tools.get(tool_use_id)
        if tool is None:
            turn = self.turn
            tool = ToolCall(id=tool_use_id, name=name, turn_id=turn.id if turn else "", began=at)
            self.tools[tool_use_id] = self._open[tool_use_id] = tool
        return tool

    def _tool_draft(self, event: ev.ToolInputDelta) -> None:
        tool = self._tool(event.tool_use_id, event.name, event.at)
        if tool.status == "writing" and len(tool.draft) < DRAFT_LIMIT:
            tool.draft += event.text
            tool.partial.feed(event.text)
            self._touch(tool)

    def _tool_started(self, event: ev.ToolStarted) -> None:
        tool = self._tool(event.tool_use_id, event.name, event.at)
        tool.name = event.name
        tool.input = event.input
        tool.draft, tool.partial = "", PartialArguments()
        self._touch(tool)
        if tool.open:
            tool.status = "running"
            tool.started = event.at
        self._answered()

    def _nested(self, event: ev.NestedStarted | ev.NestedFinished) -> None:
        if tool := self.tools.get(event.tool_use_id):
            if isinstance(event, ev.NestedStarted):
                tool.nested.start(event)
            else:
                tool.nested.finish(event)
            self._touch(tool)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        tool = self._tool(event.tool_use_id, "", event.at)
        tool.duration_ms = event.duration_ms
        tool.content = event.content
        tool.status = "interrupted" if event.interrupted else "failed" if event.is_error else "ok"
        tool.nested.stop()
        self._touch(tool)
        self._bound_output(tool)

    def _bound_output(self, tool: ToolCall) -> None:
        """A call has ended: when all calls hold too much output, the oldest give theirs up."""
        self._outputs.append(tool)
        self._output_size += tool.output.size
        while self._output_size > TOTAL_LIMIT and len(self._outputs) > 1:
            oldest = self._outputs.popleft()
            self._output_size -= oldest.output.size
            oldest.output.shrink(OLD_LIMIT)
            self._touch(oldest)

    def _progress(self, event: ev.Progress) -> None:
        if event.over:
            self.transfers.pop(event.subject, None)
        else:
            self.transfers[event.subject] = event
        self._touch_call(event.subject)

    def _touch_call(self, tool_use_id: str) -> None:
        if tool := self.tools.get(tool_use_id):
            self._touch(tool)

    def _withdraw(self) -> None:
        """Forget the calls that were still being written: the model writes its reply anew."""
        for tool in self.running_tools:
            if tool.status == "writing":
                del self.tools[tool.id]
                self.tool_revision += 1

    def _turn_started(self, event: ev.TurnStarted) -> None:
        self.turns.append(Turn(id=event.turn_id, prompt=event.prompt, started=event.at))
        if not self.made_title:
            self.made_title = clean_line(event.prompt, TITLE_LIMIT)
        if not self.renamed:
            self.title = self.made_title

    def _turn_finished(self, event: ev.TurnFinished) -> None:
        self._ends += 1
        turn = next((t for t in reversed(self.turns) if t.id == event.turn_id), None)
        if turn is not None:
            turn.ended = True
            turn.is_error = event.is_error
            turn.interrupted = event.interrupted
            turn.error = event.error
            turn.duration_ms = event.duration_ms
            turn.cost_usd = event.cost_usd
            turn.usage = event.usage
        for tool in self.running_tools:
            if tool.turn_id in ("", event.turn_id):
                self._stop(tool)
        if event.context.used or event.context.max:
            self.context = event.context
        if event.models:
            self.models = event.models

    def _turn_settled(self, event: ev.TurnSettled) -> None:
        turn = next((t for t in reversed(self.turns) if t.id == event.turn_id), None)
        if turn is not None:
            turn.cost_usd, turn.usage = event.cost_usd, event.usage
            self._sums = None
        self.models = event.models or self.models

    def _status(self, event: ev.Status) -> None:
        if event.component == "agent":
            self.silent = (self._heard or event.at) if event.state == "silent" else None
            if event.state in AGENT:
                self.agent, self.agent_text = event.state, event.text
        else:
            self.sandbox = event.state

    def _session_started(self, event: ev.SessionStarted) -> None:
        self._settle()
        self.session_id = event.session_id
        self.model, self.effort, self.thinking = event.model, "", ""
        self.controlled = False
        self.sandbox_kind = event.sandbox
        self.demo = event.demo
        self.agent, self.agent_text = "connecting", ""
        self.sandbox = "none"
        self.servers.clear()
        self.finished = False

    def _settle(self) -> None:
        """End what an earlier run of the program left open: nothing of it goes on."""
        self.questions.clear()
        self.transfers.clear()
        self._ends += 1
        for tool in self.running_tools:
            self._stop(tool)
        for turn in self.turns:
            if not turn.ended:
                turn.ended = True
                turn.interrupted = True
        self.retry = None

    def _stop(self, tool: ToolCall) -> None:
        tool.status = "interrupted"
        tool.nested.stop()
        self._touch(tool)

    def _touch(self, tool: ToolCall) -> None:
        tool.revision += 1
        self.tool_revision += 1
