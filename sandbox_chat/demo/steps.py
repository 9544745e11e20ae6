"""The demo model's way to act: a plan is a generator that yields tool calls and returns the answer.

For each request the plan runs again from its start, and the results in the history are handed to it
in order; where they end, the plan's next call is the reply. So a plan reads like a story, and yet
nothing is kept between two requests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from sandbox_chat.demo.talk import Outcome, Talk, parse

MAX_TRIES = 3
"""How often a plan runs its own code until it gives up, as the system prompt asks of a model."""
SHOWN_CHARS = 1500
SHOWN_LINES = 30
"""Bounds of tool output that is repeated in an answer."""


@dataclass(frozen=True)
class Call:
    """A tool call: the tool's short name, its arguments, and what is said before it."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    say: str = ""


Plan = Generator[Call, Outcome, str]
Intent = Callable[[Talk], Plan | None]
"""Looks at a chat and returns the plan for its last prompt, or ``None`` when it is not meant."""


def say(text: str) -> Plan:
    """A plan that only answers."""
    yield from ()
    return text


def run(
    talk: Talk, code: str, words: str = "", *, timeout: int | None = None
) -> Generator[Call, Outcome, Outcome]:
    """Run code; mend what can be mended from the error; at most ``MAX_TRIES`` runs.

    A name that is missing although earlier code has set it means that the shell is a new one: the earlier
    code is run again first.
    """
    for attempt in range(1, MAX_TRIES + 1):
        arguments: dict[str, Any] = {"code": code}
        if timeout is not None:
            arguments["timeout"] = timeout
        outcome = yield Call("run_code", arguments, words)
        mended = "" if outcome.ok or attempt == MAX_TRIES else _restore(talk, code, outcome.missing_name)
        if not mended:
            return outcome
        words = talk.t(
            f"`{outcome.error}` — the shell does not know `{outcome.missing_name}` any more (a session that was opened again "
            "starts with an empty one). I run the earlier code first, then this again.",
            f"`{outcome.error}`：当前的 Python 环境里已经没有 `{outcome.missing_name}`（会话重新打开后变量会丢失）。我先重新运行之前的代码，再试一次。",
        )
        code = mended
    return outcome


def _restore(talk: Talk, code: str, name: str) -> str:
    """``code`` with the earlier code before it that sets ``name`` and what else ``code`` needs."""
    if not name:
        return ""
    tree = parse(code)
    wanted = {name}
    if tree is not None:
        wanted |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    earlier = talk.recall(*(wanted.intersection(talk.names) | {name}))
    return f"{earlier}\n\n{code}" if earlier and earlier not in code else ""


def look(talk: Talk, path: str, words: str = "") -> Generator[Call, Outcome, str]:
    """Look at a saved picture. Returns a remark if that failed, else an empty text."""
    if not talk.has("read_image"):
        return ""
    outcome = yield Call("read_image", {"path": path}, words)
    if outcome.ok:
        return ""
    return talk.t(
        f"\n\n(I could not look at the picture {path}: {outcome.error})",
        f"\n\n（未能读取图片 {path}：{outcome.error}）",
    )


def gave_up(talk: Talk, outcome: Outcome) -> str:
    """The answer when a plan's own code failed."""
    if outcome.timed_out:
        return talk.t(
            "The code did not end within its time limit, so I stop here. The variables are still there.",
            "代码没有在时限内结束，我就此停止。变量仍然保留。",
        )
    return talk.t(
        f"That did not work: `{one_line(outcome.error)}`. I have no other way to try, so I stop here.",
        f"没有成功：`{one_line(outcome.error)}`。我没有别的办法，就此停止。",
    )


def one_line(text: str, limit: int = 200) -> str:
    """A single line that can stand between backticks."""
    flat = " ".join(text.replace("`", "'").split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def fence(text: str, language: str = "text") -> str:
    """A fenced block of bounded size with ``text`` in it, whatever backticks that holds."""
    lines = text.splitlines()
    cut = len(lines) > SHOWN_LINES or len(text) > SHOWN_CHARS
    text = "\n".join(lines[:SHOWN_LINES])[:SHOWN_CHARS] + ("\n…" if cut else "")
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def table(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is the heading, columns after the first are right-aligned."""
    if not rows:
        return ""
    width = len(rows[0])
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row[:width]) + " |" for row in rows]
    lines.insert(1, "|---|" + "---:|" * (width - 1))
    return "\n".join(lines)


def csv_rows(text: str, heading: str) -> list[list[str]]:
    """Rows of comma-separated values in printed ``text``, from the line that starts with ``heading``."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(heading)), None)
    if start is None:
        return []
    rows = [line.split(",") for line in lines[start:] if line.strip()]
    return [row for row in rows if len(row) == len(rows[0])]
