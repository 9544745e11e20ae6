"""Pictures by their headers, and scaled for the model."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.pictures import picture

from sandbox_chat.events import ImageContent
from sandbox_chat.tools.images import ImageError, file_type, for_model, picture_saver, probe


def fit(
    data: bytes, *, side: int = 1568, max_bytes: int = 5_000_000, max_pixels: int = 50_000_000
) -> Image.Image:
    block = for_model(data, side=side, max_bytes=max_bytes, max_pixels=max_pixels)
    assert len(block.data) <= max_bytes
    image = Image.open(io.BytesIO(block.data))
    image.load()
    assert block.mime == {"PNG": "image/png", "JPEG": "image/jpeg"}[image.format or ""]
    return image


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_the_header_tells_type_and_size(form: str) -> None:
    info = probe(picture(37, 21, form))
    assert (info.mime, info.width, info.height) == (f"image/{form.lower()}", 37, 21)


def test_progressive_and_exif_jpegs() -> None:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "x" * 2000
    Image.new("RGB", (50, 40)).save(out, "JPEG", progressive=True, exif=exif)
    assert (probe(out.getvalue()).width, probe(out.getvalue()).height) == (50, 40)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "unknown type"),
        (b"GIF89a....", "GIF"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"),
        (b"%PDF-1.7", "PDF"),
        (b"<svg xmlns=", "unknown type"),
        (b"\x89PNG\r\n\x1a\n", "header"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "cut"),
        (b"\xff\xd8\xff\xe0\0\x04ab", "damaged"),
        (b"\xff\xd8\xff\xc0\0\x11\x08", "cut"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(8), "no width"),
    ],
)
def test_what_is_no_usable_picture_is_said(data: bytes, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        probe(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_probed_without_a_crash(data: bytes) -> None:
    for prefix in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"):
        with contextlib.suppress(ImageError):
            probe(prefix + data)
        file_type(prefix + data)


def test_a_small_picture_is_passed_on_as_it_is() -> None:
    data = picture(640, 480)
    assert for_model(data, side=1568, max_bytes=5_000_000, max_pixels=50_000_000).data is data


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"])
def test_a_large_picture_is_scaled(mode: str) -> None:
    image = fit(picture(2000, 1000, mode=mode))
    assert image.size == (1568, 784)


def test_noise_becomes_a_small_jpeg() -> None:
    image = fit(picture(1500, 1400, noise=True))
    assert image.format == "JPEG"
    assert image.size == (1500, 1400)


def test_the_limit_of_bytes_is_kept() -> None:
    image = fit(picture(1200, 1200, noise=True), max_bytes=100_000)
    assert max(image.size) < 1200


def test_a_transparent_picture_goes_on_white() -> None:
    data = random.Random(1).randbytes(1400 * 1400 * 4)
    out = io.BytesIO()
    Image.frombytes("RGBA", (1400, 1400), data).save(out, "PNG")
    assert fit(out.getvalue()).mode == "RGB"


def bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def test_a_pixel_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(ImageError, match="100,000×100,000"):
        for_model(bomb(100_000, 100_000), side=1568, max_bytes=5_000_000, max_pixels=50_000_000)


def test_damaged_data_is_said() -> None:
    with pytest.raises(ImageError, match="cannot be decoded"):
        for_model(bomb(3000, 3000)[:-30], side=1568, max_bytes=5_000_000, max_pixels=50_000_000)
    with pytest.raises(ImageError, match="cannot be decoded"):
        for_model(picture(300, 300, noise=True)[:5000], side=1568, max_bytes=5_000_000, max_pixels=50_000_000)


def test_a_saver_finds_the_size_itself() -> None:
    saved: list[tuple[str, int, int]] = []

    def save(data: bytes, mime: str, width: int, height: int) -> ImageContent:
        saved.append((mime, width, height))
        return ImageContent("/x", mime, width, height)

    assert picture_saver(save)(picture(3, 4, "JPEG"), "image/png").mime == "image/jpeg"
    assert saved == [("image/jpeg", 3, 4)]
