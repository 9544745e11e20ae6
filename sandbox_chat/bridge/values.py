"""What a tool gave, as a Python value for code and as a bounded text for people."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from mcp import types

from sandbox_chat.events import Content, ImageContent, TextContent
from sandbox_chat.text import bound, clean_line, from_tool
from sandbox_chat.tools.images import ImageError, probe

PICTURES = 4
"""Pictures of one result that are shown."""
NOTHING = "(nothing)"


def answer_of(result: types.CallToolResult, *, has_schema: bool) -> dict[str, Any]:
    """Return the part of an answer that holds a result: ``value``, or ``parts`` where there are bytes.

    Structured content as it is; else a text that is JSON as its value, unless the tool says what its structured results
    are; else the text.
    """
    if result.structured_content is not None:
        return {"value": result.structured_content}
    parts = [part for each in result.content if (part := _part(each)) is not None]
    if any("data" in part for part in parts):
        return {"parts": parts}
    texts = [part["text"] for part in parts]
    if len(texts) != 1:
        return {"value": [_parsed(text, has_schema) for text in texts] if texts else None}
    return {"value": _parsed(texts[0], has_schema)}


def _parsed(text: str, has_schema: bool) -> Any:
    if has_schema or text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _part(part: types.ContentBlock) -> dict[str, str] | None:
    match part:
        case types.TextContent(text=text):
            return {"text": text}
        case types.ImageContent(data=data) | types.AudioContent(data=data):
            return {"data": data}
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return {"text": text}
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=blob)):
            return {"data": blob}
        case types.ResourceLink():
            return {"text": str(part.uri)}
    return None


def text_of(result: types.CallToolResult) -> str:
    """Return the text of a result, as it came."""
    return "\n".join(part["text"] for each in result.content if (part := _part(each)) and "text" in part)


def shown(
    answer: dict[str, Any], save_picture: Callable[[bytes, str], ImageContent], limit: int
) -> tuple[Content, ...]:
    """Return what people see of a result: its start, and its pictures."""
    if "parts" not in answer:
        return (TextContent(_words(answer.get("value"), limit), ()),)
    found: list[Content] = []
    words = []
    for part in answer["parts"]:
        if "text" in part:
            words.append(part["text"])
            continue
        try:
            raw = base64.b64decode(part["data"], validate=True)
        except (binascii.Error, ValueError):
            words.append("(damaged bytes)")
            continue
        words.append(f"({len(raw):,} bytes)")
        if len(found) < PICTURES:
            try:
                found.append(save_picture(raw, probe(raw).mime))
            except (ImageError, OSError):
                continue
    return (TextContent(_words("\n".join(words), limit), ()), *found)


def _words(value: Any, limit: int) -> str:
    if value is None:
        return NOTHING
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    cut = from_tool(bound(text, limit))
    return f"{cut}\n[the code got {len(text):,} characters]" if len(text) > limit else cut


def short(words: str) -> str:
    """Return a sentence on one line, for a log."""
    return clean_line(words, 200)
