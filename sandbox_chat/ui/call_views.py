"""The views of one call in the tools pane, as lines of runs. Pure, apart from what colours text."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox_chat.events import FileContent
from sandbox_chat.plain import arguments_json, duration_text
from sandbox_chat.text import bound, clean
from sandbox_chat.ui import tooltext
from sandbox_chat.ui.calls import Part, ToolCall
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.card_answer import file_row, traceback_runs
from sandbox_chat.ui.transcript.card_live import lines_of
from sandbox_chat.ui.transcript.card_nested import SIGNS
from sandbox_chat.ui.transcript.card_table import table_rows
from sandbox_chat.ui.transcript.cells import Row, Run
from sandbox_chat.words import tr

TABLE_ROWS = 2000
"""Rows of a table at most."""
NESTED_ROWS = 100
"""Rows of the arguments of a call that code made, and of its result."""


def plain_lines(text: str, names: tuple[str, ...] = ()) -> list[Row]:
    """Return a text as lines in one style."""
    return [[Run(line, names)] if line else [] for line in text.rstrip("\n").split("\n")] if text else []


def code_lines(text: str, language: str, failing: int = 0) -> list[Row]:
    """Return code highlighted, the line number ``failing`` marked (0: none). Slow for long code: not for the loop."""
    from sandbox_chat.ui.markdown.highlight import THREAD_SECONDS, highlight

    lines: list[Row] = list(highlight(text.rstrip("\n"), language, THREAD_SECONDS))
    if 0 < failing <= len(lines):
        lines[failing - 1] = [run._replace(names=(*run.names, "code-mark")) for run in lines[failing - 1]]
    return lines


def result_lines(tool: ToolCall) -> list[Row]:
    """Return a result: its text, its traceback marked, a line for each picture, table and file."""
    failed = tool.status == "failed"
    out: list[Row] = []
    for part in tooltext.result_parts(tool):
        if isinstance(part, FileContent):
            out += [list(file_row(part)), [Run(f"  {part.path}", ("muted",))]]
        elif part.name == "traceback":
            out += lines_of(traceback_runs(part.text))
        else:
            out += plain_lines(bound(part.text, tooltext.VIEW_LIMIT), ("error",) if failed else ())
    return out


def nested_lines(tool: ToolCall) -> list[Row]:
    """Return the calls that the code made: each with its state, duration, arguments and the start of its result."""
    out: list[Row] = []
    for entry in tool.nested.entries():
        if out:
            out.append([])
        if isinstance(entry, int):
            out.append([Run(tr("cards.nested_more", count=f"{entry:,}"), ("muted",))])
            continue
        sign, style = SIGNS[entry.outcome]
        time = f"  {duration_text(entry.duration_ms)}" if entry.outcome != "running" else ""
        out.append(
            [Run(f"{glyph(sign)} ", (style,)), Run(clean(entry.name), ("tool",)), Run(time, ("muted",))]
        )
        if entry.input:
            out += _indented(arguments_json(entry.input), ("muted",))
        if entry.text:
            out += _indented(entry.text, ("error",) if entry.outcome == "failed" else ())
    return out


def _indented(text: str, names: tuple[str, ...]) -> list[Row]:
    lines = clean(text).rstrip("\n").split("\n")
    shown: list[Row] = [[Run(f"  {line}", names)] for line in lines[:NESTED_ROWS]]
    if len(lines) > NESTED_ROWS:
        shown.append([Run(f"  {tr('cards.more_lines', count=f'{len(lines) - NESTED_ROWS:,}')}", ("muted",))])
    return shown


def table_lines(tool: ToolCall, width: int) -> list[Row]:
    """Return the tables of a result at ``width`` cells."""
    out: list[Row] = []
    for table in tool.tables:
        if out:
            out.append([])
        out += table_rows(table, max(1, width), TABLE_ROWS)
    return out


def output_parts(tool: ToolCall) -> list[Part]:
    """Return the output with the background output behind it; of what still comes and is long, its end."""
    parts = tool.output.parts()
    if tool.open and tool.output.cut:
        parts = _end(parts, tooltext.LIVE_LIMIT)
    if tool.late:
        gap = "" if not parts or parts[-1].text.endswith("\n") else "\n"
        parts = [*parts, Part("note", f"{gap}{tr('cards.background')}\n"), *tool.late.parts()]
    return parts


def _end(parts: Sequence[Part], limit: int) -> list[Part]:
    """Return the last ``limit`` characters, after a note that says how many there are before."""
    found: list[Part] = []
    left = limit
    for part in reversed(parts):
        if left <= 0:
            break
        found.append(part.cut(max(0, len(part.text) - left), len(part.text)))
        left -= len(part.text)
    before = sum(len(part.text) for part in parts) - sum(len(part.text) for part in found)
    return [Part("note", f"{tr('cards.not_here', count=f'{before:,}')}\n"), *reversed(found)]
