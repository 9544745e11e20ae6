"""Rows as bytes for the terminal, with no more escape sequences than the changes of style between their pieces.

Textual writes each piece with its whole style and a reset behind it. Within a row most pieces differ by their
colour alone, so that a row takes half the bytes here: what counts over ssh, in tmux, and for slow terminals.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.segment import Segment

PLAIN = ("", "", "")
"""No attributes, no colour, no ground."""


@lru_cache(2048)
def _parts(style: Style, system: ColorSystem) -> tuple[str, str, str]:
    """Return the SGR codes of a style: attributes, colour, ground; empty for what it does not set."""
    attributes = Strip.render_ansi(style.without_color, system)
    colour, ground = style.color, style.bgcolor
    return (
        attributes,
        ";".join(colour.downgrade(system).get_ansi_codes()) if colour is not None else "",
        ";".join(ground.downgrade(system).get_ansi_codes(foreground=False)) if ground is not None else "",
    )


@lru_cache(8192)
def _change(before: tuple[str, str, str], after: tuple[str, str, str]) -> str:
    """Return the sequence that turns one style into another."""
    codes: list[str] = []
    if before[0] != after[0]:
        if before[0]:
            codes, before = ["0"], PLAIN
        codes.append(after[0])
    if before[1] != after[1]:
        codes.append(after[1] or "39")
    if before[2] != after[2]:
        codes.append(after[2] or "49")
    return f"\x1b[{';'.join(filter(None, codes))}m" if codes else ""


def compact(segments: Iterable[Segment], system: ColorSystem) -> str:
    """Return the bytes of a row. They begin and end in the terminal's plain style."""
    out: list[str] = []
    now = PLAIN
    for text, style, control in segments:
        if control:
            out.append(text)
            continue
        wanted = PLAIN if style is None else _parts(style, system)
        if wanted != now:
            out.append(_change(now, wanted))
            now = wanted
        out.append(text)
    if now != PLAIN:
        out.append("\x1b[0m")
    return "".join(out)
