"""What the command ``mcp`` writes: results on stdout, all else on stderr, clean and without credentials."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sandbox_chat.settings import Settings
from sandbox_chat.text import clean
from sandbox_chat.words import tr

if TYPE_CHECKING:
    from sandbox_chat.mcp.catalog import CatalogEntry


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


def risk_of(entry: CatalogEntry) -> str:
    """Return what a server of the catalogue can do to the machine, in the language that is set."""
    from sandbox_chat.words.risks import EN

    return tr(f"risks.{entry.name}") if EN.get(entry.name) == entry.risk else entry.risk


def reach_of(entry: CatalogEntry) -> str:
    """Return the kinds of things that a server of the catalogue can reach, in the language that is set."""
    return tr("mcp_face.comma").join(tr(f"mcp_face.reach.{word}") for word in entry.reaches)


def status_of(entry: CatalogEntry) -> str:
    """Return whether a server of the catalogue is kept up, and what replaces it, in the language that is set."""
    status = tr(f"mcp_face.status.{entry.status}")
    return tr("mcp_face.replaced", status=status, name=entry.successor) if entry.successor else status


def cells(text: str) -> int:
    """Return how many cells of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """Return ``text`` with spaces up to ``width`` cells."""
    return text + " " * (width - cells(text))
