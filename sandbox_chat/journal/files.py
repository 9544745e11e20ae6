"""The files of a session: where they lie, how they are written, how damaged ones are read.

``events.jsonl`` holds one event a line. A program that was killed, or a machine that lost power, may
leave a line that is cut or a run of NUL bytes; such lines are skipped when reading and never stop it.
All folders are made with mode 0700 and all files with 0600: a session is private.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sandbox_chat import event_json, events
from sandbox_chat.events import (
    Event,
    FileContent,
    ImageContent,
    NestedFinished,
    TextContent,
    ToolFinished,
    ToolOutput,
)
from sandbox_chat.journal.brief import brief_lines
from sandbox_chat.journal.lines import LONGEST, Damage, Numbers, lines_that_begin, read_lines
from sandbox_chat.text import clean, from_arguments

FORMAT = 1
"""Version of the folder's layout. A program refuses to write to a session of a later version."""

EVENTS = "events.jsonl"
META = "meta.json"
PICTURES = "pictures"
LOCK = "lock"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_BLANK = b"\0 \t\r\n"
LARGEST = 1 << 53
"""No count, duration or cost of ours comes near it; a larger one is damage, and breaks arithmetic with fractions."""
_NAMES: dict[type, tuple[str, ...]] = {}
"""Names of the fields of each type that was met: this is asked for every event of a long past."""
_SAVED = (ImageContent, FileContent)
"""Contents that lie in files of the session's folder."""
_COPY_BLOCK = 1 << 20
_TAIL_BLOCK = 1 << 16  # a first look at a file's end; grows when no whole record lies in it


def valid_id(session_id: str) -> bool:
    """True when ``session_id`` can be the name of a session's folder (so it holds no path)."""
    return _ID.fullmatch(session_id) is not None


def make_folder(path: Path) -> None:
    """Make the folder ``path`` and what is missing above it, readable by the owner only."""
    if not path.is_dir():
        make_folder(path.parent)  # mkdir's own ``parents`` would not give them the mode
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:  # there, but no folder
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None


def open_append(path: Path) -> int:
    """Open (or make) the file ``path`` for appending and return its descriptor."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def copy_whole(fd: int, path: Path) -> None:
    """Put what is in the open file ``fd`` into ``path``, whole or not at all. Raises ``OSError``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(open_append(temporary), "wb") as file:
            place = 0
            while data := os.pread(fd, _COPY_BLOCK, place):
                file.write(data)
                place += len(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def to_line(event: Event, *homes: Path) -> bytes:
    """Return the line of ``event`` for the journal: the paths of pictures and files in ``homes`` become relative."""
    if isinstance(event, ToolFinished | NestedFinished) and any(
        isinstance(part, _SAVED) for part in event.content
    ):
        content = tuple(
            dataclasses.replace(part, path=_relative(part.path, homes)) if isinstance(part, _SAVED) else part
            for part in event.content
        )
        event = dataclasses.replace(event, content=content)
    return event_json.to_json(event).encode("utf-8") + b"\n"


def _relative(path: str, homes: tuple[Path, ...]) -> str:
    for home in homes:
        if Path(path).is_relative_to(home):
            return Path(path).relative_to(home).as_posix()
    return path


def from_line(line: bytes, folder: Path) -> Event | None:
    """Rebuild an event from a line of the journal in ``folder``; ``None`` for a type not known here.

    Its text is cleaned again and the paths of its pictures and files are made absolute, because a file is not
    trusted: one whose path leads out of the folder gets a path at which nothing lies. Raises
    ``ValueError`` for a damaged line.
    """
    try:
        event = event_json.from_json(line.decode("utf-8"))
        if event is None:
            return None
        _check_numbers(event)
        return _cleaned(event, folder)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _check_numbers(value: Any) -> None:
    """Raise ``ValueError`` when a number of an event cannot be true. A tool's input may hold any number."""
    if isinstance(value, str):
        return
    if isinstance(value, int | float):
        if not abs(value) < LARGEST:
            raise ValueError("a number is too large")
    elif isinstance(value, tuple):
        for inner in value:
            _check_numbers(inner)
    else:
        for name in _names(value):
            _check_numbers(getattr(value, name))


def _names(value: object) -> tuple[str, ...]:
    """Return the names of the fields of a value of ours, none for another."""
    kind = type(value)
    if kind not in _NAMES:
        _NAMES[kind] = (
            tuple(item.name for item in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        )
    return _NAMES[kind]


def _cleaned(event: Event, folder: Path) -> Event:
    changes: dict[str, Any] = {}
    for name in _names(event):
        old = getattr(event, name)
        new = _clean_value(old, folder)
        if new is not old and new != old:
            changes[name] = new
    if "text" in changes and isinstance(event, ToolOutput):
        changes["styles"] = ()  # they were of the text as it was
    return dataclasses.replace(event, **changes) if changes else event


def _clean_value(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, ImageContent):
        path = str(inside(folder, value.path))
        return ImageContent(path, clean(value.mime), value.width, value.height)
    if isinstance(value, TextContent):
        text = clean(value.text)
        return value if text == value.text else TextContent(text)
    if isinstance(value, FileContent):
        path = str(inside(folder, value.path))
        return FileContent(path, clean(value.mime), value.size, clean(value.title))
    if isinstance(value, events.TableContent):
        columns = tuple(map(_flat, value.columns))
        return dataclasses.replace(
            value, columns=columns, rows=tuple(tuple(map(_flat, row)) for row in value.rows)
        )
    if isinstance(value, events.ModelUse):
        return dataclasses.replace(value, model=clean(value.model))
    if isinstance(value, Mapping):
        return from_arguments(value)
    if isinstance(value, tuple):
        return tuple(_clean_value(inner, folder) for inner in value)
    if isinstance(value, list):
        return [_clean_value(inner, folder) for inner in value]
    return value


def _flat(cell: str) -> str:
    """Return a cell of a table as the single line that it was made of."""
    return " ".join(clean(cell).split())


def inside(folder: Path, relative: str) -> Path:
    """Return the absolute path of a picture or file named in the journal, never one outside ``folder``."""
    missing = folder / PICTURES / "missing"
    pure = PurePosixPath(relative)
    if not relative or "\0" in relative or pure.is_absolute() or ".." in pure.parts:
        return missing
    path = folder.joinpath(*pure.parts)
    try:
        safe = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        safe = False
    return Path(clean(str(path))) if safe else missing


def read_events(
    folder: Path,
    damage: Damage | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    brief: bool = False,
) -> Iterator[Event]:
    """Yield the events of the session in ``folder``, in order. What cannot be read is noted in ``damage``.

    ``start`` and ``stop``: only the lines between these bytes. ``brief``: without pieces whose whole follows (see ``brief_lines``). An event whose number was there already, or
    that has none, is damage. Raises ``OSError`` when there is no file.
    """
    damage = Damage() if damage is None else damage
    numbers = Numbers()
    broken = False
    with (folder / EVENTS).open("rb") as file:
        lines = read_lines(file, start, stop)
        for line in brief_lines(lines) if brief else lines:
            text = line.raw.strip(_BLANK)
            if b"\0" in line.raw and not broken:
                damage.add(line, joined=False)
                broken = True
            if not text and len(line.raw) == line.size:
                continue
            try:
                event = from_line(text, folder)
                if event is not None and (event.seq < 1 or not numbers.add(event.seq)):
                    raise ValueError("the number is missing, or was there already")
            except ValueError:
                damage.add(line, joined=broken)
                broken = True
                continue
            broken = False
            if event is not None:
                yield event


def read_some(
    folder: Path, kinds: Iterable[type[Event]], *, start: int = 0, stop: int | None = None
) -> Iterator[Event]:
    """Yield the events of some types, in order; the others are not even parsed, and damage is passed over.

    ``start`` and ``stop``: only the lines between these bytes. Raises ``OSError`` when there is no file.
    """
    begins = tuple(f'{{"type":"{kind.type}",'.encode() for kind in kinds)
    with (folder / EVENTS).open("rb") as file:
        for raw in lines_that_begin(file, begins, start, stop):
            with contextlib.suppress(ValueError):
                event = from_line(raw, folder)
                if event is not None:
                    yield event


def read_end(folder: Path) -> tuple[int, bool]:
    """Return the highest ``seq`` near the end (0 if there is none) and whether the file ends in a torn line.

    Reads from the end, so a long session opens as quickly as a short one.
    """
    path = folder / EVENTS
    size = path.stat().st_size
    block = _TAIL_BLOCK
    with path.open("rb") as file:
        while True:
            start = max(0, size - block)
            file.seek(start)
            data = file.read(size - start)
            torn = bool(data) and not data.endswith(b"\n")
            lines = data.split(b"\n")
            seq = max(map(_seq, lines if start == 0 else lines[1:]), default=0)
            if seq or start == 0:
                return seq, torn
            if block > LONGEST:  # what lies there is no record: look from the beginning, line by line
                return max((_seq(line.raw) for line in read_lines(file)), default=0), torn
            block *= 4


def last_line(path: Path) -> int:
    """Return where the last line of a file begins that does not end in a newline. Raises ``OSError``."""
    with path.open("rb") as file:
        place = file.seek(0, os.SEEK_END)
        while place > 0:
            start = max(0, place - _TAIL_BLOCK)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            place = start
    return 0


def _seq(line: bytes) -> int:
    try:
        seq = json.loads(line.strip(_BLANK))["seq"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return seq if isinstance(seq, int) and 0 < seq < LARGEST else 0


def clear_temporary(folder: Path) -> None:
    """Remove what a killed program left half written in the session's folder. Only for who holds its lock."""
    for place in (folder, folder / PICTURES):
        with contextlib.suppress(OSError):
            for path in place.glob(".*.tmp"):
                path.unlink()
