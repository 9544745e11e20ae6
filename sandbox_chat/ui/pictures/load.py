"""Reading a picture from a file: checked, bounded, never ending the program."""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sandbox_chat.words import tr

if TYPE_CHECKING:
    from PIL.Image import Image

Window = tuple[float, float, float, float]
"""A part of a picture: left, top, right and bottom edge, each from 0 to 1."""

WHOLE: Window = (0.0, 0.0, 1.0, 1.0)

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""Formats that are decoded; others have decoders of less repute."""
MAX_BYTES = 200_000_000
"""Size of the largest file that is opened."""
LINE_PIXELS = 16
"""Pixels of the picture for one cell that thickening of lines can use; what is finer is made smaller before."""
_ORIENTATION = 0x0112
_SIDEWAYS = range(5, 9)
"""Values of the EXIF orientation that swap width and height."""


class PictureError(Exception):
    """A picture cannot be drawn. The message is a sentence that says why."""


def measure(path: str) -> tuple[int, int]:
    """Return width and height in pixels, as it is shown, from the picture's header. Raises ``PictureError``."""
    with _opened(path) as image:
        width, height = image.size
        return (height, width) if _sideways(image) else (width, height)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Image]:
    """Open a picture; whatever goes wrong with it inside becomes a ``PictureError``."""
    from PIL import Image

    try:
        # Without waiting: a named pipe without a writer would be waited for for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file, warnings.catch_warnings():
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise PictureError(tr("pictures.not_a_file"))
            if info.st_size == 0:
                raise PictureError(tr("pictures.empty"))
            if info.st_size > MAX_BYTES:
                raise PictureError(tr("pictures.too_large", size=f"{info.st_size / 1e6:.0f} MB"))
            warnings.simplefilter("ignore")
            with Image.open(file, formats=FORMATS) as image:
                yield image
    except PictureError:
        raise
    except FileNotFoundError:
        raise PictureError(tr("pictures.gone")) from None
    except PermissionError:
        raise PictureError(tr("pictures.not_allowed")) from None
    except IsADirectoryError:
        raise PictureError(tr("pictures.not_a_file")) from None
    except Image.DecompressionBombError:
        raise PictureError(tr("pictures.far_too_many_pixels")) from None
    except MemoryError:
        raise PictureError(tr("pictures.no_memory")) from None
    except Exception as error:
        # Decoders raise whatever they like on broken data: OSError, ValueError, SyntaxError, struct.error, …
        raise PictureError(tr("pictures.damaged", kind=type(error).__name__)) from None


def load(
    path: str,
    *,
    max_pixels: int,
    box: tuple[int, int],
    columns: int = 0,
    window: Window = WHOLE,
    ground: tuple[int, int, int] = (255, 255, 255),
) -> Image:
    """Return the picture at ``path``, or the part in ``window``, in RGB, scaled to exactly ``box`` pixels.

    ``columns`` tells that it is drawn in so many character cells: thin lines are then made thicker before
    scaling, because they would fade to nothing. Transparent parts become white: charts with transparent ground have
    dark text. A picture that lies on its side is turned; where it then does not fill the box, ``ground`` does. The
    header is read first, so that a picture of more than ``max_pixels`` is refused before it takes memory.
    Raises ``PictureError``.
    """
    from PIL import Image, ImageOps

    with _opened(path) as image:
        width, height = image.size
        if width * height > max_pixels:
            size = f"{width:,}×{height:,}"
            raise PictureError(tr("pictures.too_many_pixels", size=size, limit=f"{max_pixels:,}"))
        if width < 1 or height < 1:
            raise PictureError(tr("pictures.no_pixels"))
        sideways = _sideways(image)
        if window == WHOLE:
            image.draft("RGB", box)  # JPEG: decode at a smaller size if that suffices
        image.load()
        picture = image
        with contextlib.suppress(Exception):  # a broken orientation does not break the picture
            picture = ImageOps.exif_transpose(image)
        if window != WHOLE:
            picture = picture.crop(_pixels(window, picture.size))
        flat = _flat(_reduced(picture, max(box[0], columns * LINE_PIXELS), box[1]))
        if columns:
            flat = bold_lines(flat, columns)
        if sideways and _much_wider(flat.size, box):
            return ImageOps.pad(flat, box, Image.Resampling.LANCZOS, color=ground)
        return flat.resize(box, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _sideways(image: Image) -> bool:
    if "exif" not in image.info:  # asking for it would decode a PNG
        return False
    with contextlib.suppress(Exception):  # what stands in the file may be anything
        return image.getexif().get(_ORIENTATION) in _SIDEWAYS
    return False


def _much_wider(size: tuple[int, int], box: tuple[int, int]) -> bool:
    """True when a picture of ``size`` would be stretched by a fifth or more to fill ``box``."""
    ratio = size[0] * box[1] / (size[1] * box[0])
    return not 0.8 < ratio < 1.25


def _pixels(window: Window, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the pixels of a window, at least one each way."""
    left = min(max(round(window[0] * size[0]), 0), size[0] - 1)
    top = min(max(round(window[1] * size[1]), 0), size[1] - 1)
    right = min(max(round(window[2] * size[0]), left + 1), size[0])
    bottom = min(max(round(window[3] * size[1]), top + 1), size[1])
    return left, top, right, bottom


def _reduced(image: Image, width: int, height: int) -> Image:
    """Make a picture that is far larger than needed smaller at once: what follows takes several copies of it."""
    factors = (image.width // (2 * width), image.height // (2 * height))
    if max(factors) < 2 or image.mode not in ("L", "LA", "RGB", "RGBA", "CMYK"):
        return image
    info = image.info
    smaller = image.reduce((max(factors[0], 1), max(factors[1], 1)))
    smaller.info = info
    return smaller


def bold_lines(image: Image, columns: int) -> Image:
    """Thicken dark lines on a light ground, or light ones on a dark ground, by what scaling takes away.

    The picture will be drawn in ``columns`` character cells. Only charts are changed: pictures nearly all of whose
    pixels are of the ground's brightness.
    """
    from PIL import ImageChops

    radius = min(4, image.width // (4 * columns))
    if radius < 1:
        return image
    histogram = image.convert("L").resize((128, 128)).histogram()
    if sum(histogram[225:]) > sum(histogram) * 0.7:
        return _spread(image, radius, ImageChops.darker)
    if sum(histogram[:50]) > sum(histogram) * 0.7:
        return _spread(image, radius, ImageChops.lighter)
    return image


def _spread(image: Image, radius: int, choose: Callable[[Image, Image], Image]) -> Image:
    """Give each pixel what ``choose`` takes of all within ``radius`` rows and columns.

    Pillow's ``MinFilter`` and ``MaxFilter`` do the same twenty times more slowly, and hold the
    interpreter meanwhile, so that the interface stands still.
    """
    done = 0
    while done < radius:
        step = min(2 * done + 1, radius - done)
        for offset in ((step, 0), (-step, 0), (0, step), (0, -step)):
            moved = image.copy()
            moved.paste(image, offset)
            image = choose(image, moved)
        done += step
    return image


def _flat(image: Image) -> Image:
    from PIL import Image

    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        ground = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(ground, layer).convert("RGB")
    if image.mode in ("I", "I;16", "F"):  # scientific greys: more than 8 bits
        grey = image.convert("F")
        low, high = (value if isinstance(value, int | float) else 0 for value in grey.getextrema()[:2])
        factor = 255.0 / max(high - low, 1e-9)
        return grey.point(lambda value: value * factor - low * factor).convert("L").convert("RGB")
    return image.convert("RGB")
