"""The budget of a session with the real engine, SDK and CLI: kept over resumes, and by the CLI within a turn."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.agent import KNOWN_MODEL, chat
from support.engines import engine
from support.program import run
from support.scripted import Answer, Request, Usage, call, reply, serve
from support.scripted import Text as Said

from sandbox_chat import engine as engine_module
from sandbox_chat.events import BudgetChanged, Notice, utc_now
from sandbox_chat.settings import Settings

TOLD = Usage(1000, 50, 200, 300)
COST = 0.00459
"""What such a request costs at the list price of ``KNOWN_MODEL``."""


def answer(request: Request) -> Answer:
    """Call a tool again and again if asked to run away, else answer at once."""
    if "run away" in request.prompt:
        return reply(*call("run_code", code="1 + 1").blocks, usage=TOLD)
    return reply(Said("done"), usage=TOLD)


def kinds(events: list[Notice]) -> list[str]:
    """The kinds of notices about the budget."""
    return [event.kind for event in events if event.kind.startswith("budget")]


async def test_nothing_is_sent_beyond_the_budget_until_it_is_raised(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, budget_usd=2.5 * COST)
    async with chat(function=answer, tmp=tmp_path, settings=settings) as c:
        for _ in range(3):
            finished = await c.ask("hello")
            assert not finished.is_error  # also the turn that spends the rest may end
            assert finished.cost_usd == pytest.approx(COST)
        refused = [await c.ask("more"), await c.ask("and more")]
        assert len(c.server.requests) == 3
        for each in refused:
            assert (each.kind, each.is_error, each.cost_usd) == ("budget", True, 0.0)
            assert "may cost $0.0115" in each.error and "/budget" in each.error
        assert kinds(c.of(Notice)) == ["budget_near", "budget_reached"] or kinds(c.of(Notice)) == [
            "budget_reached"
        ]
        await c.session.set_budget(4 * COST)
        assert not (await c.ask("go on")).is_error
        assert (await c.ask("once more")).is_error
        assert len(c.server.requests) == 4


async def test_a_turn_that_runs_away_is_stopped_by_the_cli(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, budget_usd=3.5 * COST)
    async with chat(function=answer, tmp=tmp_path, settings=settings) as c:
        await c.ask("hello")
        finished = await c.ask("run away")
        assert (finished.subtype, finished.kind) == ("error_max_budget_usd", "budget_stop")
        assert finished.cost_usd == pytest.approx(3 * COST)
        assert "Raise the budget with /budget" in finished.error
        assert len(c.server.requests) == 4
        assert (await c.ask("hello")).kind == "budget"


async def test_a_model_without_a_price_is_not_stopped_by_a_price_that_is_made_up(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, budget_usd=0.001)
    async with chat(function=answer, tmp=tmp_path, settings=settings, model="house-model-1") as c:
        for _ in range(3):
            finished = await c.ask("hello")
            assert not finished.is_error
            assert finished.cost_usd is None
        assert kinds(c.of(Notice)) == ["budget_unknown"]


def test_the_budget_of_a_session_holds_in_its_next_run(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": KNOWN_MODEL, "sandbox": "off", "function": answer}
    with engine(tmp_path, **given) as e:
        e.ask("hello")
        e.engine.set_budget(2 * COST)
        e.until(lambda: e.of(BudgetChanged), "the budget")
        assert not e.ask("hello").is_error
        assert e.ask("hello").kind == "budget"
        session = e.engine.session_id
    with engine(tmp_path, resume=session, budget_usd=100.0, **given) as e:
        assert e.ask("hello").kind == "budget"
        e.engine.set_budget(3 * COST)
        assert not e.ask("hello").is_error
        assert e.ask("hello").kind == "budget"
        assert len(e.server.requests) == 1


@pytest.mark.slow
def test_a_run_without_a_screen_fails_with_the_sentence(tmp_path: Path) -> None:
    with serve(function=answer) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": server.token,
            "CLAUDE_MODEL": KNOWN_MODEL,
            "SANDBOX_CHAT_SANDBOX": "off",
            "SANDBOX_CHAT_BUDGET_USD": str(COST),
        }
        first = run("run", "hello", home=tmp_path, env=env)
        assert first.code == 0, first.stderr
        second = run("run", "--resume", "hello again", home=tmp_path, env=env)
        assert (second.code, second.stdout) == (1, "")
        assert "error: Budget used up." in second.stderr and "SANDBOX_CHAT_BUDGET_USD" in second.stderr
        assert len(server.requests) == 1
        costs = run("costs", home=tmp_path, env=env)
        assert "$0.0046" in costs.stdout


def test_a_resume_with_a_cold_cache_says_what_the_next_prompt_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Usage(1000, 50, 0, 70_000)
    given: dict[str, Any] = {
        "model": KNOWN_MODEL, "sandbox": "off", "function": lambda request: reply(Said("done"), usage=large),
    }  # fmt: skip
    with engine(tmp_path, **given) as e:
        assert e.ask("hello").context.used == 71_000
        session = e.engine.session_id
    with engine(tmp_path, resume=session, **given) as e:
        assert not e.ask("again").is_error
        assert not [event for event in e.of(Notice) if event.kind.startswith("cold")]
    monkeypatch.setattr(engine_module, "utc_now", lambda: utc_now() + timedelta(hours=2))
    with engine(tmp_path, resume=session, **given) as e:
        [notice] = e.until(
            lambda: [event for event in e.of(Notice) if event.kind.startswith("cold")], "the warning"
        )
        assert "71,000 tokens" in notice.text
