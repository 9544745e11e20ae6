"""Pictures as rows of the screen, by each way of drawing."""

from __future__ import annotations

import base64
import io
import re
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
from sandbox_chat.ui.pictures.characters import ascii_rows, half_rows, symbol_rows
from sandbox_chat.ui.pictures.load import _spread
from sandbox_chat.ui.pictures.paint import GraphicStrip, frame
from sandbox_chat.ui.pictures.protocols import MARKS, PLACEHOLDER, iterm_rows, kitty_paint, sixel_rows

SIXEL = TerminalInfo(is_tty=True, sixel=True, cell=(9, 17))


def png(path: Path, size: tuple[int, int] = (300, 200), mode: str = "RGB", colour: object = "red") -> str:
    Image.new(mode, size, colour).save(path)  # type: ignore[arg-type]
    return str(path)


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
    for mode in ("symbols", "sharp", "half"):
        painter = Painter(mode)
        for width in (10, 11):
            paint = painter.prepare(png(tmp_path / "x.png"), width, 5)
            assert set("".join(row.text for row in paint.rows)) == {"▀"}


def test_sextants_are_used_only_when_they_are_wanted() -> None:
    pytest.importorskip("chafa", reason="there is no chafa for this platform")
    image = Image.new("RGB", (160, 160), "white")
    ImageDraw.Draw(image).line((0, 130, 159, 20), fill="black", width=4)
    image = image.convert("RGB")

    def signs(*, sharp: bool) -> set[str]:
        return set("".join(row.text for row in symbol_rows(image, 20, 10, sharp=sharp)))

    assert any("\U0001fb00" <= sign <= "\U0001fbff" for sign in signs(sharp=True))
    assert all(sign < "\u2600" for sign in signs(sharp=False))


@pytest.mark.parametrize(("ink", "paper"), [("black", "white"), ("white", "black"), ("navy", "#eeeeee")])
def test_ascii_signs_show_the_ink_and_not_the_paper(ink: str, paper: str) -> None:
    image = Image.new("RGB", (40, 40), paper)
    image.paste(ink, (0, 16, 40, 20))
    style = Style(color="red")
    rows = ascii_rows(image, 20, 10, style)
    assert [row.text for row in rows] == [" " * 20] * 4 + ["@" * 20] + [" " * 20] * 5
    assert all(segment.style == style for row in rows for segment in row)


def test_a_plain_surface_in_ascii_is_blank() -> None:
    assert {row.text for row in ascii_rows(Image.new("RGB", (8, 8), "red"), 4, 2, Style())} == {"    "}


def test_iterm_gets_one_file_for_each_row() -> None:
    image = Image.effect_noise((90, 51), 90).convert("RGB")
    rows = iterm_rows(image, 10, 3, (9, 17), Style())
    for number, row in enumerate(rows):
        assert isinstance(row, GraphicStrip)
        head, data = re.fullmatch(r"\x1b\]1337;File=([^:]*):(.*)\x07", row._graphic).groups()  # type: ignore[union-attr]
        raw = base64.b64decode(data)
        fields = dict(item.split("=") for item in head.split(";"))
        assert (fields["width"], fields["height"], fields["size"]) == ("10", "1", str(len(raw)))
        wanted = image.crop((0, number * 17, 90, number * 17 + 17))
        got = Image.open(io.BytesIO(raw)).convert("RGB")
        assert got.size == wanted.size
        assert max(abs(a - b) for a, b in zip(got.tobytes(), wanted.tobytes(), strict=True)) <= 16


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


def test_paints_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painter = Painter("sixel", SIXEL)
    path = png(tmp_path / "x.png")
    paint = painter.prepare(path, 5, 5)
    assert paint.weight > 1000
    assert painter.prepare(path, 5, 5) is paint
    assert len(paint.quick_rows) == len(paint.rows) == 5
    assert painter.prepare(path, 5, 5, window=(0, 0, 0.5, 1)) is not paint
    monkeypatch.setattr("sandbox_chat.ui.pictures.painter.KEPT_BYTES", 3 * paint.weight)
    for size in range(6, 12):
        painter.prepare(path, size, 5)
    assert painter.prepare(path, 5, 5) is not paint


def test_a_font_of_another_size_needs_another_picture(tmp_path: Path) -> None:
    painter = Painter("sixel", SIXEL)
    path = png(tmp_path / "x.png")
    paint = painter.prepare(path, 5, 5)
    painter.cell = (18, 34)
    larger = painter.prepare(path, 5, 5)
    assert larger is not paint
    assert '"1;1;90;34' in larger.rows[0]._graphic  # type: ignore[attr-defined]
    assert painter.size(900, 340, 200) == (50, 10)


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
