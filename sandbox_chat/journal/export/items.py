"""The items of a session's story: what a document shows one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sandbox_chat import events as ev

RUN_CODE = "run_code"
"""The tool whose calls are code."""

Outcome = Literal["ok", "failed", "interrupted", "lost"]


@dataclass(frozen=True, slots=True)
class Opened:
    """The session was opened. ``again``: it had been before."""

    at: datetime
    session_id: str
    model: str
    sandbox: str
    demo: bool
    again: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the user wrote. ``steered``: into the running turn ``number``."""

    number: int
    text: str
    at: datetime
    steered: bool = False


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model's thinking before an answer or a call."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A block of the answer, in Markdown. ``cut``: it did not come to its end."""

    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a tool's answer: ``stdout``, ``result``, ``traceback``, …; an empty name for an answer without parts."""

    name: str
    text: str


Part = Section | ev.ImageContent | ev.TableContent | ev.FileContent


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with what came of it.

    ``outcome`` is ``lost`` when no answer came. ``output`` is what it wrote, where its answer does not hold that.
    ``fresh``: the variables of earlier calls were gone. ``questions`` were asked for it, with their answers.
    ``server`` is the MCP server of its tool, empty for the program's own.
    """

    number: int
    id: str
    name: str
    input: Mapping[str, Any]
    outcome: Outcome
    parts: tuple[Part, ...]
    output: str
    duration_ms: int
    fresh: bool
    questions: tuple[str, ...] = ()
    server: str = ""
    nested: int = 0
    """How many calls of other servers' tools its code made: without those servers it does not run again."""

    @property
    def code(self) -> str:
        """The code that it ran; empty for another tool."""
        code = self.input.get("code")
        return code if self.name == RUN_CODE and isinstance(code, str) else ""

    def section(self, name: str) -> str:
        """Return the text of a part of its answer; empty when there is none."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Section) and part.name == name)


@dataclass(frozen=True, slots=True)
class Background:
    """Output of a call that had ended."""

    name: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence of the program's: a notice, a file that was attached, an answer to a question."""

    level: ev.NoticeLevel
    text: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the user's that was put into the sandbox."""

    event: ev.Attached


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn ended. ``demo``: rules answered, no model."""

    event: ev.TurnFinished
    demo: bool


@dataclass(frozen=True, slots=True)
class CutOff:
    """A turn has no end: the program ended before, or the turn still runs."""

    last: bool


Item = Opened | Prompt | Thinking | Answer | Call | Background | Remark | Attachment | TurnEnd | CutOff
