"""The terminal interface. ``run`` is all that the rest of the program needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox_chat.settings import Settings

__all__ = ["run"]


def run(settings: Settings, *, resume: str | None = None, opening: Mapping[str, bool] | None = None) -> int:
    """Run the chat in this terminal until the user leaves; returns the exit code.

    ``opening``: how the session ``resume`` is opened, ``fork`` (a copy of it) or ``read_only``.

    0 after an orderly end, 128 + the signal's number after a signal. Raises what the engine raises at
    its construction (``ConfigError``, ``SandboxUnavailable``, ``SessionError``: the message is a
    sentence), and the exception of a fault in the interface itself; both after the terminal was
    restored and the session closed. The caller has made sure that stdin,
    stdout and stderr are a terminal.
    """
    from sandbox_chat.ui.start import run_terminal

    return run_terminal(settings, resume=resume, opening=opening)
