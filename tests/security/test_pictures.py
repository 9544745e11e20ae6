"""Pictures that come back from the sandbox and are made to take memory, time or more."""

from __future__ import annotations

import io
import random
import re
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from support.pictures import picture
from support.toolbox import Tools

from sandbox_chat.sandbox.base import (
    Execution,
    RichOutput,
)
from sandbox_chat.tools.images import ImageError, for_model, probe


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, *more: bytes, depth: int = 8, colour: int = 0, pixels: bytes | None = None
) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    rows = zlib.compress(b"\0" * ((width + 1) * height)) if pixels is None else pixels
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """``count`` million zero bytes, compressed."""
    squeezer = zlib.compressobj(9)
    parts = [squeezer.compress(bytes(1_000_000)) for _ in range(count)]
    return b"".join(parts) + squeezer.flush()


def header(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


def jpeg(**options: Any) -> bytes:
    out = io.BytesIO()
    noise = Image.frombytes("RGB", (64, 64), random.Random(3).randbytes(64 * 64 * 3))
    noise.save(out, "JPEG", **options)
    return out.getvalue()


def many_scans() -> bytes:
    data = jpeg(progressive=True)
    first = data.index(b"\xff\xda")
    rest = data.index(b"\xff", first + 4)
    while data[rest + 1] == 0:
        rest = data.index(b"\xff", rest + 2)
    scan = data[first:rest]
    return data[:first] + scan * 5000 + data[first:]


def two_frames() -> bytes:
    data = jpeg()
    at = data.index(b"\xff\xc0")
    length = 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    frame = bytearray(data[at : at + length])
    frame[5:9] = struct.pack(">HH", 13000, 13000)
    return data[: at + length] + bytes(frame) + data[at + length :]


def taller(data: bytes) -> bytes:
    at = data.index(b"\xff\xc0")
    return data[: at + 5] + struct.pack(">HH", 65000, 65000) + data[at + 9 :]


BOMBS: dict[str, Callable[[], bytes]] = {
    "50,000 × 50,000": lambda: png(50_000, 50_000, pixels=zlib.compress(b"\0" * 1000)),
    "2³¹ × 2³¹": lambda: png(2**31 - 1, 2**31 - 1, pixels=b""),
    "one long line": lambda: png(2**31 - 1, 1, pixels=zeros(5)),
    "true colour with 16 bits": lambda: png(30_000, 30_000, depth=16, colour=6, pixels=zeros(5)),
    "two headers": lambda: png(10, 10, header(13_000, 13_000), pixels=zeros(180)),
    "second header after text": lambda: png(10, 10, chunk(b"tEXt", b"a\0b"), header(13_000, 13_000), pixels=zeros(180)),
    "header of odd length": lambda: b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II", 5, 5) + bytes(50)),
    "text that unpacks to 500 MB": lambda: png(10, 10, chunk(b"zTXt", b"k\0\0" + zeros(500))),
    "international text that unpacks": lambda: png(10, 10, chunk(b"iTXt", b"k\0\1\0\0\0" + zeros(200))),
    "many packed texts": lambda: png(10, 10, *[chunk(b"zTXt", b"k\0\0" + zeros(1))] * 900),
    "text after the pixels": lambda: png(10, 10)[:-12] + chunk(b"zTXt", b"k\0\0" + zeros(200)) + chunk(b"IEND", b""),
    "colour profile that unpacks": lambda: png(10, 10, chunk(b"iCCP", b"k\0\0" + zeros(300))),
    "100,000 parts": lambda: png(10, 10, *[chunk(b"tEXt", b"")] * 100_000),
    "pixels that go on": lambda: png(10, 10, pixels=zeros(400)),
    "a part longer than the file": lambda: png(10, 10, struct.pack(">I4s", 0x7FFFFFFF, b"tEXt")),
    "cut": lambda: png(100, 100)[:60],
    "wrong check sums": lambda: png(100, 100).replace(b"IDAT", b"IDAT\0"),
    "jpeg of 65,000 × 65,000": lambda: taller(jpeg()),
    "jpeg with two frames": two_frames,
    "jpeg with 5,000 passes": many_scans,
    "jpeg cut": lambda: jpeg()[:300],
    "jpeg of markers": lambda: b"\xff\xd8" + b"\xff\xe0\0\x02" * 300_000,
    "jpeg of padding": lambda: b"\xff\xd8" + b"\xff" * 4_000_000,
    "gif": lambda: b"GIF89a" + struct.pack("<HH", 65535, 65535) + bytes(100),
    "webp": lambda: b"RIFF\x10\0\0\0WEBPVP8X" + bytes(10) + b"\xff" * 6,
    "bmp": lambda: b"BM" + bytes(16) + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + bytes(100),
    "tiff": lambda: b"II*\0" + struct.pack("<I", 8) + bytes(100),
    "svg": lambda: b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg">&x;</svg>',
    "gzip": lambda: b"\x1f\x8b" + zeros(5),
    "nothing": lambda: b"",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_picture_bomb_takes_neither_memory_nor_time(name: str) -> None:
    data = BOMBS[name]()
    Path("/proc/self/clear_refs").write_text("5")  # the most memory is measured from here on
    before = _memory()
    began = time.monotonic()
    try:
        block = for_model(data, side=1568, max_bytes=5_000_000, max_pixels=50_000_000)
        with Image.open(io.BytesIO(block.data)) as image:
            assert image.size[0] <= 1568
    except ImageError as error:
        assert len(str(error)) < 300
    assert time.monotonic() - began < 20
    assert _memory() - before < 120


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("50,000 × 50,000", "50,000×50,000"),
        ("two headers", "two headers"),
        ("second header after text", "two headers"),
        ("100,000 parts", "more than 1,000 parts"),
        ("jpeg with two frames", "two frame headers"),
        ("jpeg with 5,000 passes", "passes over its pixels"),
        ("jpeg of 65,000 × 65,000", "65,000×65,000"),
        ("svg", "not a PNG or JPEG"),
    ],
)
def test_a_bomb_is_refused_by_its_header(name: str, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        for_model(BOMBS[name](), side=1568, max_bytes=5_000_000, max_pixels=50_000_000)


def test_a_picture_that_says_two_sizes_to_two_readers_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox_chat.tools import images

    data = picture(300, 200)
    monkeypatch.setattr(images, "probe", lambda _data: images.ImageInfo("image/png", 20, 20))
    with pytest.raises(ImageError, match="two different sizes"):
        for_model(data, side=1568, max_bytes=5_000_000, max_pixels=50_000_000)


def test_usual_progressive_pictures_pass() -> None:
    info = probe(jpeg(progressive=True, quality=95))
    assert (info.width, info.height) == (64, 64)


@given(st.binary(max_size=400), st.sampled_from(["PNG", "JPEG"]), st.integers(0, 2000), st.integers(0, 40))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_damaged_pictures_only_ever_fail_in_words(junk: bytes, form: str, at: int, cut: int) -> None:
    data = picture(40, 30, form, noise=True)
    at %= len(data)
    data = data[:at] + junk + data[at + cut :]
    try:
        for_model(data, side=64, max_bytes=100_000, max_pixels=1_000_000)
    except ImageError as error:
        assert str(error)


def _memory() -> int:
    """Most memory of this process since it was asked to measure anew, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


async def test_a_picture_bomb_by_both_tools(tools: Tools) -> None:
    for name in ("two headers", "50,000 × 50,000", "jpeg with 5,000 passes", "text that unpacks to 500 MB"):
        data = BOMBS[name]()
        tools.sandbox.files["/tmp/bomb.png"] = data
        outcome = await tools.call("read_image", path="/tmp/bomb.png")
        assert outcome.is_error, name
        tools.sandbox.next.append(Execution(outputs=(RichOutput({"image/png": data}),)))
        outcome = await tools.call("run_code", code="show()")
        assert "could not be used" in outcome.text, name


async def test_svg_is_never_rendered(tools: Tools) -> None:
    svg = BOMBS["svg"]().decode()
    tools.sandbox.next.append(
        Execution(outputs=(RichOutput({"image/svg+xml": svg, "text/plain": "<SVG>"}, is_result=True),))
    )
    outcome = await tools.call("run_code", code="svg")
    assert [type(block).__name__ for block in outcome.model] == ["TextBlock"]
    assert tools.pictures == []
    tools.sandbox.files["/tmp/x.svg"] = svg.encode()
    assert (await tools.call("read_image", path="/tmp/x.svg")).is_error


def test_no_reader_of_svg_or_xml_is_used() -> None:
    """Nothing in the program imports what would fetch for a picture: not XML parsers, not renderers of SVG."""
    import sandbox_chat

    root = Path(sandbox_chat.__file__).parent
    for path in root.rglob("*.py"):
        if "textual" in path.parts:
            continue
        found = re.findall(
            r"^\s*(?:import|from)\s+(xml|lxml|cairosvg|svglib|defusedxml|wand)\b", path.read_text(), re.M
        )
        assert not found, path
