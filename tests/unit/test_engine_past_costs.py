"""What a resumed session carries on of its costs and its budget."""

from __future__ import annotations

import pytest
from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.engine_past import Past


def past_of(*events: ev.Event) -> Past:
    past = Past()
    for event in events:
        past.take(event)
    return past


def begun(turn_id: str) -> ev.TurnStarted:
    return ev.TurnStarted(at=START, turn_id=turn_id, prompt="p")


def test_the_last_turn_that_told_totals_is_carried_on() -> None:
    told = turn_finished("t1", total_cost_usd=0.5)
    given_up = turn_finished("t2", cost_usd=0.0, total_cost_usd=None, models=())
    past = past_of(begun("t1"), told, begun("t2"), given_up)
    assert past.earlier == told


def test_a_turn_that_never_ended_makes_the_total_unknown_and_keeps_what_is_known() -> None:
    past = past_of(begun("t1"), turn_finished("t1", total_cost_usd=0.0123), begun("t2"))
    ledger = Ledger(resumed=True, earlier=past.earlier)
    assert ledger.figures.total_cost_usd is None
    assert ledger.known == pytest.approx(0.0123)


def test_the_only_turn_never_ended() -> None:
    ledger = Ledger(earlier=past_of(begun("t1")).earlier)
    assert ledger.figures.total_cost_usd is None
    assert ledger.known == 0.0
    assert Ledger(earlier=past_of().earlier).figures.total_cost_usd == 0.0


def test_a_context_that_was_cleared_is_empty() -> None:
    told = turn_finished("t1", context=ev.ContextUse(90_000, 200_000))
    past = past_of(begun("t1"), told, ev.Cleared(at=START, agent_id="other"))
    assert past.earlier is not None
    assert past.earlier.context == ev.ContextUse(0, 200_000)
    assert past.earlier.total_cost_usd == told.total_cost_usd


def test_the_budget_that_was_set_last_counts() -> None:
    assert past_of().budget is None
    assert past_of(ev.BudgetChanged(limit_usd=1.0), ev.BudgetChanged(limit_usd=3.0)).budget == 3.0


def test_a_turn_that_never_ended_is_not_forgotten_over_one_that_told_nothing() -> None:
    told = turn_finished("t1", total_cost_usd=0.5)
    given_up = turn_finished("t3", cost_usd=0.0, total_cost_usd=None, models=())
    past = past_of(begun("t1"), told, begun("t2"), begun("t3"), given_up)
    assert past.earlier is not None and past.earlier.total_cost_usd is None
    after = turn_finished("t4", total_cost_usd=0.7)
    past.take(begun("t4"))
    past.take(after)
    assert past.earlier == after, "a later total knows of it"


def test_a_prompt_that_never_went_out_was_not_spoken_with_the_agent() -> None:
    given_up = turn_finished("t1", cost_usd=0.0, num_turns=0, interrupted=True)
    assert not past_of(begun("t1"), given_up).spoken
    assert past_of(begun("t1"), given_up, begun("t2"), turn_finished("t2", cost_usd=None, num_turns=0)).spoken
    assert past_of(begun("t1"), turn_finished("t1", cost_usd=0.0, num_turns=1)).spoken
