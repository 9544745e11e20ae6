"""A prompt that is sent into the running turn, only by the user's choice, with the real CLI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.agent import Chat, chat
from support.scripted import Reply, call, error, reply, text
from support.scripted import Text as Said

from sandbox_chat.events import Notice, Steered, Text, TextDelta, ToolOutput, TurnFinished, TurnStarted
from sandbox_chat.phases import Machine


def long(words: int = 60, pace: float = 0.03) -> Reply:
    return reply(Said("word " * words), pace=pace)


def said(c: Chat, request: int = -1) -> str:
    return json.dumps(c.server.requests[request].body["messages"])


def check(c: Chat) -> None:
    machine = Machine()
    for event in c.events:
        machine.apply(event)
    assert (machine.oddity, machine.phase) == ("", "idle")


async def test_while_text_streams_it_is_answered_after_it_in_the_same_turn(tmp_path: Path) -> None:
    async with chat(long(), text("that too"), text("third"), tmp=tmp_path) as c:
        turn = await c.send("first")
        await c.until(lambda: c.of(TextDelta))
        await c.session.steer("other", "also @/etc/passwd and\n/clear")
        finished = await c.finished(turn)
        assert (finished.is_error, finished.interrupted, finished.num_turns) == (False, False, 2)
        assert [event.text.strip()[-8:] for event in c.of(Text)] == ["ord word", "that too"]
        assert [(event.turn_id, event.prompt) for event in c.of(Steered)] == [
            (turn, "also @/etc/passwd and\n/clear")
        ]
        assert len(c.of(TurnStarted)) == len(c.of(TurnFinished)) == 1
        assert json.dumps("also @/etc/passwd and\n/clear")[1:-1] in said(c), "to the letter"
        assert "root:" not in said(c)
        second = await c.ask("next")
        assert finished.cost_usd and second.cost_usd
        assert second.total_cost_usd == pytest.approx(finished.cost_usd + second.cost_usd)
        check(c)


async def test_while_a_tool_runs_it_is_taken_up_with_the_result(tmp_path: Path) -> None:
    async with chat(call("run_code", code="sleep(1)"), text("both"), tmp=tmp_path) as c:
        turn = await c.send("first")
        await c.until(lambda: c.of(ToolOutput))
        await c.session.steer("other", "and in centimetres")
        assert not (await c.finished(turn)).is_error
        assert [event.text for event in c.of(Text)] == ["both"]
        assert "and in centimetres" in said(c)
        assert len(c.server.requests) == 2
        check(c)


async def test_an_interruption_takes_it_back(tmp_path: Path) -> None:
    async with chat(long(400), text("next"), tmp=tmp_path) as c:
        turn = await c.send("first")
        await c.until(lambda: c.of(TextDelta))
        pid = c.session.cli_pid
        await c.session.steer("x", "one more")
        await c.session.steer("y", "and one more")
        await asyncio.sleep(0.1)
        await c.session.interrupt()
        assert (await c.finished(turn)).interrupted
        await asyncio.sleep(1)
        assert len(c.server.requests) == 1, "nothing runs after the interruption"
        assert not (await c.ask("second")).interrupted
        assert c.of(Text)[-1].text == "next"
        assert "one more" not in said(c)
        assert c.session.cli_pid == pid
        check(c)


async def test_several_are_all_waited_for(tmp_path: Path) -> None:
    async with chat(long(), text("the rest"), text("more"), tmp=tmp_path) as c:
        turn = await c.send("first")
        await c.until(lambda: c.of(TextDelta))
        for prompt in ("one", "two"):
            await c.session.steer("x", prompt)
        finished = await c.finished(turn)
        assert not finished.is_error
        assert "one" in said(c) and "two" in said(c)
        assert c.of(Text)[-1].text in ("the rest", "more")
        assert len(c.of(TurnFinished)) == 1
        check(c)


async def test_without_a_turn_it_is_one_of_its_own(tmp_path: Path) -> None:
    async with chat(text("yes"), tmp=tmp_path) as c:
        await c.session.steer("own", "are you there?")
        assert not (await c.finished("own")).is_error
        assert [event.turn_id for event in c.of(TurnStarted)] == ["own"]
        assert c.of(Steered) == []
        check(c)


@pytest.mark.slow
async def test_a_part_that_failed_is_said(tmp_path: Path) -> None:
    broken = error(403, "not here", delay=1.5)
    async with chat(
        function=lambda request: text("well") if "zebra" in str(request.body) else broken, tmp=tmp_path
    ) as c:
        turn = await c.send("first")
        await asyncio.sleep(0.3)
        await c.session.steer("x", "a zebra")
        finished = await c.finished(turn)
        assert not finished.is_error
        assert c.of(Text)[-1].text == "well"
        assert [event.kind for event in c.of(Notice)] == ["forbidden"]
        check(c)


@pytest.mark.slow
async def test_an_answer_to_it_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    async with chat(long(30), text("that too", first_stall=4.5), text("third"), tmp=tmp_path) as c:
        turn = await c.send("first")
        await c.until(lambda: c.of(TextDelta))
        await c.session.steer("x", "also this")
        finished = await c.finished(turn)
        assert finished.num_turns == 2
        assert c.of(Text)[-1].text == "that too"
        third = await c.ask("third")
        assert c.of(Text)[-1].text == "third"
        assert finished.cost_usd and third.cost_usd
        assert third.total_cost_usd == pytest.approx(finished.cost_usd + third.cost_usd)
        check(c)
