"""A small MCP server made with the official library: it keeps notes in the file that is its argument.

``add_note(text)`` appends a line, ``read_notes()`` gives all of them, ``draw_note()`` a picture, ``fail()`` an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp import types
from mcp.server.mcpserver import MCPServer
from support.exported import PNG

server = MCPServer("notes")
notes = Path(sys.argv[1])


@server.tool()
def add_note(text: str) -> str:
    """Write a note down."""
    with notes.open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return f"noted: {text}"


@server.tool()
def read_notes() -> str:
    """Read all notes."""
    return notes.read_text(encoding="utf-8") if notes.exists() else "no notes"


@server.tool()
def draw_note() -> list[types.TextContent | types.ImageContent]:
    """Draw a note."""
    import base64

    data = base64.b64encode(PNG).decode()
    return [
        types.TextContent(type="text", text="drawn"),
        types.ImageContent(type="image", data=data, mime_type="image/png"),
    ]


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("there is no more paper")


if __name__ == "__main__":
    server.run("stdio")
