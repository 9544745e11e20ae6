"""What the tools pane says about one call, as plain text: its code, output, result and raw form. Pure."""

from __future__ import annotations

import json
from typing import Any

from sandbox_chat.events import TextContent
from sandbox_chat.text import bound, clean
from sandbox_chat.ui.arguments import partial_arguments
from sandbox_chat.ui.calls import ToolCall

VIEW_LIMIT = 60_000
"""Characters of one view of a call at most; the middle is cut and the cut is said."""

LIVE_LIMIT = 15_000
"""The same of output that still comes: it is laid out many times."""

LATE_TITLE = "background output"
"""Stands over what threads of a call wrote after it had ended."""

CODE_KEYS = ("code", "content", "text", "query", "command", "path")
"""Arguments that say what a call does, the most telling first."""


def arguments(tool: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; while the model writes them, the text arguments as far as they came."""
    return dict(tool.input or partial_arguments(tool.draft))


def code(tool: ToolCall) -> tuple[str, str]:
    """Return what a call does and the language to highlight it in (empty for none)."""
    given = arguments(tool)
    if isinstance(text := given.get("code"), str):
        return bound(text, VIEW_LIMIT), "python"
    if not given:
        return "", ""
    if isinstance(text := given.get("content"), str):
        path = given.get("path")
        head = f"{path}\n\n" if isinstance(path, str) else ""
        return bound(head + text, VIEW_LIMIT), ""
    return bound(_json(given), VIEW_LIMIT), "json"


def first_line(tool: ToolCall) -> str:
    """Return one line that says what a call does: the first line of its code, or its path."""
    given = arguments(tool)
    for key in CODE_KEYS if "path" not in given or "code" in given else ("path",):
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip().splitlines()[0][:200]
    for value in given.values():
        if isinstance(value, str | int | float) and str(value).strip():
            return str(value).strip().splitlines()[0][:200]
    return ""


def result(tool: ToolCall) -> str:
    """Return the text of a call's result, with a line for each picture."""
    parts = []
    for part in tool.content:
        if isinstance(part, TextContent):
            parts.append(part.text)
        else:
            parts.append(f"[picture {part.width}×{part.height} {part.mime}: {part.path}]")
    if tool.late:
        parts.append(f"\n{LATE_TITLE}\n{tool.late.text()}")
    return bound("\n".join(parts), VIEW_LIMIT)


def output(tool: ToolCall) -> list[tuple[str, str]]:
    """Return the output as ``(stream, text)``, bounded to what a pane can hold."""
    parts = tool.output.parts()
    if tool.late:
        gap = "" if not parts or parts[-1][1].endswith("\n") else "\n"
        parts = [*parts, ("note", f"{gap}{LATE_TITLE}\n"), *tool.late.parts()]
    size = sum(len(text) for _, text in parts)
    limit = LIVE_LIMIT if tool.open else VIEW_LIMIT
    if size <= limit:
        return parts
    half = limit // 2
    head = _take(parts, half)
    tail = [(stream, text[::-1]) for stream, text in _take([(s, t[::-1]) for s, t in reversed(parts)], half)]
    cut = size - 2 * half + tool.output.cut
    return [*head, ("note", f"\n[… {cut:,} characters not shown here …]\n"), *reversed(tail)]


def _take(parts: list[tuple[str, str]], limit: int) -> list[tuple[str, str]]:
    taken = []
    for stream, text in parts:
        if limit <= 0:
            break
        taken.append((stream, text[:limit]))
        limit -= len(text)
    return taken


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
        "content": [
            {"type": "text", "text": part.text}
            if isinstance(part, TextContent)
            else {
                "type": "image",
                "path": part.path,
                "mime": part.mime,
                "width": part.width,
                "height": part.height,
            }
            for part in tool.content
        ],
    }
    return bound(_json(data), VIEW_LIMIT)


def _json(data: Any) -> str:
    return clean(json.dumps(data, indent=2, ensure_ascii=False, default=str))
