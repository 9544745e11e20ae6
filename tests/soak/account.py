"""The account at the end of a session of faults: what was asked, what was said, what reached the model, what is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from support.faulty import answer, sendings, tags
from support.screen import shown

from sandbox_chat.events import (
    Event,
    Text,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.journal import Journal
from sandbox_chat.phases import Machine


@dataclass(slots=True)
class Turn:
    """A turn as its events tell it: what was asked and said, which calls began and ended, how it ended."""

    tag: str
    said: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    end: TurnFinished | None = None

    @property
    def answered(self) -> bool:
        """True when it ended well."""
        return self.end is not None and not self.end.is_error and not self.end.interrupted


def order(events: Sequence[Event]) -> list[str]:
    """What is wrong with the numbers of events: they go from 1 on, without gaps."""
    numbers = [event.seq for event in events]
    if numbers == list(range(1, len(numbers) + 1)):
        return []
    bad = next(place for place, number in enumerate(numbers) if number != place + 1)
    return [f"the events are not numbered on: event {bad + 1} has the number {numbers[bad]}"]


def turns(events: Iterable[Event]) -> tuple[list[Turn], list[str]]:
    """The turns that events tell of, and what is wrong with their beginnings and ends."""
    found: list[Turn] = []
    ids: list[str] = []
    wrong: list[str] = []
    now: Turn | None = None
    for event in events:
        if isinstance(event, TurnStarted):
            if now is not None:
                wrong.append(f"turn {now.tag} had not ended when the next one began")
            now = Turn(next(iter(tags(event.prompt)), ""))
            found.append(now)
            ids.append(event.turn_id)
        elif isinstance(event, TurnFinished):
            if now is None or event.turn_id != ids[-1]:
                wrong.append(f"the end of a turn that does not run: {event.turn_id}")
                continue
            now.end, now = event, None
        elif isinstance(event, ToolStarted | ToolFinished | Text | TextDelta):
            if now is None:
                wrong.append(f"a {event.type} outside of all turns")
            elif isinstance(event, ToolStarted):
                now.begun.append(event.tool_use_id)
            elif isinstance(event, ToolFinished):
                now.over.append(event.tool_use_id)
            elif isinstance(event, Text):
                now.said.append(event.text)
    if now is not None:
        wrong.append(f"turn {now.tag} never ended")
    for turn in found:
        if sorted(turn.begun) != sorted(turn.over):
            wrong.append(f"turn {turn.tag}: calls began and ended differently: {turn.begun} {turn.over}")
    calls = [call for turn in found for call in turn.begun]
    if len(calls) != len(set(calls)):
        wrong.append("a call began twice")
    return found, wrong


def prompts(
    found: Sequence[Turn],
    sent: Mapping[str, str],
    stoppable: Iterable[str],
    requests: Iterable[dict[str, Any]],
    handed: Mapping[str, int],
    again: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """What is wrong with the prompts.

    ``sent`` are those of the user by tag, ``stoppable`` those that he may have stopped, ``requests`` is the endpoint's
    log, and ``handed`` says how often each went to a program of the agent. ``again`` says how often the user let a prompt
    go on that had failed: it has as many turns more, the earlier of which failed.
    """
    wrong = [
        f"prompt {tag} went to the agent's program {times} times"
        for tag, times in handed.items()
        if times > 1 + again.get(tag, 0)
    ]
    by_tag: dict[str, list[Turn]] = {}
    for turn in found:
        by_tag.setdefault(turn.tag, []).append(turn)
    for tag in sent:
        own = by_tag.get(tag, [])
        if len(own) != 1 + again.get(tag, 0):
            wrong.append(f"prompt {tag} has {len(own)} turns")
        if any(turn.answered for turn in own[:-1]):
            wrong.append(f"prompt {tag} was sent again although it had its answer")
    wrong += [f"turn {tag} was never asked for" for tag in by_tag if tag not in sent]
    if list(by_tag) != list(sent):
        wrong.append("the turns are not in the order of the prompts")
    reached = sendings(requests)
    may_stop = set(stoppable)
    for tag, own in by_tag.items():
        turn = own[-1]
        times = reached[tag].times if tag in reached else 0
        if times > 1 + again.get(tag, 0):
            peers = sorted(reached[tag].peers)
            wrong.append(f"prompt {tag} was sent {times} times (processes {peers})")
        if turn.answered and not times:
            wrong.append(f"turn {tag} was answered, but its prompt never reached the model")
        if turn.answered and not any(answer(tag) in text for text in turn.said):
            wrong.append(f"turn {tag} ended well without its answer: {turn.said}")
        if turn.end is not None and turn.end.interrupted and tag not in may_stop:
            wrong.append(f"turn {tag} was interrupted by nobody")
        foreign = {other for text in turn.said for other in tags(text)} - {tag}
        if foreign:
            wrong.append(f"turn {tag} shows what belongs to {sorted(foreign)}")
    return wrong


def record(data: Path, session_id: str, live: Sequence[Event]) -> tuple[list[Event], list[str]]:
    """The events of the journal, and what is wrong with it: it is whole, and the same as what was shown."""
    wrong: list[str] = []
    root = data / "sessions"
    lines = (root / session_id / "events.jsonl").read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            whole = line.endswith(b"\n") and isinstance(json.loads(line), dict)
        except ValueError:
            whole = False
        if not whole:
            wrong.append(f"line {number} of the journal is damaged")
    journal = Journal.open(root, session_id)  # raises when a lock was left
    try:
        past = list(journal.events())
        if journal.skipped:
            wrong.append(f"{journal.skipped} places of the journal cannot be read")
    finally:
        journal.close()
    wrong += [f"journal: {words}" for words in order(past)]
    if past != list(live):
        pairs = zip(past, live, strict=False)
        place = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(past), len(live)))
        wrong.append(f"journal and live events differ from event {place + 1} on ({len(past)}, {len(live)})")
    return past, wrong


def replay(live: Sequence[Event], past: Sequence[Event]) -> list[str]:
    """What is wrong with the replayed view: it shows the same rows, phase and totals as the live one did."""
    wrong: list[str] = []
    for expanded in (False, True):
        rows, state = shown(live, [1, 3, 7], expanded=expanded)
        again, replayed = shown(past, [max(len(past), 1)], expanded=expanded)
        if rows != again:
            wrong.append(_first_difference("the replayed transcript differs", rows, again))
        if state != replayed:
            wrong.append("the replayed state differs")
        if (state.usage, state.cost) != (replayed.usage, replayed.cost):
            wrong.append(f"the replayed totals differ: {state.cost} {replayed.cost}")
    now, again = phase(live), phase(past)
    if (now.phase, now.odd) != (again.phase, again.odd):
        wrong.append(f"the replayed phase differs: {now.phase} {again.phase}")
    return wrong


def phase(events: Iterable[Event]) -> Machine:
    """The session's own machine after ``events``."""
    machine = Machine()
    for event in events:
        machine.apply(event)
    return machine


def same_rows(live: Sequence[str], again: Sequence[str], where: str) -> list[str]:
    """What is wrong with the rows of an application's transcript ``again``, beside those of the live one at its end.

    More may follow them: a session that was opened again says so.
    """
    return [] if list(live) == list(again)[: len(live)] else [_first_difference(where, live, again)]


def _first_difference(where: str, one: Sequence[str], other: Sequence[str]) -> str:
    pairs = zip(one, other, strict=False)
    place = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    return f"{where} from row {place + 1} on: {one[place : place + 3]} {other[place : place + 3]}"
