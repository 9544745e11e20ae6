"""Controls, clearing and compacting of a running session, with the real engine and CLI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.agent import KNOWN_MODEL, Chat, chat
from support.engines import Running, engine
from support.scripted import serve, text

from sandbox_chat import events as ev
from sandbox_chat.engine import Engine
from sandbox_chat.phases import Machine
from sandbox_chat.settings import COMMAND_LINE, Secret, Settings


def said(chat: Chat | Running) -> str:
    return json.dumps(chat.server.requests[-1].body["messages"])


def phase(chat: Chat | Running) -> str:
    machine = Machine()
    for event in list(chat.events):
        machine.apply(event)
    assert machine.oddity == ""
    return machine.phase


async def test_effort_and_thinking_count_from_the_next_turn_on(tmp_path: Path) -> None:
    async with chat(function=lambda request: text("ok"), tmp=tmp_path, model="claude-opus-5") as c:
        await c.ask("one")
        await c.session.set_controls(effort="low", thinking="off")
        await c.ask("two")
        first, second = (request.body for request in c.server.requests)
        assert second["output_config"]["effort"] == "low"
        assert first["thinking"]["type"] == "adaptive"
        assert second.get("thinking", {"type": "disabled"})["type"] == "disabled"
        assert "one" in said(c)
        [changed] = c.of(ev.ControlsChanged)
        assert (changed.model, changed.effort, changed.thinking) == ("claude-opus-5", "low", "off")
        await c.session.set_controls(model=KNOWN_MODEL, thinking="4096")
        await c.ask("three")
        third = c.server.requests[-1].body
        assert (third["model"], third["thinking"]["type"]) == (KNOWN_MODEL, "enabled")
        assert phase(c) == "idle"


def test_model_and_effort_go_on_in_a_later_run(tmp_path: Path) -> None:
    """They are in force, and every face is told so."""

    def run(resume: str | None, **settings: Any) -> tuple[str, dict[str, Any], ev.ControlsChanged | None]:
        with engine(
            tmp_path,
            function=lambda request: text("ok"),
            resume=resume,
            sandbox="off",
            model=KNOWN_MODEL,
            **settings,
        ) as chat:
            if resume is None:
                chat.engine.set_controls(model="claude-opus-5", effort="low")
            chat.ask("hello")
            kinds = [event.type for event in chat.events[:2]]
            told = chat.of(ev.ControlsChanged)
            assert kinds[0] == "session_started" and (
                not resume or not told or kinds[1] == "controls_changed"
            )
        assert phase(chat) == "dead"
        return chat.engine.session_id, chat.server.requests[-1].body, told[-1] if told else None

    session, _, _ = run(None)
    for _ in range(2):
        _, body, told = run(session)
        assert (body["model"], body["output_config"]["effort"]) == ("claude-opus-5", "low")
        assert told is not None and (told.model, told.effort) == ("claude-opus-5", "low")
    _, body, told = run(session, origins={"model": COMMAND_LINE})
    assert body["model"] == KNOWN_MODEL
    assert told is not None and (told.model, told.effort) == (KNOWN_MODEL, "low")


async def test_a_summary_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    steps = (text("kiwi"), text("<summary>A fruit was named.</summary>"), text("yes"))
    async with chat(*steps, tmp=tmp_path) as c:
        await c.ask("name a fruit")
        await c.session.compact("summary", "keep the\nfruit")
        finished = await c.finished("summary")
        assert not finished.is_error
        assert finished.cost_usd and finished.usage.output, "what it cost is told"
        [compacted] = c.of(ev.Compacted)
        assert compacted.before > compacted.after > 0 and not compacted.automatic
        assert [event.prompt for event in c.of(ev.TurnStarted)][-1] == "/compact keep the fruit"
        last = await c.ask("do you remember?")
        assert "A fruit was named." in said(c) and "kiwi" not in said(c)
        assert last.total_cost_usd and finished.total_cost_usd and last.cost_usd
        assert last.total_cost_usd == pytest.approx(finished.total_cost_usd + last.cost_usd)
        assert phase(c) == "idle"


@pytest.mark.parametrize("wait", [0.0, 0.001, 0.01])
async def test_a_prompt_that_is_given_while_the_agent_forgets_begins_when_it_has_forgotten(
    tmp_path: Path, wait: float
) -> None:
    async with chat(function=lambda request: text("ok"), tmp=tmp_path) as c:
        await c.ask("the word is kiwi")
        forgetting = asyncio.ensure_future(c.session.clear())
        await asyncio.sleep(0)
        await asyncio.sleep(wait)
        assert not forgetting.done()
        turn_id = await c.send("what is the word?")
        await forgetting
        await c.finished(turn_id)
        kinds = [event.type for event in c.events if isinstance(event, ev.TurnStarted | ev.Cleared)]
        assert kinds == ["turn_started", "cleared", "turn_started"], (
            "so a branch from that turn has forgotten too"
        )
        assert "kiwi" not in said(c)
        assert phase(c) == "idle"


@pytest.mark.slow
async def test_a_summary_of_nothing_and_one_that_is_interrupted(tmp_path: Path) -> None:
    async with chat(text("kiwi"), text("late", first_stall=30), text("yes"), tmp=tmp_path) as c:
        await c.session.compact("nothing")
        await c.finished("nothing")
        await c.ask("name a fruit")
        await c.session.compact("summary")
        async with asyncio.timeout(30):
            while len(c.server.requests) < 2:
                await asyncio.sleep(0.02)
        await c.session.interrupt()
        assert (await c.finished("summary")).interrupted
        assert not (await c.ask("still?")).is_error
        assert "kiwi" in said(c)
        assert phase(c) == "idle"


def test_a_session_that_was_cleared_and_resumed(tmp_path: Path) -> None:
    """The agent forgets, the record and the cost go on, and a later run finds the new conversation."""

    def run(resume: str | None, *prompts: str, clear_after: int = -1) -> tuple[str, list[ev.Event]]:
        with engine(
            tmp_path, function=lambda request: text("ok"), resume=resume, sandbox="off", model=KNOWN_MODEL
        ) as chat:
            for number, prompt in enumerate(prompts):
                chat.ask(prompt)
                bodies.append(said(chat))
                if number == clear_after:
                    chat.engine.clear()
            if clear_after >= 0:
                chat.until(lambda: chat.of(ev.Cleared))
        assert phase(chat) == "dead"
        return chat.engine.session_id, chat.events

    bodies: list[str] = []
    session, first = run(None, "the word is kiwi", "what is it?", clear_after=0)
    assert "kiwi" not in bodies[1] and "what is it?" in bodies[1]
    ends = [event for event in first if isinstance(event, ev.TurnFinished)]
    assert ends[0].cost_usd and ends[1].cost_usd
    assert ends[1].total_cost_usd == pytest.approx(ends[0].cost_usd + ends[1].cost_usd)
    _, second = run(session, "and now?", clear_after=0)
    assert "what is it?" in bodies[2] and "kiwi" not in bodies[2]
    assert not any(isinstance(event, ev.Notice) for event in second)
    _, third = run(session, "after a clearing with nothing behind it")
    assert "and now?" not in bodies[3]
    assert not any(isinstance(event, ev.Notice) for event in third), (
        "nothing was lost that was not to be forgotten"
    )
    [end] = [event for event in third if isinstance(event, ev.TurnFinished)]
    assert end.cost_usd and end.total_cost_usd and end.total_cost_usd > 3 * end.cost_usd


def test_branches_of_a_session_that_was_cleared(tmp_path: Path) -> None:
    """A branch knows what the agent of the session knows, and nothing is said to be lost."""

    def run(resume: str | None, prompt: str, *, fork: bool = False, clear: bool = False) -> tuple[str, str]:
        with engine(
            tmp_path,
            function=lambda request: text("ok"),
            resume=resume,
            fork=fork,
            sandbox="off",
            model=KNOWN_MODEL,
        ) as chat:
            end = chat.ask(prompt)
            body = said(chat)
            if clear:
                chat.engine.clear()
                chat.until(lambda: chat.of(ev.Cleared))
            assert not chat.of(ev.Notice)
            assert end.cost_usd and end.total_cost_usd
            totals.append((end.cost_usd, end.total_cost_usd))
        return chat.engine.session_id, body

    totals: list[tuple[float, float]] = []
    session, _ = run(None, "the word is kiwi", clear=True)
    branched, body = run(session, "what is it?", fork=True)
    assert "kiwi" not in body
    assert totals[1][1] == pytest.approx(totals[0][1] + totals[1][0])
    _, body = run(branched, "and now?")
    assert "what is it?" in body and "kiwi" not in body
    run(session, "after the clearing")
    _, body = run(session, "in another branch", fork=True)
    assert "after the clearing" in body and "kiwi" not in body


def test_the_last_prompt_and_whether_it_may_have_reached_the_model(tmp_path: Path) -> None:
    with serve(text("ok")) as server:
        settings = Settings(
            anthropic_base_url=server.url,
            anthropic_auth_token=Secret(server.token),
            model=KNOWN_MODEL,
            data_dir=tmp_path,
            sandbox="off",
        )
        made = Engine(settings, lambda event: None)
        assert made.last_prompt is None
        for event, expected in (
            (ev.TurnStarted(turn_id="a", prompt="one"), ("one", "running", True)),
            (end("a", is_error=True, cost_usd=0.0), ("one", "failed", False)),
            (ev.TurnStarted(turn_id="b", prompt="two"), ("two", "running", True)),
            (end("b", is_error=True, cost_usd=None), ("two", "failed", True)),
            (ev.TurnStarted(turn_id="c", prompt="three"), ("three", "running", True)),
            (end("c", interrupted=True, cost_usd=0.0), ("three", "interrupted", False)),
        ):
            made.emit(event)
            last = made.last_prompt
            assert last is not None
            assert (last.prompt, last.state, last.reached) == expected
        made.close()


def end(turn_id: str, **changes: object) -> ev.TurnFinished:
    values: dict[str, object] = {
        "turn_id": turn_id,
        "subtype": "success",
        "is_error": False,
        "interrupted": False,
        "num_turns": 0,
        "duration_ms": 1,
        "cost_usd": 0.0,
        "total_cost_usd": 0.0,
        **changes,
    }
    return ev.TurnFinished(**values)  # type: ignore[arg-type]
