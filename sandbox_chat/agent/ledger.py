"""What a session cost and used: differences of the running totals of the agent's program.

The program reports totals. It saves them when it ends in an orderly way and goes on from there when the session is
resumed; one that was killed begins again at what was saved before. So what a turn cost is the difference of two totals
of one program, and the session's totals are added up here.

A price is known in two ways only: the program takes it from its list, or the user wrote it down (``prices.py``). For
any other name the program guesses, and then the cost is ``None`` here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox_chat.agent.totals import ModelTotal, Totals, add, minus, read_totals, turn_usage
from sandbox_chat.events import ModelUse, TurnFinished, Usage
from sandbox_chat.prices import Price, price_of

ROUNDING = 1e-9
"""Dollars by which a total may seem to shrink."""


@dataclass(frozen=True, slots=True)
class ModelSum:
    """What one model used in the session. ``cost`` is what is known of it in dollars, ``complete``: that is all."""

    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Sums:
    """What the session used. ``cost`` is what is known of it in dollars, ``complete``: that is all."""

    cost: float = 0.0
    models: Mapping[str, ModelSum] = field(default_factory=dict)
    complete: bool = True

    @property
    def known_cost(self) -> float | None:
        """The cost in dollars, ``None`` when any part of it is not known."""
        return self.cost if self.complete and all(model.complete for model in self.models.values()) else None

    def plus(self, cost: float, models: Mapping[str, ModelSum], *, complete: bool = True) -> Sums:
        """Return the sums after a turn."""
        sums = dict(self.models)
        for name, model in models.items():
            before = sums.get(name, ModelSum())
            sums[name] = ModelSum(
                add(before.usage, model.usage), before.cost + model.cost, before.complete and model.complete
            )
        return Sums(self.cost + cost, sums, self.complete and complete)


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
    program's own record is asked. ``prices`` are the user's, by model.
    """

    def __init__(
        self,
        *,
        resumed: bool = False,
        earlier: TurnFinished | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._prices = prices or {}
        self._session: Sums | None = None if resumed else Sums()
        self._counted = Totals()
        self._window = 0
        self._listed: dict[str, bool] = {}
        if earlier is not None:
            self._session = _sums_of(earlier)
            self._window = earlier.context.max

    @property
    def known(self) -> float:
        """What the session is known to have cost, in dollars."""
        return self._session.cost if self._session is not None else 0.0

    @property
    def figures(self) -> TurnFigures:
        """The session up to now, as the figures of a turn that used nothing."""
        return self._figures(0.0, Usage())

    def listed(self, model: str) -> bool | None:
        """Whether the program knows the price of a model; ``None`` while it has not told."""
        return self._listed.get(model)

    def start_from(self, counted: Totals | None) -> None:
        """The program counts on from these totals; ``None``: from zero, and what was before is not known.

        A program that was started tells its saved totals, a conversation that was cleared begins at ``Totals()``. What
        the session has cost goes on.
        """
        self._counted = counted or Totals()
        if self._session is None:
            self._session = _sums_of_totals(counted) if counted is not None else Sums(complete=False)

    def turn(
        self,
        total_cost: float | None,
        model_usage: Mapping[str, Any] | None,
        usage: Mapping[str, Any] | None,
    ) -> TurnFigures:
        """Enter a result: the program's total cost and totals by model, and the result's own usage."""
        now = read_totals(total_cost, model_usage)
        last = Totals() if _began_anew(self._counted, now) else self._counted
        self._counted = now
        spent = max(now.cost - last.cost, 0.0)
        used = _differences(last, now)
        self._listed.update((name, model.listed) for name, model in used.items())
        priced = {name: self._priced(name, model) for name, model in used.items()}
        known = now.complete and all(model.complete for model in priced.values())
        if not used and spent > ROUNDING and not now.listed:
            known = False
        cost = spent if now.listed else sum(model.cost for model in priced.values())
        self._session = (self._session or Sums(complete=False)).plus(cost, priced, complete=known)
        if used:
            self._window = _window(used)
        tokens = turn_usage(usage)
        if used:
            tokens = _sum(model.usage for model in used.values())
        return self._figures(cost if known else None, tokens)

    def cut(self, requests: Mapping[str, Usage]) -> TurnFigures:
        """Enter a turn whose program was lost: it told no totals, so what it cost is not known.

        ``requests`` are the tokens by model of those requests that were answered to their end, by the endpoint's word.
        """
        used = {name: ModelSum(usage, 0.0, complete=False) for name, usage in requests.items()}
        self._session = (self._session or Sums(complete=False)).plus(0.0, used, complete=False)
        return self._figures(None, _sum(requests.values()))

    def untold(self, requests: Mapping[str, Usage]) -> TurnFigures:
        """Return the figures of a turn whose totals are still to come, without entering it: costs are not known yet.

        ``requests`` as for ``cut``.
        """
        return replace(self._figures(None, _sum(requests.values())), total_cost_usd=None)

    def _priced(self, name: str, model: ModelTotal) -> ModelSum:
        if model.listed:
            return ModelSum(model.usage, model.cost)
        price = price_of(name, self._prices)
        if price is None:
            return ModelSum(model.usage, 0.0, complete=False)
        cost = price.cost(
            input=model.usage.input,
            output=model.usage.output,
            cache_read=model.usage.cache_read,
            cache_write=model.usage.cache_creation,
        )
        return ModelSum(model.usage, cost)

    def _figures(self, cost: float | None, usage: Usage) -> TurnFigures:
        session = self._session or Sums(complete=False)
        return TurnFigures(
            cost_usd=cost,
            total_cost_usd=session.known_cost,
            usage=usage,
            models=tuple(
                ModelUse(
                    name, model.usage, model.cost if model.complete or model.cost else None, model.complete
                )
                for name, model in session.models.items()
            ),
            context_max=self._window,
        )


def _sums_of(turn: TurnFinished) -> Sums:
    """Return the session's sums as a turn's end told them."""
    models = {
        use.model: ModelSum(use.usage, use.cost_usd or 0.0, use.complete and use.cost_usd is not None)
        for use in turn.models
    }
    cost = turn.total_cost_usd
    if cost is None:
        return Sums(sum(model.cost for model in models.values()), models, complete=False)
    return Sums(cost, models)


def _sums_of_totals(totals: Totals) -> Sums:
    models = {
        name: ModelSum(model.usage, model.cost if model.listed else 0.0, model.listed)
        for name, model in totals.models.items()
    }
    cost = totals.cost if totals.listed else sum(model.cost for model in models.values())
    return Sums(cost, models, totals.complete)


def _began_anew(last: Totals, now: Totals) -> bool:
    """Whether the program began to count anew: something is less than it was."""
    if now.complete and last.complete and now.cost < last.cost - ROUNDING:
        return True
    for name, before in last.models.items():
        model = now.models.get(name)
        if model is None or minus(before.usage, model.usage) != Usage():
            return True
    return False


def _differences(last: Totals, now: Totals) -> dict[str, ModelTotal]:
    """What each model used between two totals; those that used nothing are left out."""
    found = {}
    for name, model in now.models.items():
        before = last.models.get(name, ModelTotal(Usage(), 0.0, listed=True))
        used = minus(model.usage, before.usage)
        if used != Usage() or model.cost > before.cost:
            found[name] = replace(model, usage=used, cost=max(model.cost - before.cost, 0.0))
    return found


def _sum(usages: Any) -> Usage:
    total = Usage()
    for usage in usages:
        total = add(total, usage)
    return total


def _window(used: Mapping[str, ModelTotal]) -> int:
    """The context window of the model that read most in a turn; only a listed model's is real."""
    if not all(model.listed for model in used.values()):
        return 0
    most = max(used.values(), key=lambda model: _read(model.usage))
    return most.window


def _read(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_creation
