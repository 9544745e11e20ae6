"""What a tool of another server gave, as an outcome of ours: cleaned, bounded, and what is no text kept as files."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import types

from sandbox_chat.events import Content, FileContent, TableContent
from sandbox_chat.plain import size_text, told_apart
from sandbox_chat.text import bound, clean, clean_line, from_tool
from sandbox_chat.tools.context import CallContext, ImageBlock, TextBlock, ToolOutcome
from sandbox_chat.tools.images import PNG_CHUNKS, ImageError, file_type, for_model, probe

PARTS_LIMIT = 200
"""Parts of one result that are looked at."""
FILES_LIMIT = 20
"""Pictures and files of one result that are kept."""
LOOKED_AT = 2_000_000
"""Characters of a result's text that are looked at; cleaning all that may come would take seconds."""
NOTE_ROOM = 600
"""Characters that notes about a result may take of what the model gets."""
TABLE_TEXT = 1_000_000
"""Characters of a JSON text that is looked at for a table."""
WHOLE = "whole result"
"""Title of the file that holds a result whose text was cut."""
CUT = "The result was longer than what one call can give you. Ask for less at a time."
EMPTY = "(The tool gave nothing back.)"
PICTURES = ("image/png", "image/jpeg")
KEPT_TYPE = "application/octet-stream"


@dataclass
class _Gathered:
    """The parts of a result."""

    scrub: Callable[[str], str]
    texts: list[str] = field(default_factory=list)
    pictures: list[Content] = field(default_factory=list)
    files: list[Content] = field(default_factory=list)
    blocks: list[ImageBlock] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: int = 0

    def line(self, words: str, limit: int) -> str:
        """Return a server's words as one line, without its credentials: cut first, half of one would be left."""
        return clean_line(self.scrub(words), limit)


async def to_outcome(
    result: types.CallToolResult,
    context: CallContext,
    *,
    has_schema: bool,
    scrub: Callable[[str], str] = str,
) -> ToolOutcome:
    """Return the outcome of a result. ``has_schema``: the tool says what its structured results are.

    ``scrub`` takes the server's credentials out of a text. Raises nothing but what saving raises.
    """
    found = _Gathered(scrub=scrub)
    for number, part in enumerate(result.content):
        if number == PARTS_LIMIT:
            found.notes.append(f"{len(result.content) - PARTS_LIMIT} more parts of the result were left out.")
            break
        await _take(part, found, context)
    spoken = "\n".join(text for text in found.texts if text.strip())
    data = await asyncio.to_thread(_without, result.structured_content, scrub)
    if not spoken and data is not None:
        spoken = json.dumps(data, ensure_ascii=False, indent=1, default=str)
    elif data is None and not has_schema and not result.is_error:
        data = _without(_json(spoken), scrub)
    table = None if result.is_error else _table(data, context)
    whole = scrub(spoken)
    text = scrub(from_tool(bound(whole, LOOKED_AT))).strip("\n")  # colours may have cut one in two
    return _outcome(text, whole, found, table, context, is_error=bool(result.is_error))


def _outcome(
    text: str,
    whole: str,
    found: _Gathered,
    table: TableContent | None,
    context: CallContext,
    *,
    is_error: bool,
) -> ToolOutcome:
    limit = context.settings.text_limit
    notes = list(found.notes)
    shown_notes: list[str] = []
    files = list(found.files)
    if not text and not notes and not found.pictures:
        text = EMPTY
    if len(text) > limit - NOTE_ROOM:
        kept, said = _keep_whole(whole, context)
        files += [kept] if kept is not None else []
        shown_notes = [said] if said else []
        notes.append(CUT)
        text = bound(text, limit - NOTE_ROOM)
    said_notes = bound("\n".join(f"[{note}]" for note in notes), NOTE_ROOM - 150)
    for_model_text = "\n".join(part for part in (text, said_notes) if part)
    shown = "\n".join(part for part in (for_model_text, *(f"[{note}]" for note in shown_notes)) if part)
    tables = (table,) if table is not None else ()
    return ToolOutcome(
        (TextBlock(for_model_text), *found.blocks),
        (told_apart(shown, ()), *found.pictures, *tables, *files),
        is_error=is_error,
    )


def _keep_whole(text: str, context: CallContext) -> tuple[FileContent | None, str]:
    """Keep a text that is cut, as it came; return the file, and a sentence for the user, whose computer it is."""
    room = context.settings.output_keep_mb * 1_000_000
    data = text.encode("utf-8", "replace")
    if not room:
        return None, ""
    try:
        kept = context.save_file(data[:room], "text/plain", WHOLE)
    except OSError as error:
        return (
            None,
            f"The whole result could not be kept on this computer ({clean_line(str(error.strerror))}).",
        )
    if len(data) > room:
        return kept, f"The first {room:,} of {len(data):,} bytes of the result are in {clean(kept.path)}."
    return kept, f"The whole result ({len(data):,} bytes) is in {clean(kept.path)} on this computer."


async def _take(part: types.ContentBlock, found: _Gathered, context: CallContext) -> None:
    match part:
        case types.TextContent(text=text):
            found.texts.append(text)
        case types.ImageContent(data=data):
            await _take_data(data, part.mime_type, "picture", found, context)
        case types.AudioContent(data=data):
            await _take_data(data, part.mime_type, "sound", found, context)
        case types.ResourceLink():
            about = [part.mime_type or "", size_text(part.size) if part.size else ""]
            more = ", ".join(found.line(word, 60) for word in about if word)
            line = f"[resource {found.line(part.name, 100)}: {found.line(str(part.uri), 300)}"
            found.texts.append(f"{line}{f' ({more})' if more else ''}]")
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text, uri=uri)):
            found.texts.append(f"[resource {found.line(str(uri), 300)}]\n{text}")
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=blob, uri=uri)):
            mime = part.resource.mime_type or KEPT_TYPE
            await _take_data(blob, mime, f"resource {found.line(str(uri), 100)}", found, context)


async def _take_data(data: str, mime: str, what: str, found: _Gathered, context: CallContext) -> None:
    """Keep what comes in base64: as a picture if it is one that can be shown, else as a file."""
    found.kept += 1
    if found.kept > FILES_LIMIT:
        if found.kept == FILES_LIMIT + 1:
            found.notes.append(f"Only the first {FILES_LIMIT} pictures and files of the result are kept.")
        return
    try:
        raw = await asyncio.to_thread(base64.b64decode, data, validate=True)
    except (binascii.Error, ValueError):
        found.notes.append(f"A {what} of the result is damaged: it is not base64.")
        return
    kind = found.line(mime, 80) or KEPT_TYPE
    try:
        if file_type(raw) in PICTURES:
            await _take_picture(raw, found, context)
        else:
            await _take_file(raw, kind, what, found, context)
    except OSError as error:
        reason = clean_line(error.strerror or str(error))
        found.notes.append(f"A {what} of the result could not be kept on this computer ({reason}).")


async def _take_picture(raw: bytes, found: _Gathered, context: CallContext) -> None:
    settings = context.settings
    try:
        info = probe(raw)
        raw = mended(raw) if info.mime == "image/png" else raw
        found.pictures.append(context.save_picture(raw, info.mime))
        if len(found.blocks) >= settings.images_per_call:
            found.notes.append("A further picture is shown to the user but not to you.")
            return
        block = await asyncio.to_thread(
            for_model,
            raw,
            side=settings.image_side,
            max_bytes=settings.image_limit,
            max_pixels=settings.image_pixels,
        )
    except ImageError as error:
        found.notes.append(f"A picture of the result could not be used: {error}")
        return
    found.blocks.append(block)


def mended(png: bytes) -> bytes:
    """Return a PNG without those of its additions (colour profiles, texts) that are damaged: decoders refuse it for them."""
    kept, at = [png[:8]], 8
    for _ in range(PNG_CHUNKS):
        if at + 12 > len(png):
            break
        length = int.from_bytes(png[at : at + 4])
        end = at + 12 + length
        addition = bool(png[at + 4] & 0x20)
        if not addition or zlib.crc32(png[at + 4 : end - 4]) == int.from_bytes(png[end - 4 : end]):
            kept.append(png[at:end])
        at = end
    kept.append(png[at:])
    return b"".join(kept)


async def _take_file(raw: bytes, mime: str, what: str, found: _Gathered, context: CallContext) -> None:
    if mime.startswith("text/") and b"\0" not in raw:
        found.texts.append(raw.decode("utf-8", "replace"))
        return
    found.files.append(context.save_file(raw, mime, what))
    found.notes.append(f"A {what} ({mime}, {size_text(len(raw))}) was kept for the user; you do not see it.")


def _without(data: Any, scrub: Callable[[str], str]) -> Any:
    """Return JSON data with ``scrub`` done to every text in it: as written, a credential may be escaped."""
    if isinstance(data, str):
        return scrub(data)
    try:
        if isinstance(data, Mapping):
            return {scrub(str(name)): _without(value, scrub) for name, value in data.items()}
        return [_without(value, scrub) for value in data] if isinstance(data, list) else data
    except RecursionError:
        return None


def _json(text: str) -> Any:
    """Return the value of a text that is JSON, ``None`` if it is none."""
    if not text[:1] or text[0] not in "[{" or len(text) > TABLE_TEXT:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _table(data: Any, context: CallContext) -> TableContent | None:
    """Return a list of flat objects as a table; it may be the only value of an object, as servers wrap it."""
    if isinstance(data, Mapping) and len(data) == 1:
        data = next(iter(data.values()))
    if not isinstance(data, list) or not data or not all(isinstance(row, Mapping) and row for row in data):
        return None
    settings = context.settings
    names = list(dict.fromkeys(name for row in data[: settings.table_rows] for name in row))
    rows = data[: settings.table_rows]
    if any(isinstance(value, Mapping | list) for row in rows for value in row.values()):
        return None
    columns = names[: settings.table_columns]
    return TableContent(
        tuple(clean_line(str(name), settings.table_cell) for name in columns),
        tuple(tuple(_cell(row.get(name), settings.table_cell) for name in columns) for row in rows),
        len(data),
        len(names),
        True,
    )


def _cell(value: Any, limit: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean_line(str(value), limit)
