"""Where code runs. Knows nothing of the agent SDK and can be used alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_chat.sandbox.base import BackEnd
    from sandbox_chat.sandbox.worker import SandboxWorker
    from sandbox_chat.settings import Settings

__all__ = ["make_worker", "probe"]


def probe(settings: Settings) -> tuple[bool, str]:
    """Try for real whether the local sandbox works here; returns that and a sentence. Takes about a second."""
    from sandbox_chat.sandbox import local

    return local.probe(settings)


def make_worker(
    settings: Settings, on_state: Callable[[str, str], None] | None = None, *, session_id: str = ""
) -> SandboxWorker | None:
    """Return the worker of the back end that the settings name, or ``None`` for ``off``. Starts nothing.

    ``session_id`` marks what is made in a cloud or in Docker, so that it can be found again. Raises
    ``SandboxUnavailable`` with advice for a kind that this machine or these settings cannot have.
    """
    back_end = _back_end(settings, session_id)
    if back_end is None:
        return None
    from sandbox_chat.sandbox.worker import SandboxWorker

    return SandboxWorker(
        back_end.factory,
        info=back_end.info,
        on_state=on_state,
        on_close=back_end.on_close,
        warm=back_end.warm,
    )


def _back_end(settings: Settings, session_id: str) -> BackEnd | None:
    if settings.sandbox == "off":
        return None
    if settings.sandbox == "e2b":
        from sandbox_chat.sandbox import e2b

        return e2b.back_end(settings, session_id)
    if settings.sandbox == "docker":
        from sandbox_chat.sandbox import docker

        return docker.back_end(settings, session_id)
    from sandbox_chat.sandbox import local

    return local.back_end(settings, session_id)
