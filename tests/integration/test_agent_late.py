"""A CLI that reacts to Esc but does not end the turn in time: over for the user, and what it cost is known later."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.agent import Chat, chat
from support.scripted import Reply, call, reply, text
from support.scripted import Text as Said

from sandbox_chat.agent.program import find_cli
from sandbox_chat.engine_past import Past
from sandbox_chat.events import (
    Cleared,
    Notice,
    Text,
    TextDelta,
    ToolFinished,
    ToolOutput,
    TurnFinished,
    TurnSettled,
)
from sandbox_chat.phases import Machine
from sandbox_chat.settings import Settings

SLOW = '''#!{python}
"""The CLI, but what it says after an order to interrupt comes {hold} s later; only that it has heard comes at once."""
import subprocess, sys, threading, time

cli = subprocess.Popen([{cli!r}, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
until = 0.0
held = False


def orders():
    global until, held
    for line in sys.stdin.buffer:
        if b'"interrupt"' in line and not held:
            held, until = True, time.monotonic() + {hold}
        elif b'"type":"user"' in line.replace(b" ", b""):
            held = False
        cli.stdin.write(line)
        cli.stdin.flush()
    cli.stdin.close()


threading.Thread(target=orders, daemon=True).start()
for line in cli.stdout:
    while time.monotonic() < until and cli.poll() is None and b'"control_response"' not in line:
        time.sleep(0.02)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
sys.exit(cli.wait() & 127)
'''
LIMIT = 1.0
"""Seconds within which a turn must be over for the user."""
ROOM = 0.5
"""Seconds more that a busy computer may take."""


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CLI that ends an interrupted turn 2 s late."""
    set_slow(tmp_path, monkeypatch, 2.0)


def set_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hold: float) -> None:
    script = tmp_path / "slow-cli"
    script.write_text(SLOW.format(python=sys.executable, cli=str(find_cli()), hold=hold))
    script.chmod(0o700)
    monkeypatch.setattr("sandbox_chat.agent.options.find_cli", lambda: script)


def long(words: int = 400) -> Reply:
    return reply(Said("word " * words), pace=0.02)


def check(c: Chat) -> None:
    machine = Machine()
    for event in c.events:
        machine.apply(event)
    assert (machine.oddity, machine.busy) == ("", False)


async def stopped(c: Chat, turn: str) -> TurnFinished:
    """Interrupt, and return the end of the turn, which comes in time without a result."""
    began = time.monotonic()
    await c.session.interrupt()
    finished = await c.finished(turn, 10)
    assert time.monotonic() - began < LIMIT + ROOM
    assert finished.interrupted and not finished.is_error
    assert (finished.cost_usd, finished.total_cost_usd) == (None, None), "what is not known yet is not told"
    return finished


@pytest.mark.usefixtures("slow")
async def test_what_it_cost_is_in_the_next_total(tmp_path: Path) -> None:
    async with chat(text("one"), long(), text("three"), text("four"), tmp=tmp_path) as c:
        first = await c.ask("a")
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        pid = c.session.cli_pid
        await stopped(c, turn)
        third = await c.ask("c")
        assert c.session.cli_pid == pid, "it came to the end, so it is kept"
        assert [event.text for event in c.of(Text)][-1] == "three"
        assert first.total_cost_usd and third.cost_usd and third.total_cost_usd
        late = third.total_cost_usd - first.total_cost_usd - third.cost_usd
        assert late > 1e-6, "the cost of the turn that was stopped"
        [settled] = c.of(TurnSettled)
        assert settled.turn_id == turn and settled.cost_usd == pytest.approx(late)
        assert settled.total_cost_usd == pytest.approx(first.total_cost_usd + late)
        assert settled.usage.input and settled.models
        assert c.events.index(settled) < c.events.index(third)
        [use] = third.models
        assert use.cost_usd == pytest.approx(third.total_cost_usd)
        fourth = await c.ask("d")
        assert fourth.cost_usd and fourth.total_cost_usd
        assert fourth.total_cost_usd == pytest.approx(third.total_cost_usd + fourth.cost_usd)
        assert len(c.server.requests) == 4
        check(c)


@pytest.mark.usefixtures("slow")
async def test_a_budget_counts_it_when_it_is_known(tmp_path: Path) -> None:
    async with chat(long(), text("no"), tmp=tmp_path, budget=1e-4) as c:
        turn = await c.send("a")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        await stopped(c, turn)
        assert [event.kind for event in c.of(Notice)] == []
        await c.until(lambda: [event.kind for event in c.of(Notice)] == ["budget_reached"])
        refused = await c.ask("b")
        assert (refused.is_error, refused.kind, refused.cost_usd) == (True, "budget", 0.0)
        assert len(c.server.requests) == 1
        check(c)


@pytest.mark.usefixtures("slow")
async def test_code_that_runs_is_stopped_although_the_cli_does_not_take_it_back(tmp_path: Path) -> None:
    async with chat(call("run_code", code="sleep(30)"), text("next"), tmp=tmp_path) as c:
        turn = await c.send("run")
        await c.until(lambda: c.of(ToolOutput))
        await stopped(c, turn)
        [card] = c.of(ToolFinished)
        assert card.interrupted
        async with asyncio.timeout(1):
            while not c.worker.cancelled:
                await asyncio.sleep(0.01)
        assert not (await c.ask("again")).is_error
        assert c.of(Text)[-1].text == "next"
        assert (c.worker.cancelled, len(c.of(ToolFinished))) == (1, 1)
        check(c)


@pytest.mark.usefixtures("slow")
async def test_clearing_meanwhile_counts_nothing_twice(tmp_path: Path) -> None:
    async with chat(text("one"), long(), text("three"), tmp=tmp_path) as c:
        first = await c.ask("a")
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        await stopped(c, turn)
        await c.session.clear()
        assert c.of(Cleared)
        third = await c.ask("c")
        assert first.total_cost_usd and third.cost_usd and third.total_cost_usd
        late = third.total_cost_usd - first.total_cost_usd - third.cost_usd
        assert 1e-6 < late < 10 * first.total_cost_usd
        check(c)


@pytest.mark.usefixtures("slow")
async def test_closing_meanwhile_leaves_no_process_and_no_invented_total(tmp_path: Path) -> None:
    async with chat(text("one"), long(), tmp=tmp_path) as c:
        await c.ask("a")
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        pid = c.session.cli_pid
        await stopped(c, turn)
        await c.session.close()
        assert not psutil.pid_exists(pid)
        past = Past()
        for event in c.events:
            past.take(event)
        assert past.earlier is not None and past.earlier.total_cost_usd is None
        assert c.of(TurnSettled) == []
        check(c)


async def test_a_cli_that_never_comes_to_the_end_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_slow(tmp_path, monkeypatch, 60.0)
    monkeypatch.setattr("sandbox_chat.agent.running.SETTLE", 1.0)
    settings = Settings(request_retries=1, data_dir=tmp_path)
    async with chat(text("one"), long(), text("three"), tmp=tmp_path, settings=settings) as c:
        await c.ask("a")
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        old = c.session.cli_pid
        await stopped(c, turn)
        third = await c.ask("c")
        assert c.session.cli_pid != old and not psutil.pid_exists(old)
        assert third.cost_usd and third.total_cost_usd is None, "what was lost with it is not known"
        assert c.of(TurnSettled) == []
        assert c.of(Text)[-1].text == "three"
        check(c)
