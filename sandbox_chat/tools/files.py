"""The file tools: write_file, read_file, read_image, list_files; download_file is in ``downloads.py``."""

from __future__ import annotations

import asyncio
import posixpath
from typing import Any

from sandbox_chat.events import TextContent
from sandbox_chat.sandbox.base import FileEntry
from sandbox_chat.text import bound, clean, clean_line, from_file
from sandbox_chat.tools.context import (
    CUT_ROOM,
    TextBlock,
    ToolContext,
    ToolInputError,
    ToolOutcome,
    text_outcome,
)
from sandbox_chat.tools.images import ImageError, file_type, for_model, probe
from sandbox_chat.tools.schemas import LIST_LIMIT

READ_LIMIT = 10_000_000
"""Bytes of the largest file that read_file fetches: the model gets its head and tail only, code can read more."""
SNIFF_BYTES = 8192
"""So much of a file's beginning decides whether it is text."""
CONTROL_SHARE = 0.02
"""A file with a larger share of control bytes is not text."""

CLEAN_LIMIT = 500_000
"""Characters of a file up to which all of it is cleaned, and cut then: cleaning millions would hold everything up."""
LISTED_NAME = 300
"""Characters of a name in a listing."""

_CONTROL = bytes(code for code in range(32) if code not in (7, 8, 9, 10, 12, 13, 27)) + b"\x7f"


async def write_file(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Write a text file in the sandbox."""
    data = arguments["content"].encode("utf-8", "replace")
    path = await context.worker.write_file(arguments["path"], data)
    return _said(context, f"Wrote {len(data):,} bytes to {clean(path)}.")


async def read_file(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Read a text file of the sandbox; a binary one is refused with its type and size."""
    path = arguments["path"]
    data = await context.worker.read_file(path, max_bytes=READ_LIMIT)
    text = as_text(data)
    if text is None:
        kind = file_type(data) or "binary data of an unknown type"
        image = kind in ("image/png", "image/jpeg")
        advice = (
            "Use read_image to look at it, or download_file to give it to the user."
            if image
            else "Read it with code (run_code), or use download_file to give it to the user."
        )
        raise ToolInputError(f"{clean(path)} is not a text file: {kind}, {len(data):,} bytes. {advice}")
    if not text:
        return _said(context, f"{clean(path)} is empty.")
    if len(text) > CLEAN_LIMIT:
        text = bound(text, context.settings.text_limit - CUT_ROOM)
    return _said(context, from_file(text))


def as_text(data: bytes) -> str | None:
    """Return the text of a file, or ``None`` if it is not text.

    UTF-8, or UTF-16 with its mark, is read as such; other bytes without control bytes (old encodings)
    are read as UTF-8 with the doubtful ones replaced.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") and len(data) % 2 == 0:
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            return None
    head = data[:SNIFF_BYTES]
    if b"\0" in head or file_type(data):
        text_like = False
    else:
        text_like = sum(head.count(code) for code in _CONTROL) <= len(head) * CONTROL_SHARE
    if not text_like:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        high = sum(byte >= 0x80 for byte in head)
        # An old 8-bit encoding has a few such bytes between plain letters; packed data has them all over.
        return data.decode("utf-8", "replace") if high <= len(head) * 0.3 else None


async def read_image(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Show a PNG or JPEG of the sandbox to the model and the user."""
    settings = context.settings
    path = arguments["path"]
    data = await context.worker.read_file(path, max_bytes=settings.image_limit)
    try:
        info = probe(data)
        block = await asyncio.to_thread(
            for_model,
            data,
            side=settings.image_side,
            max_bytes=settings.image_limit,
            max_pixels=settings.image_pixels,
        )
    except ImageError as error:
        raise ToolInputError(
            f"{clean(path)} cannot be shown ({len(data):,} bytes). {error} "
            "read_image takes PNG and JPEG files; convert it with code, or use download_file."
        ) from None
    saved = context.save_picture(data, info.mime)
    text = f"{clean(path)}: {info.mime}, {info.width}×{info.height} pixels, {len(data):,} bytes."
    return ToolOutcome((TextBlock(text), block), (TextContent(text), saved))


async def list_files(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """List a folder of the sandbox: folders first, then files with their sizes."""
    path = arguments.get("path") or "/tmp"  # noqa: S108 - a path inside the sandbox
    entries = await context.worker.list_files(path, limit=LIST_LIMIT + 1)
    return _said(context, listing(path, entries))


def listing(path: str, entries: list[FileEntry]) -> str:
    """Return the text of a folder's listing; more than ``LIST_LIMIT`` entries are cut, and that is said."""
    if not entries:
        return f"{clean(path)} is empty."
    shown = entries[:LIST_LIMIT]
    width = max(len(f"{entry.size:,}") for entry in shown)
    lines = [clean(path) + ":"]
    for entry in sorted(shown, key=lambda item: (not item.is_dir, item.path)):
        name = posixpath.basename(entry.path.rstrip("/")) or entry.path
        name = clean_line(name[: 2 * LISTED_NAME], LISTED_NAME)
        size = "" if entry.is_dir else f"{entry.size:,}"
        lines.append(f"{size:>{width}}  {name}{'/' if entry.is_dir else ''}")
    if len(entries) > LIST_LIMIT:
        lines.append(f"[… more than {LIST_LIMIT} entries; list them with code to see all …]")
    return "\n".join(lines)


def _said(context: ToolContext, text: str) -> ToolOutcome:
    return text_outcome(text, limit=context.settings.text_limit)
