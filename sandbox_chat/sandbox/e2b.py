"""The e2b back end."""

from __future__ import annotations

from sandbox_chat.sandbox.base import BackEnd, SandboxUnavailable
from sandbox_chat.settings import Settings


def back_end(settings: Settings, session_id: str = "") -> BackEnd:
    """Return how the worker makes sandboxes of this kind. Starts nothing."""
    raise SandboxUnavailable("The sandbox 'e2b' is not part of this version. Use --sandbox local (Linux).")
