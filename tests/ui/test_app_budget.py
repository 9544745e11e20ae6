"""The budget on the screen: asked for, offered when it is used up, typed as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat.ui.screens.budget import BudgetScreen


def app_of(tmp_path: Path, limit: float = 1.0, **changes: Any) -> tuple[Any, list[PlayedEngine]]:
    made: list[PlayedEngine] = []
    values = {"demo": False, "anthropic_base_url": "http://127.0.0.1:9", "budget_usd": limit, **changes}
    return chat_app(tmp_path, made, **values), made


async def spend(pilot: Any, engine: PlayedEngine, cost: float) -> None:
    pilot.app.chat.submit("a prompt")
    engine.finish(cost_usd=cost)
    await settled(pilot, lambda: not pilot.app.chat.busy)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_prompt_over_the_budget_asks_for_a_larger_one_and_goes_on(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app, made = app_of(tmp_path)
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        [engine] = made
        await spend(pilot, engine, 1.25)
        app.chat_screen.composer.insert_text("one more")
        await pilot.press("enter")
        await settled(pilot, lambda: isinstance(app.screen, BudgetScreen))
        shown = screen_text(app)
        assert "It has cost $1.25 of $1.00, 125 %." in shown
        assert "1 prompt waits for it." in shown
        assert engine.prompts == ["a prompt"]
        await pilot.press("enter")  # the double is offered
        await settled(pilot, lambda: engine.prompts == ["a prompt", "one more"])
        assert engine.budgets == [2.0]
        assert not isinstance(app.screen, BudgetScreen)


async def test_leaving_the_question_keeps_the_prompt_and_says_why_it_waits(tmp_path: Path) -> None:
    app, made = app_of(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await spend(pilot, made[0], 1.25)
        app.chat_screen.composer.insert_text("one more")
        await pilot.press("enter")
        await settled(pilot, lambda: isinstance(app.screen, BudgetScreen))
        await pilot.press("escape")
        await settled(pilot, lambda: not isinstance(app.screen, BudgetScreen))
        assert app.chat.waiting == ["one more"]
        assert "because the budget is used up" in screen_text(app)
        await pilot.press("ctrl+g")  # to send it asks again
        await settled(pilot, lambda: isinstance(app.screen, BudgetScreen))


async def test_wrong_and_low_sums_are_said(tmp_path: Path) -> None:
    app, made = app_of(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await spend(pilot, made[0], 0.5)
        await app.chat_screen.run_action("screen.budget")
        await settled(pilot, lambda: isinstance(app.screen, BudgetScreen))
        field = app.screen.query_one("#budget-amount")
        field.value = "a lot"
        await pilot.press("enter")
        await settled(pilot, lambda: "Write dollars" in screen_text(app))
        field.value = "0.2"
        await pilot.press("enter")
        await settled(pilot, lambda: "It has cost $0.5000 already" in screen_text(app))
        assert made[0].budgets == []
        await pilot.press("enter")  # it is meant
        await settled(pilot, lambda: made[0].budgets == [0.2])


async def test_the_budget_as_a_command(tmp_path: Path) -> None:
    app, made = app_of(tmp_path, 0.0)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        composer = app.chat_screen.composer
        for typed in ("/budget 2.50", "/budget much"):
            composer.write_command(typed)
            await pilot.press("enter")
            await pilot.pause()
        assert made[0].budgets == [2.5]
        assert "Write dollars" in screen_text(app)
        assert composer.draft == "/budget much"
        await spend(pilot, made[0], 0.5)
        assert "of $2.50" in screen_text(app)


async def test_the_demo_has_no_budget(tmp_path: Path) -> None:
    app, _ = app_of(tmp_path, demo=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await app.chat_screen.run_action("screen.budget")
        await pilot.pause()
        assert not isinstance(app.screen, BudgetScreen)
        assert "The demo costs nothing" in screen_text(app)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (12, 5), (200, 60)])
async def test_the_question_in_any_size(tmp_path: Path, size: tuple[int, int]) -> None:
    app, made = app_of(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await app.chat_screen.run_action("screen.budget")
        await settled(pilot, lambda: isinstance(app.screen, BudgetScreen))
        await pilot.resize_terminal(*size)
        await pilot.press("2", "enter")
        await settled(pilot, lambda: made[0].budgets == [2.0])
