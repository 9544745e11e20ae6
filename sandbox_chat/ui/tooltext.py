"""What the tools pane says about one call, as plain text: its code, output, result and raw form. Pure."""

from __future__ import annotations

import json
from typing import Any

from sandbox_chat.event_json import content_dict
from sandbox_chat.events import Content, FileContent, ImageContent, TableContent, TextContent
from sandbox_chat.plain import arguments_line, places
from sandbox_chat.text import bound, clean
from sandbox_chat.ui.calls import ToolCall
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.transcript.card_answer import Part
from sandbox_chat.ui.transcript.card_table import table_text
from sandbox_chat.words import tr

VIEW_LIMIT = 200_000
"""Characters of one view of a call at most; the middle is cut and the cut is said."""

LIVE_LIMIT = 30_000
"""Characters at the end of output that still comes and is longer than what is kept whole."""

RAW_ROWS = 20
"""Rows of the result of a call that code made, among all that is known of its run."""

CODE_KEYS = ("code", "content", "text", "query", "command", "path")
"""Arguments that say what a call does, the most telling first."""


def arguments(tool: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; while the model writes them, the text arguments as far as they came."""
    return dict(tool.input or tool.partial.texts)


def arguments_json(tool: ToolCall) -> str:
    """Return the arguments as JSON; empty when there are none yet."""
    given = arguments(tool)
    return _json(given) if given else ""


def code(tool: ToolCall) -> tuple[str, str]:
    """Return what a call does and the language to highlight it in (empty for none); of another server's its arguments."""
    given = arguments(tool)
    if not tool.server:
        if isinstance(text := given.get("code"), str):
            return bound(text, VIEW_LIMIT), "python"
        if isinstance(text := given.get("content"), str):
            path = given.get("path")
            head = f"{path}\n\n" if isinstance(path, str) else ""
            return bound(head + text, VIEW_LIMIT), ""
    return (bound(_json(given), VIEW_LIMIT), "json") if given else ("", "")


def whole_code(tool: ToolCall) -> tuple[str, str]:
    """Return all of what a call does, and the suffix of a file that holds it; nothing for one of another server."""
    given = arguments(tool)
    if tool.server:
        return "", ""
    if isinstance(text := given.get("code"), str):
        return text, ".py"
    if isinstance(text := given.get("content"), str):
        return text, ".txt"
    return arguments_json(tool), ".json"


def first_line(tool: ToolCall) -> str:
    """Return one line that says what a call does: the first line of its code, its path, or the arguments of another server's."""
    given = arguments(tool)
    if tool.server:
        return arguments_line(given, f" {glyph('dot')} ")
    for key in CODE_KEYS if "path" not in given or "code" in given else ("path",):
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip().splitlines()[0][:200]
    for value in given.values():
        if isinstance(value, str | int | float) and str(value).strip():
            return str(value).strip().splitlines()[0][:200]
    return ""


def result(tool: ToolCall) -> str:
    """Return the text of a call's result, with a line for each picture, table and file."""
    parts = [_words(part) for part in tool.content]
    if tool.late:
        parts.append(f"\n{tr('cards.background')}\n{tool.late.text()}")
    return bound("\n".join(parts), VIEW_LIMIT)


def result_parts(tool: ToolCall) -> list[Part | FileContent]:
    """Return the parts of a result in their order: texts with their titles, files as they are."""
    found: list[Part | FileContent] = []
    for content in tool.content:
        if isinstance(content, FileContent):
            found.append(content)
            continue
        text = _words(content)
        found_at = places(content) if isinstance(content, TextContent) else []
        if span := next(((start, end) for name, start, end in found_at if name == "traceback"), None):
            start, end = span
            found += [Part("", text=text[:start]), Part("traceback", text=text[start:end].strip("\n"))]
            text = text[end:]
        if text:
            found.append(Part("", text=text))
    if tool.late:
        found.append(Part("", text=f"\n{tr('cards.background')}\n{tool.late.text()}"))
    return found


def everything(tool: ToolCall) -> str:
    """Return all that came of a call as text, its tables too; what came until now while it runs."""
    parts = [table_text(part) if isinstance(part, TableContent) else _words(part) for part in tool.content]
    if not parts and tool.output:
        parts.append(tool.output.text())
    if tool.late:
        parts.append(f"{tr('cards.background')}\n{tool.late.text()}")
    return "\n\n".join(parts)


def whole_text(tool: ToolCall) -> str:
    """Return what a call does, the calls that its code made, and what came of it."""
    calls = "\n".join(tool.nested.lines(results=RAW_ROWS))
    return "\n\n".join(part for part in (code(tool)[0], calls, everything(tool)) if part)


def _words(part: Content) -> str:
    match part:
        case TextContent():
            return part.text
        case ImageContent():
            return f"[picture {part.width}×{part.height} {part.mime}: {part.path}]"
        case TableContent():
            return f"[table {part.row_count} × {part.column_count}]"
        case FileContent():
            return f"[{part.title}, {part.size:,} bytes: {part.path}]"


def raw(tool: ToolCall) -> str:
    """Return a call as JSON: everything that is known of it."""
    data = {
        "id": tool.id,
        "name": tool.name,
        "status": tool.status,
        "duration_ms": tool.duration_ms,
        "input": dict(tool.input) if tool.input else tool.draft,
        "output": tool.output.text(),
        **({"background_output": tool.late.text()} if tool.late else {}),
        "content": [content_dict(part) for part in tool.content],
        **({"calls": list(tool.nested.lines(results=RAW_ROWS))} if tool.nested else {}),
    }
    return bound(_json(data), VIEW_LIMIT)


def _json(data: Any) -> str:
    return clean(json.dumps(data, indent=2, ensure_ascii=False, default=str))
