"""How cost and budget look. Update with ``pytest tests/ui/test_budget_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, settled

from sandbox_chat import events as ev
from sandbox_chat.ui.screens.budget import BudgetScreen

Compare = Callable[..., bool]

MODELS = (
    ev.ModelUse("claude-sonnet-5", ev.Usage(9300, 1236, 36_000, 2700), 0.0869),
    ev.ModelUse("qwen3:32b", ev.Usage(500, 40), None, complete=False),
)


def spent(made: list[PlayedEngine], *, tab: str = "", ask: bool = False) -> Callable[[Any], Awaitable[None]]:
    """Five turns, one of them without a price, near the budget; then the cost's tab, or the question."""

    async def before(pilot: Any) -> None:
        chat = pilot.app.chat
        await settled(pilot, lambda: chat.state.phase == "idle")
        for cost in (0.01, 0.03, None, 0.0169, 0.03):
            chat.submit("a prompt")
            made[0].finish(cost_usd=cost, models=MODELS)
            await settled(pilot, lambda: not chat.busy)
        if tab:
            await pilot.press(tab)
        if ask:
            await pilot.app.chat_screen.run_action("screen.budget")
            await settled(pilot, lambda: isinstance(pilot.app.screen, BudgetScreen))
        await pilot.pause()

    return before


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_cost_when_narrow(tmp_path: Path, snap_compare: Compare, theme: str, language: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, budget_usd=0.1, theme=theme, language=language)
    assert snap_compare(app, terminal_size=NARROW, run_before=spent(made, tab="f3"))


def test_the_cost_when_wide(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, budget_usd=0.1)
    assert snap_compare(app, terminal_size=WIDE, run_before=spent(made))


def test_the_cost_in_ascii(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, budget_usd=0.1, glyphs="ascii")
    assert snap_compare(app, terminal_size=NARROW, run_before=spent(made, tab="f3"))


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_question(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, budget_usd=0.1)
    assert snap_compare(app, terminal_size=size, run_before=spent(made, ask=True))
