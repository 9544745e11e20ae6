"""What a session cost and used: differences of the CLI's running totals.

The CLI reports totals. It saves them when it ends in an orderly way and goes on from there when the session
is resumed; one that was killed begins again at what was saved before. So what a turn cost is the difference
of two totals of one CLI, and the session's totals are added up here. The price of a model is known only when the CLI takes it from its list;
for any other name it guesses, and then the cost is ``None`` here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sandbox_chat.events import ModelUse, TurnFinished, Usage

TAIL_BYTES = 4_000_000
"""How far from its end a transcript is searched for the last totals."""


@dataclass(frozen=True, slots=True)
class ModelTotal:
    """The running total of one model. ``cost`` in dollars; ``known``: the price is from the list."""

    usage: Usage
    cost: float
    known: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """The running totals of a session. ``complete`` is false when there was more that is not known."""

    cost: float = 0.0
    models: Mapping[str, ModelTotal] = field(default_factory=dict)
    complete: bool = True

    @property
    def known_cost(self) -> float | None:
        """The cost in dollars, ``None`` when any part of it is not known."""
        return self.cost if self.complete and all(model.known for model in self.models.values()) else None

    def plus(self, cost: float, models: Mapping[str, ModelTotal]) -> Totals:
        """Return the totals after a turn that cost and used so much."""
        sums = dict(self.models)
        for name, model in models.items():
            before = sums.get(name, ModelTotal(Usage(), 0.0, known=True))
            sums[name] = ModelTotal(
                add(before.usage, model.usage), before.cost + model.cost, before.known and model.known
            )
        return Totals(self.cost + cost, sums, self.complete)


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """What one turn cost and used, and the session up to now. A cost is ``None`` where a price is not known.

    ``context_max`` is the model's context window in tokens, 0 when it is not known.
    """

    cost_usd: float | None
    total_cost_usd: float | None
    usage: Usage
    models: tuple[ModelUse, ...]
    context_max: int


class Ledger:
    """Turns results into figures. One for each session.

    ``earlier`` is the last turn of the session's earlier run, if it was resumed; ``resumed`` without it: the
    CLI's own record is asked.
    """

    def __init__(self, *, resumed: bool = False, earlier: TurnFinished | None = None) -> None:
        self._session: Totals | None = None if resumed else Totals()
        if earlier is not None:
            self._session = Totals(
                earlier.total_cost_usd or 0.0,
                {
                    use.model: ModelTotal(use.usage, use.cost_usd or 0.0, use.cost_usd is not None)
                    for use in earlier.models
                },
                complete=earlier.total_cost_usd is not None,
            )
        self._counted = Totals()
        self._window = 0

    @property
    def figures(self) -> TurnFigures:
        """The session up to now, as the figures of a turn that used nothing."""
        return self._figures(0.0, Usage())

    def start_from(self, counted: Totals | None) -> None:
        """A CLI was started that goes on counting from these totals; ``None``: from zero, what was before is lost."""
        self._counted = counted or Totals()
        if self._session is None:
            self._session = counted or Totals(complete=False)

    def turn(
        self,
        total_cost: float | None,
        model_usage: Mapping[str, Any] | None,
        usage: Mapping[str, Any] | None,
    ) -> TurnFigures:
        """Enter a result: the CLI's total cost and totals by model, and the result's own usage."""
        now = Totals(total_cost or 0.0, _models(model_usage or {}), complete=total_cost is not None)
        last = self._counted
        if now.cost < last.cost - 1e-9:
            last = Totals()  # the CLI began to count anew
        self._counted = now
        used = _differences(last, now)
        whole = now.known_cost is not None and last.known_cost is not None
        cost = max(now.cost - last.cost, 0.0) if whole else sum(model.cost for model in used.values())
        self._session = (self._session or Totals(complete=False)).plus(cost, used)
        if not now.complete:
            self._session = replace(self._session, complete=False)
        self._window = _window(model_usage or {}) or (0 if used else self._window)
        known = now.complete and all(model.known for model in used.values())
        tokens = turn_usage(usage)
        if used:
            tokens = Usage()
            for model in used.values():
                tokens = add(tokens, model.usage)
        return self._figures(cost if known else None, tokens)

    def _figures(self, cost: float | None, usage: Usage) -> TurnFigures:
        session = self._session or Totals(complete=False)
        return TurnFigures(
            cost_usd=cost,
            total_cost_usd=session.known_cost,
            usage=usage,
            models=tuple(
                ModelUse(name, model.usage, model.cost if model.known else None)
                for name, model in session.models.items()
            ),
            context_max=self._window,
        )


def _differences(last: Totals, now: Totals) -> dict[str, ModelTotal]:
    """What each model used between two totals; those that used nothing are left out."""
    found = {}
    for name, model in now.models.items():
        before = last.models.get(name, ModelTotal(Usage(), 0.0, known=True))
        used = _minus(model.usage, before.usage)
        if used != Usage() or model.cost > before.cost:
            found[name] = ModelTotal(used, max(model.cost - before.cost, 0.0), model.known)
    return found


def add(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_creation=one.cache_creation + other.cache_creation,
    )


def _minus(now: Usage, before: Usage) -> Usage:
    return Usage(
        input=max(now.input - before.input, 0),
        output=max(now.output - before.output, 0),
        cache_read=max(now.cache_read - before.cache_read, 0),
        cache_creation=max(now.cache_creation - before.cache_creation, 0),
    )


def _models(raw: Mapping[str, Any], *, known: bool | None = None) -> dict[str, ModelTotal]:
    return {
        name: ModelTotal(
            Usage(
                input=_count(item.get("inputTokens")),
                output=_count(item.get("outputTokens")),
                cache_read=_count(item.get("cacheReadInputTokens")),
                cache_creation=_count(item.get("cacheCreationInputTokens")),
            ),
            float(item.get("costUSD") or 0.0),
            item.get("costBasis") == "list" if known is None else known,
        )
        for name, item in raw.items()
        if isinstance(item, Mapping)
    }


def _window(raw: Mapping[str, Any]) -> int:
    """The context window of the model used last; only a listed model's is real."""
    listed = [item for item in raw.values() if isinstance(item, Mapping) and item.get("costBasis") == "list"]
    return _count(listed[-1].get("contextWindow")) if listed and len(listed) == len(raw) else 0


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


def saved_totals(config: Path, session_id: str) -> Totals | None:
    """Return the totals at the end of the CLI's own record of a session; ``None`` when they cannot be found.

    ``config`` is the CLI's configuration folder. Reads at most a few megabytes; call it off the loop.
    """
    try:
        paths = list((config / "projects").glob(f"*/{session_id}.jsonl"))
        if not paths:
            return None
        path = max(paths, key=lambda item: item.stat().st_mtime)
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        if b'"cost-state"' not in line:
            continue
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict) and data.get("type") == "cost-state":
            models = data.get("modelUsage")
            known = not data.get("hasUnknownModelCost", True)
            return Totals(
                float(data.get("totalCostUSD") or 0.0),
                _models(models if isinstance(models, Mapping) else {}, known=known),
            )
    return None
