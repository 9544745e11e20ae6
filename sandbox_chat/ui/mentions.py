"""Files of the working folder that can be mentioned with ``@``: the walk over the tree, and what fits to typed characters."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from heapq import nsmallest

from sandbox_chat.text import clean_line

SKIPPED = frozenset(
    {
        "__pycache__",
        "node_modules",
        "venv",
        "env",
        "site-packages",
        "dist",
        "build",
        "target",
        "htmlcov",
        "bower_components",
    }
)
"""Folders whose files are made by programs; hidden folders and those that ``.gitignore`` names are skipped as well."""

_IGNORE_BYTES = 65_536
_SLICE = 500
"""Files that are looked at before others get a turn at the processor."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its path under the folder, the same cleaned for people, that again to be compared, and its bytes."""

    path: str
    shown: str
    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of a folder, nearest first. ``whole`` is false when a limit ended the walk."""

    root: str
    files: tuple[FoundFile, ...]
    whole: bool


def walk(root: str, *, entries: int, depth: int, seconds: float) -> Tree:
    """Return the files under ``root``, level by level. Blocking; never raises.

    Ends after ``entries`` names, ``depth`` levels or ``seconds``. Hidden and ignored names are left out, links
    to folders are not followed.
    """
    end = time.monotonic() + seconds
    ignored = _ignored(root)
    found: list[FoundFile] = []
    waiting: deque[tuple[str, int]] = deque([("", 1)])
    seen, whole = 0, True
    while waiting:
        folder, level = waiting.popleft()
        for entry in _list(os.path.join(root, folder) if folder else root):  # noqa: PTH118 - a name may be no text
            seen += 1
            if seen > entries or time.monotonic() > end:
                return Tree(root, tuple(found), whole=False)
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or ignored(entry.name, path):
                continue
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name in SKIPPED or _is_environment(entry.path):
                        continue
                    if level < depth:
                        waiting.append((path, level + 1))
                    else:
                        whole = False
                    continue
                info = entry.stat()
                if stat.S_ISREG(info.st_mode):
                    shown = clean_line(path, 4096)
                    found.append(FoundFile(path, shown, shown.casefold(), info.st_size))
    return Tree(root, tuple(found), whole)


def _list(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))  # noqa: PTH110, PTH118 - many times


def _ignored(root: str) -> Callable[[str, str], bool]:
    """Return what tells whether the root's ``.gitignore`` names a file or folder; its plain patterns are understood."""
    try:
        with open(os.path.join(root, ".gitignore"), "rb") as file:  # noqa: PTH118, PTH123
            lines = file.read(_IGNORE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return lambda name, path: False
    names: list[str] = []
    paths: list[str] = []
    for line in lines:
        pattern = line.strip()
        if not pattern or pattern[0] in "#!":
            continue
        pattern = pattern.rstrip("/")
        if "/" in pattern:
            paths.append(translate(pattern.lstrip("/").removeprefix("**/")))
        elif pattern:
            names.append(translate(pattern))
    name_re = re.compile("|".join(names)) if names else None
    path_re = re.compile("|".join(paths)) if paths else None

    def ignored(name: str, path: str) -> bool:
        return bool((name_re and name_re.match(name)) or (path_re and path_re.match(path)))

    return ignored


def fitting(
    query: str, files: Sequence[FoundFile], limit: int = 50, stopped: Callable[[], bool] = lambda: False
) -> list[FoundFile]:
    """Return the files that fit to ``query``, best first: by the name's beginning, its inside, the path, then letters in order.

    May run on a thread: others get their turn in between, and it ends early once ``stopped`` says so.
    """
    wanted = query.casefold()
    if not wanted:
        return list(files[:limit])
    scored: list[tuple[int, int, int]] = []
    for number, file in enumerate(files):
        if number % _SLICE == _SLICE - 1:
            time.sleep(0)
            if stopped():
                return []
        key = file.key
        place = key.find(wanted)
        if place >= 0:
            name = key[key.rfind("/") + 1 :]
            score = 0 if name.startswith(wanted) else 1 if wanted in name else 2
        elif _in_order(wanted, key):
            score = 3
        else:
            continue
        scored.append((score, len(key), number))
    return [files[number] for _, _, number in nsmallest(limit, scored)]


def _in_order(letters: str, key: str) -> bool:
    """True when ``key`` holds all ``letters``, one after the other. Takes a time that grows with the length of ``key`` alone."""
    place = 0
    for letter in letters:
        place = key.find(letter, place) + 1
        if not place:
            return False
    return True
