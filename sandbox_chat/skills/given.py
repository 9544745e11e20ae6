"""The skills that code may have as files: those that are as the user promoted them, as they were checked."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from sandbox_chat.skills.skill import FILES, SkillError
from sandbox_chat.skills.store import MOST, PROMOTED, Store

log = logging.getLogger(__name__)

ALL_BYTES = 64_000_000
"""Bytes of all skills together that code gets as files; by import it can have the others too."""
Files = Mapping[str, bytes]
"""A skill's files by their paths in it."""
Mark = tuple[str, int, int, int]


class Given:
    """Gives a store's skills by name. Their files are read and checked again only when something in the folder has changed.

    What is given are the bytes that were checked, so a change that is not seen makes no difference. Blocking; one thread at
    a time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: tuple[Mark, ...] | None = None
        self._found: Mapping[str, Files] = {}

    def __call__(self) -> Mapping[str, Files]:
        """Return the files of each skill that is as it was promoted."""
        try:
            seen: tuple[Mark, ...] | None = tuple(_marks(self._store.folder))
        except OSError:
            seen = None
        if seen is None or seen != self._seen:
            self._found, self._seen = self._checked(), seen
        return self._found

    def _checked(self) -> Mapping[str, Files]:
        found: dict[str, Files] = {}
        room = ALL_BYTES
        for skill in self._store.skills():
            if skill.state != "ready":
                continue
            with contextlib.suppress(SkillError):  # it was changed in this moment
                files = self._store.promoted(skill.name)
                room -= sum(map(len, files.values()))
                if room < 0:
                    log.warning("skills from %s on are not given as files: they are too large", skill.name)
                    break
                found[skill.name] = files
        return found


def _marks(folder: Path) -> Iterator[Mark]:
    """What changes when a file of a skill or the list of promoted ones changes. Raises ``OSError``."""
    try:
        yield _mark(folder / PROMOTED)
    except FileNotFoundError:
        return  # nothing is promoted
    left = MOST * FILES
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in (*folders, *(sorted(names) if Path(top) != folder else ())):
            left -= 1
            if left < 0:
                raise OSError("too many files")
            yield _mark(Path(top, name))


def _mark(path: Path) -> Mark:
    facts = path.lstat()
    return str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns
