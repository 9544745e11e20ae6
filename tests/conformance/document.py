"""The document about sandboxes, whose tables are put between marks."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "sandbox_chat" / "SANDBOXES.md"


def between(text: str, name: str) -> str:
    """What stands between the marks of ``name`` in the document."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    return text[text.index(start) + len(start) : text.index(end)].strip("\n")


def put(text: str, name: str, body: str) -> str:
    """The document with ``body`` between the marks of ``name``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, after = text[: text.index(start) + len(start)], text[text.index(end) :]
    return f"{before}\n{body}\n{after}"
