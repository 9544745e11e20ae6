"""How a tool call looks in the transcript: its rows, made from what the card knows."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from sandbox_chat.plain import all_sections, arguments_line, duration_text, limit_notes, was_stopped
from sandbox_chat.text import clean
from sandbox_chat.ui.formats import running
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.markdown.code import PREFIX, CodeRows
from sandbox_chat.words import tr

from .blocks import Line
from .card_answer import SECTION_ROWS, failing_line
from .card_live import LiveText, runs_of, wrap_output
from .card_nested import FOLDED_ROWS, nested_lines
from .cells import TAB, Row, Run, fit, fit_row, row_width
from .lazy import Lazy
from .wrap import wrap

if TYPE_CHECKING:
    from textual.strip import Strip

    from .card import Status, ToolCard
    from .palette import Palette

GLYPHS: dict[Status, tuple[str, str]] = {
    "writing": ("waiting", "waiting"),
    "running": ("running", "running"),
    "ok": ("ok", "success"),
    "failed": ("failed", "error"),
    "interrupted": ("interrupted", "warning"),
}
"""Name of the sign and style of each status."""
ASKS = ("asks", "accent")
"""The same for a call that waits for an answer of the user."""
WRITING_ROWS = 6
"""Rows of code that are shown while the model writes them: its end."""
LIVE_ROWS = 3
"""Rows of live output shown while the call runs and is folded."""
ERROR_ROWS = 8
"""Rows that a sentence of our own takes at most while the card of a failed call is folded."""
LIMIT_NOTES = 3
"""Limits that are named on a folded card."""

OUTPUT: dict[str, tuple[str, ...]] = {"stdout": ("muted",), "stderr": ("warning",)}
"""Styles of the streams."""

_INDENT = Run("  ")


def _bar() -> Run:
    return Run(f"  {glyph('upright')} ", ("faint",))


class CodeLines(Lazy[Line]):
    """The lines of code that is shown whole; each is made when it is taken."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def _item(self, index: int) -> Line:
        row = [run._replace(names=("block", *run.names)) for run in self._rows[index]]
        return Line([_INDENT, PREFIX, *row], 0, ("block",))


class Strips:
    """Lines at one width, each coloured once, when it is seen."""

    def __init__(self, lines: Sequence[Line], width: int, palette: Palette) -> None:
        self.lines = lines
        self._width = width
        self._palette = palette
        self._made: dict[int, Strip] = {}

    def strip(self, number: int) -> Strip:
        found = self._made.get(number)
        if found is None:
            line = self.lines[number]
            found = self._made[number] = self._palette.strip(line.row, self._width, line.fill)
        return found


class Stack:
    """Strips one below the other."""

    def __init__(self, parts: Sequence[Strips]) -> None:
        self._parts = parts
        self._size = sum(len(part.lines) for part in parts)

    def __len__(self) -> int:
        return self._size

    def strip(self, number: int) -> Strip:
        """Return a row."""
        part, at = self._find(number)
        return part.strip(at)

    def line(self, number: int) -> Line:
        """Return what a row is made of."""
        part, at = self._find(number)
        return part.lines[at]

    def _find(self, number: int) -> tuple[Strips, int]:
        for part in self._parts:
            if number < len(part.lines):
                return part, number
            number -= len(part.lines)
        raise IndexError(number)


class CardFace:
    """Makes the rows of a card, and keeps what did not change: the code while output comes, all while only time goes on."""

    def __init__(self, card: ToolCard) -> None:
        self._card = card
        self.code = CodeRows("python")
        self._taken = -1  # revision of the card whose code is taken
        self._width = 0
        self._keys: list[Hashable] = [None, None, None]
        self._parts: list[Strips] = []

    def drawn(self, width: int) -> bool:
        """True when it is laid out at this width."""
        return self._width == width

    def lay_out(self, width: int) -> Stack:
        """Return the rows at ``width`` cells: the header, the code, the rest."""
        card, palette = self._card, self._card.scene.palette
        self.update_code()
        look = (width, palette.version, card.expanded, card.revision)
        if card.status == "running":
            moves: Hashable = card.scene.tick if card.scene.motion else card.elapsed_ms() // 1000
        else:
            moves = None
        keys: list[Hashable] = [
            (look, moves),
            (width, palette.version, card.expanded, self._code_state()),
            look,
        ]
        makers = (self._header_lines, self._code_lines, self._rest)
        if not self._parts:
            self._parts = [Strips((), width, palette)] * 3
        for place, make in enumerate(makers):
            if keys[place] != self._keys[place]:
                self._parts[place] = Strips(make(width), width, palette)
        self._keys, self._width = keys, width
        return Stack(self._parts)

    def estimate(self, width: int) -> int:
        """Return a guess of the height without laying anything out."""
        card = self._card
        if not card.visible:
            return 0
        if card.expanded:
            text = card.text
            return 2 + text.count("\n") + len(text) // max(width, 1) + 1
        late = 1 + min(LIVE_ROWS, card.late.text().count("\n")) if card.late else 0
        shown = sum(part.folded_height for part in card.came() if part.always) if card.content else 0
        calls = 1 + min(FOLDED_ROWS, card.nested.count) if card.nested else 0
        return (4 if card.status == "failed" else 3) + len(card.asked) + late + shown + calls

    # -- header ----------------------------------------------------------------------------------------

    def _header_lines(self, width: int) -> list[Line]:
        return [Line(self._header(width))]

    def _header(self, width: int) -> Row:
        card = self._card
        sign, style = GLYPHS[card.status]
        mark = glyph(sign)
        if card.status == "running" and any(not answer for _, answer in card.asked.values()):
            (sign, style), time = ASKS, tr("cards.asks")
            mark = glyph(sign)
        elif card.status == "running":
            time = running(card.elapsed_ms())
            if card.scene.motion:
                frames = glyph("spinner")
                mark = frames[card.scene.tick % len(frames)]
        elif card.status == "writing":
            time = tr("cards.writing")
        else:
            time = duration_text(card.duration_ms) if card.duration_ms or card.content else ""
            if card.status == "interrupted":
                time = f"{time}  {tr('cards.interrupted')}".strip()
        runs = [Run(f"{mark} ", (style,)), Run(clean(card.name), ("tool",)), Run(f"  {time}", ("muted",))]
        summary = self._summary() if not card.code or "path" in card.arguments else ""
        if summary:
            runs.append(Run(f"  {summary}", ("muted",)))
        fold = glyph("open" if card.expanded else "folded")
        return [*fit_row(runs, width - 2), Run(f" {fold}", ("faint",))]

    def _summary(self) -> str:
        """Return one line of arguments for calls without code."""
        if self._card.server:
            return clean(arguments_line(self._card.arguments, f" {glyph('dot')} "))
        parts = [
            clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
            for key, value in self._card.arguments.items()
            if key not in ("code", "content")
        ]
        return f" {glyph('dot')} ".join(" ".join(part.split())[:200] for part in parts if part.strip())

    # -- code ------------------------------------------------------------------------------------------

    def update_code(self) -> None:
        """Take the code as it is now."""
        card = self._card
        if self._taken == card.revision:
            return
        self._taken = card.revision
        code, language = card.shown_code()
        if language != self.code.language:
            self.code = CodeRows(language)
        self.code.update(code, closed=card.status != "writing")
        line = failing_line(card.content) if card.status == "failed" and language == "python" else 0
        self.code.marked = frozenset({line} if line else ())

    def _code_state(self) -> Hashable:
        if self.code.pending:
            self.code.take_changed()  # takes the colours that a thread has made
        written = self._card.revision if self._card.status == "writing" else -1
        return (id(self.code), self.code.line_count, written, self.code.marked, self.code.pending)

    def _code_lines(self, width: int) -> Sequence[Line]:
        code, card = self.code, self._card
        if not code.text:
            return ()
        if card.status == "writing":
            rows = code.tail(width - 2, SECTION_ROWS if card.expanded else WRITING_ROWS)
            return [Line([_INDENT, *row], 0) for row in rows]
        if card.expanded:
            return CodeLines(code.rows(width - 4))
        if card.server:
            return ()  # the header says them in short
        count = code.line_count
        more = tr("cards.lines", count=count) if count > 1 else ""
        head = self._first_line()
        if count > 1:
            head.append(Run(f" {glyph('ellipsis')}", ("muted",)))
        row = fit_row(head, width - 2 - (row_width([Run(more)]) + 2 if more else 0))
        if more:
            gap = width - 2 - row_width(row) - row_width([Run(more)])
            row = [*row, Run(" " * gap), Run(more, ("muted",))]
        return [Line([_INDENT, *row], 0), *self._failing_lines(width)]

    def _first_line(self) -> list[Run]:
        """Return the first line that holds something, with where it stands in the code."""
        at = 0
        for line in self.code.text.split("\n"):
            if line.strip():
                break
            at += len(line) + 1
        runs: list[Run] = []
        for run in self.code.head():
            if run.text:
                runs.append(run._replace(at=at))
            at += len(run.text)
        return runs

    def _failing_lines(self, width: int) -> list[Line]:
        """The line of the code that failed, with its number, unless it is the one that is shown anyway."""
        lines = self.code.text.split("\n")
        for number in self.code.marked:
            if 0 < number <= len(lines) and any(line.strip() for line in lines[: number - 1]):
                at = sum(len(line) + 1 for line in lines[: number - 1])
                text = lines[number - 1]
                start = len(text) - len(text.lstrip())
                row = [Run(f"{number} ", ("error",)), Run(text[start:], ("code-mark",), at=at + start)]
                return [Line([_INDENT, *fit_row(row, width - 2)], 0)]
        return []

    # -- the rest --------------------------------------------------------------------------------------

    def _rest(self, width: int) -> list[Line]:
        card = self._card
        out: list[Line] = []
        if card.status == "running":
            out += self._live_lines(width)
            if card.transfer:
                out.append(Line([_INDENT, Run(fit(card.transfer, width - 2), ("muted",))]))
        out += nested_lines(card.nested, width, opened=card.expanded, running=card.status == "running")
        out += self._asked_lines(width)
        if not card.expanded:
            if card.status == "failed":
                out += self._error_lines(width)
            out += self._limit_lines(width)
        if card.status == "running" and not card.late:
            return out  # what came until now was drawn above, in part
        for number, part in enumerate(card.came(), 1):
            if part.name == "late":
                out += self._late_lines(part.runs, width, number)
            elif (card.expanded or part.always) and card.status != "running":
                out += [Line(row, number) for row in part.rows(width, opened=card.expanded)]
        return out

    def _live_lines(self, width: int) -> list[Line]:
        live = self._card.output_now
        if not live:
            return []
        most = SECTION_ROWS if self._card.expanded else LIVE_ROWS
        pieces = live.tail(most)
        text = live.text()
        before = text[: len(text) - sum(len(piece.text) for piece in pieces)]
        skipped = len(before) + (len(TAB) - 1) * before.count("\t")
        runs = [run._replace(at=run.at + skipped) for run in without_end(runs_of(pieces, OUTPUT))]
        return [Line([_bar(), *row], 1) for row in wrap_output(runs, width - 4)[-most:]]

    def _error_lines(self, width: int) -> list[Line]:
        """The line that names the error. One that no traceback ends with is ours: it says what to do, and is shown whole."""
        line = self._card.error_line().replace("\t", TAB)
        if not line:
            return []
        found = dict(all_sections(self._card.content))
        told = "tool_error" in found or was_stopped(found) or ("error" in found and "traceback" not in found)
        if told or self._card.server:
            rows: Sequence[Row] = wrap([Run(line, ("error",))], width - 2)[:ERROR_ROWS]
        else:
            rows = [[Run(fit(line, width - 2), ("error",))]]
        return [Line([_INDENT, *row]) for row in rows]

    def _limit_lines(self, width: int) -> list[Line]:
        """Which limits of the sandbox struck: the error itself seldom says so."""
        rows: list[Row] = []
        for note in limit_notes(self._card.content)[:LIMIT_NOTES]:
            rows += wrap([Run(note.replace("\t", TAB), ("warning",))], width - 2)[:ERROR_ROWS]
        return [Line([_INDENT, *row]) for row in rows]

    def _asked_lines(self, width: int) -> list[Line]:
        rows: list[Row] = []
        for question, answer in self._card.asked.values():
            said = answer or tr("cards.withdrawn")
            if answer or self._card.status != "running":  # until then the box above the prompt shows it
                words = fit(f"{question} {glyph('arrow')} {said}", width - 4)
                rows.append([_INDENT, Run(f"{glyph('asks')} ", ("accent",)), Run(words, ("muted",))])
        return [Line(row) for row in rows]

    def _late_lines(self, runs: Sequence[Run], width: int, number: int) -> list[Line]:
        rows = wrap_output(runs, width - 4)
        limit = SECTION_ROWS if self._card.expanded else LIVE_ROWS
        cut = len(rows) - limit
        more = f" {glyph('dot')} {tr('cards.earlier_lines', count=f'{cut:,}')}" if cut > 0 else ""
        title = Line([_INDENT, Run(f"{tr('cards.background')}{more}", ("muted",))])
        return [title, *(Line([_bar(), *row], number) for row in rows[-limit:])]


def output_runs(live: LiveText) -> list[Run]:
    """Return all of an output as runs, without the newlines at its end."""
    return without_end(runs_of(live.pieces, OUTPUT))


def without_end(runs: Sequence[Run]) -> list[Run]:
    """Return runs without the newlines at their end."""
    runs = list(runs)
    while runs and not (kept := runs[-1].text.rstrip("\n")):
        runs.pop()
    if runs:
        runs[-1] = runs[-1]._replace(text=kept)
    return runs
