"""The append-only record of sessions: one folder a session, with ``events.jsonl``, ``meta.json`` and ``pictures/``."""

from sandbox_chat.journal.errors import SessionError, SessionInUse, SessionNotFound
from sandbox_chat.journal.index import SessionSummary, list_sessions, resolve
from sandbox_chat.journal.record import Journal

__all__ = [
    "Journal",
    "SessionError",
    "SessionInUse",
    "SessionNotFound",
    "SessionSummary",
    "list_sessions",
    "resolve",
]
