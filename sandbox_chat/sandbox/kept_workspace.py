"""What is in ``/workspace``, kept in the session's folder and brought back, where the user asks for that.

Only plain files are kept, under names that are checked here, with nothing but their content: what the sandbox says is
believed in nothing. No link is followed or made, nothing is executable, and all of it is bounded.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox_chat.sandbox.base import FileEntry, Sandbox, SandboxError, SandboxFileError
from sandbox_chat.sandbox.bwrap import WORKSPACE
from sandbox_chat.text import bound, clean_line

log = logging.getLogger(__name__)

FOLDER = "workspace"
"""Its name in the session's folder."""
MOST_FILES = 2000
"""Files that are kept."""
DEEPEST = 32
"""Folders within folders."""
_OLD = FOLDER + ".old"
_NEW = ".workspace-"
_NAME, _PATH = 255, 1000  # bytes
_TOLD = 500
LEFT_OUT = "Not everything in /workspace is kept with the session ({limit:,} MB in {files:,} files at most, no links): {names}."
NOT_KEPT = "What is in /workspace could not be kept with the session ({why}).{before}"
BEFORE = " What was kept before is still there: {folder}."
NOT_BROUGHT = (
    "What was kept of /workspace could not be brought back whole ({names}). It is left as it is, in {folder}, and nothing new is "
    "kept in this run."
)
Row = tuple[str, int, int]


class KeptWorkspace:
    """Keeps one session's workspace in ``folder``. Blocking; the thread that drives the sandbox calls it."""

    def __init__(self, folder: Path, megabytes: int, tell: Callable[[str], None]) -> None:
        """``tell`` takes what the user has to know, a sentence each. Nothing is read or made yet."""
        self.folder = folder / FOLDER
        self._limit = megabytes * 1_000_000
        self._megabytes = megabytes
        self._tell = tell
        self._last: list[Row] | None = None
        self._hold = False

    def bring(self, sandbox: Sandbox) -> None:
        """Put what is kept into a sandbox that is new. Raises ``SandboxError`` when that is lost meanwhile."""
        failed: list[str] = []
        old = self.folder.with_name(_OLD)
        if not self.folder.exists() and old.is_dir():  # the program ended between two steps of keeping
            with contextlib.suppress(OSError):
                old.rename(self.folder)
        for name, path in _kept(self.folder):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(handle, "rb") as file:
                    sandbox.upload(file, os.fstat(handle).st_size, f"{WORKSPACE}/{name}")
            except (OSError, SandboxFileError) as problem:
                log.warning("%s of the workspace was not brought back: %s", name, problem)
                failed.append(name)
        self._last = None
        if failed:
            self._hold = True
            self._tell(NOT_BROUGHT.format(names=_names(failed), folder=self.folder))

    def save(self, sandbox: Sandbox, stopped: Callable[[], bool] = lambda: False) -> None:
        """Keep what is there now in the place of what was kept; all of it or, when it is ``stopped``, nothing.

        Raises ``SandboxError`` when the sandbox is lost.
        """
        if self._hold:
            return
        try:
            left: list[str] = []
            rows = list(_listed(sandbox, left))
            if rows == self._last or (not rows and not left and not self.folder.exists()):
                return
            new = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.folder.parent))
            try:
                self._fetch(sandbox, rows, new, left, stopped)
                self._replace(new)
            finally:
                shutil.rmtree(new, ignore_errors=True)
            self._last = rows
            if left:
                self._tell(LEFT_OUT.format(limit=self._megabytes, files=MOST_FILES, names=_names(left)))
        except (OSError, SandboxError) as problem:
            why = (problem.strerror if isinstance(problem, OSError) else "") or str(problem)
            before = BEFORE.format(folder=self.folder) if self.folder.exists() else ""
            self._tell(NOT_KEPT.format(why=clean_line(why, 300).rstrip("."), before=before))
            if isinstance(problem, SandboxError) and not isinstance(problem, SandboxFileError):
                raise

    def _fetch(
        self,
        sandbox: Sandbox,
        rows: list[Row],
        target: Path,
        left: list[str],
        stopped: Callable[[], bool],
    ) -> None:
        room = self._limit
        for name, size, _changed in rows:
            if stopped():
                raise SandboxFileError("there was no time for it")
            place = target / name
            if size > room:
                left.append(name)
                continue
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    room -= sandbox.download(f"{WORKSPACE}/{name}", file, max_bytes=room)
            except SandboxFileError as problem:  # it is gone, has grown, or is no plain file
                if stopped():
                    raise
                log.info("%s of the workspace was not kept: %s", name, problem)
                place.unlink()
                left.append(name)

    def _replace(self, new: Path) -> None:
        old = self.folder.with_name(_OLD)
        shutil.rmtree(old, ignore_errors=True)
        if self.folder.exists():
            self.folder.rename(old)
        new.rename(self.folder)
        shutil.rmtree(old, ignore_errors=True)


def _listed(sandbox: Sandbox, left: list[str]) -> Iterator[Row]:
    """The plain files in the workspace, by path; what cannot be kept is added to ``left``."""
    folders = [""]
    count = 0
    while folders:
        folder = folders.pop()
        for entry in sandbox.list_files(f"{WORKSPACE}/{folder}".rstrip("/"), limit=MOST_FILES + 1):
            name = entry.path.rpartition("/")[2]
            path = f"{folder}/{name}" if folder else name
            count += 1
            if count > MOST_FILES or not _good(entry, name, path):
                left.append(path)
                if count > MOST_FILES:
                    return
            elif not entry.is_dir:
                yield path, entry.size, entry.changed
            elif path.count("/") < DEEPEST:
                folders.append(path)
            else:
                left.append(path)


def _good(entry: FileEntry, name: str, path: str) -> bool:
    """Whether a file or folder may be kept under its name."""
    try:
        fits = len(os.fsencode(name)) <= _NAME and len(os.fsencode(path)) <= _PATH
    except UnicodeEncodeError:
        return False
    return fits and not entry.is_link and name not in ("", ".", "..") and "\0" not in name


def _kept(folder: Path) -> Iterator[tuple[str, Path]]:
    """The plain files that are kept, with their paths in the workspace."""
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(top, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path.relative_to(folder).as_posix(), path


def _names(names: list[str]) -> str:
    shown = ", ".join(clean_line(name, 80) for name in names[:10])
    return bound(f"{shown} and {len(names) - 10:,} more" if len(names) > 10 else shown, _TOLD)
