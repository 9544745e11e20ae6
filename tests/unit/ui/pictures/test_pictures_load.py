"""Reading pictures from files, good and bad ones."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from sandbox_chat import events as ev
from sandbox_chat.ui.pictures import Painter, PictureError, TerminalInfo
from sandbox_chat.ui.pictures.alternative import picture_text
from sandbox_chat.ui.pictures.load import load, measure

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


@pytest.mark.parametrize("mode", ["half", "symbols", "sharp", "ascii", "sixel", "iterm", "kitty"])
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


def turned(path: Path, orientation: int, size: tuple[int, int] = (300, 100)) -> str:
    image = Image.new("RGB", size, "white")
    image.paste("red", (0, 0, size[0] // 4, size[1]))  # its left quarter
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(path, exif=exif)
    return str(path)


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_a_picture_on_its_side_is_turned(tmp_path: Path, suffix: str) -> None:
    path = turned(tmp_path / f"x.{suffix}", 6)
    image = load(path, max_pixels=10**6, box=(20, 60))
    top, bottom = image.getpixel((10, 3)), image.getpixel((10, 50))
    assert top[0] > 200 > 100 > top[1]  # type: ignore[index]
    assert min(bottom) > 200  # type: ignore[type-var]
    if suffix != "png":  # a PNG tells it behind its pixels
        assert measure(path) == (100, 300)


def test_a_turned_picture_is_not_stretched(tmp_path: Path) -> None:
    """Who made the box knew the size of the file only."""
    image = load(turned(tmp_path / "x.jpg", 6), max_pixels=10**6, box=(60, 20), ground=(1, 2, 3))
    assert image.size == (60, 20)
    assert image.getpixel((5, 10)) == image.getpixel((55, 10)) == (1, 2, 3)
    assert image.getpixel((30, 3))[1] < 100  # type: ignore[index]


def test_a_broken_orientation_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    Image.new("RGB", (30, 10), "red").save(path, exif=b"Exif\0\0MM\0*\xff\xff\xff\xff nonsense")
    assert measure(str(path)) == (30, 10)
    assert load(str(path), max_pixels=10**6, box=(30, 10)).size == (30, 10)


@pytest.mark.parametrize("size", [(1, 1), (1, 20_000), (20_000, 1), (7, 3000)])
@pytest.mark.parametrize("mode", ["half", "symbols", "ascii", "sixel", "kitty"])
def test_odd_sizes(tmp_path: Path, size: tuple[int, int], mode) -> None:
    painter = Painter(mode, SIXEL)
    path = png(tmp_path / "x.png", size)
    columns, rows = painter.size(*size, 100)
    paint = painter.prepare(path, columns, rows)
    assert len(paint.rows) == rows >= 1
    assert {row.cell_length for row in paint.rows} == {columns}


def test_an_animation_shows_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue")]
    for suffix in ("gif", "png", "webp"):
        path = tmp_path / f"x.{suffix}"
        frames[0].save(path, save_all=True, append_images=frames[1:])
        pixel = load(str(path), max_pixels=10**6, box=(4, 4)).getpixel((2, 2))
        assert pixel[0] > 240 and pixel[2] < 20  # type: ignore[index,operator]


def test_a_wrong_suffix_does_not_matter(tmp_path: Path) -> None:
    Image.new("RGB", (20, 20), "red").save(tmp_path / "x.jpg", "PNG")
    assert load(str(tmp_path / "x.jpg"), max_pixels=10**6, box=(4, 4)).size == (4, 4)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.png")
    with pytest.raises(PictureError, match="not a file"):
        measure(str(tmp_path / "x.png"))


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is unreadable for root")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = png(tmp_path / "x.png")
    Path(path).chmod(0)
    with pytest.raises(PictureError, match="may not be read"):
        measure(path)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "CMYK"])
def test_a_large_picture_becomes_small_early_and_looks_the_same(tmp_path: Path, mode: str) -> None:
    wide = Image.linear_gradient("L").resize((2048, 1024)).convert("RGB")
    small = wide.resize((64, 32), Image.Resampling.BOX)
    path = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    wide.convert(mode).save(tmp_path / "x.jpg" if mode == "CMYK" else path)
    got = load(str(tmp_path / "x.jpg" if mode == "CMYK" else path), max_pixels=10**7, box=(64, 32))
    assert max(ImageChops.difference(got, small).getextrema(), key=lambda pair: pair[1])[1] < 40


def test_a_part_of_a_picture(tmp_path: Path) -> None:
    image = Image.new("RGB", (100, 100), "white")
    image.paste("red", (50, 50, 100, 100))
    image.save(tmp_path / "x.png")
    part = load(str(tmp_path / "x.png"), max_pixels=10**6, box=(10, 10), window=(0.6, 0.6, 0.9, 0.9))
    assert part.getcolors() == [(100, (255, 0, 0))]
    thin = load(str(tmp_path / "x.png"), max_pixels=10**6, box=(10, 10), window=(1, 1, 1, 1))
    assert thin.size == (10, 10)


def test_a_picture_in_words() -> None:
    image = ev.ImageContent("/data/s/x\x1b[2J.png", "image/png", 1200, 800)
    assert picture_text(image, "sine[/]") == "[picture: sine[/], 1200×800, /data/s/x␛[2J.png]"
    assert picture_text(ev.ImageContent("/x.png", "image/png", 0, 0)) == "[picture: /x.png]"
