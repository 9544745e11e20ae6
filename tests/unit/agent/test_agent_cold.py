"""What is said at a resume whose next prompt will be dear."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from support.screen import START, turn_finished

from sandbox_chat.agent.cold import cold_notice, list_price
from sandbox_chat.events import ContextUse, Notice
from sandbox_chat.prices import Price
from sandbox_chat.settings import Settings

LAST = turn_finished("t", at=START, context=ContextUse(120_000, 200_000))
LATER = START + timedelta(hours=3)


def notice(**changes: Any) -> Notice | None:
    given: dict[str, Any] = {
        "earlier": LAST,
        "settings": Settings(),
        "model": "local",
        "now": LATER,
        **changes,
    }
    return cold_notice(given.pop("earlier"), given.pop("settings"), **given)


def test_a_price_of_the_users_gives_dollars() -> None:
    found = notice(settings=Settings(prices={"local": Price(3.0, 15.0, 0.3, 3.75)}))
    assert found is not None
    assert found.kind == "cold_priced"
    assert "about $0.4500" in found.text
    assert (
        "120,000 tokens" in found.text and "$3.75 for a million" in found.text and "3 h 00 min" in found.text
    )


def test_without_a_price_the_tokens_are_told() -> None:
    found = notice()
    assert found is not None
    assert found.kind == "cold_tokens"
    assert "about 120,000 tokens" in found.text and "no price of the model local" in found.text
    assert "$" not in found.text


MODELS = [
    {
        "value": "default",
        "resolvedModel": "claude-o",
        "description": "Use the default model · $4/$20 per Mtok",
    },
    {
        "value": "haiku",
        "resolvedModel": "claude-h",
        "description": "Quick · $0.10/$0.50 per Mtok ($0.50/$2.50 for prompts over 100k)",
    },
    {"value": "claude-old", "resolvedModel": "claude-old", "description": "Newer version available"},
]
"""As the agent's program describes them."""


@pytest.mark.parametrize(
    ("model", "tokens", "price"),
    [
        ("", 1, 4.0),
        ("claude-o", 1, 4.0),
        ("haiku", 100_000, 0.1),
        ("claude-h", 100_001, 0.5),
        ("claude-old", 1, None),
        ("x", 1, None),
    ],
)
def test_the_list_of_the_agents_program(model: str, tokens: int, price: float | None) -> None:
    assert list_price(MODELS, model, tokens) == price


def test_a_listed_price_wins_and_says_what_it_is() -> None:
    prices = {"*": Price(1.0, 1.0, 1.0, 1.0)}
    found = notice(model="claude-o", models=MODELS, settings=Settings(prices=prices))
    assert found is not None
    assert found.kind == "cold_listed"
    assert "about $0.4800" in found.text and "list price of input" in found.text


@pytest.mark.parametrize(
    "changes",
    [
        {"earlier": None},
        {"earlier": dataclasses.replace(LAST, context=ContextUse(49_999, 200_000))},
        {"now": START + timedelta(minutes=59)},
        {"settings": Settings(demo=True)},
        {"settings": Settings(cold_tokens=0)},
        {"settings": Settings(cold_after=4 * 3600.0)},
    ],
)
def test_when_nothing_is_said(changes: dict[str, Any]) -> None:
    assert notice(**changes) is None
