"""Loading and encoding of pictures, good and bad ones."""

from __future__ import annotations

import base64
import io
import re
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFilter
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._ansi_theme import DEFAULT_TERMINAL_THEME
from textual.color import Color
from textual.filter import ANSIToTruecolor, Monochrome

from sandbox_chat.ui.pictures import Painter, PictureError, TerminalInfo
from sandbox_chat.ui.pictures.encode import (
    MARKS,
    PLACEHOLDER,
    half_rows,
    kitty_paint,
    sixel_rows,
    symbol_rows,
)
from sandbox_chat.ui.pictures.load import _spread, load, measure
from sandbox_chat.ui.pictures.paint import GraphicStrip, frame

SIXEL = TerminalInfo(is_tty=True, sixel=True, cell=(9, 17))


def png(path: Path, size: tuple[int, int] = (300, 200), mode: str = "RGB", colour: object = "red") -> str:
    Image.new(mode, size, colour).save(path)  # type: ignore[arg-type]
    return str(path)


def huge_header(path: Path, width: int, height: int) -> str:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\x10\0IDAT" + b"\0" * 100)
    return str(path)


def bad_files(folder: Path) -> dict[str, str]:
    buffer = io.BytesIO()
    Image.effect_noise((300, 200), 90).save(buffer, "PNG")
    whole = buffer.getvalue()
    jpeg = io.BytesIO()
    Image.effect_noise((300, 200), 90).save(jpeg, "JPEG")
    files = {
        "empty": b"",
        "text": b"hello",
        "magic only": b"\x89PNG\r\n\x1a\n",
        "truncated": whole[: len(whole) // 2],
        "header only": whole[:40],
        "broken": whole[:60] + bytes(reversed(whole[60:])),
        "jpeg cut": jpeg.getvalue()[:500],
        "gif": b"GIF89a" + b"\xff" * 30,
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
    }
    found = {}
    for name, data in files.items():
        (folder / name).write_bytes(data)
        found[name] = str(folder / name)
    found["huge"] = huge_header(folder / "huge", 100_000, 90_000)
    found["large"] = huge_header(folder / "large", 9000, 9000)
    found["missing"] = str(folder / "none.png")
    found["folder"] = str(folder)
    found["device"] = "/dev/zero"
    return found


@pytest.mark.parametrize("mode", ["half", "sixel", "kitty"])
def test_no_bytes_end_the_program(tmp_path: Path, mode) -> None:
    painter = Painter(mode, SIXEL)
    for name, path in bad_files(tmp_path).items():
        with pytest.raises(PictureError) as caught:
            painter.prepare(path, 20, 10)
        assert str(caught.value).endswith("."), name
        assert "/" not in str(caught.value).replace("and/or", ""), name


def test_the_reason_is_named(tmp_path: Path) -> None:
    files = bad_files(tmp_path)

    def why(name: str) -> str:
        with pytest.raises(PictureError) as caught:
            load(files[name], max_pixels=1_000_000, box=(10, 10))
        return str(caught.value)

    assert "empty" in why("empty")
    assert "pixels" in why("huge")
    assert "9,000×9,000" in why("large")
    assert "no longer there" in why("missing")
    assert "not a file" in why("folder")
    assert "damaged" in why("truncated")


@pytest.mark.parametrize(
    ("mode", "colour"),
    [
        ("RGBA", (0, 0, 0, 0)),
        ("LA", (0, 0)),
        ("P", 0),
        ("1", 1),
        ("L", 10),
        ("CMYK", (0, 0, 0, 0)),
        ("I;16", 500),
    ],
)
def test_all_kinds_of_pixels(tmp_path: Path, mode: str, colour: object) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"
    path = png(tmp_path / f"x.{suffix}", mode=mode, colour=colour)
    image = load(path, max_pixels=10**6, box=(20, 10))
    assert (image.mode, image.size) == ("RGB", (20, 10))
    if mode in ("RGBA", "LA"):
        assert image.getpixel((0, 0)) == (255, 255, 255)  # transparent parts are white


def test_measure_reads_only_the_header(tmp_path: Path) -> None:
    assert measure(huge_header(tmp_path / "x", 9000, 9000)) == (9000, 9000)


def test_sizes() -> None:
    painter = Painter("sixel", SIXEL, max_rows=24)
    assert painter.size(900, 340, 200) == (100, 20)
    assert painter.size(9000, 3400, 100) == (100, 20)
    assert painter.size(900, 34000, 100)[1] == 24
    assert painter.size(1, 1, 100) == (1, 1)
    assert painter.size(0, 10, 100) == (0, 0)
    assert painter.size(100_000, 10, 100) == (100, 1)
    assert Painter("off").size(10, 10, 10) == (0, 0)
    columns, rows = Painter("half", max_rows=24).size(1200, 800, 96)
    assert (columns, rows) == (72, 24)


def test_half_cells() -> None:
    image = Image.new("RGB", (3, 4), "red")
    image.putpixel((0, 1), (0, 0, 255))
    rows = half_rows(image, 3, 2)
    assert [row.text for row in rows] == ["▀▀▀", "▀▀▀"]
    first = next(iter(rows[0]))
    assert first.text == "▀"
    assert first.style is not None
    assert (first.style.color.name, first.style.bgcolor.name) == ("#ff0000", "#0000ff")


def test_symbols_fill_their_box() -> None:
    pytest.importorskip("chafa", reason="there is no chafa for this platform")
    image = Image.new("RGB", (80, 80), "white")
    image.paste("black", (0, 0, 40, 80))
    rows = symbol_rows(image, 10, 5)
    assert len(rows) == 5
    assert {row.cell_length for row in rows} == {10}
    assert "\x1b" not in "".join(row.text for row in rows)


def test_without_chafa_half_cells_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "chafa", None)
    painter = Painter("half")
    paint = painter.prepare(png(tmp_path / "x.png"), 10, 5)
    assert set("".join(row.text for row in paint.rows)) == {"▀"}
    assert not painter.symbols


# --- sixel -----------------------------------------------------------------------------------------------


def decode_sixel(text: str, width: int, height: int) -> Image.Image:
    """Read a sixel sequence back: a small independent decoder."""
    body = re.fullmatch(r"\x1bP[\d;]*q(.*)\x1b\\", text, re.DOTALL)
    assert body is not None
    image = Image.new("RGB", (width, height))
    palette: dict[int, tuple[int, int, int]] = {}
    x = top = colour = 0
    for match in re.finditer(r'"[\d;]+|#(\d+)((?:;\d+)*)|!(\d+)(.)|([$-])|([?-~])', body.group(1)):
        number, definition, count, repeated, control, plain = match.groups()
        if number is not None:
            colour = int(number)
            if definition:
                _, *parts = (int(part) for part in definition[1:].split(";"))
                palette[colour] = tuple(round(part * 2.55) for part in parts)  # type: ignore[assignment]
        elif control == "$":
            x = 0
        elif control == "-":
            x, top = 0, top + 6
        else:
            bits = ord(repeated or plain) - 63 if (repeated or plain) else 0
            for _ in range(int(count or 1) if (repeated or plain) else 0):
                for bit in range(6):
                    if bits >> bit & 1:
                        image.putpixel((x, top + bit), palette[colour])
                x = x + 1
    return image


def test_sixel_rows_together_are_the_picture() -> None:
    image = Image.new("RGB", (90, 51))
    for x in range(90):
        for y in range(51):
            image.putpixel((x, y), (x * 255 // 89 // 64 * 64, y * 5 // 64 * 64, 128))
    rows = sixel_rows(image, 10, 3, (9, 17), Style())
    for number, row in enumerate(rows):
        assert isinstance(row, GraphicStrip)
        got = decode_sixel(row._graphic, 90, 17)
        wanted = image.crop((0, number * 17, 90, number * 17 + 17))
        differ = max(abs(a - b) for a, b in zip(got.tobytes(), wanted.tobytes(), strict=True))
        assert differ <= 3  # colours are given in percent


def test_a_row_with_graphics_draws_only_when_it_is_whole() -> None:
    row = GraphicStrip([Segment("    ", Style(bgcolor="blue"))], 4, "\x1bPq#0~\x1b\\", 0)
    wide = frame(
        row.adjust_cell_length(6, Style()), [Segment("| ", Style())], [Segment(" |", Style())], 10, 2
    )
    console = Console(color_system="truecolor")
    text = wide.render(console)
    assert text.startswith("\x1b7")
    assert "\x1b8\x1b[2C\x1bPq" in text
    assert text.endswith("\x1b8\x1b[10C")
    assert wide.text == "|       |".replace("       ", "        ")
    assert "\x1bP" not in wide.crop(0, 9).render(console)
    assert all("\x1bP" not in part.render(console) for part in wide.divide([3, 10]))
    assert wide.divide([10])[0] is wide
    ground = Color.parse("black")
    assert "\x1bP" in wide.apply_filter(ANSIToTruecolor(DEFAULT_TERMINAL_THEME), ground).render(console)
    assert "\x1bP" not in wide.apply_filter(Monochrome(), ground).render(console)


# --- kitty -----------------------------------------------------------------------------------------------


def test_kitty_sends_the_picture_once_and_shows_it_by_placeholders() -> None:
    image = Image.effect_noise((200, 100), 90).convert("RGB")
    paint = kitty_paint(image, 20, 5, 0x123456, Style(bgcolor="#000000"))
    commands = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", paint.setup)
    assert "".join(f"\x1b_G{head};{data}\x1b\\" for head, data in commands) == paint.setup
    first = dict(item.split("=") for item in commands[0][0].split(","))
    assert first == {
        "a": "T", "U": "1", "f": "100", "t": "d", "i": str(0x123456), "c": "20", "r": "5", "q": "2", "m": "1",
    }  # fmt: skip
    assert all(len(data) <= 4096 for _, data in commands)
    assert [head for head, _ in commands[1:]] == ["q=2,m=1"] * (len(commands) - 2) + ["q=2,m=0"]
    sent = Image.open(io.BytesIO(base64.b64decode("".join(data for _, data in commands))))
    assert sent.tobytes() == image.tobytes()
    assert len(paint.rows) == 5
    for number, row in enumerate(paint.rows):
        assert row.cell_length == 20
        assert row.text == "".join(PLACEHOLDER + MARKS[number] + MARKS[column] for column in range(20))
        (segment,) = row
        assert segment.style is not None
        assert segment.style.color.name == "#123456"
        assert row.crop(3, 7).text == "".join(
            PLACEHOLDER + MARKS[number] + MARKS[column] for column in range(3, 7)
        )
    assert paint.cleanup == f"\x1b_Ga=d,d=I,i={0x123456},q=2\x1b\\"


def test_the_marks_are_those_of_the_protocol() -> None:
    import unicodedata

    assert MARKS[:5] == ("\u0305", "\u030d", "\u030e", "\u0310", "\u0312")
    assert len(MARKS) == len(set(MARKS)) >= 250
    assert all(unicodedata.combining(mark) == 230 for mark in MARKS)
    assert list(MARKS) == sorted(MARKS)


def test_pictures_are_numbered_apart(tmp_path: Path) -> None:
    painter = Painter("kitty", SIXEL)
    path = png(tmp_path / "x.png")
    assert painter.prepare(path, 5, 5).cleanup != painter.prepare(path, 5, 5).cleanup


def test_paints_are_kept(tmp_path: Path) -> None:
    painter = Painter("sixel", SIXEL)
    path = png(tmp_path / "x.png")
    paint = painter.prepare(path, 5, 5)
    assert painter.prepare(path, 5, 5) is paint
    assert len(paint.quick_rows) == len(paint.rows) == 5
    for size in range(6, 40):
        painter.prepare(path, size, 5)
    assert painter.prepare(path, 5, 5) is not paint


async def test_preparing_in_the_painters_thread(tmp_path: Path) -> None:
    painter = Painter("half")
    paint = await painter.prepare_soon(png(tmp_path / "x.png"), 10, 5)
    assert len(paint.rows) == 5
    with pytest.raises(PictureError):
        await painter.prepare_soon(str(tmp_path / "none"), 10, 5)
    painter.close()
    painter.close()


@pytest.mark.parametrize("radius", [1, 2, 3, 4])
def test_lines_are_thickened_as_by_pillows_filters(radius: int) -> None:
    """Pillow's own filters give the same, but too slowly for the interface."""
    image = Image.new("RGB", (61, 40), "white")
    draw = ImageDraw.Draw(image)
    draw.line((0, 39, 60, 3), fill="navy")
    draw.ellipse((20, 8, 45, 30), outline=(200, 90, 10))
    size = 2 * radius + 1
    assert _spread(image, radius, ImageChops.darker).tobytes() == (
        image.filter(ImageFilter.MinFilter(size)).tobytes()
    )
    assert _spread(image, radius, ImageChops.lighter).tobytes() == (
        image.filter(ImageFilter.MaxFilter(size)).tobytes()
    )
