"""Pictures: what a file is by its first bytes, its size without decoding it, and a copy small enough for the model."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox_chat.events import ImageContent
from sandbox_chat.tools.context import ImageBlock

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

JPEG_QUALITY = 88
"""Charts and photographs look the same as before at this quality."""
PLAIN_BYTES = 1_500_000
"""A PNG above this size is given to the model as a JPEG: noise and photographs compress badly as PNG."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "GIF picture"),
    (b"GIF89a", "GIF picture"),
    (b"BM", "BMP picture"),
    (b"II*\x00", "TIFF picture"),
    (b"MM\x00*", "TIFF picture"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (also xlsx, docx, npz)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x93NUMPY", "NumPy array"),
    (b"PAR1", "Parquet file"),
    (b"\x80\x04\x95", "Python pickle"),
    (b"\x80\x05\x95", "Python pickle"),
    (b"OggS", "Ogg sound or video"),
    (b"ID3", "MP3 sound"),
    (b"fLaC", "FLAC sound"),
)

# Markers of a JPEG's frame header, which holds its size (C4, C8 and CC mean something else).
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


PNG_CHUNKS = 1000
"""Parts of a PNG before its pixels at most; a usual one has a few."""
JPEG_SCANS = 100
"""Passes over a JPEG's pixels at most: a progressive one has about ten, and each may take a second."""
_SCAN = b"\xff\xda"  # cannot occur in a JPEG's pixels, and hardly elsewhere


class ImageError(Exception):
    """The picture cannot be used. The message says why and what to do, for the model."""


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """A picture by its header: type, width and height in pixels."""

    mime: str
    width: int
    height: int


def file_type(data: bytes) -> str:
    """Name the type of a file by its first bytes: a MIME type for PNG and JPEG, words for others, "" if unknown."""
    if data[:4] == b"RIFF" and len(data) >= 12:
        return {b"WEBP": "WebP picture", b"WAVE": "WAV sound"}.get(data[8:12], "RIFF file")
    if data[4:8] == b"ftyp":
        return "MP4 or HEIF file"
    if data[:2] == b"\x80\x02" or data[:2] == b"\x80\x03":
        return "Python pickle"
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    return ""


def probe(data: bytes) -> ImageInfo:
    """Return type and size of a PNG or JPEG from its header, without decoding. Raises ``ImageError``.

    A file that gives its size twice is refused: what one reader takes for small may be huge for the next.
    So is one that would be drawn over and over again.
    """
    kind = file_type(data)
    try:
        if kind == "image/png":
            width, height = _png_size(data)
        elif kind == "image/jpeg":
            width, height = _jpeg_size(data)
        else:
            raise ImageError(f"It is not a PNG or JPEG file but {kind or 'of an unknown type'}.")
    except (struct.error, IndexError):
        raise ImageError("The picture is damaged: its header is cut.") from None
    if width < 1 or height < 1:
        raise ImageError("The picture is damaged: it has no width or height.")
    return ImageInfo(kind, width, height)


def _png_size(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        raise ImageError("The PNG file is damaged: it has no header.")
    width, height = struct.unpack(">II", data[16:24])
    at = 8
    for number in range(PNG_CHUNKS):
        if at + 8 > len(data):
            break  # cut before its pixels: the decoder says so
        length, name = struct.unpack(">I4s", data[at : at + 8])
        if name == b"IHDR" and (number or length != 13):
            raise ImageError("The PNG file is damaged: it has two headers.")
        if name in (b"IDAT", b"IEND"):
            break
        at += 12 + length
    else:
        raise ImageError(f"The PNG file has more than {PNG_CHUNKS:,} parts before its pixels. Save it anew.")
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    if data.count(_SCAN) > JPEG_SCANS:
        raise ImageError(f"The JPEG file has more than {JPEG_SCANS} passes over its pixels. Save it anew.")
    size: tuple[int, int] | None = None
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            break
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xD0 <= marker <= 0xD8 or marker == 0x01:
            at += 2
            continue
        if marker in _JPEG_FRAMES:
            if size is not None:
                raise ImageError("The JPEG file is damaged: it has two frame headers.")
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            size = width, height
        if marker == _SCAN[1]:
            break
        at += 2 + int(struct.unpack(">H", data[at + 2 : at + 4])[0])
    if size is None:
        raise ImageError("The JPEG file is damaged: no frame was found in it.")
    return size


def picture_saver(
    save: Callable[[bytes, str, int, int], ImageContent],
) -> Callable[[bytes, str], ImageContent]:
    """Return a function that finds a picture's type and size by its header and saves it with ``save``."""

    def saver(data: bytes, mime: str) -> ImageContent:
        info = probe(data)
        return save(data, info.mime, info.width, info.height)

    return saver


def for_model(data: bytes, *, side: int, max_bytes: int, max_pixels: int) -> ImageBlock:
    """Return the picture as the model gets it: at most ``side`` pixels long and ``max_bytes`` large.

    A picture that fits is passed on as it is, once it has been decoded to be sure that it can be.
    Raises ``ImageError`` for one with more than ``max_pixels`` (told by the header, before decoding),
    or one that cannot be decoded. Takes up to seconds: call it off the loop.
    """
    info = probe(data)
    if info.width * info.height > max_pixels:
        raise ImageError(
            f"The picture is {info.width:,}×{info.height:,} pixels, more than the {max_pixels:,} that are decoded. "
            "Save it smaller (a lower dpi or figsize)."
        )
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as source:
            if source.size != (info.width, info.height):  # before its pixels take any memory
                raise ImageError("The picture is damaged: it says two different sizes.")
            source.load()
            plain = len(data) <= min(PLAIN_BYTES, max_bytes)
            if plain and max(source.size) <= side:
                return ImageBlock(data, info.mime)
            image = _scaled(source, side)
    except (OSError, SyntaxError, ValueError, UnidentifiedImageError) as error:
        raise ImageError(
            f"The picture cannot be decoded ({type(error).__name__}); it may be damaged."
        ) from None
    except (Image.DecompressionBombError, MemoryError):
        raise ImageError("The picture has far too many pixels to be decoded. Save it smaller.") from None
    if info.mime == "image/png":
        encoded = _encode(image, "PNG")
        if len(encoded) <= min(PLAIN_BYTES, max_bytes):
            return ImageBlock(encoded, "image/png")
    encoded = _encode(image, "JPEG")
    while len(encoded) > max_bytes and max(image.size) > 64:
        image = _scaled(image, max(image.size) * 3 // 4)
        encoded = _encode(image, "JPEG")
    return ImageBlock(encoded, "image/jpeg")


def _scaled(image: PilImage, side: int) -> PilImage:
    from PIL import Image

    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        keeps_alpha = "transparency" in image.info or image.mode in ("PA", "La", "RGBa")
        image = image.convert("RGBA" if keeps_alpha else "RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def _encode(image: PilImage, form: str) -> bytes:
    from PIL import Image

    if form == "JPEG" and image.mode in ("LA", "RGBA"):  # JPEG knows no transparency: put it on white
        alpha = image.convert("RGBA")
        image = Image.new("RGB", image.size, "white")
        image.paste(alpha, mask=alpha.getchannel("A"))
    buffer = io.BytesIO()
    if form == "JPEG":
        image.save(buffer, "JPEG", quality=JPEG_QUALITY)
    else:
        image.save(buffer, "PNG", optimize=False)
    return buffer.getvalue()
