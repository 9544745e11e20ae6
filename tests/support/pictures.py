"""Pictures for tests."""

from __future__ import annotations

import io
import random

from PIL import Image


def picture(width: int, height: int, form: str = "PNG", mode: str = "RGB", *, noise: bool = False) -> bytes:
    """The bytes of a picture file: black, or noise that compresses badly."""
    if noise:
        data = random.Random(1).randbytes(width * height * 3)
        image = Image.frombytes("RGB", (width, height), data).convert(mode)
    else:
        image = Image.new(mode, (width, height))
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()
