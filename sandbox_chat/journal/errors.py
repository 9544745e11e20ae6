"""What can be wrong with a session that somebody asks for. Every message is a sentence for the user."""

from __future__ import annotations

from collections.abc import Sequence


class SessionError(Exception):
    """A session cannot be used."""


class SessionNotFound(SessionError):
    """There is no such session, or more than one fits."""


class SessionAmbiguous(SessionNotFound):
    """More than one session fits to the beginning of an id. ``fits`` are some of them, by enough of their ids."""

    def __init__(self, message: str, fits: Sequence[str]) -> None:
        super().__init__(message)
        self.fits = tuple(fits)


class SessionInUse(SessionError):
    """Another running program writes to this session."""
