"""The agent's own record of a conversation, copied for a branch of the session.

The SDK does the copying (it gives every message another id); here it reads and writes the CLI's files of our own
folder, and the copy gets the id of our new session. Each message of a copy keeps the ids that it had where it comes from,
by which the turns of our record still name it: so a branch can be branched before its own first turn. Imports the SDK: import this module where it is used.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import SessionKey, SessionStore, SessionStoreEntry, fork_session_via_store

log = logging.getLogger(__name__)

EARLIER = "sandboxChatEarlierIds"
"""Our field of a copied message: the ids that it had before, the first one first."""


async def branch_record(config: Path, agent_id: str, new_id: str, anchor: str) -> bool:
    """Copy the agent's record ``agent_id`` to ``new_id``, up to the message ``anchor`` (all of it when that is empty).

    ``config`` is the CLI's configuration folder. Returns false when there is no record, or no such message in it: the
    agent will not know then what was said. Reads and writes whole files: not for the terminal's loop. Raises ``OSError``.
    """
    path = record_path(config, agent_id)
    if path is None:
        return False
    files = _Files(path, new_id)
    try:
        await fork_session_via_store(
            cast("SessionStore", files),
            agent_id,
            str(path.parent),
            up_to_message_id=files.present_id(anchor) or None,
        )
    except (ValueError, FileNotFoundError) as error:
        log.warning("the agent's record is not copied: %s", type(error).__name__)
        return False
    return True


def record_path(config: Path, agent_id: str) -> Path | None:
    """Return the CLI's file of a conversation, ``None`` if there is none. Blocking."""
    found = [path for path in (config / "projects").glob(f"*/{agent_id}.jsonl") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


class _Files:
    """What the SDK asks of a store: it reads the file ``source``, and writes one named ``new_id`` beside it."""

    def __init__(self, source: Path, new_id: str) -> None:
        self._source = source
        self._new_id = new_id

    def present_id(self, anchor: str) -> str:
        """Return the id that a message has in this record, which it may be known by an earlier one of."""
        if not anchor:
            return ""
        return next((str(entry.get("uuid")) for entry in self._entries() if anchor in _ids(entry)), anchor)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        del key
        return cast("list[SessionStoreEntry]", self._entries())

    def _entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        with self._source.open("rb") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # cut by a crash
                if isinstance(entry, dict):
                    entries.append(entry)
        return entries

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        del key
        target = self._source.with_name(f"{self._new_id}.jsonl")
        part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as out:
                for entry in entries:
                    copied = {**entry, "sessionId": self._new_id}
                    if known := [name for name in _ids(copied) if name != copied.get("uuid")]:
                        copied[EARLIER] = known
                    out.write(json.dumps(copied, separators=(",", ":")) + "\n")
                out.flush()
                os.fsync(out.fileno())
            part.replace(target)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def _ids(entry: Mapping[str, Any]) -> list[str]:
    """Return all ids that a message has or had, its present one last."""
    known, origin = entry.get(EARLIER), entry.get("forkedFrom")
    last = origin.get("messageUuid") if isinstance(origin, Mapping) else None
    found = [*(known if isinstance(known, list) else ()), last, entry.get("uuid")]
    return list(dict.fromkeys(name for name in found if isinstance(name, str) and name))
