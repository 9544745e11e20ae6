"""Crash reports: what a fault of this program leaves behind for those who mend it. They hold no content.

A report names versions, the terminal, the settings that were changed (not their values), where in the code it
happened, and which kinds of events came before. Messages of exceptions are left out: they may quote a prompt,
code, or a credential.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import logging
import os
import re
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox_chat import __version__
from sandbox_chat.settings import ConfigError, Settings, fields

PACKAGES = ("textual", "rich", "claude-agent-sdk", "mcp", "e2b-code-interpreter", "pillow", "ipython")
"""Packages whose versions are reported."""
RECENT = 200
"""Events of which a report tells at least."""
FRAMES = 60
"""Frames of a traceback that are kept, from its end."""
CHAIN = 5
"""Exceptions of a chain of causes that are reported."""
MOST = 5
"""Reports that one run of the program writes at most: a fault that comes again and again is one."""
_NAME = re.compile(r"[\w<>.-]{1,200}")
_TERMINAL = re.compile(r"[A-Za-z0-9_.+-]{1,60}")
_REPORT = "crash-*.txt"


class Recent:
    """The kinds of the last events with their numbers; a run of the same kind is one entry. Any thread."""

    def __init__(self) -> None:
        self._runs: deque[list[Any]] = deque(maxlen=RECENT)
        self._lock = threading.Lock()

    def add(self, kind: str, seq: int) -> None:
        """Note an event."""
        with self._lock:
            if self._runs and self._runs[-1][0] == kind:
                self._runs[-1][2] = seq
            else:
                self._runs.append([kind, seq, seq])

    def lines(self) -> list[str]:
        """Return a line for each entry, the newest last."""
        with self._lock:
            runs = [tuple(run) for run in self._runs]
        return [
            f"{first}-{last} {kind}" if last != first else f"{first} {kind}" for kind, first, last in runs
        ]

    def clear(self) -> None:
        """Forget them."""
        with self._lock:
            self._runs.clear()


recent = Recent()
"""What happened in this program; ``logs.note`` fills it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """A report that was written: the name of the exception's type, and where it is (``None``: it could not be written)."""

    kind: str
    path: Path | None


_written: list[Report] = []
_seen: set[tuple[str, str]] = set()
_lock = threading.Lock()


class Handler(logging.Handler):
    """Writes a report for each fault of ours that is logged as an error with its exception."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(logging.ERROR)
        self._settings = settings

    def emit(self, record: logging.LogRecord) -> None:
        """Write the report, unless the same fault has left one already."""
        if record.exc_info and record.exc_info[1] is not None:
            with contextlib.suppress(Exception):  # the fault itself must not become a worse one
                report(record.exc_info[1], self._settings, thread=record.threadName or "")


def report(
    error: BaseException, settings: Settings | None, *, thread: str = "", last: bool = False
) -> Report | None:
    """Write a report about ``error`` and return it; ``None`` if the same fault has one, or there are enough.

    ``last``: the program ends with it, so it gets one however many there are.

    The file is private, in the data folder, or in the folder for temporary files when that cannot be written.
    """
    first = _wrapped(error) or error
    frames = _frames(first)
    mark = (type(first).__name__, frames[-1] if frames else "")
    with _lock:
        if mark in _seen or (len(_seen) >= MOST and not last):
            return None
        _seen.add(mark)
    text = "\n".join([*_lines(error, settings, thread), ""])
    done = Report(name_of(error), _write(text if settings is None else settings.scrub(text), settings))
    with _lock:
        _written.append(done)
    return done


def take_written() -> list[Report]:
    """Return the reports that were written since this was last asked; then the same faults may leave others."""
    with _lock:
        done, _written[:] = list(_written), []
        _seen.clear()
    return done


def name_of(error: BaseException) -> str:
    """Return the name of an exception's type; of one that carries another that of the other."""
    return _type_name(_wrapped(error) or error)


def outline(error: BaseException) -> dict[str, Any]:
    """Return the type of an exception and the frames of its traceback, without its message."""
    return {"type": _type_name(error), "frames": _frames(error)[-8:]}


def _lines(error: BaseException, settings: Settings | None, thread: str) -> Iterator[str]:
    import platform
    import shutil

    yield f"sandbox-chat {__version__}, Python {sys.version.split()[0]}, {platform.platform()}"
    yield f"time: {datetime.now(UTC).isoformat(timespec='seconds')}"
    yield f"packages: {', '.join(f'{name} {version}' for name, version in _versions())}"
    size = shutil.get_terminal_size((0, 0))
    names = [os.environ.get(name, "") for name in ("TERM", "TERM_PROGRAM", "COLORTERM")]
    known = " ".join(name for name in names if _TERMINAL.fullmatch(name))
    yield f"terminal: {known or 'unknown'}, {size.columns} columns, {size.lines} rows"
    if settings is not None:
        yield f"settings that were changed: {', '.join(_changed(settings)) or 'none'}"
    if _TERMINAL.fullmatch(thread):
        yield f"thread: {thread}"
    seen: set[int] = set()
    cause: BaseException | None = error
    for number in range(CHAIN):
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        yield ""
        yield f"{'because of ' if number else ''}{_type_name(cause)}{_number(cause)}"
        yield from (f"  {frame}" for frame in _frames(cause))
        cause = (
            _wrapped(cause) or cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        )
    yield ""
    yield "last events:"
    yield from (f"  {line}" for line in recent.lines())


def _versions() -> Iterator[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            yield name, version(name)


def _changed(settings: Settings) -> list[str]:
    return [item.name for item in fields() if getattr(settings, item.name) != item.default]


def _type_name(error: BaseException) -> str:
    name = type(error).__name__
    return name if _NAME.fullmatch(name) else "Exception"


def _wrapped(error: BaseException) -> BaseException | None:
    """The exception that another one carries, as that of a failed worker of the interface does."""
    found = getattr(error, "error", None)
    return found if isinstance(found, BaseException) else None


def _number(error: BaseException) -> str:
    """The system's name of an error: no file is named in it."""
    number = error.errno if isinstance(error, OSError) else None
    name = errno.errorcode.get(number) if number is not None else None
    return f" ({name})" if name else ""


def _frames(error: BaseException) -> list[str]:
    """Where an exception came through: file, line and function, the innermost last. The file within its package."""
    found: deque[str] = deque(maxlen=FRAMES)
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        name = code.co_name if _NAME.fullmatch(code.co_name) else "?"
        found.append(f"{_short(code.co_filename)}:{step.tb_lineno} in {name}")
        step = step.tb_next
    return list(found)


def _short(path: str) -> str:
    """Return the path of a file of code without where it is installed; only its name when that is not known."""
    inside = max((root for root in sys.path if root and path.startswith(root + os.sep)), key=len, default="")
    if not inside:
        return Path(path).name
    return path[len(inside) + 1 :]


def _write(text: str, settings: Settings | None) -> Path | None:
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for folder, prefix in _folders(settings):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd, name = tempfile.mkstemp(prefix=f"{prefix}crash-{now}-", suffix=".txt", dir=folder)
            with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        if settings is not None and not prefix:
            _remove_old(folder, settings.crash_reports)
        return Path(name)
    return None


def _remove_old(folder: Path, keep: int) -> None:
    with contextlib.suppress(OSError):
        for old in sorted(folder.glob(_REPORT))[:-keep]:
            old.unlink()


def _folders(settings: Settings | None) -> list[tuple[Path, str]]:
    """Where a report may be, with what its name begins with there."""
    temporary = (Path(tempfile.gettempdir()), "sandbox-chat-")
    try:
        return [temporary] if settings is None else [(settings.data_path / "crashes", ""), temporary]
    except ConfigError:  # there is no home folder
        return [temporary]
