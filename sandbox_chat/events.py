"""The vocabulary of a chat: everything that happens is one of these events.

The agent side produces events; the terminal, the headless printer, the journal and the exporters
consume them. Replaying a journal through the same consumers rebuilds the same screen and the same
totals, so an event holds everything that is needed to show it and nothing that changes later.

Each event is a frozen dataclass whose JSON form is its fields plus ``type``. Every event has

``at``
    UTC time at which it happened, ISO 8601 with microseconds in JSON.
``seq``
    Number of the event in its session, from 1, without gaps. 0 means *not stamped yet*: the engine
    stamps an event once, just before it is written to the journal and shown. A ``progress`` passes: it
    is shown and not recorded, and keeps 0.

Text in an event has been cleaned at the border (see ``text.py``): it holds no control bytes.
Unknown ``type`` and unknown fields are ignored when reading, so that older programs can read newer
journals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from sandbox_chat.sgr import Styles

Stream = Literal["stdout", "stderr"]
NoticeLevel = Literal["info", "warning", "error"]
Component = Literal["agent", "sandbox"]
ServerPlace = Literal["host", "sandbox"]
ServerState = Literal["idle", "starting", "ready", "failed", "lost", "off"]
About = tuple[tuple[str, str], ...]
"""What a failure is about: names and values for the text of its kind, clean and without credentials."""


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Event:
    """Base of all events; see the module's text for ``at`` and ``seq``.

    The three methods below stand here once, and are not generated for each class: that would take a
    third of this module's import, which the first frame waits for.
    """

    type: ClassVar[str] = ""
    at: datetime = field(default_factory=utc_now)
    seq: int = 0

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, item.name) for item in dataclasses.fields(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.type, *self._values()))

    def __repr__(self) -> str:
        names = (item.name for item in dataclasses.fields(self))
        values = (f"{name}={value!r}" for name, value in zip(names, self._values(), strict=True))
        return f"{type(self).__name__}({', '.join(values)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionStarted(Event):
    """A session was opened, or opened again (then the same ``session_id`` comes a second time).

    ``model`` is the name asked for, empty when the CLI's default is used; ``sandbox`` the back end
    (``local``, ``e2b``, ``docker``, ``off``, ``unsafe-local``); ``demo`` is true when the offline
    rule-based model answers.
    """

    type: ClassVar[str] = "session_started"
    session_id: str
    model: str
    sandbox: str
    demo: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Status(Event):
    """The state of a part of the program, for title lines; carries no content of the chat.

    ``component`` is ``agent`` (states ``connecting``, ``ready``, ``lost``, ``closed``) or ``sandbox``
    (states ``none``, ``starting``, ``ready``, ``busy``, ``lost``, ``closed``). ``text`` says more.
    """

    type: ClassVar[str] = "status"
    component: Component
    state: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TurnStarted(Event):
    """A turn begins with the user's prompt; it is sent as soon as the agent can take it. Turns never overlap."""

    type: ClassVar[str] = "turn_started"
    turn_id: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ThinkingDelta(Event):
    """A piece of the model's thinking."""

    type: ClassVar[str] = "thinking_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TextDelta(Event):
    """A piece of the answer while it is written.

    The pieces since the last ``text``, ``retry``, ``tool_started`` or ``turn_started`` make up the
    open block. ``text`` replaces the open block by the whole one; ``retry`` withdraws it.
    """

    type: ClassVar[str] = "text_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Text(Event):
    """A whole block of the answer. Replaces the ``text_delta`` pieces that led to it, if any came."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolInputDelta(Event):
    """A piece of a tool call's arguments (partial JSON) while the model writes them.

    Comes before ``tool_started`` of the same ``tool_use_id``, which holds the whole arguments, or before
    a ``retry``, which withdraws the call.
    The first one has an empty ``text``: a call has begun.
    """

    type: ClassVar[str] = "tool_input_delta"
    tool_use_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolStarted(Event):
    """A tool call begins. ``input`` is the whole of its arguments."""

    type: ClassVar[str] = "tool_started"
    tool_use_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolOutput(Event):
    """Output of a tool call, as it comes. ``late``: a thread of its code wrote it after the call had ended.

    ``rewind`` characters of what was shown of that stream (and as late as this) are withdrawn before ``text`` is
    added: a progress line was written over. ``styles`` are colours and weights in ``text``: start, end, and words
    such as ``bold red on-#102030`` (see ``sgr.py``); they are in order and do not overlap.
    """

    type: ClassVar[str] = "tool_output"
    tool_use_id: str
    stream: Stream
    text: str
    late: bool = False
    rewind: int = 0
    styles: Styles = ()


@dataclass(frozen=True, slots=True)
class TextContent:
    """Text in a tool's result.

    ``titles`` are the places at which its parts begin, where more lines look like the title of one than are;
    ``None``: all that look so are.
    """

    text: str
    titles: tuple[int, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A picture in a tool's result, saved at ``path``; ``width`` and ``height`` in pixels.

    ``path`` is absolute in a live event. In the journal it is relative to the session's folder.
    """

    path: str
    mime: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class TableContent:
    """A data frame among a tool's results, bounded: cells as text, the names of the columns apart.

    ``row_count`` and ``column_count`` are those of the data frame itself; what is here may be less.
    ``result``: it is the value of the last expression, so the text of the answer shows it too.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int
    column_count: int
    result: bool = False


@dataclass(frozen=True, slots=True)
class FileContent:
    """A result that only another program can show, saved at ``path`` (see ``ImageContent``); ``size`` in bytes.

    ``title`` says in a few words what it is.
    """

    path: str
    mime: str
    size: int
    title: str


Content = TextContent | ImageContent | TableContent | FileContent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ToolFinished(Event):
    """A tool call ended. ``duration_ms`` counts from its start. ``interrupted``: the user stopped it."""

    type: ClassVar[str] = "tool_finished"
    tool_use_id: str
    is_error: bool
    content: tuple[Content, ...]
    duration_ms: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NestedStarted(Event):
    """Code that runs in the call ``tool_use_id`` calls a tool of an MCP server: ``name`` is the tool's full one.

    ``call_id`` is this call's own id; several may run at the same time. ``input`` is the whole of its arguments.
    """

    type: ClassVar[str] = "nested_started"
    tool_use_id: str
    call_id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NestedFinished(Event):
    """A call that code made has ended; the code got its result, of which ``content`` is the start, for people.

    The call ``tool_use_id`` may have ended before: then this one was stopped with it.
    """

    type: ClassVar[str] = "nested_finished"
    tool_use_id: str
    call_id: str
    is_error: bool
    content: tuple[Content, ...]
    duration_ms: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Progress(Event):
    """How far the transfer of a file has come: ``done`` of ``total`` bytes. ``over``: it has ended, well or not.

    ``subject`` is the tool use id of a download, or the id of an attachment (see ``Attached``); ``label`` names the file.
    """

    type: ClassVar[str] = "progress"
    subject: str
    label: str
    done: int
    total: int
    over: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be given: ``name`` for the program, ``key`` (one letter) and ``label`` for people."""

    name: str
    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ApprovalRequested(Event):
    """The user is asked; what asks waits for an ``approval_answered`` with the same ``approval_id``.

    ``kind`` says what it is about (``overwrite``, ``leftovers``). ``question`` is one sentence, ``detail`` the exact
    arguments, a line each. The last of ``choices`` does nothing; ``default`` names the one taken where nobody can be asked.
    ``tool_use_id`` is the call that waits, empty if none does. ``lasting`` names the choices that hold for the rest of
    the session, for questions of this kind about the same ``subject``.
    """

    type: ClassVar[str] = "approval_requested"
    approval_id: str
    kind: str
    question: str
    detail: str
    choices: tuple[Choice, ...]
    default: str
    tool_use_id: str = ""
    subject: str = ""
    lasting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ApprovalAnswered(Event):
    """A question was answered. ``by``: ``user``, ``default`` (nobody could be asked), ``option`` (of the command line),
    ``remembered`` (the same was answered for the session while this question waited), or ``cancelled`` (it was withdrawn; then ``choice`` is empty).
    """

    type: ClassVar[str] = "approval_answered"
    approval_id: str
    choice: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ApprovalForgotten(Event):
    """The answer to a question that was to hold for the session holds no longer: the same is asked again."""

    type: ClassVar[str] = "approval_forgotten"
    approval_id: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Attached(Event):
    """A file of the user's was put into the sandbox at ``path``; or it was not, and ``error`` says why.

    ``size`` in bytes; ``kind`` is the file's type in words, empty if it is not known.
    """

    type: ClassVar[str] = "attached"
    attach_id: str
    name: str
    path: str
    size: int
    kind: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Retry(Event):
    """The request to the model failed, or its reply was cut, and is tried again in ``delay_ms``.

    Withdraws the open text block, the thinking before it, and the calls that have not started.
    ``kind`` and ``about`` say the reason for a translation (see ``failures.py``).
    """

    type: ClassVar[str] = "retry"
    reason: str
    attempt: int
    delay_ms: int
    kind: str = ""
    about: About = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Notice(Event):
    """Something that the user should know: a full sentence with what to do.

    ``kind`` and ``about`` say the same for a translation (see ``failures.py``), where there is one.
    """

    type: ClassVar[str] = "notice"
    level: NoticeLevel
    text: str
    kind: str = ""
    about: About = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn: read as input (not from the cache), written, read from and put into the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How much of the model's context window is used, in tokens; ``max`` is 0 when it is not known."""

    used: int = 0
    max: int = 0


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model used in the session up to now.

    ``cost_usd`` is what is known of its cost, ``None`` if nothing is; ``complete`` is false when there was more.
    """

    model: str
    usage: Usage
    cost_usd: float | None
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TurnFinished(Event):
    """A turn ended, well or not.

    ``subtype`` is the agent's (``success``, ``error_max_turns``, ``error_during_execution``, …).
    ``is_error`` tells a failed turn even when the subtype is ``success`` (an endpoint that refused).
    ``interrupted``: the user stopped it. ``duration_ms``, ``num_turns`` and ``usage`` are of this turn;
    ``cost_usd`` of this turn and ``total_cost_usd`` of the session are ``None`` where a price is not
    known. ``error`` is the sentence to show for a failed turn; ``kind`` and ``about`` say
    the same for a translation (see ``failures.py``). ``models`` are the session's totals.
    ``anchor`` is the agent's own id of the turn's last message, from which a fork goes on; empty when not known.
    """

    type: ClassVar[str] = "turn_finished"
    turn_id: str
    subtype: str
    is_error: bool
    interrupted: bool
    num_turns: int
    duration_ms: int
    cost_usd: float | None
    total_cost_usd: float | None
    usage: Usage = Usage()
    context: ContextUse = ContextUse()
    error: str = ""
    models: tuple[ModelUse, ...] = ()
    anchor: str = ""
    kind: str = ""
    about: About = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TurnSettled(Event):
    """What a turn cost and used, where that was not known yet when its end was told: this takes the place of it.

    A turn that the user stopped is told over at once, its figures come when the agent's program ends it; by then a later
    turn may have begun, but none has ended. The fields are those of ``TurnFinished``.
    """

    type: ClassVar[str] = "turn_settled"
    turn_id: str
    cost_usd: float | None
    total_cost_usd: float | None
    usage: Usage = Usage()
    models: tuple[ModelUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Steered(Event):
    """The user sent ``prompt`` into the running turn ``turn_id``, which takes it up and goes on."""

    type: ClassVar[str] = "steered"
    turn_id: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionRenamed(Event):
    """The user gave the session another title; an empty one means that made from its first prompt."""

    type: ClassVar[str] = "session_renamed"
    title: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionForked(Event):
    """This session is a branch: up to here its events are those of session ``origin`` up to its turn ``turn_id``.

    ``agent_id`` is the agent's own id of the branch, where that is not the session's. ``title`` stands in place of that
    made from the first prompt, which the origin has too; empty in branches of earlier versions.
    """

    type: ClassVar[str] = "session_forked"
    origin: str
    turn_id: str
    agent_id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ControlsChanged(Event):
    """From the next turn on: ``model`` (empty: the CLI's default), ``effort`` and ``thinking`` as in the settings."""

    type: ClassVar[str] = "controls_changed"
    model: str
    effort: str = ""
    thinking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BudgetChanged(Event):
    """The session may cost ``limit_usd`` dollars in all; 0 means that there is no limit."""

    type: ClassVar[str] = "budget_changed"
    limit_usd: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cleared(Event):
    """The agent remembers nothing of what was said before. ``agent_id`` is its own id of the new conversation."""

    type: ClassVar[str] = "cleared"
    agent_id: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Compacted(Event):
    """What the agent remembers was replaced by a summary: tokens ``before`` and ``after``, 0 when not known.

    ``automatic``: the agent did so because the context window was nearly full.
    """

    type: ClassVar[str] = "compacted"
    before: int = 0
    after: int = 0
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of another MCP server: its name here, the server's own name of it, and what it says it does, cut short."""

    name: str
    original: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ServerChanged(Event):
    """The state of an MCP server that is on in this session; comes at its start and at each change.

    ``place``: ``host`` (a program or address of the user's) or ``sandbox``. ``state``: ``idle`` (starts when it is needed),
    ``starting``, ``ready``, ``failed`` (did not start), ``lost`` (ended by itself; starts again at the next call), ``off``.
    ``text`` says why, ``tools`` are those that are known, ``log`` is the file with what the server says on its standard error.
    """

    type: ClassVar[str] = "server"
    name: str
    place: ServerPlace
    state: ServerState
    transport: str = "stdio"
    tools: tuple[ServerTool, ...] = ()
    text: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SessionFinished(Event):
    """The session was closed in an orderly way."""

    type: ClassVar[str] = "session_finished"


EVENT_TYPES: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (
        SessionStarted, Status, TurnStarted, ThinkingDelta, TextDelta, Text, ToolInputDelta, ToolStarted,
        ToolOutput, ToolFinished, NestedStarted, NestedFinished, Progress, ApprovalRequested, ApprovalAnswered, ApprovalForgotten, Attached, Retry, Notice, TurnFinished, TurnSettled,
        Steered, SessionRenamed, SessionForked, ControlsChanged, BudgetChanged, Cleared, Compacted, ServerChanged, SessionFinished,
    )
}  # fmt: skip

Sink = Callable[[Event], None]
"""What takes events: a function that never blocks and never raises."""
