"""What the demo model sees of a chat: the prompt, what was run before, and what came of it.

The model keeps no state: all is read from the history in the request, so a resumed session works
like a running one.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sandbox_chat.demo.wire import Request, ToolCall, ToolResult

_SECTIONS = ("success", "stdout", "stderr", "result", "error", "traceback", "note")
_SECTION = re.compile(r"^\[(" + "|".join(_SECTIONS) + r")\](?: |$)", re.MULTILINE)
_VALUE = re.compile(r"^\s*([^\s:=][^:=\n]{0,40}?)\s*[:=]\s+(\S.*?)\s*$", re.MULTILINE)
_EXCEPTION = re.compile(
    r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Group)\b|[A-Za-z_][\w.]*:"
)
_WIDE = re.compile("[\u4e00-\u9fff]")
_READ_LIMIT = 4000
"""Characters of a prompt that are searched for words."""
DEFAULT_RUN_LIMIT = 25
"""Seconds that a run may take when the tool's schema does not say."""
_RECALL_LIMIT = 8000
"""Characters of earlier code that are run again at most."""


@dataclass(frozen=True)
class Outcome:
    """What came of one tool call, with the sections of ``run_code`` told apart."""

    result: ToolResult

    @property
    def text(self) -> str:
        """The whole text."""
        return self.result.text

    @property
    def images(self) -> int:
        """Number of pictures in the result."""
        return self.result.images

    @cached_property
    def sections(self) -> dict[str, str]:
        """The sections by name. They come in a fixed order, so output that looks like a heading is not one."""
        found: list[tuple[int, int, int]] = []
        for match in _SECTION.finditer(self.text):
            order = _SECTIONS.index(match[1])
            if (not found and order == 0) or (found and order > found[-1][0]):
                found.append((order, match.start(), match.end()))
        if not found:
            return {}
        ends = [start for _, start, _ in found[1:]] + [len(self.text)]
        return {
            _SECTIONS[order]: self.text[end:stop].strip("\n")
            for (order, _, end), stop in zip(found, ends, strict=True)
        }

    @property
    def ok(self) -> bool:
        """True when the tool did what was asked; for code, that it ran to its end."""
        if self.result.is_error:
            return False
        return self.sections.get("success", "True").strip().startswith("True")

    @property
    def broken(self) -> str:
        """Why no further call makes sense (the sandbox or the tool itself failed), empty when it does."""
        for line in self.text.splitlines():
            if line.startswith("[tool_error]"):
                return line.removeprefix("[tool_error]").strip() or "unknown"
        if self.result.is_error and "success" not in self.sections:
            for sign in ("No such tool available", "haven't granted", "timed out after", "doesn't want to"):
                if sign in self.text:
                    return self.text.strip().splitlines()[0][:200]
        return ""

    @property
    def stdout(self) -> str:
        """What the code printed."""
        return self.sections.get("stdout", "").rstrip()

    @property
    def value(self) -> str:
        """The value of the code's last expression, as text."""
        return self.sections.get("result", "").strip()

    @property
    def error(self) -> str:
        """The error in one line: what the tool says, or the last line of the traceback."""
        last = [line.strip() for line in self.sections.get("traceback", "").splitlines() if line.strip()]
        first = [line.strip() for line in self.sections.get("error", "").splitlines() if line.strip()]
        if first and not _EXCEPTION.match(first[0]):
            return first[0]  # the run was stopped: the traceback only shows where it was
        if last and _EXCEPTION.match(last[-1]):
            return last[-1]
        if first:
            return first[0]
        if last:
            return last[-1]
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "no output")

    @property
    def reason(self) -> str:
        """The error without the advice that may follow it: its first sentence."""
        return self.error.partition(". ")[0].rstrip(".")

    @property
    def error_name(self) -> str:
        """The exception's name, such as ``KeyError``, empty when the run did not end by an exception."""
        return re.split(r"[:\s]", self.error, maxsplit=1)[0] if _EXCEPTION.match(self.error) else ""

    @property
    def timed_out(self) -> bool:
        """True when the time limit of the call ended it."""
        said = (self.sections.get("error", "") or self.text).lower()
        return not self.ok and bool(re.search(r"time limit|time.?out|timed out", said))

    @property
    def missing_name(self) -> str:
        """The undefined name of a ``NameError``, else empty."""
        match = re.search(r"NameError: name '(\w+)' is not defined", self.error)
        return match[1] if match else ""

    def values(self) -> dict[str, str]:
        """Lines ``name: value`` and ``name = value`` of what was printed."""
        return {match[1].strip(): match[2] for match in _VALUE.finditer(self.stdout)}


@dataclass(frozen=True)
class Snippet:
    """A piece of code that was run before, with the names that it sets and those that it needs."""

    code: str
    ok: bool
    sets: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, code: str, ok: bool) -> Snippet:
        """Read the names out of ``code``; code that is no Python has none."""
        tree = parse(code)
        if tree is None:
            return cls(code, ok)
        sets: dict[str, None] = {}
        needs: set[str] = set()
        for node in _walk_module(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    sets.setdefault(name)
                case ast.Name(id=name):
                    needs.add(name)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                    sets.setdefault(name)
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    for alias in names:
                        sets.setdefault(alias.asname or alias.name.split(".")[0])
        return cls(code, ok, tuple(sets), frozenset(needs))


def parse(code: str) -> ast.Module | None:
    """Parse Python, ``None`` when it is none."""
    try:
        with warnings.catch_warnings():  # what Python finds odd in somebody's code is not for this terminal
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _walk_module(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but names set inside functions, classes and comprehensions belong to those."""
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, inner = todo.pop()
        if not (inner and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            yield node
        inside = inner or isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.comprehension,
        )
        todo.extend((child, inside) for child in reversed(list(ast.iter_child_nodes(node))))


@dataclass
class Turn:
    """A prompt and the tool calls that followed it, each with its result if there was one."""

    prompt: str
    steps: list[tuple[ToolCall, Outcome | None]] = field(default_factory=list)


class Talk:
    """A request seen as a chat. ``turns`` are all turns, the present one last."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.turns = _turns(request)

    @property
    def prompt(self) -> str:
        """What the user typed last."""
        return self.turns[-1].prompt if self.turns else ""

    @property
    def head(self) -> str:
        """The start of the prompt: what is wanted stands there, the rest may be anything."""
        return self.prompt[:_READ_LIMIT]

    @property
    def chinese(self) -> bool:
        """True when the prompt holds Chinese: then the answer is in Chinese too."""
        return _WIDE.search(self.head) is not None

    def t(self, english: str, chinese: str) -> str:
        """The text in the prompt's language."""
        return chinese if self.chinese else english

    def says(self, pattern: str) -> re.Match[str] | None:
        """Search the start of the prompt for ``pattern``, whatever the case."""
        return re.search(pattern, self.head, re.IGNORECASE)

    def has(self, tool: str) -> bool:
        """True when the tool is offered."""
        return bool(self.request.tool(tool))

    @property
    def run_limit(self) -> int:
        """The longest time in seconds that a run of code may ask for, as the tool's schema says."""
        tools = self.request.body.get("tools")
        for tool in tools if isinstance(tools, list) else []:
            match tool:
                case {
                    "name": str(name),
                    "input_schema": {"properties": {"timeout": {"maximum": int(limit)}}},
                } if name == self.request.tool("run_code"):
                    return max(1, limit)
        return DEFAULT_RUN_LIMIT

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of the calls of the present turn, in order."""
        return [outcome for _, outcome in self.turns[-1].steps if outcome is not None] if self.turns else []

    @cached_property
    def snippets(self) -> list[Snippet]:
        """The code of earlier turns, oldest first."""
        return [
            Snippet.of(str(call.input.get("code", "")), outcome is not None and outcome.ok)
            for turn in self.turns[:-1]
            for call, outcome in turn.steps
            if call.name.endswith("run_code")
        ]

    @cached_property
    def names(self) -> list[str]:
        """Variables that earlier code set, the newest first, without private ones."""
        found: dict[str, None] = {}
        for snippet in reversed(self.snippets):
            if snippet.ok:
                for name in reversed(snippet.sets):
                    if not name.startswith("_"):
                        found.setdefault(name)
        return list(found)

    def recall(self, *wanted: str) -> str:
        """Earlier code that sets ``wanted`` and what that code needs itself, empty when there is none."""
        missing = set(wanted)
        chosen: list[str] = []
        for snippet in reversed(self.snippets):
            if snippet.ok and missing.intersection(snippet.sets):
                chosen.insert(0, snippet.code)
                missing = (missing - set(snippet.sets)) | (snippet.needs - set(snippet.sets))
        code = "\n\n".join(chosen)
        return code if len(code) <= _RECALL_LIMIT else ""

    def pictures(self) -> list[str]:
        """Paths of pictures that earlier code saved, oldest first."""
        code = "\n".join(snippet.code for snippet in self.snippets if snippet.ok)
        return re.findall(r"""savefig\(\s*['"]([^'"\n]+)['"]""", code)


def _turns(request: Request) -> list[Turn]:
    turns: list[Turn] = []
    calls: dict[str, tuple[Turn, int]] = {}
    for message in request.messages:
        if message.role == "system":
            continue
        for result in message.results:
            if result.tool_use_id in calls:
                turn, index = calls[result.tool_use_id]
                turn.steps[index] = (turn.steps[index][0], Outcome(result))
        if message.role == "user" and message.text:
            turns.append(Turn(message.text))
        if message.calls and not turns:
            turns.append(Turn(""))
        for call in message.calls:
            turns[-1].steps.append((call, None))
            calls[call.id] = (turns[-1], len(turns[-1].steps) - 1)
    return turns
