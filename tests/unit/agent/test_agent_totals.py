"""The totals that the agent's program saves with a session: found from the end of its record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.agent import totals
from sandbox_chat.agent.totals import saved_totals
from sandbox_chat.events import Usage


def state(cost: float, tokens: int, *, unknown: bool = False) -> str:
    model: dict[str, Any] = {
        "inputTokens": tokens, "outputTokens": 2 * tokens, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4,
        "costUSD": cost,
    }  # fmt: skip
    line = {
        "type": "cost-state",
        "totalCostUSD": cost,
        "modelUsage": {"claude-x": model},
        "hasUnknownModelCost": unknown,
    }
    return json.dumps(line)


def record(folder: Path, *lines: str, name: str = "sid") -> None:
    place = folder / "projects" / "-work"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.jsonl").write_text("\n".join(lines))


def test_the_last_totals_are_taken(tmp_path: Path) -> None:
    said = json.dumps({"type": "assistant", "text": 'it says "cost-state" here'})
    record(tmp_path, state(0.01, 1), said, state(0.02, 2), '{"type":"user"}', '{"type":"cost-state", torn')
    found = saved_totals(tmp_path, "sid")
    assert found is not None
    assert found.cost == pytest.approx(0.02)
    assert found.models["claude-x"].usage == Usage(2, 4, 3, 4)
    assert found.listed
    assert saved_totals(tmp_path, "other") is None


def test_a_record_without_totals(tmp_path: Path) -> None:
    record(tmp_path, "{}", "")
    assert saved_totals(tmp_path, "sid") is None


def test_prices_that_are_not_of_the_list(tmp_path: Path) -> None:
    record(tmp_path, state(0.02, 2, unknown=True))
    found = saved_totals(tmp_path, "sid")
    assert found is not None and not found.listed


@pytest.mark.parametrize("block", [1, 2, 7, 64, 100, 333, 1 << 20])
def test_totals_far_from_the_end_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(totals, "BLOCK", block)
    record(
        tmp_path,
        "{}",
        state(0.03, 5),
        *(json.dumps({"type": "user", "text": "x" * 40}) for _ in range(20)),
        "",
    )
    found = saved_totals(tmp_path, "sid")
    assert found is not None
    assert found.cost == pytest.approx(0.03)


@pytest.mark.parametrize("block", [3, 50, 1 << 20])
def test_totals_in_the_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(totals, "BLOCK", block)
    record(tmp_path, state(0.03, 5), "{}")
    found = saved_totals(tmp_path, "sid")
    assert found is not None and found.cost == pytest.approx(0.03)
