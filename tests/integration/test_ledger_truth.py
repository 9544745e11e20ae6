"""The ledger against an endpoint that counts itself, over random turns by seed, with the real SDK and CLI.

What the endpoint counts of a request:

* answered to its end: all tokens that its last event tells;
* stopped by the user, or cut by the network when its pieces had arrived: what was read, as the first event tells it, and
  of what was written what the agent's program counts, because the endpoint's last word never came: a token for each four
  characters that arrived (three with a model that it does not know), rounded, at least that of the first event;
* ended by an error event: nothing, the program does not count it and asks again;
* refused: nothing.

A program that is killed in the middle of a turn tells no totals: its turn has no cost, and the tokens of those requests
that were answered to their end.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.agent import KNOWN_MODEL, Chat, chat
from support.scripted import (
    Answer,
    MessagesServer,
    Request,
    call,
    error,
    rate_limited,
    reply,
    serve,
)
from support.scripted import Text as Said
from support.scripted import Usage as Told

from sandbox_chat.agent.session import Endpoint
from sandbox_chat.events import Cleared, TextDelta, TurnFinished, Usage
from sandbox_chat.prices import Price
from sandbox_chat.settings import Secret, Settings

LIST = Price(3.0, 15.0, 0.3, 3.75)
"""The list price of ``KNOWN_MODEL``, written down here by hand."""
OWN_MODEL = "house-model-1"
OWN = Price(0.7, 1.9, 0.05, 0.9)
"""A price of the user's for a model that no list has."""
PRICES = {KNOWN_MODEL: LIST, OWN_MODEL: OWN}
CHARACTERS = {KNOWN_MODEL: 4, OWN_MODEL: 3}
"""Characters that the agent's program takes for a token of an answer whose end never came."""
STOP_AT = 40
"""Characters after which an answer that will be stopped stands still."""
EXACT = 1e-9


@dataclass
class Count:
    """What the endpoint counted."""

    usage: dict[str, Usage] = field(default_factory=dict)
    cost: float = 0.0

    def add(self, model: str, told: Told, *, priced: bool = True) -> None:
        """Count a request."""
        mine = self.usage.get(model, Usage())
        self.usage[model] = Usage(
            mine.input + told.input_tokens,
            mine.output + told.output_tokens,
            mine.cache_read + told.cache_read_input_tokens,
            mine.cache_creation + told.cache_creation_input_tokens,
        )
        if priced:
            self.cost += PRICES[model].cost(
                input=told.input_tokens,
                output=told.output_tokens,
                cache_read=told.cache_read_input_tokens,
                cache_write=told.cache_creation_input_tokens,
            )

    def plus(self, other: Count) -> None:
        """Add what another one counted."""
        for model, usage in other.usage.items():
            self.add(
                model, Told(usage.input, usage.output, usage.cache_creation, usage.cache_read), priced=False
            )
        self.cost += other.cost

    @property
    def all(self) -> Usage:
        """Tokens of all models."""
        uses = self.usage.values()
        return Usage(
            sum(use.input for use in uses),
            sum(use.output for use in uses),
            sum(use.cache_read for use in uses),
            sum(use.cache_creation for use in uses),
        )


class Counting:
    """The endpoint's side of a turn: what it answers by the turn's plan, and what it counts of it.

    A plan is a list of words, one a request: ``text``, ``tool``, ``stop`` (stands still until the turn is stopped),
    ``cut``, ``event`` (an error event), ``limit`` (429), ``busy`` (529).
    """

    def __init__(self, random: random.Random) -> None:
        self._random = random
        self.plan: list[str] = []
        self.count = Count()
        self.hold = threading.Event()
        self.requests = 0

    def begin(self, plan: list[str]) -> None:
        """A turn begins."""
        self.plan, self.count, self.hold = list(plan), Count(), threading.Event()

    def __call__(self, request: Request) -> Answer:
        """Answer a request."""
        self.requests += 1
        step = self.plan.pop(0) if self.plan else "text"
        pick = self._random
        told = Told(
            pick.randint(1, 9000), pick.randint(2, 700), pick.randint(0, 5000), pick.randint(0, 90_000)
        )
        words = Said("word " * 40)
        match step:
            case "limit":
                return rate_limited(0.05)
            case "busy":
                return error(529)
            case "cut":
                place = pick.randint(0, 150)
                self.count.add(request.model, in_part(told, place, request.model))
                # A moment before the cut, so that what was sent has arrived: else the program sees no reply at all.
                return reply(words, usage=told, piece=1, stall_at=place, stall=0.25, cut_at=place)
            case "event":
                return reply(words, usage=told, error_at=pick.randint(0, 150))
            case "stop":
                self.count.add(request.model, in_part(told, STOP_AT, request.model))
                return reply(words, usage=told, piece=1, hold_at=STOP_AT, hold=self.hold)
            case "lost":
                return reply(words, usage=told, piece=1, hold_at=STOP_AT, hold=self.hold)
            case "tool":
                self.count.add(request.model, told)
                answer = call("run_code", code="1 + 1")
                return reply(*answer.blocks, usage=told)
        self.count.add(request.model, told)
        return reply(Said("done"), usage=told)


def in_part(told: Told, characters: int, model: str) -> Told:
    """Return what counts of a reply of which so many characters arrived, and its end did not."""
    return replace(told, output_tokens=max(1, math.floor(characters / CHARACTERS[model] + 0.5)))


TROUBLE = ("limit", "busy", "cut", "event")


def plan_of(pick: random.Random, what: str) -> list[str]:
    """Return the plan of a turn of a kind."""
    plan = [step for _ in range(pick.choice((0, 0, 1, 2))) for step in ("tool",)]
    match what:
        case "troubled":
            plan.insert(pick.randint(0, len(plan)), pick.choice(TROUBLE))
        case "stopped":
            return [*plan, "stop"]
        case "killed":
            return ["tool", *plan, "lost"]
    return [*plan, "text"]


class Session:
    """A session under test: asked, stopped, resumed, its CLI killed; each turn is compared with the endpoint's count."""

    def __init__(self, stack: AsyncExitStack, folder: Path, server: MessagesServer, side: Counting) -> None:
        self._stack = stack
        self._folder = folder
        self._server = server
        self._side = side
        self._id = str(uuid.uuid4())
        self._inner: AsyncExitStack | None = None
        self.chat: Chat
        self.model = KNOWN_MODEL
        self.last: TurnFinished | None = None
        self.spoken = False
        self.total = Count()
        self.known = True
        self.unknown_models: set[str] = set()

    async def open(self) -> None:
        """Begin, or go on in another run of the program."""
        if self._inner is not None:
            await self._inner.aclose()
        self._inner = await self._stack.enter_async_context(AsyncExitStack())
        endpoint = Endpoint(self._server.url, Secret(self._server.token), Secret(""), self.model)
        settings = Settings(request_retries=3, data_dir=self._folder, prices={OWN_MODEL: OWN}, max_turns=50)
        self.chat = await self._inner.enter_async_context(
            chat(
                tmp=self._folder, server=self._server, settings=settings, endpoint=endpoint, model=self.model,
                session_id=self._id, resume=self.spoken, earlier=self.last,
            )
        )  # fmt: skip

    async def turn(self, what: str, pick: random.Random) -> None:
        """Run a turn and compare."""
        self._side.begin(plan_of(pick, what))
        if what in ("stopped", "killed"):
            finished = await self._cut_short(what)
        else:
            finished = await self.chat.ask(f"please, {pick.randint(0, 999)}")
            assert not finished.is_error, finished.error
        self._side.hold.set()
        self._check(what, finished)

    async def _cut_short(self, what: str) -> TurnFinished:
        c = self.chat
        before = len(c.events)
        turn = await c.send("write a lot")
        await c.until(lambda: self._written(before) >= STOP_AT)
        if what == "stopped":
            await c.session.interrupt()
            finished = await c.finished(turn)
            assert finished.interrupted
        else:
            old = c.session.cli_pid
            os.kill(old, signal.SIGKILL)
            finished = await c.finished(turn)
            await c.until(lambda: c.session.cli_pid not in (0, old))
        return finished

    def _written(self, since: int) -> int:
        return sum(len(event.text) for event in self.chat.events[since:] if isinstance(event, TextDelta))

    def _check(self, what: str, finished: TurnFinished) -> None:
        count = self._side.count
        assert finished.usage == count.all, what
        self.total.plus(count)
        if what == "killed":
            assert finished.cost_usd is None
            self.known = False
            self.unknown_models.add(self.model)
            self.total.cost -= count.cost  # nobody told it
        else:
            assert finished.cost_usd == pytest.approx(count.cost, abs=EXACT), what
        if self.known:
            assert finished.total_cost_usd == pytest.approx(self.total.cost, abs=EXACT)
        else:
            assert finished.total_cost_usd is None
        uses = {use.model: use for use in finished.models}
        assert {model: use.usage for model, use in uses.items()} == self.total.usage
        assert sum(use.cost_usd or 0.0 for use in uses.values()) == pytest.approx(self.total.cost, abs=EXACT)
        assert {model for model, use in uses.items() if not use.complete} == self.unknown_models
        self.last, self.spoken = finished, True

    async def switch(self) -> None:
        """Use the other model from now on."""
        self.model = OWN_MODEL if self.model == KNOWN_MODEL else KNOWN_MODEL
        await self.chat.session.set_model(self.model)

    async def clear(self) -> None:
        """Let the agent forget: another conversation begins, which counts from zero, and the session goes on."""
        await self.chat.session.clear()
        self._id, self.spoken = self.chat.of(Cleared)[-1].agent_id, False

    async def kill_idle(self) -> None:
        """Kill the CLI between two turns: it saves nothing, and nothing is lost."""
        old = self.chat.session.cli_pid
        os.kill(old, signal.SIGKILL)
        await self.chat.until(lambda: self.chat.session.cli_pid != old)


@contextmanager
def counting(seed: int) -> Iterator[tuple[random.Random, Counting, MessagesServer]]:
    """The random numbers of a case, and an endpoint that counts."""
    pick = random.Random(seed)
    side = Counting(random.Random(seed + 1))
    with serve(function=side) as server:
        yield pick, side, server


async def test_twelve_turns(tmp_path: Path) -> None:
    with counting(7) as (pick, side, server):
        async with AsyncExitStack() as stack:
            session = Session(stack, tmp_path, server, side)
            await session.open()
            for what in ("plain", "stopped", "troubled", "plain"):
                await session.turn(what, pick)
            await session.switch()
            for what in ("plain", "stopped"):
                await session.turn(what, pick)
            await session.kill_idle()
            for what in ("plain", "troubled"):
                await session.turn(what, pick)
            await session.open()
            await session.turn("plain", pick)
            await session.clear()
            for what in ("plain", "killed", "stopped"):
                await session.turn(what, pick)
            assert set(session.total.usage) == {KNOWN_MODEL, OWN_MODEL}
    assert server.errors == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
async def test_two_hundred_turns(tmp_path: Path, seed: int) -> None:
    with counting(seed) as (pick, side, server):
        async with AsyncExitStack() as stack:
            session = Session(stack, tmp_path, server, side)
            await session.open()
            kinds = {"plain": 0, "troubled": 0, "stopped": 0, "killed": 0}
            for number in range(200):
                # The kills come late: after one the total has a part that nobody knows.
                weights = (50, 25, 22, 3 if number > 150 else 0)
                [what] = pick.choices(list(kinds), weights)
                kinds[what] += 1
                await session.turn(what, pick)
                step = pick.random()
                if step < 0.08:
                    await session.switch()
                elif step < 0.12:
                    await session.open()
                elif step < 0.14:
                    await session.kill_idle()
                elif step < 0.16:
                    await session.clear()
                await asyncio.sleep(0)
            assert all(kinds.values()), kinds
    assert server.errors == []
