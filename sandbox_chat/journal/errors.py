"""What can be wrong with a session that somebody asks for. Every message is a sentence for the user."""

from __future__ import annotations


class SessionError(Exception):
    """A session cannot be used."""


class SessionNotFound(SessionError):
    """There is no such session, or more than one fits."""


class SessionInUse(SessionError):
    """Another running program writes to this session."""
