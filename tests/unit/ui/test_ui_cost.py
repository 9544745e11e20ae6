"""The lines of the cost pane: budget, costs of turns, models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat import words
from sandbox_chat.ui import glyphs
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.cost import TABLE, cost_lines

A = ev.ModelUse("claude-sonnet-5", ev.Usage(3100, 412, 12_000, 900), 0.0123)
B = ev.ModelUse("qwen3:32b", ev.Usage(500, 40), None, complete=False)
C = ev.ModelUse("claude-haiku-5", ev.Usage(10, 4), 0.5, complete=False)


@pytest.fixture(autouse=True)
def plain_words() -> Iterator[None]:
    yield
    glyphs.use("unicode")
    words.use("en")


def state_of(*costs: float | None, models: tuple[ev.ModelUse, ...] = (A,), demo: bool = False) -> ChatState:
    state = ChatState()
    state.apply(ev.SessionStarted(at=START, session_id="s", model="m", sandbox="local", demo=demo))
    for number, cost in enumerate(costs):
        state.apply(ev.TurnStarted(at=START, turn_id=f"t{number}", prompt="p"))
        state.apply(turn_finished(f"t{number}", cost_usd=cost, models=models))
    return state


def lines(state: ChatState, width: int = 44, limit: float = 0.0) -> list[str]:
    return [line.plain for line in cost_lines(state, width, limit)]


def row(state: ChatState, label: str, width: int = 44, limit: float = 0.0) -> str:
    return next(line for line in lines(state, width, limit) if line.startswith(label))


def test_the_costs_of_turns_are_drawn_and_a_gap_has_a_sign_of_its_own() -> None:
    assert row(state_of(0.1, None, 0.4, 0.2), "turns").split()[1:] == ["4", "▂?█▄"]
    glyphs.use("ascii")
    assert row(state_of(0.1, None, 0.4, 0.2), "turns").split()[1:] == ["4", ".?#-"]


def test_the_line_of_costs_never_is_wider_than_the_pane() -> None:
    state = state_of(*(0.01 * number for number in range(200)))
    for width in (10, 14, 20, 40, 120):
        assert all(len(line) <= width for line in lines(state, width))
    assert len(row(state, "turns", 120).split()[-1]) == 48


def test_the_budget_has_a_bar() -> None:
    state = state_of(0.5, 0.25)
    assert row(state, "budget", limit=1.0) == "budget     ██████████░░░░ 75 % of $1.00"
    assert not any(line.startswith("budget") for line in lines(state))
    assert "150 % of $0.5000" in row(state, "budget", limit=0.5)
    assert "99 % of $0.7510" in row(state, "budget", limit=0.751)
    assert "<1 % of $1,000.00" in row(state, "budget", limit=1000.0)
    styles = [str(span.style) for line in cost_lines(state, 44, 0.9) for span in line.spans]
    assert "$warning" in styles
    assert "$error" in [str(span.style) for line in cost_lines(state, 44, 0.75) for span in line.spans]


def test_the_demo_has_neither_budget_nor_models() -> None:
    shown = "\n".join(lines(state_of(None, demo=True), limit=1.0))
    assert "budget" not in shown and "claude" not in shown and "no cost (demo)" in shown


def test_models_below_each_other_when_it_is_narrow() -> None:
    shown = lines(state_of(0.1, models=(A, B, C)), 40)
    at = shown.index("claude-sonnet-5  $0.0123")
    assert shown[at : at + 3] == ["claude-sonnet-5  $0.0123", "  3.1k in  412 out", "  12k read  900 written"]
    assert "qwen3:32b  n/a, price not known" in shown
    assert "claude-haiku-5  $0.5000 + n/a" in shown


def test_models_as_a_table_when_it_is_wide() -> None:
    shown = lines(state_of(0.1, models=(A, B, C)), TABLE)
    head = next(at for at, line in enumerate(shown) if line.startswith("model"))
    assert shown[head : head + 4] == [
        "model                     cost    in  out  cache read  cache written",
        "claude-sonnet-5        $0.0123  3.1k  412         12k            900",
        "qwen3:32b                  n/a   500   40           0              0",
        "claude-haiku-5   $0.5000 + n/a    10    4           0              0",
    ]
    words.use("zh")
    assert any(line.startswith("模型") for line in lines(state_of(0.1), TABLE))


def test_a_turn_that_was_lost_is_not_free() -> None:
    state = state_of(0.1)
    state.apply(ev.TurnStarted(at=START, turn_id="x", prompt="p"))
    state.apply(turn_finished("x", cost_usd=None, usage=ev.Usage(), is_error=True, models=(A,)))
    assert row(state, "this turn").startswith("this turn  n/a")
    assert "+ 1 turn, price not known" in row(state, "session", 60)


def test_the_bar_of_the_budget_makes_room_for_its_words() -> None:
    for width in (32, 34, 40):
        assert row(state_of(0.05), "budget", width, 0.04).endswith("125 % of $0.0400")


@pytest.mark.parametrize("name", ["[bold]x[/]", "模型" * 30, "e\u0301" * 90, "a" * 300, "👩‍🔬-1"])
def test_any_name_at_any_width_is_shown_to_the_letter_or_cut(name: str) -> None:
    state = state_of(0.5, None, models=(ev.ModelUse(name, ev.Usage(10**9, 10**9, 10**9, 10**9), 12345.678),))
    for width in (1, 2, 3, 11, 12, 20, 40, TABLE, 200):
        for line in cost_lines(state, width, 0.5):
            assert line.cell_length <= width
    if len(name) < 50:
        assert name in "\n".join(lines(state, 200))
