"""The rights of a run: counted, paced, a few at a time, and over with it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from support.bridging import Clock

from sandbox_chat.bridge import run as run_module
from sandbox_chat.bridge.run import OverLimit, Run
from sandbox_chat.settings import Settings


def made(**values: Any) -> Run:
    return Run("call-1", Settings(**{"code_mode_rate": 100_000.0, **values}))


@pytest.fixture(name="clock")
def clock_fixture(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=clock.now))
    return clock


# -- counting ----------------------------------------------------------------------------------------------


async def test_calls_are_numbered_and_limited() -> None:
    run = made(code_mode_calls=3)
    numbers = []
    for _ in range(3):
        async with run.call() as number:
            numbers.append(number)
    assert numbers == [1, 2, 3]
    for _ in range(2):
        with pytest.raises(OverLimit) as caught:
            async with run.call():
                pytest.fail("it was let through")
    assert run.made == 3
    said = str(caught.value)
    assert said.startswith("One run may make 3 calls (SANDBOX_CHAT_CODE_MODE_CALLS), and this one has.")
    assert "another run" in said


async def test_a_call_that_fails_counts() -> None:
    run = made(code_mode_calls=1)
    with pytest.raises(ValueError, match="it failed"):
        async with run.call():
            raise ValueError("it failed")
    with pytest.raises(OverLimit):
        async with run.call():
            pytest.fail("it was let through")


async def test_only_so_many_at_the_same_time() -> None:
    run = made(code_mode_parallel=3)
    now = most = 0

    async def call() -> int:
        nonlocal now, most
        async with run.call() as number:
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            return number

    numbers = await asyncio.gather(*(call() for _ in range(20)))
    assert most == 3
    assert sorted(numbers) == list(range(1, 21))


async def test_a_call_that_fails_gives_its_place_back() -> None:
    run = made(code_mode_parallel=1)
    for _ in range(3):
        with pytest.raises(ValueError, match="it failed"):
            async with run.call():
                raise ValueError("it failed")
    task = asyncio.ensure_future(_forever(run))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(_once(run))
    await asyncio.sleep(0)
    assert not waiting.done()
    task.cancel()
    assert await waiting == 5


async def _once(run: Run) -> int:
    async with run.call() as number:
        return number


async def _forever(run: Run) -> None:
    async with run.call():
        await asyncio.Event().wait()


# -- pace --------------------------------------------------------------------------------------------------


def only_sleep(monkeypatch: pytest.MonkeyPatch, sleep: Any) -> None:
    """Let a run, and nothing else, sleep in another way."""
    parts = SimpleNamespace(sleep=sleep, Semaphore=asyncio.Semaphore)
    monkeypatch.setattr(run_module, "asyncio", parts)


async def paced(clock: Clock, monkeypatch: pytest.MonkeyPatch, rate: float, count: int) -> list[float]:
    """The times at which so many calls that are made at once begin, by a clock that only waiting moves."""

    async def sleep(seconds: float) -> None:
        clock.at += seconds

    only_sleep(monkeypatch, sleep)
    run = made(code_mode_rate=rate)
    times = []
    for _ in range(count):
        async with run.call():
            times.append(clock.at)
    return times


@pytest.mark.parametrize("rate", [4.0, 10.0])
async def test_what_is_too_quick_waits(rate: float, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    times = await paced(clock, monkeypatch, rate, int(rate) * 3)
    first = int(rate)
    assert times[:first] == [clock.start] * first  # as many as in one second at once
    gaps = [later - sooner for sooner, later in itertools.pairwise(times[first - 1 :])]
    assert gaps == pytest.approx([1 / rate] * len(gaps))


async def test_less_than_one_in_a_second(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    times = await paced(clock, monkeypatch, 0.5, 4)
    assert [each - clock.start for each in times] == pytest.approx([0, 2, 4, 6])


async def test_a_pause_is_saved_up_but_not_without_end(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    only_sleep(monkeypatch, sleep)
    run = made(code_mode_rate=3.0)
    for _ in range(3):
        await _once(run)
    clock.at += 3600
    for _ in range(4):
        await _once(run)
    assert waits == pytest.approx([1 / 3])  # after an hour three more at once, and not thousands


# -- what is not the code's own time -----------------------------------------------------------------------


def test_waiting_is_measured(clock: Clock) -> None:
    run = made()
    assert run.waited() == 0
    clock.at += 5
    assert run.waited() == 0
    with run.waiting():
        clock.at += 2
        assert run.waited() == 2  # also while it lasts
    clock.at += 7
    assert run.waited() == 2
    with run.waiting():
        clock.at += 1
    assert run.waited() == 3


def test_what_is_done_at_the_same_time_counts_once(clock: Clock) -> None:
    run = made()
    with run.waiting():
        clock.at += 1
        with run.waiting():
            clock.at += 1
        clock.at += 1
        assert run.waited() == 3
    assert run.waited() == 3


def test_a_failure_ends_the_waiting(clock: Clock) -> None:
    run = made()
    with pytest.raises(ValueError, match="it failed"), run.waiting():
        clock.at += 1
        raise ValueError("it failed")
    clock.at += 10
    assert run.waited() == 1


# -- its end -----------------------------------------------------------------------------------------------


async def test_the_end_stops_what_is_done_for_it() -> None:
    run = made()
    ended: list[str] = []

    async def work(name: str, last: Callable[[], Any]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await last()
            ended.append(name)

    run.tasks = {asyncio.ensure_future(work(name, lambda: asyncio.sleep(0))) for name in "ab"}
    await asyncio.sleep(0)
    assert not run.over
    await run.end()
    assert run.over
    assert sorted(ended) == ["a", "b"]
    await run.end()  # any number of times


async def test_what_does_not_end_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "END_WAIT", 0.02)
    run = made()
    stop = asyncio.Event()

    async def stubborn() -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.ensure_future(stubborn())
    run.tasks = {task}
    await asyncio.sleep(0)
    await run.end()
    assert run.over
    assert not task.done()
    stop.set()
    await task
