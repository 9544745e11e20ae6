"""What came of a tool call, in parts that can be drawn and copied. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_chat.events import FileContent, TableContent, TextContent
from sandbox_chat.plain import ends_with, sections, size_text
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr

from .card_live import LiveText, runs_of, wrap_output
from .card_table import table_rows, table_text
from .cells import TAB, Row, Run, fit_row
from .wrap import wrap

if TYPE_CHECKING:
    from sandbox_chat.events import Content

SECTION_ROWS = 200
"""Rows of one part of an opened card; the tools pane has the rest."""
TABLE_ROWS = 6
"""Rows of a table while its card is folded."""

_LABELS = {"stdout": "output", "stderr": "errors", "tool_error": "error"}
_STYLES: Mapping[str, tuple[str, ...]] = {
    "stderr": ("warning",),
    "error": ("error",),
    "tool_error": ("error",),
}
_SENTENCES = ("note", "error", "tool_error")
"""Parts that are words and no output: they are broken between words."""
_STREAMS: Mapping[str, tuple[str, ...]] = {"stderr": ("warning",)}
_ARROW = re.compile(r" *-+> *\d+ ")
"""How IPython marks the line of a frame."""
_CELL = re.compile(
    r'^(?:  \| )?\s*(?:Cell In\[(\d+)\], line (\d+)|File "<ipython-input-(\d+)-[^"]{1,80}", line (\d+))', re.M
)
_CHAINED = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)", re.M
)
_INDENT = Run("  ")


@dataclass(slots=True)
class Part:
    """A piece of a card: ``title`` stands over it, ``text`` is what is copied, in which the runs' ``at`` count.

    ``whole``: it is shown to the end. ``table`` and ``file`` are drawn in their own way; those are seen on a folded
    card too.
    """

    name: str
    title: str = ""
    text: str = ""
    runs: Sequence[Run] = ()
    table: TableContent | None = None
    file: FileContent | None = None

    @property
    def always(self) -> bool:
        """True for what is seen without opening the card."""
        return self.table is not None or self.file is not None

    @property
    def folded_height(self) -> int:
        """Rows that it takes on a folded card."""
        return 1 if self.table is None else 3 + min(TABLE_ROWS, len(self.table.rows))

    def rows(self, width: int, *, opened: bool) -> list[Row]:
        """Return the rows, in full or as a folded card shows them."""
        if self.table is not None:
            most = SECTION_ROWS if opened else TABLE_ROWS
            return [[_INDENT, *row] for row in table_rows(self.table, width - 2, most)]
        if self.file is not None:
            return [[_INDENT, *fit_row(file_row(self.file), width - 2)]]
        broken = wrap if self.name in _SENTENCES else wrap_output
        bar = Run(f"  {glyph('upright')} ", ("faint",))
        body: list[Row] = [[bar, *row] for row in folded(broken(self.runs, width - 4), SECTION_ROWS)]
        return [[_INDENT, Run(self.title, ("muted",))], *body] if self.title else body


def file_row(file: FileContent) -> Row:
    """Return the line of a result that another program shows: what it is, how large, and the keys."""
    how = {"text/html": "open", "text/plain": "page"}.get(file.mime, "save")
    hint = tr(f"cards.{how}_hint")
    dot = glyph("dot")
    words = f" {file.title} {dot} {size_text(file.size)}"
    return [Run(glyph("file"), ("accent",)), Run(words), Run(f" {dot} {hint}", ("muted",))]


def folded(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """Return at most ``most`` rows: the first and the last, and between them how many there are more."""
    cut = len(rows) - most
    if cut <= 0:
        return rows
    half = most // 2
    note = Run(tr("cards.more_lines", count=f"{cut:,}"), ("muted",))
    return [*rows[:half], [note], *rows[-half:]]


def parts_of(content: Iterable[Content], live: LiveText | None) -> list[Part]:
    """Return the parts of a call's result. ``live`` is its whole output with colours, where that was kept."""
    found: list[Part] = []
    content = tuple(content)
    instead = {"result"} if any(isinstance(part, TableContent) and part.result for part in content) else set()
    for part in content:
        if isinstance(part, TextContent):
            answer = sections(part)
            for name, body in answer:
                if name == "error" and ends_with(dict(answer).get("traceback", ""), body):
                    continue  # the traceback ends with it
                if name not in ("success", *instead) and body.strip():
                    found.append(_section(name, body, live))
        elif isinstance(part, TableContent):
            found.append(Part("table", text=table_text(part), table=part))
        elif isinstance(part, FileContent):
            found.append(Part("file", text=part.path, file=part))
    return found


def _section(name: str, body: str, live: LiveText | None) -> Part:
    title = _LABELS.get(name, name)
    style = _STYLES.get(name, ())
    if name in ("stdout", "stderr") and live is not None and (coloured := _coloured(name, body, live)):
        text = "".join(run.text for run in coloured)
        return Part(name, title, text, coloured)
    body = body.replace("\t", TAB)
    if name == "traceback":
        return Part(name, title, body, traceback_runs(body))
    return Part(name, title, body, [Run(body, style, at=0)])


def _coloured(name: str, body: str, live: LiveText) -> list[Run]:
    """Return a section with the colours that its output came in; nothing where it is not the same text."""
    pieces = [piece for piece in live.pieces if piece.stream == name]
    if not any(piece.styles for piece in pieces):
        return []
    plain = "".join(piece.text for piece in pieces).rstrip("\n")
    if not plain or not body.startswith(plain) or body[len(plain) :][:1] not in ("", "\n"):
        return []
    runs = runs_of(pieces, _STREAMS)
    size = sum(len(run.text) for run in runs)
    while runs and not (kept := runs[-1].text.rstrip("\n")):
        size -= len(runs.pop().text)
    if runs:
        size -= len(runs[-1].text) - len(kept)
        runs[-1] = runs[-1]._replace(text=kept)
    rest = body[len(plain) :].replace("\t", TAB)
    return [*runs, Run(rest, _STYLES.get(name, ()), at=size)] if rest else runs


def traceback_runs(text: str) -> list[Run]:
    """Return a traceback with the lines marked at which its frames stand, and the line that names the error."""
    lines = text.split("\n")
    last = max((number for number, line in enumerate(lines) if line.strip()), default=-1)
    runs: list[Run] = []
    at = 0
    for number, line in enumerate(lines):
        end = "\n" if number < len(lines) - 1 else ""
        names: tuple[str, ...] = ()
        if number == last:
            names = ("error",)
        elif _ARROW.match(line):
            names = ("code-mark",)
        if line:
            runs.append(Run(line, names, at=at))
        if end:
            runs.append(Run(end, at=at + len(line)))
        at += len(line) + 1
    return runs


def failing_line(content: Iterable[Content]) -> int:
    """Return the line of the call's own code at which its error arose, from 1; 0 when no traceback names one."""
    for part in content:
        if not isinstance(part, TextContent):
            continue
        for name, body in sections(part):
            if name != "traceback":
                continue
            starts = [match.start() for match in _CHAINED.finditer(body)]
            found = _CELL.findall(body, starts[-1] if starts else 0) or _CELL.findall(body)
            frames = [(int(cell or old), int(line or line_old)) for cell, line, old, line_old in found]
            if frames:  # the outermost frame is of this cell, others may be of functions of earlier ones
                return next(line for cell, line in reversed(frames) if cell == frames[0][0])
    return 0
