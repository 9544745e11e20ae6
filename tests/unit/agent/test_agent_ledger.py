"""What turns and sessions cost: differences of running totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.agent.ledger import Ledger, saved_totals
from sandbox_chat.events import ModelUse, TurnFinished, Usage


def models(cost: float, tokens: int, *, name: str = "claude-x", basis: str = "list") -> dict[str, Any]:
    return {
        name: {
            "inputTokens": tokens,
            "outputTokens": tokens * 2,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "costUSD": cost,
            "contextWindow": 200_000,
            "costBasis": basis,
        }
    }


def earlier(total: float | None, *uses: ModelUse) -> TurnFinished:
    return TurnFinished(
        turn_id="t", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
        cost_usd=total, total_cost_usd=total, models=uses,
    )  # fmt: skip


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


def test_a_resume_keeps_the_total() -> None:
    ledger = Ledger(resumed=True, earlier=earlier(0.07, ModelUse("claude-x", Usage(150, 300), 0.07)))
    ledger.start_from(saved(0.07, 150))
    figures = ledger.turn(0.09, models(0.09, 170), None)
    assert figures.cost_usd == pytest.approx(0.02)
    assert figures.total_cost_usd == pytest.approx(0.09)
    assert figures.usage == Usage(20, 40)


def saved(cost: float, tokens: int) -> Any:
    ledger = Ledger()
    ledger.turn(cost, models(cost, tokens), None)
    return ledger._counted


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


def test_a_resume_takes_the_saved_totals_when_the_journal_has_none() -> None:
    ledger = Ledger(resumed=True)
    ledger.start_from(saved(0.07, 150))
    assert ledger.turn(0.09, models(0.09, 170), None).total_cost_usd == pytest.approx(0.09)


def test_the_price_of_an_unknown_model_is_not_known() -> None:
    ledger = Ledger()
    figures = ledger.turn(0.004, models(0.004, 10, name="local", basis="unknown"), None)
    assert figures.cost_usd is None
    assert figures.total_cost_usd is None
    assert figures.models == (ModelUse("local", Usage(10, 20), None),)
    assert figures.context_max == 0
    assert figures.usage == Usage(10, 20)


def test_a_known_model_after_an_unknown_one() -> None:
    ledger = Ledger()
    unknown = models(0.004, 10, name="local", basis="unknown")
    ledger.turn(0.004, unknown, None)
    figures = ledger.turn(0.014, {**unknown, **models(0.01, 5)}, None)
    assert figures.cost_usd == pytest.approx(0.01)
    assert figures.total_cost_usd is None
    assert figures.usage == Usage(5, 10)


def test_an_interrupted_turn_has_its_tokens_from_the_totals() -> None:
    ledger = Ledger()
    figures = ledger.turn(0.01, models(0.01, 7), {"input_tokens": 0, "output_tokens": 0})
    assert figures.usage == Usage(7, 14)


def test_a_refused_turn_costs_nothing() -> None:
    figures = Ledger().turn(0, {}, {"input_tokens": 0})
    assert (figures.cost_usd, figures.total_cost_usd, figures.usage) == (0.0, 0.0, Usage())


def test_totals_that_shrink_begin_anew() -> None:
    ledger = Ledger()
    ledger.turn(0.07, models(0.07, 150), None)
    figures = ledger.turn(0.01, models(0.01, 10), None)
    assert figures.cost_usd == pytest.approx(0.01)
    assert figures.total_cost_usd == pytest.approx(0.08)


def test_saved_totals(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-work"
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = [
        {
            "type": "cost-state",
            "totalCostUSD": 0.01,
            "modelUsage": models(0.01, 1),
            "hasUnknownModelCost": False,
        },
        {"type": "assistant", "text": 'it says "cost-state" here'},
        {
            "type": "cost-state",
            "totalCostUSD": 0.02,
            "modelUsage": models(0.02, 2),
            "hasUnknownModelCost": False,
        },
        {"type": "user"},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"type":"cost-state", torn'
    (folder / "sid.jsonl").write_text(text)
    totals = saved_totals(tmp_path, "sid")
    assert totals is not None
    assert totals.known_cost == pytest.approx(0.02)
    assert totals.models["claude-x"].usage == Usage(2, 4)
    assert saved_totals(tmp_path, "other") is None
    (folder / "empty.jsonl").write_text("{}\n")
    assert saved_totals(tmp_path, "empty") is None
