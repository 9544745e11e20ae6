"""The calls that code of a card made, as rows below it."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_chat.nested import NestedCall, NestedCalls
from sandbox_chat.plain import arguments_json, duration_text
from sandbox_chat.text import clean
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr, tr_count

from .blocks import Line
from .cells import TAB, Run, fit, fit_row

SIGNS = {
    "running": ("running", "running"),
    "ok": ("ok", "success"),
    "failed": ("failed", "error"),
    "interrupted": ("interrupted", "warning"),
}
FOLDED_ROWS = 3
"""Calls that are shown while the card is folded: those that run or failed, else the last."""
RESULT_ROWS = 6
"""Rows of a call's arguments, and of its result, while the card is open."""
_INDENT = Run("  ")


def nested_lines(calls: NestedCalls, width: int, *, opened: bool, running: bool) -> list[Line]:
    """Return the rows of the calls at ``width`` cells."""
    if not calls:
        return []
    lines = [_title(calls, width)]
    if not opened:
        return lines + [_line(call, width) for call in _chosen(calls, running=running)]
    for entry in calls.entries():
        if isinstance(entry, int):
            words = tr("cards.nested_more", count=f"{entry:,}")
            lines.append(Line([_INDENT, _bar(), Run(fit(words, width - 4), ("muted",))]))
            continue
        lines.append(_line(entry, width))
        if entry.input:
            lines += _block(arguments_json(entry.input).splitlines(), width, ("muted",))
        if entry.text:
            style = ("error",) if entry.outcome == "failed" else ("text",)
            lines += _block(entry.text.splitlines(), width, style)
    return lines


def _bar() -> Run:
    return Run(f"{glyph('upright')} ", ("faint",))


def _title(calls: NestedCalls, width: int) -> Line:
    words = tr_count("cards.nested", calls.count)
    runs = [_INDENT, Run(fit(words, width - 2), ("muted",))]
    if calls.failed:
        runs.append(Run(f" {glyph('dot')} {tr_count('cards.nested_failed', calls.failed)}", ("error",)))
    return Line(fit_row(runs, width))


def _chosen(calls: NestedCalls, *, running: bool) -> Sequence[NestedCall]:
    kept = list(calls.kept())
    wanted = [call for call in kept if call.outcome in (("running",) if running else ("failed",))]
    return (wanted or kept)[-FOLDED_ROWS:]


def _line(call: NestedCall, width: int) -> Line:
    sign, style = SIGNS[call.outcome]
    time = f"  {duration_text(call.duration_ms)}" if call.outcome != "running" else ""
    runs = [
        _INDENT,
        _bar(),
        Run(f"{glyph(sign)} ", (style,)),
        Run(clean(call.name), ("tool",)),
        Run(time, ("muted",)),
    ]
    if call.arguments:
        runs.append(Run(f"  {call.arguments}", ("muted",)))
    return Line(fit_row(runs, width))


def _block(lines: Sequence[str], width: int, style: tuple[str, ...]) -> list[Line]:
    shown = [
        Line([_INDENT, _bar(), _INDENT, Run(fit(clean(line).replace("\t", TAB), width - 6), style)])
        for line in lines[:RESULT_ROWS]
    ]
    if len(lines) > RESULT_ROWS:
        words = tr("cards.more_lines", count=f"{len(lines) - RESULT_ROWS:,}")
        shown.append(Line([_INDENT, _bar(), _INDENT, Run(fit(words, width - 6), ("muted",))]))
    return shown
