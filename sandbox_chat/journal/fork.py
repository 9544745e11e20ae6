"""Branches of sessions: a new session that begins with the events of another one."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sandbox_chat.events import (
    BudgetChanged,
    Cleared,
    ControlsChanged,
    Event,
    SessionForked,
    SessionRenamed,
    TurnFinished,
    TurnSettled,
    TurnStarted,
)
from sandbox_chat.journal import files
from sandbox_chat.journal.errors import SessionError, SessionNotFound
from sandbox_chat.journal.index import TITLE_LIMIT, read_format, summarise, titles, write_meta
from sandbox_chat.text import clean_line

_FINISHED = b'{"type":"turn_finished",'
_KEPT = re.compile(rb'"path":"((?:pictures|output)/[^"\\/]{1,255})"')
"""A picture or file of a result, and the whole output of a run whose answer was cut: both lie in the session's folder."""
_COPY = 1 << 20
_MARK = re.compile(r" \(fork(?: \d+)?\)$")
"""Ends the title of a branch."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its id, the turn that it goes on from, and the agent's own ids to find the conversation up to there.

    ``agent_id`` is the agent's id of the conversation that is copied, ``anchor`` that of the last message of it
    (empty where it is not known). ``forgotten``: the branch begins another conversation, of which nothing is copied.
    """

    session_id: str
    turn_id: str
    agent_id: str
    anchor: str
    forgotten: bool = False


def fork(
    root: Path, session_id: str, new_id: str, *, after_turn: str | None = None, remember: bool = False
) -> Branch:
    """Make the session ``new_id`` from the events of ``session_id`` up to the end of the turn ``after_turn``.

    ``None``: up to the last turn that has ended. Numbers stay as they are, pictures and files are linked or copied, and the
    event ``SessionForked`` ends what is common. Its title is that of the origin with a mark that no other session has. What the agent was told to forget right after that turn (``Cleared``)
    it forgets in the branch too, unless it shall ``remember``. The session that it comes from is only read, so it may
    be open.
    Raises ``SessionNotFound`` (the session or the turn is not there), and ``SessionError`` when it cannot be done;
    then nothing is left of the new one. Blocking.
    """
    if not files.valid_id(new_id):
        raise ValueError("not a valid session id")
    source, target = root / session_id, root / new_id
    if not files.valid_id(session_id) or not (source / files.EVENTS).is_file():
        raise SessionNotFound(f"There is no session {session_id!r}. See the list with: sandbox-chat sessions")
    if read_format(source) > files.FORMAT:
        raise SessionError(
            f"Session {session_id} was written by a later version of Sandbox Chat. Update the program."
        )
    if target.exists():
        raise SessionError(f"There is a session {new_id} already.")
    try:
        stop, last = _end_of(source, after_turn)
        files.make_folder(target)
        try:
            return _copy(source, target, stop, last, remember=remember)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
    except OSError as error:
        raise SessionError(
            f"Session {session_id} cannot be copied ({error.strerror or error}). Make room, or check the permissions of {root}."
        ) from None


def _copy(source: Path, target: Path, stop: int, last: TurnFinished, *, remember: bool) -> Branch:
    forgotten = not remember and _cleared_next(source, stop)
    names: set[str] = set()
    part = target / f".{files.EVENTS}.{os.getpid()}.tmp"
    with (source / files.EVENTS).open("rb") as old, os.fdopen(files.open_append(part), "wb") as new:
        _copy_bytes(old, new, stop, names)
        for name in names:
            _link(source / name, target / name)
        seq = max(last.seq, _last_number(source, stop))
        made, given = _titles(source)
        forked = SessionForked(seq=seq + 1, origin=source.name, turn_id=last.turn_id, title=made)
        new.write(files.to_line(forked, target))
        since: list[Event] = [*_said_since(source, stop, last.turn_id)]
        if given:
            since = [event for event in since if not isinstance(event, SessionRenamed)]
            since.insert(0, SessionRenamed(title=given))
        if forgotten:
            since.append(Cleared(agent_id=str(uuid.uuid4())))
        for number, event in enumerate(since, seq + 2):
            new.write(files.to_line(dataclasses.replace(event, seq=number), target))
        new.flush()
        os.fsync(new.fileno())
    part.replace(target / files.EVENTS)
    if (summary := summarise(target)) is not None:
        write_meta(target, summary)
    return Branch(target.name, last.turn_id, _agent_id(source, stop), last.anchor, forgotten)


def _titles(source: Path) -> tuple[str, str]:
    """Return the title of a branch where the user gives none, and that which stands in place of what they gave the origin."""
    summary = summarise(source)
    if summary is None:
        return "", ""
    taken = titles(source.parent)
    return (
        branch_title(summary.made_title, taken),
        branch_title(summary.title, taken) if summary.renamed else "",
    )


def branch_title(title: str, taken: Collection[str]) -> str:
    """Return ``title`` with a mark that tells it from those ``taken``, cut to the limit; empty for an empty one."""
    base = _MARK.sub("", title)
    if not base:
        return ""
    for number in itertools.count(1):
        mark = f" (fork {number})" if number > 1 else " (fork)"
        made = clean_line(base, TITLE_LIMIT - len(mark)) + mark
        if made not in taken:
            break
    return made


def _cleared_next(folder: Path, stop: int) -> bool:
    """Whether the agent was told to forget behind byte ``stop``, before the next turn."""
    for event in files.read_some(folder, (Cleared, TurnStarted), start=stop):
        return isinstance(event, Cleared)
    return False


def _said_since(
    folder: Path, stop: int, turn_id: str
) -> Iterator[SessionRenamed | BudgetChanged | ControlsChanged | TurnSettled]:
    """Yield what was said of the session behind byte ``stop`` that holds for a branch too.

    That are its title, budget and controls, and what the turn ``turn_id`` cost, from which it goes on.
    """
    latest: dict[type[Event], SessionRenamed | BudgetChanged | ControlsChanged | TurnSettled] = {}
    wanted = (SessionRenamed, BudgetChanged, ControlsChanged, TurnSettled)
    for event in files.read_some(folder, wanted, start=stop):
        if isinstance(event, SessionRenamed | BudgetChanged | ControlsChanged) or (
            isinstance(event, TurnSettled) and event.turn_id == turn_id
        ):
            latest[type(event)] = event
    yield from latest.values()


def _end_of(folder: Path, turn_id: str | None) -> tuple[int, TurnFinished]:
    """Return where the record of a turn's end ends in the file, and that record; ``None``: of the last turn."""
    with (folder / files.EVENTS).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        place = size
        while place > 0:
            start = max(0, place - _COPY)
            file.seek(start)
            data = file.read(min(_COPY + len(_FINISHED), size - start))
            at = len(data)
            while (at := data.rfind(_FINISHED, 0, at)) >= 0:
                if start + at >= place or (at and data[at - 1 : at] != b"\n"):
                    continue
                file.seek(start + at)
                event = _finished(file.readline(), folder)
                if event is not None and turn_id in (None, event.turn_id):
                    return file.tell(), event
            place = start
    if turn_id is None:
        raise SessionNotFound(
            f"Session {folder.name} has no turn that has ended, so there is nothing to go on from."
        )
    raise SessionNotFound(f"Session {folder.name} has no turn {turn_id!r} that has ended.")


def _finished(line: bytes, folder: Path) -> TurnFinished | None:
    try:
        event: Event | None = files.from_line(line, folder) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return event if isinstance(event, TurnFinished) else None


def _copy_bytes(old: BinaryIO, new: BinaryIO, stop: int, names: set[str]) -> None:
    """Copy the first ``stop`` bytes line by line, and note the paths of the pictures and files in them."""
    left = stop
    while left > 0:
        block = old.read(min(_COPY, left)) + (old.readline(left - _COPY) if left > _COPY else b"")
        if not block:
            raise OSError("the file ends too early")
        names.update(map(os.fsdecode, _KEPT.findall(block)))
        new.write(block)
        left -= len(block)


def _link(old: Path, new: Path) -> None:
    """Let a picture or file be in the new folder too: the same one if the disk can do that, else a copy. A lost one stays lost."""
    if not old.is_file():  # what the agent wrote may look like a path of ours
        return
    files.make_folder(new.parent)
    with contextlib.suppress(FileNotFoundError):
        try:
            os.link(old, new)
        except FileExistsError:
            return
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(old, new)
            new.chmod(0o600)


def _last_number(folder: Path, stop: int) -> int:
    """Return the highest number of an event in the first ``stop`` bytes: near their end."""
    with (folder / files.EVENTS).open("rb") as file:
        file.seek(max(0, stop - _COPY))
        numbers = [0]
        for line in file.read(min(stop, _COPY)).split(b"\n"):
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                numbers.append(int(json.loads(line)["seq"]))
    return max(numbers)


def _agent_id(folder: Path, stop: int) -> str:
    """Return the agent's own id of the conversation that goes on at byte ``stop``.

    A branch has a copy under its own id, whatever the conversation was called where it comes from. What the agent was
    told to forget before the branch was made is not in that copy, but where it comes from, if that is still there.
    """
    passed = {folder.name}
    while files.valid_id(origin := _holder(folder, stop)) and origin not in passed:
        if not (folder.with_name(origin) / files.EVENTS).is_file():
            break
        passed.add(origin)
        folder = folder.with_name(origin)  # whose first bytes are the same
    found, since = folder.name, 0
    for forked in files.read_some(folder, (SessionForked,)):
        if isinstance(forked, SessionForked):
            found, since = forked.agent_id or folder.name, forked.seq
    for cleared in files.read_some(folder, (Cleared,), stop=stop):
        if isinstance(cleared, Cleared) and cleared.seq > since:
            found = cleared.agent_id
    return found


def _holder(folder: Path, stop: int) -> str:
    """Return the session that a branch comes from if the branch has no copy of what was said at byte ``stop``, else nothing.

    That is so where the agent was told to forget it between there and the branch's own first turn.
    """
    origin, cleared, lost, begins = "", False, False, False
    for event in files.read_some(folder, (SessionForked, Cleared, TurnStarted), start=stop):
        match event:
            case SessionForked():
                origin, lost, begins = event.origin, cleared, True
            case Cleared():
                cleared = True
                lost = lost or begins
            case TurnStarted():
                begins = False
    return origin if lost else ""
