"""What a tool needs and what it gives: the context of a call and its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sandbox_chat.ansi import Piece
from sandbox_chat.events import Choice, Content, FileContent, ImageContent, Stream, TextContent
from sandbox_chat.plain import told_apart
from sandbox_chat.settings import Settings
from sandbox_chat.text import bound
from sandbox_chat.tools.news import News
from sandbox_chat.tools.rich import Scripts

if TYPE_CHECKING:
    from sandbox_chat.sandbox.base import Bridge
    from sandbox_chat.sandbox.worker import SandboxWorker


CUT_ROOM = 100
"""Characters that the line about what was cut may take."""


class ToolInputError(Exception):
    """The call asks for what cannot be done. The message tells the model what to do instead."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture for the model: the bytes of a PNG or JPEG file."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a tool call.

    ``model`` goes to the model, ``display`` into the ``tool_finished`` event. ``is_error`` tells both.
    ``interrupted``: the user stopped the call; then nothing of ``model`` is read any more.
    """

    model: tuple[TextBlock | ImageBlock, ...]
    display: tuple[Content, ...]
    is_error: bool = False
    interrupted: bool = False

    @property
    def text(self) -> str:
        """The text that goes to the model, all blocks joined."""
        return "\n".join(block.text for block in self.model if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True)
class Question:
    """What a tool asks the user; see ``events.ApprovalRequested`` for the fields. All text is clean."""

    kind: str
    question: str
    detail: str
    choices: tuple[Choice, ...]
    default: str
    tool_use_id: str = ""
    subject: str = ""
    lasting: tuple[str, ...] = ()


Ask = Callable[[Question], Awaitable[str]]
"""Asks the user and returns the name of the chosen answer; waits without limit. Cancelling withdraws the question.

An answer that holds for the session is returned without asking."""


async def take_default(question: Question) -> str:
    """Answer a question where nobody can be asked."""
    return question.default


def no_progress(subject: str, label: str, done: int, total: int, over: bool) -> None:
    """Show no progress."""


async def nothing_first() -> None:
    """Have nothing to do before a call."""


class Private(Protocol):
    """Replaces personal data by tokens; see ``privacy.py``."""

    async def outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome without it."""

    def stream(self) -> tuple[Callable[[str], str], Callable[[], str]]:
        """Return what does so to live output, piece by piece, and what gives the rest at the end."""


class CodeMode(Protocol):
    """Lets code of a run call tools of this computer; see ``bridge/``."""

    def run(self, call_id: str) -> AbstractAsyncContextManager[Bridge]:
        """Give one run the right to do so, as long as this lasts."""

    def without_token(self, text: str) -> str:
        """Return a text for the model without the token by which code proves itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The surroundings of every tool call of a session. All callbacks are called on the session's loop.

    ``save_picture(data, mime)`` saves a PNG or JPEG and returns where, ``save_file(data, mime, title)`` what only
    another program can show. ``started(id, name, input)`` and ``finished(id, outcome, duration_ms)`` tell of a call;
    their first argument is the model's tool use id, the name is the tool's full one. ``ask`` asks the user.
    ``progress`` tells how far a transfer has come (see ``events.Progress``).
    ``private`` hides personal data, ``None``: nothing does.
    ``running`` are the calls that run: cancelling one stops it, and its answer says so.
    """

    settings: Settings
    save_picture: Callable[[bytes, str], ImageContent]
    save_file: Callable[[bytes, str, str], FileContent]
    started: Callable[[str, str, Mapping[str, Any]], None]
    finished: Callable[[str, ToolOutcome, int], None]
    ask: Ask = take_default
    progress: Callable[[str, str, int, int, bool], None] = no_progress
    private: Private | None = None
    running: set[asyncio.Task[ToolOutcome]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(CallContext):
    """The surroundings of the sandbox's tools.

    ``output(id, stream, piece, late)`` tells what a call writes, ``late``: after it had ended. ``news`` is what the
    model hears with its next run. ``before`` is awaited before each call. ``output_dir`` is where the whole
    output of a run is kept whose answer had to be cut; ``None``: nowhere. ``scripts`` is what plots need in the browser.
    ``code_mode`` lets code call tools of this computer.
    """

    worker: SandboxWorker
    output: Callable[[str, Stream, Piece, bool], None]
    news: News
    before: Callable[[], Awaitable[None]] = nothing_first
    output_dir: Path | None = None
    scripts: Scripts = field(default_factory=Scripts)
    code_mode: CodeMode | None = None


class OtherServers(Protocol):
    """MCP servers beside the sandbox's own tools."""

    def attach(self, context: CallContext) -> Mapping[str, Any]:
        """Return the in-process MCP servers by the name that the agent knows them by; their calls are told to ``context``."""


def text_outcome(text: str, *, limit: int, is_error: bool = False) -> ToolOutcome:
    """Return an outcome of one text, the same for the model and the screen, cut to ``limit`` characters."""
    if len(text) > limit:
        text = bound(text, limit - CUT_ROOM)
    shown = TextContent(text) if is_error else told_apart(text, ())
    return ToolOutcome((TextBlock(text),), (shown,), is_error=is_error)
