"""The budget of a session: what it may cost, what is said of it, and what the agent's program is told."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox_chat.agent.errors import Trouble
from sandbox_chat.agent.ledger import ROUNDING, Ledger
from sandbox_chat.events import BudgetChanged, Notice, NoticeLevel, Sink
from sandbox_chat.plain import cost_text, whole_percent
from sandbox_chat.prices import Price, price_of

NEAR = 0.8
"""Share of the budget at which the user is warned."""
STOPPED = "error_max_budget_usd"
"""Subtype of a turn that the agent's program stopped because of the limit that it was given."""
LISTED = ("claude-", "sonnet", "haiku", "opus", "fable", "best", "default")
"""Beginnings of the names that the agent's program is likely to have a price for, before it has told so."""


class Budget:
    """The limit of one session, in dollars; 0: none. What it cost in its earlier runs counts, costs that are not known do not.

    The program's own limit stops one runaway turn. It counts with prices that it makes up where it has none, so it gets
    one only for a model whose price is in its list. ``prices`` are those that the user wrote down.
    """

    def __init__(self, limit: float, ledger: Ledger, emit: Sink, prices: Mapping[str, Price]) -> None:
        self.limit = limit
        self._ledger = ledger
        self._emit = emit
        self._prices = prices
        self._warned = self._share >= NEAR  # in an earlier run
        self._said_reached = self.reached
        self._said_unknown = False

    @property
    def reached(self) -> bool:
        """True when no further prompt may be sent."""
        return self.limit > 0 and self._ledger.known >= self.limit - ROUNDING

    @property
    def refusal(self) -> Trouble:
        """What is said of a prompt that is not sent."""
        return Trouble("budget", self._about())

    @property
    def stop(self) -> Trouble:
        """What is said of a turn that the agent's program stopped."""
        return Trouble("budget_stop", self._about())

    def change(self, limit: float) -> None:
        """Take another limit, by the user's word."""
        self.limit = max(0.0, limit)
        self._emit(BudgetChanged(limit_usd=self.limit))
        self._warned = self._share >= NEAR
        self._said_reached = self.reached
        self._said_unknown = True
        self._say("info", "budget_set" if self.limit else "budget_none")

    def turn_ended(self, cost: float | None) -> None:
        """Say what there is to say after a turn that cost so much; ``None``: it is not known."""
        if not self.limit:
            return
        if cost is None and not self._said_unknown:
            self._said_unknown = True
            self._say("info", "budget_unknown")
        if self.reached:
            if not self._said_reached:
                self._said_reached = self._warned = True
                self._say("warning", "budget_reached")
        elif self._share >= NEAR and not self._warned:
            self._warned = True
            self._say("warning", "budget_near")

    def for_program(self, model: str) -> float | None:
        """Return the limit that the agent's program is to keep with this model, ``None``: it gets none."""
        if not self.limit or self.reached:
            return None
        listed = self._ledger.listed(model)
        if listed is None:
            listed = price_of(model, self._prices) is None and (not model or model.startswith(LISTED))
        return self.limit if listed else None

    @property
    def left(self) -> float:
        """What may still be spent, in dollars."""
        return max(0.0, self.limit - self._ledger.known)

    @property
    def _share(self) -> float:
        return self._ledger.known / self.limit if self.limit > 0 else 0.0

    def _about(self) -> tuple[tuple[str, str], ...]:
        return (
            ("spent", cost_text(self._ledger.known)),
            ("limit", cost_text(self.limit)),
            ("percent", str(whole_percent(self._share))),
        )

    def _say(self, level: NoticeLevel, kind: str) -> None:
        said = Trouble(kind, self._about())
        self._emit(Notice(level=level, text=said.text, kind=kind, about=said.about))
