"""What the command ``mcp`` writes: results on stdout, all else on stderr, clean and without credentials."""

from __future__ import annotations

import sys

from sandbox_chat.settings import Settings
from sandbox_chat.text import clean


def show(text: str) -> None:
    """Write lines of the result."""
    sys.stdout.write(clean(text) + "\n")
    sys.stdout.flush()


def say(settings: Settings, text: str) -> None:
    """Write a sentence for the user beside the result."""
    sys.stdout.flush()
    sys.stderr.write(f"sandbox-chat: {clean(settings.scrub(text))}\n")
    sys.stderr.flush()


def tell(settings: Settings, line: str) -> None:
    """Write a line of what another program says."""
    sys.stderr.write(f"  {clean(settings.scrub(line))}\n")
    sys.stderr.flush()


def cells(text: str) -> int:
    """Return how many cells of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return ``text`` with spaces up to ``width`` cells."""
    return text + " " * (width - cells(text))
