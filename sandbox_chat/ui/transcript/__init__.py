"""The transcript: events → blocks → rows of the screen, in one widget."""

from __future__ import annotations

from .blocks import Action, Block
from .feed import Feed
from .scene import Scene
from .view import TranscriptView

__all__ = ["Action", "Block", "Feed", "Scene", "TranscriptView"]
