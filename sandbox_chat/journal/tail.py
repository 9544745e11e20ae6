"""The last turns of a session, found from the end of its file, so that a long session opens as quickly as a short one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Event,
    ToolFinished,
    ToolInputDelta,
    ToolOutput,
    ToolStarted,
)
from sandbox_chat.journal.files import EVENTS, read_events
from sandbox_chat.journal.lines import Damage

TAIL = 512 << 10
"""Bytes at the end of a journal that are read first, and the turn in which they begin."""
FURTHER = 3
"""How often it is gone further back for the beginning of what goes on in the last turns."""
_BLOCK = 1 << 20
_TURN = b'\n{"type":"turn_started",'


@dataclass(frozen=True, slots=True)
class Tail:
    """The events from byte ``start`` of the file up to byte ``stop``. ``start`` is 0 when that is all of them."""

    start: int
    stop: int
    events: tuple[Event, ...]
    damage: Damage


def read_tail(folder: Path) -> Tail:
    """Read the last turns of the session in ``folder``. Raises ``OSError``.

    They begin with a prompt, and with one early enough that what they tell of calls and questions began in them too,
    if that is not too far away.
    """
    path = folder / EVENTS
    stop = path.stat().st_size
    with path.open("rb") as file:
        start = stop
        for _ in range(1 + FURTHER):
            start = turn_before(file, start - TAIL)
            damage = Damage()
            events = tuple(read_events(folder, damage, start=start, stop=stop, brief=True))
            if not start or _self_contained(events):
                break
    return Tail(start, stop, events, damage)


def turn_before(file: BinaryIO, place: int) -> int:
    """Return where the last turn begins that begins at or before byte ``place``; 0 if none does, or only the first."""
    stop = place + len(_TURN) - 1
    while place > 0:
        start = max(0, place - _BLOCK)
        file.seek(start)
        found = file.read(stop - start).rfind(_TURN)
        if found >= 0:
            first = start + found + 1
            return first if _something_before(file, first) else 0
        place, stop = start, start + len(_TURN) - 1
    return 0


def _something_before(file: BinaryIO, place: int) -> bool:
    """Return whether a turn begins before byte ``place``."""
    file.seek(0)
    return place > _BLOCK or _TURN[1:] in file.read(place)


def _self_contained(events: Iterable[Event]) -> bool:
    """Return whether all calls and questions that the events tell of began in them."""
    begun: set[str] = set()
    for event in events:
        if isinstance(event, ToolInputDelta | ToolStarted):
            begun.add(event.tool_use_id)
        elif isinstance(event, ApprovalRequested):
            begun.add(event.approval_id)
        elif isinstance(event, ToolOutput | ToolFinished):
            if event.tool_use_id not in begun:
                return False
        elif isinstance(event, ApprovalAnswered) and event.approval_id not in begun:
            return False
    return True
