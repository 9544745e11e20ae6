"""The user's skills as files in the sandbox: a copy of what was checked, in a folder of ours, never the user's own folder.

Sandboxes on this machine see the copy read-only at ``/skills``. It is brought up to date before a run, in the same folder,
so that sandboxes that are up see it too. A cloud's sandbox gets a copy of its own (``packed``).
"""

from __future__ import annotations

import io
import logging
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from sandbox_chat.scratch import Scratch

log = logging.getLogger(__name__)

SKILLS = "/skills"
"""Where they are in the sandbox."""
Skills = Callable[[], Mapping[str, Mapping[str, bytes]]]
"""Gives the files of each skill that code may have, by its name and by their paths in it. Blocking."""
NOT_THERE = "The user's skills are not in {place}: {why}. They can still be imported (from skills import …)."
_FOLDER = "skills"


class SkillsFolder:
    """The copy on this machine, made when it is first wanted. Any thread."""

    def __init__(self, give: Skills) -> None:
        self._give = give
        self._lock = threading.Lock()
        self._scratch: Scratch | None = None
        self._have: dict[str, Mapping[str, bytes]] = {}
        self._closed = False

    def path(self) -> Path | None:
        """Return the folder with the copy, up to date; ``None`` when there can be none. Blocking."""
        self.refresh()
        with self._lock:
            return self._scratch.path / _FOLDER if self._scratch is not None else None

    def refresh(self) -> str:
        """Bring the copy up to date. Returns why that could not be done, as a sentence, or nothing. Blocking."""
        with self._lock:
            if self._closed:
                return ""
            try:
                if self._scratch is None:
                    self._scratch = _made()
                self._copy(self._scratch.path / _FOLDER, self._give())
            except OSError as error:
                log.warning("the copy of the skills could not be brought up to date: %s", error)
                return NOT_THERE.format(place=SKILLS, why=(error.strerror or str(error)).lower())
        return ""

    def packed(
        self, before: Mapping[str, Mapping[str, bytes]] | None
    ) -> tuple[Mapping[str, Mapping[str, bytes]], bytes]:
        """Return the skills' files and a tar of them, which is empty when they are those of ``before``. Blocking."""
        with self._lock:
            given = self._give()
        return given, b"" if given == before else packed(given)

    def close(self) -> None:
        """Remove the copy. Any number of times."""
        with self._lock:
            self._closed = True
            scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.remove()

    def _copy(self, folder: Path, given: Mapping[str, Mapping[str, bytes]]) -> None:
        for name in [name for name in self._have if name not in given]:
            self._take_out(folder, name)
        for name, files in given.items():
            if name in self._have and (self._have[name] is files or self._have[name] == files):
                continue
            made = Path(tempfile.mkdtemp(dir=folder.parent))
            try:
                made.chmod(0o755)
                for path, data in files.items():
                    _put(made, path, data)
                if name in self._have:
                    self._take_out(folder, name)
                made.rename(folder / name)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise
            self._have[name] = files

    def _take_out(self, folder: Path, name: str) -> None:
        """Out of sight at once, whatever it is that must be deleted."""
        away = Path(tempfile.mkdtemp(dir=folder.parent))
        (folder / name).rename(away / name)
        del self._have[name]
        shutil.rmtree(away, ignore_errors=True)


def packed(given: Mapping[str, Mapping[str, bytes]]) -> bytes:
    """Return a tar of skills: folders and plain files, which belong to root, and nothing else."""
    out = io.BytesIO()
    made: set[str] = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, files in given.items():
            for path, data in files.items():
                full = f"{name}/{path}"
                for parent in reversed(PurePosixPath(full).parents):
                    if str(parent) not in (".", *made):
                        made.add(str(parent))
                        folder = tarfile.TarInfo(str(parent))
                        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
                        tar.addfile(folder)
                info = tarfile.TarInfo(full)
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _made() -> Scratch:
    scratch = Scratch()
    try:
        folder = scratch.path / _FOLDER
        folder.mkdir()
        folder.chmod(
            0o755
        )  # the sandbox's user is another one, if this is root; its parent stays closed to others
    except BaseException:
        scratch.remove()
        raise
    return scratch


def _put(folder: Path, path: str, data: bytes) -> None:
    """Write a file that the sandbox's user can read. Nothing is there yet but what was made here."""
    target = folder / path
    for parent in reversed(target.relative_to(folder).parents[:-1]):
        place = folder / parent
        if not place.is_dir():
            place.mkdir()
            place.chmod(0o755)
    target.write_bytes(data)
    target.chmod(0o644)
