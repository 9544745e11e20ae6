"""A tool call, folded to a few rows in the transcript."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from sandbox_chat.events import TextContent
from sandbox_chat.plain import (
    all_sections,
    duration_text,
    error_line,
    limit_notes,
    sections,
    tool_name,
    was_stopped,
)
from sandbox_chat.text import clean
from sandbox_chat.ui.arguments import partial_arguments
from sandbox_chat.ui.formats import SPINNER, running

from .blocks import Block
from .cells import TAB, Run, fit, fit_row, row_width, wrap
from .code import CodeRows

if TYPE_CHECKING:
    from textual.strip import Strip

    from sandbox_chat.events import Content, Stream

    from .scene import Scene

Status = Literal["writing", "running", "ok", "failed", "interrupted"]

GLYPHS: dict[Status, tuple[str, str]] = {
    "writing": ("·", "waiting"),
    "running": ("◌", "running"),
    "ok": ("✓", "success"),
    "failed": ("✗", "error"),
    "interrupted": ("⊘", "warning"),
}
WRITING_ROWS = 6
"""Rows of code that are shown while the model writes them: its end."""
LIVE_LIMIT = 16_000
"""Characters of live output kept; the whole comes with the result."""
LIVE_ROWS = 3
"""Rows of live output shown while the call runs and is folded."""
LATE_LIMIT = 40_000
"""Characters of background output kept; it is bounded where it comes from."""
ERROR_ROWS = 8
"""Rows that a sentence of our own takes at most while the card of a failed call is folded."""
LIMIT_NOTES = 3
"""Limits that are named on a folded card."""
LATE_TITLE = "background output"
ASKS = ("?", "accent")
"""Sign and style of a call that waits for an answer of the user."""
SECTION_ROWS = 200
"""Rows of one part of an opened card; the tools pane has the rest."""

_INDENT = Run("  ")
_LABELS = {"stdout": "output", "stderr": "errors", "tool_error": "error"}


class ToolCard(Block):
    """A tool call: status, name, time, the first line of its code; everything when expanded."""

    kind = "tool"
    expandable = True

    def __init__(self, scene: Scene, tool_use_id: str, name: str) -> None:
        super().__init__(scene, f"tool-{tool_use_id}")
        self.tool_use_id = tool_use_id
        self.name = tool_name(name)
        self.status: Status = "writing"
        self.started_at: datetime | None = None
        self.duration_ms = 0
        self.input: Mapping[str, Any] = {}
        self.content: tuple[Content, ...] = ()
        self._draft = ""
        self._live: list[tuple[Stream, str]] = []
        self._live_size = 0
        self._late: list[tuple[Stream, str]] = []
        self._late_size = 0
        self._progress = ""
        self._asked: dict[str, tuple[str, str]] = {}
        self._code = CodeRows("python")

    # -- what happens ----------------------------------------------------------------------------------

    def write(self, piece: str) -> None:
        """The model wrote a piece of the arguments."""
        self._draft += piece
        self.touch()

    def start(self, arguments: Mapping[str, Any], at: datetime) -> None:
        """The call runs, with its whole arguments."""
        self.input = arguments
        self._draft = ""
        self.status = "running"
        self.started_at = at
        self.touch()

    def output(self, stream: Stream, text: str, *, late: bool = False) -> None:
        """A piece of output came, or of background output (``late``)."""
        if late:
            room = LATE_LIMIT - self._late_size
            if room > 0:
                self._late.append((stream, text[:room]))
                self._late_size += len(text[:room])
                self.touch()
            return
        if self.status != "running":
            return
        self._live.append((stream, text))
        self._live_size += len(text)
        while len(self._live) > 1 and self._live_size - len(self._live[0][1]) > LIVE_LIMIT:
            self._live_size -= len(self._live.pop(0)[1])
        self.touch()

    def progress(self, words: str) -> None:
        """How far a transfer of the call has come; empty when it is over."""
        self._progress = words
        self.touch()

    def ask(self, approval_id: str, question: str) -> None:
        """The call waits for an answer of the user."""
        self._asked[approval_id] = (question, "")
        self.touch()

    def answer(self, approval_id: str, words: str) -> None:
        """The user answered."""
        question, _ = self._asked.get(approval_id, ("", ""))
        self._asked[approval_id] = (question, words)
        self.touch()

    def finish(self, status: Status, content: tuple[Content, ...], duration_ms: int) -> None:
        """The call ended."""
        self.status = status
        self.content = content
        self.duration_ms = duration_ms
        self._live, self._live_size = [], 0
        self._progress = ""
        self.touch()

    def stop(self) -> None:
        """The turn ended before the call did."""
        if self.status in ("writing", "running"):
            self.status = "interrupted"
            self.touch()

    # -- what is shown ---------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """True while the call runs: its spinner and its time move."""
        return self.status == "running"

    @property
    def text(self) -> str:
        """The code and the answer."""
        parts = [
            self._shown_code()[0],
            *(part.text for part in self.content if isinstance(part, TextContent)),
            f"{LATE_TITLE}\n{''.join(text for _, text in self._late)}" if self._late else "",
        ]
        return "\n\n".join(part for part in parts if part)

    def estimate(self, width: int) -> int:
        """Return a guess of the height."""
        if self.expanded:
            return super().estimate(width)
        late = 1 + min(LIVE_ROWS, sum(text.count("\n") for _, text in self._late)) if self._late else 0
        return ((4 if self.status == "failed" else 3) + len(self._asked) + late) * self.visible

    def error_line(self) -> str:
        """Return the line that says best why the call failed."""
        return error_line(self.content)

    def _outside(self) -> Hashable:
        if self.status != "running":
            return 0
        return (self.scene.tick if self.scene.motion else self._elapsed_ms() // 1000,)

    def _arguments(self) -> Mapping[str, Any]:
        return self.input if not self._draft else partial_arguments(self._draft)

    def _shown_code(self) -> tuple[str, str]:
        """Return what the call does as text, and the language to highlight it in."""
        given = self._arguments()
        code = given.get("code")
        if isinstance(code, str):
            return code, "python"
        content = given.get("content")
        if isinstance(content, str):
            suffix = PurePosixPath(str(given.get("path", ""))).suffix.lstrip(".")
            return content, {"py": "python", "md": "markdown", "js": "javascript"}.get(suffix, suffix)
        return "", ""

    def _summary(self) -> str:
        """Return one line of arguments for calls without code."""
        given = self._arguments()
        parts = [
            clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
            for key, value in given.items()
            if key not in ("code", "content")
        ]
        return " · ".join(" ".join(part.split())[:200] for part in parts if part.strip())

    def _elapsed_ms(self) -> int:
        if self.started_at is None:
            return 0
        return max(0, int((self.scene.now() - self.started_at).total_seconds() * 1000))

    def _header(self, width: int) -> list[Run]:
        glyph, style = GLYPHS[self.status]
        asks = self.status == "running" and any(not answer for _, answer in self._asked.values())
        if asks:
            glyph, style = ASKS
        elif self.status == "running" and self.scene.motion:
            glyph = SPINNER[self.scene.tick % len(SPINNER)]
        if asks:
            time = "waiting for your answer"
        elif self.status == "running":
            time = running(self._elapsed_ms())
        elif self.status == "writing":
            time = "writing"
        else:
            time = duration_text(self.duration_ms) if self.duration_ms or self.content else ""
            if self.status == "interrupted":
                time = f"{time}  interrupted".strip()
        runs = [Run(f"{glyph} ", (style,)), Run(clean(self.name), ("tool",)), Run(f"  {time}", ("muted",))]
        code, _ = self._shown_code()
        summary = self._summary() if not code or "path" in self._arguments() else ""
        if summary:
            runs.append(Run(f"  {summary}", ("muted",)))
        return [*fit_row(runs, width - 2), Run(" ▾" if self.expanded else " ▸", ("faint",))]

    def _draw(self, width: int) -> Sequence[Strip]:
        out = self._strips([self._header(width)], width)
        code, language = self._shown_code()
        if language != self._code.language:
            self._code = CodeRows(language)
        writing = self.status == "writing"
        self._code.update(code, closed=not writing)
        if code:
            out.extend(self._code_strips(width, writing))
        if self.status == "running":
            out.extend(self._live_strips(width))
            if self._progress:
                out.append(
                    self.scene.palette.strip(
                        [_INDENT, Run(fit(self._progress, width - 2), ("muted",))], width
                    )
                )
        out.extend(self._asked_strips(width))
        if self.expanded:
            out.extend(self._answer_strips(width))
        else:
            if self.status == "failed":
                out.extend(self._error_strips(width))
            out.extend(self._limit_strips(width))
        out.extend(self._late_strips(width))
        return out

    def _error_strips(self, width: int) -> list[Strip]:
        """The line that names the error. One that no traceback ends with is ours: it says what to do, and is shown whole."""
        line = self.error_line().replace("\t", TAB)
        if not line:
            return []
        found = dict(all_sections(self.content))
        if "tool_error" in found or was_stopped(found) or ("error" in found and "traceback" not in found):
            rows = wrap([Run(line, ("error",))], width - 2)[:ERROR_ROWS]
        else:
            rows = [[Run(fit(line, width - 2), ("error",))]]
        return self._strips([[_INDENT, *row] for row in rows], width)

    def _limit_strips(self, width: int) -> list[Strip]:
        """Which limits of the sandbox struck: the error itself seldom says so."""
        rows = []
        for note in limit_notes(self.content)[:LIMIT_NOTES]:
            rows += wrap([Run(note.replace("\t", TAB), ("warning",))], width - 2)[:ERROR_ROWS]
        return self._strips([[_INDENT, *row] for row in rows], width)

    def _asked_strips(self, width: int) -> list[Strip]:
        rows = []
        for question, answer in self._asked.values():
            said = answer or "withdrawn"
            if answer or self.status != "running":  # until then the box above the prompt shows it
                words = fit(f"{question} → {said}", width - 4)
                rows.append([_INDENT, Run("? ", ("accent",)), Run(words, ("muted",))])
        return self._strips(rows, width)

    def _late_strips(self, width: int) -> list[Strip]:
        if not self._late:
            return []
        rows = self._output_rows(self._late, width)
        limit = SECTION_ROWS if self.expanded else LIVE_ROWS
        cut = len(rows) - limit
        more = f" · {cut:,} earlier lines" if cut > 0 else ""
        title = [_INDENT, Run(f"{LATE_TITLE}{more}", ("muted",))]
        return self._strips([title, *([Run("  │ ", ("faint",)), *row] for row in rows[-limit:])], width)

    def _output_rows(self, parts: Sequence[tuple[Stream, str]], width: int) -> list[list[Run]]:
        rows: list[list[Run]] = []
        for stream, text in _merge(parts):
            style = ("warning",) if stream == "stderr" else ("muted",)
            rows.extend(wrap([Run(text.strip("\n").replace("\t", TAB), style)], width - 4))
        return rows

    def _code_strips(self, width: int, writing: bool) -> list[Strip]:
        if self.expanded:
            return self._code.strips(width, self.scene.palette, (_INDENT,))
        if writing:
            rows = self._code.tail(width - 2, WRITING_ROWS)
            return self._strips([[_INDENT, *row] for row in rows], width)
        count = self._code.line_count
        more = f"{count} lines" if count > 1 else ""
        head = [run for run in self._code.head() if run.text]
        if count > 1:
            head.append(Run(" …", ("muted",)))
        row = fit_row(head, width - 2 - (len(more) + 2 if more else 0))
        if more:
            gap = width - 2 - row_width(row) - len(more)
            row = [*row, Run(" " * gap), Run(more, ("muted",))]
        return self._strips([[_INDENT, *row]], width)

    def _live_strips(self, width: int) -> list[Strip]:
        rows = self._output_rows(self._live, width)
        rows = rows[-(SECTION_ROWS if self.expanded else LIVE_ROWS) :]
        return self._strips([[Run("  │ ", ("faint",)), *row] for row in rows], width)

    def _answer_strips(self, width: int) -> list[Strip]:
        rows: list[Sequence[Run]] = []
        for part in self.content:
            if not isinstance(part, TextContent):
                continue
            for name, body in sections(part.text):
                if name == "success" or not body.strip():
                    continue
                if name:
                    rows.append([_INDENT, Run(_LABELS.get(name, name), ("muted",))])
                style = {"stderr": "warning", "error": "error", "tool_error": "error"}.get(name, "")
                body_rows = wrap([Run(body.replace("\t", TAB), (style,) if style else ())], width - 4)
                cut = len(body_rows) - SECTION_ROWS
                if cut > 0:
                    half = SECTION_ROWS // 2
                    note = [Run(f"… {cut:,} more lines, in the tools pane …", ("muted",))]
                    body_rows = [*body_rows[:half], note, *body_rows[-half:]]
                rows.extend([Run("  │ ", ("faint",)), *row] for row in body_rows)
        return self._strips(rows, width)


def _merge(parts: Sequence[tuple[Stream, str]]) -> list[tuple[Stream, str]]:
    out: list[tuple[Stream, str]] = []
    for stream, text in parts:
        if out and out[-1][0] == stream:
            out[-1] = (stream, out[-1][1] + text)
        else:
            out.append((stream, text))
    return out
