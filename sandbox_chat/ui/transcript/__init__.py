"""The transcript: events → blocks → rows of the screen, in one widget.

The names are loaded when they are asked for: ``ui.markdown`` needs ``cells`` alone, and ``feed`` needs ``ui.markdown``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .blocks import Action, Block
    from .feed import Feed
    from .scene import Scene
    from .view import TranscriptView

__all__ = ["Action", "Block", "Feed", "Scene", "TranscriptView"]

_PLACES = {"Action": "blocks", "Block": "blocks", "Feed": "feed", "Scene": "scene", "TranscriptView": "view"}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)
