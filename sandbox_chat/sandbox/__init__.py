"""Where code runs. Knows nothing of the agent SDK and can be used alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_chat.sandbox.guest_link import LateSink
    from sandbox_chat.sandbox.worker import SandboxWorker
    from sandbox_chat.settings import Settings

__all__ = ["make_worker", "probe"]


def probe(settings: Settings) -> tuple[bool, str]:
    """Try for real whether the local sandbox works here; returns that and a sentence. Takes about a second."""
    from sandbox_chat.sandbox import local

    return local.probe(settings)


def make_worker(
    settings: Settings,
    on_state: Callable[[str, str], None] | None = None,
    *,
    on_late: LateSink | None = None,
) -> SandboxWorker | None:
    """Return the worker of the back end that the settings name, or ``None`` for ``off``. Starts nothing.

    ``on_late(run, stream, text)`` gets output that comes after its run had ended. Raises
    ``SandboxUnavailable`` with advice for a kind that this version or this machine does not have.
    """
    import sys

    from sandbox_chat.sandbox.base import SandboxUnavailable

    kind = settings.sandbox
    if kind == "off":
        return None
    ways = (
        "Use --sandbox off to chat without running code, or --sandbox unsafe-local to run it on this machine "
        "without any isolation."
    )
    if kind not in ("local", "unsafe-local"):
        raise SandboxUnavailable(
            f"The sandbox {kind!r} is not part of this version. Use --sandbox local (Linux). {ways}"
        )
    if kind == "local" and sys.platform != "linux":
        raise SandboxUnavailable(
            "The local sandbox needs Linux. On this system, later versions will use Docker or a cloud sandbox. "
            + ways
        )
    from sandbox_chat.sandbox import local, prepare, worker

    if kind == "unsafe-local":
        return worker.SandboxWorker(
            lambda: local.UnsafeLocal(settings, on_late=on_late), info=local.UNSAFE, on_state=on_state
        )
    preparer = prepare.Preparer(settings)
    return worker.SandboxWorker(
        lambda: local.LocalSandbox(settings, on_late=on_late, prepare=preparer.begin),
        info=local.LOCAL,
        on_state=on_state,
        on_close=preparer.close,
    )
