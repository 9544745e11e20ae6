"""Pictures → rows of characters: symbols, half-cells, shades of ASCII signs. Pure; any thread."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from .paint import rgb_style

if TYPE_CHECKING:
    from PIL.Image import Image

Rgb = tuple[int, int, int]

SYMBOLS = ("SPACE", "SOLID", "HALF", "QUAD", "BLOCK")
"""Kinds of symbols that nearly every font has."""
SHARP_SYMBOLS = (*SYMBOLS, "SEXTANT", "WEDGE")
"""With those that are sharper still, but show as boxes where neither the font nor the terminal has them."""
SYMBOL_PIXELS = (8, 16)
"""Pixels for one cell that the symbol encoder gets: enough to find the best symbol."""
ASCII_PIXELS = (2, 4)
"""Pixels for one cell of which the shade of an ASCII sign is taken."""
SHADES = " .:-=+*#%@"
"""ASCII signs by the ink that they have."""


COLOUR_BITS = 0xF8
"""Bits of a colour that count. No eye sees less in a cell of text, and cells that look alike share what they are made of:
the objects of many pictures are what the garbage collector would stop the interface for."""


@lru_cache(maxsize=4096)
def _style(fg: Rgb | None, bg: Rgb | None) -> Style:
    return rgb_style(fg, bg)


@lru_cache(maxsize=8192)
def _segment(text: str, fg: Rgb | None, bg: Rgb | None) -> Segment:
    return Segment(text, _style(fg, bg))


def _coarse(red: int, green: int, blue: int) -> Rgb:
    """Return a colour of fewer; white and black stay what they are."""
    return (_COARSE[red], _COARSE[green], _COARSE[blue])


_COARSE = bytes(round((level & COLOUR_BITS) * 255 / COLOUR_BITS) for level in range(256))


def half_rows(image: Image, columns: int, rows: int) -> list[Strip]:
    """Return the picture as ``▀``: two pixels a cell. ``image`` has ``columns`` × 2·``rows`` pixels."""
    data = image.tobytes().translate(_COARSE)
    stride = columns * 3
    out: list[Strip] = []
    for row in range(rows):
        upper = data[2 * row * stride : (2 * row + 1) * stride]
        lower = data[(2 * row + 1) * stride : (2 * row + 2) * stride]
        segments: list[Segment] = []
        start = 0
        while start < stride:
            pair = (upper[start : start + 3], lower[start : start + 3])
            end = start + 3
            while end < stride and (upper[end : end + 3], lower[end : end + 3]) == pair:
                end += 3
            fg = (pair[0][0], pair[0][1], pair[0][2])
            bg = (pair[1][0], pair[1][1], pair[1][2])
            segments.append(_segment("▀" * ((end - start) // 3), fg, bg))
            start = end
        out.append(Strip(segments, columns))
    return out


def ascii_rows(image: Image, columns: int, rows: int, ground: Style) -> list[Strip]:
    """Return the picture as signs of more or less ink in the style ``ground``; what most of it is, is left blank.

    ``image`` has ``ASCII_PIXELS`` for a cell.
    """
    from PIL import Image as Pil

    grey = image.convert("L")
    counts = grey.histogram()
    light = sum(counts[128:]) > sum(counts[:128])
    ground_level = max(range(128, 256) if light else range(128), key=counts.__getitem__)
    # Ink is the distance from the ground; of each cell the mean, drawn out so that thin lines are seen.
    span = max(ground_level, 255 - ground_level)
    ink = grey.point([round(abs(level - ground_level) * 255 / span) for level in range(256)])
    data = ink.resize((columns, rows), Pil.Resampling.BOX).tobytes()
    most = max(data) or 1
    last = len(SHADES) - 1
    signs = bytes(
        ord(SHADES[min(last, round((level / most) ** 0.6 * last))]) if level <= most else 0
        for level in range(256)
    )
    text = data.translate(signs).decode("ascii")
    return [
        Strip([Segment(text[at : at + columns], ground)], columns) for at in range(0, columns * rows, columns)
    ]


_SGR = re.compile(r"\x1b\[([\d;]*)m|\x1b\[\?25[lh]|([^\x1b]+)")


def symbol_rows(image: Image, columns: int, rows: int, *, sharp: bool = False) -> list[Strip]:
    """Return the picture as block symbols, clearly sharper than half-cells. Needs chafa, else ``ImportError`` or ``OSError``.

    ``image`` has ``SYMBOL_PIXELS`` for a cell; ``sharp`` uses sextants too.
    """
    import chafa

    config = chafa.CanvasConfig()
    config.width, config.height = columns, rows
    config.cell_width, config.cell_height = SYMBOL_PIXELS
    config.pixel_mode = chafa.PixelMode.CHAFA_PIXEL_MODE_SYMBOLS
    config.canvas_mode = chafa.CanvasMode.CHAFA_CANVAS_MODE_TRUECOLOR
    symbols = chafa.SymbolMap()
    for tag in SHARP_SYMBOLS if sharp else SYMBOLS:
        symbols.add_by_tags(getattr(chafa.SymbolTags, f"CHAFA_SYMBOL_TAG_{tag}"))
    config.set_symbol_map(symbols)
    config.work_factor = 0.7
    canvas = chafa.Canvas(config)
    width, height = image.size
    pixels = bytearray(image.tobytes())
    canvas.draw_all_pixels(chafa.PixelType.CHAFA_PIXEL_RGB8, pixels, width, height, width * 3)
    output: bytes = canvas.print(term_info=chafa.TermDb().get_fallback_info())
    lines = output.decode("utf-8", "replace").split("\n")[:rows]
    out = [_parse_line(line, columns) for line in lines]
    blank = Strip([Segment(" " * columns)], columns)
    out.extend([blank] * (rows - len(out)))
    return out


def _parse_line(line: str, columns: int) -> Strip:
    fg: Rgb | None = None
    bg: Rgb | None = None
    inverse = False
    segments: list[Segment] = []
    used = 0
    for match in _SGR.finditer(line):
        codes, text = match.groups()
        if text is not None:
            text = text[: columns - used]
            if text:
                segments.append(_segment(text, bg, fg) if inverse else _segment(text, fg, bg))
                used += len(text)
        elif codes is not None:
            numbers = [int(code or 0) for code in codes.split(";")]
            while numbers:
                code = numbers.pop(0)
                if code == 0:
                    fg = bg = None
                    inverse = False
                elif code == 7:
                    inverse = True
                elif code in (38, 48) and len(numbers) >= 4 and numbers[0] == 2:
                    colour = _coarse(*numbers[1:4])
                    del numbers[:4]
                    if code == 38:
                        fg = colour
                    else:
                        bg = colour
    if used < columns:
        segments.append(Segment(" " * (columns - used)))
    return Strip(segments, columns)
