"""What belongs to each user: a folder of their own with sessions, skills and downloads, and settings that point there.

A folder is called by the start of the user's id, for people, and by a hash of the whole of it, so that no id can name
another's folder or leave the place of all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
from pathlib import Path

from sandbox_chat.journal.files import EVENTS, PICTURES
from sandbox_chat.serve.asking import is_file, is_session
from sandbox_chat.settings import ConfigError, Settings

PLACE = "users"
"""Folder in the data folder that holds those of the users."""
FILE_LIMIT = 64_000_000
"""Bytes of the largest file that is given out; pictures and pages are kept only when they are smaller."""
_REMOVED = "removed"
_SHARED = {"cache": "cache", "mcp/servers": "mcp/servers"}
"""What a user's folder has from the program's by a link: caches of Python, installed MCP servers. Tasks do not write there."""
_READABLE = 16


def hash_of(user: str) -> str:
    """Return what stands for a user in the log: their id may be an address."""
    return hashlib.sha256(user.encode()).hexdigest()[:16]


def folder_name(user: str) -> str:
    """Return the name of a user's folder. Different ids have different ones, also where case does not count."""
    start = re.sub(r"[^a-z0-9-]", "_", user.lower()[:_READABLE])
    return f"{start}-{hash_of(user)}"


def check(settings: Settings) -> None:
    """Raise ``ConfigError`` for settings that would let users reach what is another's."""
    if settings.sandbox_workspace is not None:
        raise ConfigError(
            "sandbox_workspace is one folder for all, and users of serve do not share. Leave SANDBOX_CHAT_SANDBOX_WORKSPACE empty."
        )
    if settings.local_tools:
        raise ConfigError(
            "local_tools read the folder in which serve was started, for every user. Leave SANDBOX_CHAT_LOCAL_TOOLS empty."
        )


class Users:
    """The users' folders below the data folder of ``settings``. Blocking, but short."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._place = settings.data_path / PLACE

    def folder(self, user: str) -> Path:
        """Return the folder of a user, which may not be there yet."""
        return self._place / folder_name(user)

    def settings_of(self, user: str) -> Settings:
        """Return a user's settings, and make their folder. Raises ``OSError``."""
        folder = self.folder(user)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, origin in _SHARED.items():
            link, target = folder / name, self._shared(origin)
            if origin == "cache":
                target.mkdir(mode=0o700, parents=True, exist_ok=True)
            if target.is_dir() and not link.exists():
                link.parent.mkdir(mode=0o700, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    link.symlink_to(target)
        return dataclasses.replace(
            self._settings,
            data_dir=folder,
            downloads_dir=folder / "downloads",
            skills_dir=None,
            log=self._settings.log_path,
        )

    def scrub(self, text: str) -> str:
        """Return ``text`` without credentials."""
        return self._settings.scrub(text)

    def _shared(self, origin: str) -> Path:
        return self._settings.cache_path if origin == "cache" else self._settings.data_path / origin

    def has(self, user: str, session: str) -> bool:
        """True when the user has a session of that id which was not removed."""
        return self._there(self.folder(user), session)

    def owner_folder(self, session: str) -> Path | None:
        """Return the folder of the user whose session that is, whoever it may be; ``None`` when it is nobody's."""
        if not is_session(session):
            return None
        try:
            with os.scandir(self._place) as found:
                return next((Path(each) for each in found if self._there(Path(each), session)), None)
        except OSError:
            return None

    def remove(self, folder: Path, session: str) -> None:
        """Let a session of the user with that ``folder`` be no longer there for the server; its record is kept. Raises ``OSError``."""
        place = folder / _REMOVED
        place.mkdir(mode=0o700, exist_ok=True)
        (place / session).touch(mode=0o600)

    def read_file(self, user: str, session: str, name: str) -> bytes | None:
        """Return a picture or page of a session, of whichever user when none is named; ``None`` when it is not there."""
        folder = (
            (self.folder(user) if self.has(user, session) else None) if user else self.owner_folder(session)
        )
        if folder is None or not is_file(name):
            return None
        try:
            fd = os.open(
                folder / "sessions" / session / PICTURES / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            with os.fdopen(fd, "rb") as file:
                data = file.read(FILE_LIMIT + 1)
        except OSError:
            return None
        return data if len(data) <= FILE_LIMIT else None

    @staticmethod
    def _there(folder: Path, session: str) -> bool:
        if not is_session(session) or (folder / _REMOVED / session).exists():
            return False
        return (folder / "sessions" / session / EVENTS).is_file()
