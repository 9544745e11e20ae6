"""A picture in words, for where it is not drawn."""

from __future__ import annotations

import re
from pathlib import PurePath

from sandbox_chat.events import ImageContent
from sandbox_chat.text import clean_line
from sandbox_chat.words import tr

_DIGEST = re.compile(r"[0-9a-f]{32,}")
"""How the journal names a picture's file."""


def image_name(path: str) -> str:
    """Return the name of a picture's file; none where it is a digest, which says nothing to anybody."""
    file = PurePath(path)
    return "" if _DIGEST.fullmatch(file.stem) else file.name


def picture_text(image: ImageContent, name: str = "") -> str:
    """Return ``[picture: name, 1200×800, path]`` in one line; the path is where the file was saved."""
    size = f"{image.width}×{image.height}" if image.width and image.height else ""
    facts = [clean_line(name), size, clean_line(image.path, 1000)]
    return tr("pictures.alternative", facts=", ".join(fact for fact in facts if fact))
