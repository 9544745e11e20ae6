"""How numbers are written on the screen alone: running times, tokens, bars; see also ``plain.py``. Pure functions."""

from __future__ import annotations

from rich.cells import cell_len

from sandbox_chat.plain import duration_text, tool_parts
from sandbox_chat.ui.glyphs import glyph


def spinner(frame: int) -> str:
    """Return the sign of something alive at a frame."""
    signs = glyph("spinner")
    return signs[frame % len(signs)]


def running(ms: float) -> str:
    """Return the time that something has been running: one decimal, so that it does not flicker."""
    return f"{max(0.0, ms) / 1000:.1f} s" if ms < 59_950 else duration_text(ms)


def tokens(count: int) -> str:
    """Return a number of tokens: ``412``, ``3.1k``, ``128k``, ``1.2M``."""
    if count < 1000:
        return str(count)
    for size, sign in ((1_000, "k"), (1_000_000, "M")):
        value = count / size
        if value < 9.95:
            return f"{value:.1f}{sign}"
        if value < 999.5:
            return f"{value:.0f}{sign}"
    return f"{count / 1_000_000_000:.1f}G"


def percent(used: int, limit: int) -> str:
    """Return the share of ``limit`` that is used; empty when the limit is not known."""
    if limit <= 0:
        return ""
    share = 100 * used / limit
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def bar(used: int, limit: int, width: int) -> tuple[str, str]:
    """Return the filled and the empty part of a bar of ``width`` cells. Something used shows as something."""
    if limit <= 0 or width <= 0:
        return "", ""
    filled = min(width, round(width * used / limit))
    if used > 0 and filled == 0:
        filled = 1
    return glyph("bar-full") * filled, glyph("bar-empty") * (width - filled)


def sparkline(values: list[float], width: int) -> str:
    """Return the last ``width`` values as a line of blocks, scaled to their largest."""
    shown = values[-width:] if width > 0 else []
    top = max(shown, default=0.0)
    blocks = glyph("sparkline")
    if top <= 0:
        return blocks[0] * len(shown)
    return "".join(blocks[min(7, int(7.999 * max(0.0, v) / top))] for v in shown)


def fit(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` cells, with an ellipsis where it was cut. Wide characters stay whole."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    kept = ""
    room = width - 1
    for character in text:
        room -= cell_len(character)
        if room < 0:
            break
        kept += character
    return kept + glyph("ellipsis")


def fit_end(text: str, width: int) -> str:
    """Return the end of ``text`` in at most ``width`` cells, with an ellipsis where it was cut."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    while cell_len(text) > width - 1:
        text = text[1:]
    return glyph("ellipsis") + text


def tool_title(name: str) -> str:
    """Return a tool's name with the signs of this terminal: ``run_code``, or ``git · git_log`` for one of another server."""
    server, tool = tool_parts(name)
    return f"{server} {glyph('dot')} {tool}" if server else tool
