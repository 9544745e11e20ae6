"""What turns and sessions cost: differences of running totals."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox_chat.agent.ledger import Ledger
from sandbox_chat.agent.totals import Totals, read_totals
from sandbox_chat.events import ContextUse, ModelUse, TurnFinished, Usage
from sandbox_chat.prices import Price


def models(
    cost: float, tokens: int, *, name: str = "claude-x", basis: str = "list", window: int = 200_000
) -> dict[str, Any]:
    return {
        name: {
            "inputTokens": tokens,
            "outputTokens": tokens * 2,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "costUSD": cost,
            "contextWindow": window,
            "costBasis": basis,
        }
    }


def earlier(total: float | None, *uses: ModelUse, context: int = 0, window: int = 0) -> TurnFinished:
    return TurnFinished(
        turn_id="t", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
        cost_usd=total, total_cost_usd=total, models=uses, context=ContextUse(context, window),
    )  # fmt: skip


def saved(cost: float, tokens: int) -> Totals:
    return read_totals(cost, models(cost, tokens))


def test_turns_are_differences_of_totals() -> None:
    ledger = Ledger()
    first = ledger.turn(0.05, models(0.05, 100), None)
    second = ledger.turn(0.07, models(0.07, 150), None)
    assert first.cost_usd == pytest.approx(0.05)
    assert second.cost_usd == pytest.approx(0.02)
    assert second.total_cost_usd == pytest.approx(0.07)
    assert second.usage == Usage(input=50, output=100)
    assert second.models[0].usage == Usage(input=150, output=300)
    assert second.context_max == 200_000
    assert ledger.known == pytest.approx(0.07)


def test_a_resume_keeps_the_total() -> None:
    before = earlier(0.07, ModelUse("claude-x", Usage(150, 300), 0.07), context=5, window=200_000)
    ledger = Ledger(resumed=True, earlier=before)
    assert ledger.figures.context_max == 200_000
    ledger.start_from(saved(0.07, 150))
    figures = ledger.turn(0.09, models(0.09, 170), None)
    assert figures.cost_usd == pytest.approx(0.02)
    assert figures.total_cost_usd == pytest.approx(0.09)
    assert figures.usage == Usage(20, 40)


def test_a_new_session_starts_at_zero() -> None:
    assert Ledger().figures.total_cost_usd == 0.0


def test_after_a_kill_the_cli_counts_anew_and_the_session_goes_on() -> None:
    ledger = Ledger()
    ledger.turn(0.07, models(0.07, 150), None)
    ledger.start_from(None)
    figures = ledger.turn(0.01, models(0.01, 10), None)
    assert figures.cost_usd == pytest.approx(0.01)
    assert figures.total_cost_usd == pytest.approx(0.08)
    assert figures.models[0].usage == Usage(160, 320)


def test_a_kill_of_the_program_loses_nothing_that_the_journal_has() -> None:
    ledger = Ledger(resumed=True, earlier=earlier(0.5, ModelUse("claude-x", Usage(10, 20), 0.5)))
    ledger.start_from(None)
    figures = ledger.turn(0.01, models(0.01, 10), None)
    assert figures.total_cost_usd == pytest.approx(0.51)
    assert figures.models == (ModelUse("claude-x", Usage(20, 40), pytest.approx(0.51)),)


def test_a_resume_of_which_nothing_is_known_has_no_total() -> None:
    ledger = Ledger(resumed=True)
    ledger.start_from(None)
    figures = ledger.turn(0.01, models(0.01, 10), None)
    assert figures.cost_usd == pytest.approx(0.01)
    assert figures.total_cost_usd is None
    assert ledger.known == pytest.approx(0.01)


def test_a_resume_takes_the_saved_totals_when_the_journal_has_none() -> None:
    ledger = Ledger(resumed=True)
    ledger.start_from(saved(0.07, 150))
    assert ledger.turn(0.09, models(0.09, 170), None).total_cost_usd == pytest.approx(0.09)


# -- a conversation that begins anew within the session --------------------------------------------------


def test_a_cleared_conversation_counts_from_zero_and_the_session_goes_on() -> None:
    ledger = Ledger()
    ledger.turn(0.01, models(0.01, 10), None)
    ledger.start_from(Totals())
    # more than before the clearing: no difference of totals could tell it
    figures = ledger.turn(0.05, models(0.05, 50), None)
    assert figures.cost_usd == pytest.approx(0.05)
    assert figures.usage == Usage(50, 100)
    assert figures.total_cost_usd == pytest.approx(0.06)
    assert figures.models == (ModelUse("claude-x", Usage(60, 120), pytest.approx(0.06)),)


def test_a_fork_goes_on_from_its_origin() -> None:
    ledger = Ledger()
    ledger.turn(0.05, models(0.05, 50), None)
    ledger.start_from(saved(0.05, 50))  # the branch has another program with the same totals
    assert ledger.turn(0.06, models(0.06, 60), None).cost_usd == pytest.approx(0.01)


@pytest.mark.parametrize(
    "now",
    [
        (0.01, models(0.01, 10)),  # less of all
        (0.08, models(0.08, 149)),  # a dearer model, fewer tokens
        (0.08, models(0.08, 900, name="claude-y")),  # the model of before is not in it
    ],
)
def test_totals_of_which_anything_shrank_begin_anew(now: tuple[float, dict[str, Any]]) -> None:
    ledger = Ledger()
    ledger.turn(0.07, models(0.07, 150), None)
    figures = ledger.turn(*now, None)
    assert figures.cost_usd == pytest.approx(now[0])
    assert figures.total_cost_usd == pytest.approx(0.07 + now[0])


# -- prices ----------------------------------------------------------------------------------------------


def test_the_price_of_an_unknown_model_is_not_known() -> None:
    ledger = Ledger()
    figures = ledger.turn(0.004, models(0.004, 10, name="local", basis="unknown"), None)
    assert figures.cost_usd is None
    assert figures.total_cost_usd is None
    assert figures.models == (ModelUse("local", Usage(10, 20), None, complete=False),)
    assert figures.context_max == 0
    assert figures.usage == Usage(10, 20)
    assert ledger.known == 0.0
    assert ledger.listed("local") is False
    assert ledger.listed("claude-x") is None


def test_a_known_model_after_an_unknown_one() -> None:
    ledger = Ledger()
    unknown = models(0.004, 10, name="local", basis="unknown")
    ledger.turn(0.004, unknown, None)
    figures = ledger.turn(0.014, {**unknown, **models(0.01, 5)}, None)
    assert figures.cost_usd == pytest.approx(0.01)
    assert figures.total_cost_usd is None
    assert figures.usage == Usage(5, 10)
    assert figures.context_max == 200_000
    assert ledger.known == pytest.approx(0.01)


def test_the_users_price_is_used_for_a_model_that_the_list_has_not() -> None:
    ledger = Ledger(prices={"loc*": Price(1.0, 10.0, 0.1, 2.0)})
    raw = models(99.0, 10, name="local", basis="unknown")
    raw["local"] |= {"cacheReadInputTokens": 1000, "cacheCreationInputTokens": 100}
    figures = ledger.turn(99.0, raw, None)
    assert figures.cost_usd == pytest.approx((10 + 200 + 100 + 200) / 1e6, abs=1e-12)
    assert figures.total_cost_usd == figures.cost_usd
    assert figures.models[0].complete
    again = ledger.turn(99.0, raw, None)
    assert (again.cost_usd, again.usage) == (0.0, Usage())


def test_the_list_wins_over_the_users_price() -> None:
    ledger = Ledger(prices={"*": Price(1.0, 1.0, 1.0, 1.0)})
    assert ledger.turn(0.5, models(0.5, 10), None).cost_usd == pytest.approx(0.5)


def test_two_models_in_one_turn_one_listed_one_of_the_users() -> None:
    ledger = Ledger(prices={"local": Price(1.0, 1.0, 1.0, 1.0)})
    raw = {**models(0.5, 10), **models(7.0, 20, name="local", basis="unknown")}
    figures = ledger.turn(7.5, raw, None)
    assert figures.cost_usd == pytest.approx(0.5 + 60 / 1e6)
    assert figures.context_max == 0  # not all of it is real


def test_a_mixed_turn_has_no_cost_and_its_known_part_counts() -> None:
    ledger = Ledger()
    figures = ledger.turn(7.5, {**models(0.5, 10), **models(7.0, 20, name="local", basis="unknown")}, None)
    assert figures.cost_usd is None
    assert ledger.known == pytest.approx(0.5)


def test_a_resumed_session_with_unknown_parts_keeps_what_is_known() -> None:
    uses = (ModelUse("claude-x", Usage(1, 1), 0.5), ModelUse("local", Usage(1, 1), None, complete=False))
    ledger = Ledger(resumed=True, earlier=earlier(None, *uses))
    assert ledger.known == pytest.approx(0.5)
    assert ledger.figures.total_cost_usd is None
    assert ledger.figures.models == uses


# -- what has no result ----------------------------------------------------------------------------------


def test_a_cut_turn_has_the_tokens_that_were_told_and_no_cost() -> None:
    ledger = Ledger()
    ledger.turn(0.07, models(0.07, 150), None)
    figures = ledger.cut({"claude-x": Usage(3, 4, 5, 6)})
    assert figures.cost_usd is None
    assert figures.total_cost_usd is None
    assert figures.usage == Usage(3, 4, 5, 6)
    assert figures.models == (
        ModelUse("claude-x", Usage(153, 304, 5, 6), pytest.approx(0.07), complete=False),
    )
    assert ledger.known == pytest.approx(0.07)
    ledger.start_from(None)
    after = ledger.turn(0.01, models(0.01, 10), None)
    assert after.cost_usd == pytest.approx(0.01)
    assert after.total_cost_usd is None
    assert ledger.known == pytest.approx(0.08)


def test_a_cut_turn_of_which_nothing_was_told_is_not_free() -> None:
    ledger = Ledger()
    figures = ledger.cut({})
    assert (figures.cost_usd, figures.total_cost_usd, figures.usage) == (None, None, Usage())


def test_an_interrupted_turn_has_its_tokens_from_the_totals() -> None:
    figures = Ledger().turn(0.01, models(0.01, 7), {"input_tokens": 0, "output_tokens": 0})
    assert figures.usage == Usage(7, 14)


def test_a_refused_turn_costs_nothing() -> None:
    figures = Ledger().turn(0, {}, {"input_tokens": 0})
    assert (figures.cost_usd, figures.total_cost_usd, figures.usage) == (0.0, 0.0, Usage())


def test_a_result_without_a_cost_makes_the_total_unknown() -> None:
    ledger = Ledger()
    figures = ledger.turn(None, None, {"input_tokens": 5, "output_tokens": 6})
    assert (figures.cost_usd, figures.total_cost_usd, figures.usage) == (None, None, Usage(5, 6))


def test_the_window_is_that_of_the_model_that_read_most_in_the_turn() -> None:
    ledger = Ledger()
    small = models(0.1, 10, name="claude-small", window=1000)
    ledger.turn(0.1, small, None)
    figures = ledger.turn(0.3, {**small, **models(0.2, 500, window=5000)}, None)
    assert figures.context_max == 5000
    back = models(0.2, 1000, name="claude-small", window=1000)
    assert ledger.turn(0.5, {**back, **models(0.2, 500, window=5000)}, None).context_max == 1000
