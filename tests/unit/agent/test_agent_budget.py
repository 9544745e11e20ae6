"""The budget of a session: when it is said, when nothing more is sent, and what the agent's program is told."""

from __future__ import annotations

import pytest

from sandbox_chat.agent.budget import Budget
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.events import BudgetChanged, Event, ModelUse, Notice, TurnFinished, Usage
from sandbox_chat.prices import Price


class Case:
    """A budget over a ledger of one listed model, and what was said."""

    def __init__(self, limit: float, spent: float = 0.0, prices: dict[str, Price] | None = None) -> None:
        self.events: list[Event] = []
        self.total = 0.0
        earlier = None
        if spent:
            earlier = TurnFinished(
                turn_id="t", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
                cost_usd=spent, total_cost_usd=spent, models=(ModelUse("claude-x", Usage(1, 1), spent),),
            )  # fmt: skip
        self.ledger = Ledger(resumed=bool(spent), earlier=earlier, prices=prices)
        self.budget = Budget(limit, self.ledger, self.events.append, prices or {})

    def spend(self, cost: float) -> None:
        """A turn ends that cost so much."""
        self.total += cost
        use = {
            "claude-x": {"inputTokens": round(1e6 * self.total), "costUSD": self.total, "costBasis": "list"}
        }
        self.budget.turn_ended(self.ledger.turn(self.total, use, None).cost_usd)

    @property
    def said(self) -> list[str]:
        """The kinds of what was said, in order."""
        return [event.kind for event in self.events if isinstance(event, Notice)]


def test_without_a_limit_nothing_is_said() -> None:
    case = Case(0.0)
    case.spend(1e6)
    assert not case.budget.reached
    assert case.said == []
    assert case.budget.for_program("claude-x") is None


def test_it_is_said_once_at_eighty_per_cent_and_once_at_the_end() -> None:
    case = Case(1.0)
    for cost in (0.5, 0.29, 0.02, 0.1, 0.1, 0.3):
        case.spend(cost)
    assert case.said == ["budget_near", "budget_reached"]
    assert case.budget.reached
    near = case.events[0]
    assert isinstance(near, Notice)
    assert near.level == "warning"
    assert "$0.8100, 81 % of its budget of $1.00" in near.text


def test_one_dear_turn_says_only_the_end() -> None:
    case = Case(1.0)
    case.spend(3.0)
    assert case.said == ["budget_reached"]


def test_exactly_the_limit_is_the_end() -> None:
    case = Case(1.0)
    case.spend(1.0)
    assert case.budget.reached
    assert "$1.00 and may cost $1.00" in case.budget.refusal.text


def test_a_larger_budget_goes_on_and_warns_again() -> None:
    case = Case(1.0)
    case.spend(1.5)
    case.budget.change(3.0)
    assert not case.budget.reached
    assert next(event for event in case.events if isinstance(event, BudgetChanged)).limit_usd == 3.0
    case.spend(1.2)
    assert case.said == ["budget_reached", "budget_set", "budget_near"]
    case.budget.change(0.0)
    assert case.said[-1] == "budget_none"
    assert not case.budget.reached


def test_a_resumed_session_counts_what_it_cost_before_and_does_not_warn_again() -> None:
    case = Case(1.0, spent=0.9)
    case.spend(0.05)
    assert case.said == []
    case.spend(0.06)
    assert case.said == ["budget_reached"]
    assert Case(1.0, spent=1.2).budget.reached


def test_an_unknown_cost_does_not_count_and_is_said_once() -> None:
    case = Case(1.0)
    for _ in range(3):
        use = {"local": {"inputTokens": 5, "costUSD": 900.0, "costBasis": "unknown"}}
        case.budget.turn_ended(case.ledger.turn(900.0, use, None).cost_usd)
        case.ledger.start_from(None)
    assert case.said == ["budget_unknown"]
    assert not case.budget.reached


def test_the_program_gets_a_limit_only_where_it_knows_the_price() -> None:
    case = Case(1.0, prices={"claude-mine*": Price(1, 1, 1, 1)})
    assert case.budget.for_program("claude-sonnet-5") == 1.0
    assert case.budget.for_program("") == 1.0
    assert case.budget.for_program("claude-mine-1") is None
    assert case.budget.for_program("qwen3") is None
    use = {"claude-sonnet-5": {"inputTokens": 5, "costUSD": 0.5, "costBasis": "unknown"}}
    case.ledger.turn(0.5, use, None)
    assert case.budget.for_program("claude-sonnet-5") is None  # it said that it does not
    case.spend(0.25)
    assert case.budget.left == pytest.approx(0.75)
