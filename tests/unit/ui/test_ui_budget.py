"""Prompts that are held because the budget is used up, and the sum that the small screen begins with."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screen import PlayedEngine, turn_finished

from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.screens.budget import suggested


def chat_of(tmp_path: Path, limit: float) -> tuple[Chat, PlayedEngine]:
    """A chat that has begun; what its engine says comes at once."""
    chat = Chat()
    chat.default_budget = limit
    engine = PlayedEngine(Settings(data_dir=tmp_path), lambda event: chat.apply([event]))
    chat.attach(engine)
    engine.start()
    return chat, engine


def spend(chat: Chat, engine: PlayedEngine, cost: float) -> None:
    chat.submit("a prompt")
    engine.emit(turn_finished(f"t{len(engine.prompts)}", cost_usd=cost))


def test_a_prompt_is_held_when_the_budget_is_used_up_and_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    chat, engine = chat_of(tmp_path, 1.0)
    spend(chat, engine, 0.6)
    spend(chat, engine, 0.6)
    assert chat.over_budget
    assert not chat.submit("held")
    assert (chat.waiting, chat.held_for_budget, len(engine.prompts)) == (["held"], True, 2)
    assert "budget" in chat.held
    assert not chat.resume_waiting()
    chat.set_budget(1.1)  # not enough
    assert (chat.waiting, chat.held_for_budget) == (["held"], True)
    chat.set_budget(2.0)
    assert (chat.waiting, chat.held, engine.prompts[2:]) == ([], "", ["held"])
    assert engine.budgets == [1.1, 2.0]


def test_the_running_turn_may_end_and_what_waits_is_held(tmp_path: Path) -> None:
    chat, engine = chat_of(tmp_path, 1.0)
    chat.submit("one")
    chat.submit("two")
    chat.submit("three")
    engine.emit(turn_finished("t1", cost_usd=1.0))
    assert (chat.waiting, chat.held_for_budget, engine.prompts) == (["two", "three"], True, ["one"])
    chat.set_budget(0.0)
    engine.emit(turn_finished("t2", cost_usd=9.0))
    engine.emit(turn_finished("t3", cost_usd=9.0))
    assert engine.prompts == ["one", "two", "three"]


def test_the_sessions_own_limit_wins_over_the_setting(tmp_path: Path) -> None:
    chat, engine = chat_of(tmp_path, 1.0)
    chat.set_budget(5.0)
    spend(chat, engine, 2.0)
    assert (chat.limit, chat.over_budget) == (5.0, False)


def test_the_demo_is_never_held(tmp_path: Path) -> None:
    chat, engine = chat_of(tmp_path, 1.0)
    chat.state.demo = True
    spend(chat, engine, 2.0)
    assert chat.submit("goes")


@pytest.mark.parametrize(
    ("limit", "spent", "text"),
    [(0, 5, ""), (1, 0.2, "1"), (1, 1.0, "2"), (0.1, 1.5, "1.6"), (2.5, 2.4, "2.5")],
)
def test_the_sum_to_begin_with(limit: float, spent: float, text: str) -> None:
    assert suggested(limit, spent) == text
