"""The running totals of the agent's program: as it reports them, and as it saves them with a session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox_chat.events import Usage
from sandbox_chat.text import clean_line

BLOCK = 1 << 20
"""Bytes that are read at once while a record is searched from its end."""
NAME_LIMIT = 200
"""Characters of a model's name."""
_MARK = b'"cost-state"'


@dataclass(frozen=True, slots=True)
class ModelTotal:
    """The running total of one model: tokens, the program's own cost in dollars, the context window (0: not told).

    ``listed``: the program knows the price. For a name that it does not know it makes one up.
    """

    usage: Usage
    cost: float
    listed: bool
    window: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """The running totals of one program. ``complete`` is false when it told no cost."""

    cost: float = 0.0
    models: Mapping[str, ModelTotal] = field(default_factory=dict)
    complete: bool = True

    @property
    def listed(self) -> bool:
        """True when every price in it is from the program's list."""
        return self.complete and all(model.listed for model in self.models.values())


def read_totals(cost: float | None, models: Mapping[str, Any] | None) -> Totals:
    """Return the totals of a result: its cost, and what it says of each model."""
    return Totals(cost or 0.0, _models(models or {}, None), complete=cost is not None)


def _models(raw: Mapping[str, Any], listed: bool | None) -> dict[str, ModelTotal]:
    return {
        clean_line(str(name), NAME_LIMIT): ModelTotal(
            Usage(
                input=_count(item.get("inputTokens")),
                output=_count(item.get("outputTokens")),
                cache_read=_count(item.get("cacheReadInputTokens")),
                cache_creation=_count(item.get("cacheCreationInputTokens")),
            ),
            float(item.get("costUSD") or 0.0),
            item.get("costBasis") == "list" if listed is None else listed,
            _count(item.get("contextWindow")),
        )
        for name, item in raw.items()
        if isinstance(item, Mapping)
    }


def turn_usage(usage: Mapping[str, Any] | None) -> Usage:
    """Return a usage of the Messages API in our form."""
    usage = usage or {}
    return Usage(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cache_read=_count(usage.get("cache_read_input_tokens")),
        cache_creation=_count(usage.get("cache_creation_input_tokens")),
    )


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def add(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_creation=one.cache_creation + other.cache_creation,
    )


def minus(now: Usage, before: Usage) -> Usage:
    """Return what was used between two totals."""
    return Usage(
        input=max(now.input - before.input, 0),
        output=max(now.output - before.output, 0),
        cache_read=max(now.cache_read - before.cache_read, 0),
        cache_creation=max(now.cache_creation - before.cache_creation, 0),
    )


def saved_totals(config: Path, session_id: str) -> Totals | None:
    """Return the totals that the program saved last with a session; ``None`` when there are none.

    ``config`` is its configuration folder. It goes on from these however long ago they were saved, so the record is
    searched to its beginning, from the end; call it off the loop.
    """
    try:
        paths = list((config / "projects").glob(f"*/{session_id}.jsonl"))
        if not paths:
            return None
        path = max(paths, key=lambda item: item.stat().st_mtime)
        for line in _lines_from_the_end(path):
            if _MARK in line and (totals := _saved(line)) is not None:
                return totals
    except OSError:
        return None
    return None


def _saved(line: bytes) -> Totals | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("type") != "cost-state":
        return None
    models = data.get("modelUsage")
    listed = not data.get("hasUnknownModelCost", True)
    return Totals(
        float(data.get("totalCostUSD") or 0.0), _models(models if isinstance(models, Mapping) else {}, listed)
    )


def _lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, the last one first. A block without a mark is passed over as a whole."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        rest = b""  # the end of a line whose beginning lies before it
        while end > 0:
            start = max(0, end - BLOCK)
            file.seek(start)
            data = file.read(end - start) + rest
            end = start
            cut = data.find(b"\n") + 1 if start > 0 else 0
            if start > 0 and cut == 0:
                rest = data
                continue
            rest = data[:cut]
            if _MARK in data[cut:]:
                yield from reversed(data[cut:].splitlines())
