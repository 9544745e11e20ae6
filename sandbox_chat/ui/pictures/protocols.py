"""Pictures → rows by protocols of terminals: sixel, iTerm2's, kitty's. Pure; any thread."""

from __future__ import annotations

import base64
import io
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from .paint import GraphicStrip, PicturePaint, rgb_style

if TYPE_CHECKING:
    from PIL.Image import Image

SIXEL_COLOURS = 128
"""Colours of a sixel picture: charts look the same with more, and each costs time in each band."""


def sixel_rows(image: Image, columns: int, rows: int, cell: tuple[int, int], ground: Style) -> list[Strip]:
    """Return the picture as one sixel sequence for each row of cells, so that a row can be drawn alone.

    ``image`` has exactly the size of its cells in pixels. All rows share one palette.
    """
    from PIL import Image as Pil

    width, height = columns * cell[0], cell[1]
    indexed = image.quantize(SIXEL_COLOURS, method=Pil.Quantize.MEDIANCUT, dither=Pil.Dither.NONE)
    colours = indexed.getpalette() or []
    data = indexed.tobytes()
    out: list[Strip] = []
    for row in range(rows):
        piece = data[row * height * width : (row + 1) * height * width]
        graphic = _sixel(piece, width, height, colours)
        out.append(GraphicStrip([Segment(" " * columns, ground)], columns, graphic, 0))
    return out


def iterm_rows(image: Image, columns: int, rows: int, cell: tuple[int, int], ground: Style) -> list[Strip]:
    """Return the picture as one inline file of iTerm2's protocol for each row of cells; see ``sixel_rows``."""
    width, height = columns * cell[0], cell[1]
    indexed = image.quantize(256)
    out: list[Strip] = []
    for row in range(rows):
        buffer = io.BytesIO()
        indexed.crop((0, row * height, width, (row + 1) * height)).save(buffer, "PNG")
        data = base64.standard_b64encode(buffer.getvalue()).decode("ascii")
        head = (
            f"inline=1;size={buffer.tell()};width={columns};height=1;preserveAspectRatio=0;doNotMoveCursor=1"
        )
        graphic = f"\x1b]1337;File={head}:{data}\x07"
        out.append(GraphicStrip([Segment(" " * columns, ground)], columns, graphic, 0))
    return out


@lru_cache(maxsize=256)
def _table(index: int) -> bytes:
    return bytes(int(value == index) for value in range(256))


_REPEATED = re.compile(rb"([?-~])\1{3,}")


def _repeat(match: re.Match[bytes]) -> bytes:
    return b"!%d%b" % (len(match.group()), match.group(1))


def _sixel(data: bytes, width: int, height: int, colours: list[int]) -> str:
    """Return ``data`` (one byte a pixel, indices into ``colours``) as a sixel sequence.

    For a colour, each of the six lines of a band is turned into ones and zeros, which are laid over
    each other as one large number: all columns at once.
    """
    used = sorted(set(data))
    out = [b'\x1bP0;1;0q"1;1;%d;%d' % (width, height)]
    for index in used:
        red, green, blue = (round(value * 100 / 255) for value in colours[3 * index : 3 * index + 3])
        out.append(b"#%d;2;%d;%d;%d" % (index, red, green, blue))
    offset = int.from_bytes(b"?" * width, "big")
    for top in range(0, height, 6):
        lines = [data[y * width : (y + 1) * width] for y in range(top, min(top + 6, height))]
        first = True
        for index in sorted(set().union(*lines)):
            table = _table(index)
            bits = offset
            for shift, line in enumerate(lines):
                if index in line:
                    bits += int.from_bytes(line.translate(table), "big") << shift
            text = bits.to_bytes(width, "big").rstrip(b"?")
            out.append((b"#%d" if first else b"$#%d") % index)
            out.append(_REPEATED.sub(_repeat, text))
            first = False
        out.append(b"-" if top + 6 < height else b"")
    out.append(b"\x1b\\")
    return b"".join(out).decode("ascii")


# --- kitty -----------------------------------------------------------------------------------------------

PLACEHOLDER = "\U0010eeee"
CHUNK = 4096
"""Characters of base64 in one command, the most that the protocol allows."""

# The combining marks that number rows and columns: the first 297 characters of combining class 230
# without decomposition, as the protocol lists them; here the ones that a screen can need.
_MARKS = (
    "0305 030D 030E 0310 0312 033D 033E 033F 0346 034A 034B 034C 0350 0351 0352 0357 035B 0363 0364 0365 0366 0367 "
    "0368 0369 036A 036B 036C 036D 036E 036F 0483 0484 0485 0486 0487 0592 0593 0594 0595 0597 0598 0599 059C 059D "
    "059E 059F 05A0 05A1 05A8 05A9 05AB 05AC 05AF 05C4 0610 0611 0612 0613 0614 0615 0616 0617 0657 0658 0659 065A "
    "065B 065D 065E 06D6 06D7 06D8 06D9 06DA 06DB 06DC 06DF 06E0 06E1 06E2 06E4 06E7 06E8 06EB 06EC 0730 0732 0733 "
    "0735 0736 073A 073D 073F 0740 0741 0743 0745 0747 0749 074A 07EB 07EC 07ED 07EE 07EF 07F0 07F1 07F3 0816 0817 "
    "0818 0819 081B 081C 081D 081E 081F 0820 0821 0822 0823 0825 0826 0827 0829 082A 082B 082C 082D 0951 0953 0954 "
    "0F82 0F83 0F86 0F87 135D 135E 135F 17DD 193A 1A17 1A75 1A76 1A77 1A78 1A79 1A7A 1A7B 1A7C 1B6B 1B6D 1B6E 1B6F "
    "1B70 1B71 1B72 1B73 1CD0 1CD1 1CD2 1CDA 1CDB 1CE0 1DC0 1DC1 1DC3 1DC4 1DC5 1DC6 1DC7 1DC8 1DC9 1DCB 1DCC 1DD1 "
    "1DD2 1DD3 1DD4 1DD5 1DD6 1DD7 1DD8 1DD9 1DDA 1DDB 1DDC 1DDD 1DDE 1DDF 1DE0 1DE1 1DE2 1DE3 1DE4 1DE5 1DE6 1DFE "
    "20D0 20D1 20D4 20D5 20D6 20D7 20DB 20DC 20E1 20E7 20E9 20F0 2CEF 2CF0 2CF1 2DE0 2DE1 2DE2 2DE3 2DE4 2DE5 2DE6 "
    "2DE7 2DE8 2DE9 2DEA 2DEB 2DEC 2DED 2DEE 2DEF 2DF0 2DF1 2DF2 2DF3 2DF4 2DF5 2DF6 2DF7 2DF8 2DF9 2DFA 2DFB 2DFC "
    "2DFD 2DFE 2DFF A66F A67C A67D A6F0 A6F1 A8E0 A8E1 A8E2 A8E3 A8E4 A8E5 A8E6 A8E7 A8E8 A8E9 A8EA A8EB A8EC A8ED "
    "A8EE A8EF A8F0 A8F1 AAB0 AAB2 AAB3 AAB7 AAB8 AABE AABF AAC1 FE20 FE21 FE22 FE23 FE24 FE25 FE26"
)
MARKS: tuple[str, ...] = tuple(chr(int(code, 16)) for code in _MARKS.split())
"""The marks that number the columns and the rows of placeholders."""


def kitty_paint(image: Image, columns: int, rows: int, number: int, ground: Style) -> PicturePaint:
    """Return the picture for kitty's graphics: sent once, shown wherever its placeholder characters stand.

    ``number`` (1…0xFFFFFF) names the picture in the terminal; it is the placeholders' text colour.
    """
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    data = base64.standard_b64encode(buffer.getvalue()).decode("ascii")
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [""]
    setup = []
    for index, chunk in enumerate(chunks):
        head = f"a=T,U=1,f=100,t=d,i={number},c={columns},r={rows},q=2," if index == 0 else "q=2,"
        setup.append(f"\x1b_G{head}m={int(index < len(chunks) - 1)};{chunk}\x1b\\")
    colour = (number >> 16 & 255, number >> 8 & 255, number & 255)
    style = ground + rgb_style(colour, None)
    strips = [
        Strip(
            [Segment("".join(PLACEHOLDER + MARKS[row] + MARKS[column] for column in range(columns)), style)],
            columns,
        )
        for row in range(rows)
    ]
    return PicturePaint(columns, strips, setup="".join(setup), cleanup=f"\x1b_Ga=d,d=I,i={number},q=2\x1b\\")
