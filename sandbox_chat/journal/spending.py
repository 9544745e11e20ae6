"""What the turns of a session cost, read from its journal without reading the rest of it.

Only the few lines that tell of cost are parsed; they are found by how they begin, which nothing within a line can look
like, because a line of JSON holds no newline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sandbox_chat.events import ModelUse, SessionForked, SessionStarted, TurnFinished, TurnSettled, Usage
from sandbox_chat.journal.files import EVENTS, LARGEST
from sandbox_chat.text import clean_line

BLOCK = 16 << 20
"""Bytes that are searched at once."""
_BEGIN = b'\n{"type":"'
_WANTED = tuple(
    _BEGIN + kind + b'"'
    for kind in (b"session_started", b"session_forked", b"turn_finished", b"turn_settled")
)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model used in one turn. ``cost`` in dollars, ``None`` where it is not known.

    ``first`` is true for the first of a turn, so that turns can be counted. ``model`` is empty where it is not told.
    ``demo``: nothing was spent.
    """

    at: datetime
    model: str
    usage: Usage
    cost: float | None
    first: bool
    demo: bool


def read_spending(folder: Path) -> list[Spent]:
    """Return what the session in ``folder`` spent itself, in order: of a fork, only what came after.

    Damaged lines are passed over. Raises ``OSError``.
    """
    found: list[Spent] = []
    last = ("", 0)  # the turn that ended last, and where in the list it begins
    demo = False
    before: dict[str, ModelUse] = {}
    for line in _lines(folder / EVENTS):
        try:
            data = json.loads(line)
            kind = data["type"]
            if kind == SessionStarted.type:
                demo = data["demo"] is True
            elif kind == SessionForked.type:
                found.clear()  # the other session has spent it
                last = ("", 0)
            elif kind in (TurnFinished.type, TurnSettled.type):
                models = [_use(part) for part in data["models"]]
                turn = _turn(data, models, before, demo=demo)
                if models:
                    before = {use.model: use for use in models}
                if kind == TurnFinished.type:
                    last = (data["turn_id"], len(found))
                elif data["turn_id"] != last[0]:
                    continue  # of a turn that another session has spent
                else:
                    at = found[last[1]].at if len(found) > last[1] else None
                    turn = [replace(spent, at=at or spent.at) for spent in turn]
                    del found[last[1] :]
                found += turn
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
    return found


def _turn(
    data: Mapping[str, Any], models: list[ModelUse], before: Mapping[str, ModelUse], *, demo: bool
) -> list[Spent]:
    """Return what a turn used by model: the differences of the session's totals."""
    at = datetime.fromisoformat(data["at"])
    turn = ModelUse("", _usage(data["usage"]), _cost(data["cost_usd"]))
    nothing = ModelUse("", Usage(), 0.0)
    used = []
    for use in models:
        last = before.get(use.model, nothing)
        if _shrank(last.usage, use.usage):
            last = nothing  # the totals began anew
        usage = _minus(use.usage, last.usage)
        known = turn.cost_usd is not None or (use.complete and use.cost_usd is not None)
        cost = max(0.0, (use.cost_usd or 0.0) - (last.cost_usd or 0.0)) if known else None
        if usage != nothing.usage or cost:
            used.append(ModelUse(use.model, usage, cost))
    if len(used) < 2:  # the turn's own figures are exact
        if turn.usage == nothing.usage and turn.cost_usd == 0.0:
            return []  # nothing was sent
        name = used[0].model if used else models[0].model if len(models) == 1 else ""
        used = [ModelUse(name, turn.usage, turn.cost_usd)]
    return [
        Spent(at, use.model, use.usage, use.cost_usd, first=number == 0, demo=demo)
        for number, use in enumerate(used)
    ]


def _use(part: Mapping[str, Any]) -> ModelUse:
    name = clean_line(str(part["model"]))
    return ModelUse(name, _usage(part["usage"]), _cost(part["cost_usd"]), part.get("complete") is not False)


def _usage(told: Mapping[str, Any]) -> Usage:
    counts = [told.get(name, 0) for name in ("input", "output", "cache_read", "cache_creation")]
    if any(not isinstance(count, int) or not 0 <= count < LARGEST for count in counts):
        raise ValueError("not a number of tokens")
    return Usage(*counts)


def _cost(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LARGEST:
        raise ValueError("not a cost")
    return float(value)


def _pairs(last: Usage, now: Usage) -> list[tuple[int, int]]:
    return [
        (now.input, last.input),
        (now.output, last.output),
        (now.cache_read, last.cache_read),
        (now.cache_creation, last.cache_creation),
    ]


def _shrank(last: Usage, now: Usage) -> bool:
    return any(one < other for one, other in _pairs(last, now))


def _minus(now: Usage, last: Usage) -> Usage:
    return Usage(*(one - other for one, other in _pairs(last, now)))


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines that tell of cost, in order."""
    with path.open("rb") as file:
        rest = b"\n"
        while data := file.read(BLOCK):
            data = rest + data
            end = data.rfind(b"\n")
            if end <= 0 and not data.endswith(b"\n"):
                rest = data
                continue
            yield from _found(data, end)
            rest = data[end:]
        yield from _found(rest + b"\n", len(rest))


def _found(data: bytes, end: int) -> Iterator[bytes]:
    """Yield the wanted lines that begin and end before ``end``, where a newline is."""
    places = []
    for wanted in _WANTED:
        place = data.find(wanted, 0, end)
        while place >= 0:
            places.append(place)
            place = data.find(wanted, place + 1, end)
    for place in sorted(places):
        yield data[place + 1 : data.find(b"\n", place + 1)]
