"""The file tools: text read and written, binary files refused, pictures shown."""

from __future__ import annotations

import asyncio
import io
import os

import pytest
from PIL import Image
from support.pictures import picture
from support.toolbox import Tools

from sandbox_chat.events import ImageContent
from sandbox_chat.sandbox.base import FileEntry
from sandbox_chat.tools.context import ImageBlock
from sandbox_chat.tools.files import as_text, listing
from sandbox_chat.tools.schemas import LIST_LIMIT


async def test_write_and_read_back(tools: Tools) -> None:
    wrote = await tools.call("write_file", path="a/b.txt", content="grüß\n")
    assert wrote.text == "Wrote 7 bytes to /tmp/a/b.txt."
    assert (await tools.call("read_file", path="a/b.txt")).text == "grüß\n"


async def test_a_missing_file_is_the_calls_error_not_the_sandboxs(tools: Tools) -> None:
    outcome = await tools.call("read_file", path="no")
    assert outcome.is_error
    assert outcome.text.startswith("[error] ")
    assert "tool_error" not in outcome.text


async def test_an_empty_file_is_said(tools: Tools) -> None:
    await tools.call("write_file", path="e", content="")
    assert (await tools.call("read_file", path="e")).text == "e is empty."


async def test_long_text_is_cut_and_that_is_said(tools: Tools) -> None:
    await tools.call("write_file", path="long", content="HEAD" + "x" * 100_000 + "TAIL")
    text = (await tools.call("read_file", path="long")).text
    assert len(text) < 20_100
    assert text.startswith("HEAD") and text.endswith("TAIL")
    assert "cut out of 100,008" in text


@pytest.mark.parametrize(
    ("data", "kind", "advice"),
    [
        (picture(4, 4), "image/png", "read_image"),
        (picture(4, 4, "JPEG"), "image/jpeg", "read_image"),
        (b"\x1f\x8b\x08\0\0\0\0", "gzip", "download_file"),
        (b"SQLite format 3\0", "SQLite", "download_file"),
        (b"%PDF-1.7 text", "PDF", "download_file"),
        (b"a\0b", "unknown type", "download_file"),
        (bytes(range(256)) * 20, "unknown type", "download_file"),
    ],
)
async def test_binary_files_are_refused_with_type_size_and_advice(
    tools: Tools, data: bytes, kind: str, advice: str
) -> None:
    tools.sandbox.files["/tmp/f"] = data
    outcome = await tools.call("read_file", path="f")
    assert outcome.is_error
    for words in (kind, f"{len(data):,} bytes", advice):
        assert words in outcome.text


def test_texts_of_other_encodings() -> None:
    assert as_text("grüß".encode("utf-16")) == "grüß"
    assert as_text(b"\xef\xbb\xbfbom") == "bom"
    assert as_text("Straße, 5 km weit von hier".encode("latin-1")) == "Stra\ufffde, 5 km weit von hier"
    assert as_text(os.urandom(4000).replace(b"\0", b"\1")) is None
    assert as_text(b"") == ""


async def test_control_bytes_of_a_file_become_visible(tools: Tools) -> None:
    tools.sandbox.files["/tmp/f"] = b"plain text and \x1b[2J more of it"
    assert "␛[2J" in (await tools.call("read_file", path="f")).text


async def test_read_image_gives_the_picture_to_the_model_and_the_screen(tools: Tools) -> None:
    data = picture(30, 20)
    tools.sandbox.files["/tmp/p.png"] = data
    outcome = await tools.call("read_image", path="p.png")
    assert outcome.model[1] == ImageBlock(data, "image/png")
    assert isinstance(outcome.display[1], ImageContent)
    assert tools.pictures == [data]
    assert "30×20" in outcome.text


async def test_read_image_refuses_other_files(tools: Tools) -> None:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "GIF")
    tools.sandbox.files.update({"/tmp/g.png": out.getvalue(), "/tmp/t.png": b"text"})
    for name in ("g.png", "t.png"):
        outcome = await tools.call("read_image", path=name)
        assert outcome.is_error
        assert "PNG and JPEG" in outcome.text
    assert tools.pictures == []


async def test_read_image_keeps_the_limit_of_size(tools: Tools) -> None:
    tools.sandbox.files["/tmp/p.png"] = b"\x89PNG\r\n\x1a\n" + bytes(5_000_001)
    outcome = await tools.call("read_image", path="p.png")
    assert outcome.is_error
    assert outcome.text.startswith("[error]")


async def test_list_files(tools: Tools) -> None:
    tools.sandbox.files.update({"/tmp/b.csv": bytes(1234), "/tmp/a\x1b[2J.txt": b"x"})
    text = (await tools.call("list_files")).text
    assert text.splitlines() == ["/tmp:", "    1  a␛[2J.txt", "1,234  b.csv"]
    assert (await tools.call("list_files", path="/none")).text == "/none is empty."


def test_a_long_listing_is_cut_and_that_is_said() -> None:
    entries = [FileEntry(f"/tmp/{number:04}", False, number) for number in range(LIST_LIMIT + 1)]
    text = listing("/tmp", entries)
    assert len(text.splitlines()) == LIST_LIMIT + 2
    assert f"more than {LIST_LIMIT} entries" in text
    assert listing("/", [FileEntry("/b", False, 5), FileEntry("/a", True, 0)]).splitlines() == [
        "/:",
        "   a/",
        "5  b",
    ]


async def test_pictures_are_read_beside_the_loop(tools: Tools) -> None:
    tools.sandbox.files["/tmp/p.png"] = picture(1400, 1100, noise=True)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticker = asyncio.ensure_future(tick())
    outcome = await tools.call("read_image", path="p.png")
    ticker.cancel()
    assert not outcome.is_error
    assert ticks >= 3
