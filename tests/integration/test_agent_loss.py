"""A CLI that is lost: said, started again with the same session, and no prompt is sent twice by itself (case A4)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.agent import Chat, chat
from support.scripted import Reply, call, rate_limited, reply, text
from support.scripted import Text as Said

from sandbox_chat.agent.program import find_cli
from sandbox_chat.events import Notice, Status, Text, TextDelta, ToolFinished, ToolOutput, TurnFinished
from sandbox_chat.phases import Machine
from sandbox_chat.settings import Settings


def long(words: int = 300, pace: float = 0.03) -> Reply:
    return reply(Said("word " * words), pace=pace)


def settings(tmp: Path, **changes: Any) -> Settings:
    return Settings(**{"request_retries": 1, "data_dir": tmp, **changes})


def states(c: Chat) -> list[str]:
    return [event.state for event in c.of(Status)]


def kinds(c: Chat) -> list[str]:
    return [event.kind for event in c.of(Notice)]


def asked(c: Chat, prompt: str) -> int:
    """How often a request ended with this prompt."""
    found = 0
    for request in c.server.requests:
        said = json.dumps(request.body["messages"][-1]["content"])
        found += prompt in said
    return found


def check(c: Chat) -> None:
    """The events made sense, and the last turn has ended."""
    machine = Machine()
    for event in c.events:
        machine.apply(event)
    assert (machine.oddity, machine.busy) == ("", False)


async def started_anew(c: Chat, old: int) -> None:
    async with asyncio.timeout(60):
        while c.session.cli_pid in (0, old):
            await asyncio.sleep(0.01)


async def test_a4_a_cli_killed_in_mid_turn(tmp_path: Path) -> None:
    steps = (text("your word is kiwi"), long(), text("still here"))
    async with chat(*steps, tmp=tmp_path) as c:
        await c.ask("give me a word")
        turn = await c.send("write it")
        await c.until(lambda: len(c.of(TextDelta)) > 10)
        old = c.session.cli_pid
        os.kill(old, signal.SIGKILL)
        finished = await c.finished(turn, 30)
        assert (finished.is_error, finished.interrupted, finished.kind) == (True, False, "cli_lost")
        assert "SIGKILL" in finished.error and "send the prompt again" in finished.error
        assert "may not remember this turn" in finished.error
        assert c.of(Text)[1].text.startswith("word word"), "what was written is kept"
        await started_anew(c, old)
        await c.until(lambda: states(c)[-1] == "ready")
        assert asked(c, "write it") == 1, "it was not sent again by itself"
        assert not (await c.ask("write, please")).is_error
        assert "kiwi" in json.dumps(c.server.requests[-1].body["messages"])
        assert states(c) == ["connecting", "ready", "lost", "connecting", "ready"]
        check(c)


def wrapper(folder: Path) -> Path:
    """A program in the place of the CLI that ends with status 0 when the CLI in it ends, however that was."""
    real = find_cli()
    assert real is not None
    script = folder / "cli"
    script.write_text(f'#!/bin/sh\nexec 3<&0\n{shlex.quote(str(real))} "$@" <&3 &\nwait $!\nexit 0\n')
    script.chmod(0o700)
    return script


async def test_a_stream_that_ends_without_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = wrapper(tmp_path)
    monkeypatch.setattr("sandbox_chat.agent.options.find_cli", lambda: script)
    async with chat(text("first"), long(), text("still here"), tmp=tmp_path) as c:
        await c.ask("begin")  # so that there is a record to go on with
        turn = await c.send("write")
        await c.until(lambda: len(c.of(TextDelta)) > 10)
        old = c.session.cli_pid
        os.kill(old, signal.SIGKILL)
        finished = await c.finished(turn, 30)
        assert finished.is_error and "ended by itself" in finished.error
        await started_anew(c, old)
        assert not (await c.ask("again")).is_error
        assert c.of(Text)[-1].text == "still here"
        check(c)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGABRT], ids=["asked to end", "aborted"])
@pytest.mark.slow
async def test_other_ways_to_end(tmp_path: Path, signum: signal.Signals) -> None:
    async with chat(long(), text("still here"), tmp=tmp_path) as c:
        turn = await c.send("write")
        await c.until(lambda: len(c.of(TextDelta)) > 10)
        os.kill(c.session.cli_pid, signum)
        assert (await c.finished(turn, 30)).is_error
        assert not (await c.ask("again")).is_error
        check(c)


async def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader is dead then, and the CLI alive: it is ended before another one goes on with the session."""
    monkeypatch.setattr("sandbox_chat.agent.options.MAX_BUFFER", 100_000)
    steps = (text("kiwi"), reply(Said("word " * 60_000), piece=50_000), text("still here"))
    async with chat(*steps, tmp=tmp_path) as c:
        await c.ask("one")
        old = c.session.cli_pid
        finished = await c.ask("two")
        assert (finished.is_error, finished.kind) == (True, "line_too_long")
        await started_anew(c, old)
        assert not psutil.pid_exists(old)
        assert not (await c.ask("three")).is_error
        assert c.of(Text)[-1].text == "still here"
        assert "kiwi" in json.dumps(c.server.requests[-1].body["messages"])
        check(c)


async def test_a_cli_that_ends_while_nothing_runs_is_started_again(tmp_path: Path) -> None:
    async with chat(text("one"), text("two"), tmp=tmp_path) as c:
        await c.ask("a")
        old = c.session.cli_pid
        os.kill(old, signal.SIGKILL)
        await c.until(lambda: kinds(c) == ["cli_again"])
        assert "SIGKILL" in c.of(Notice)[0].text
        assert states(c) == ["connecting", "ready", "lost", "connecting", "ready"]
        assert not (await c.ask("b")).is_error
        assert [event.text for event in c.of(Text)] == ["one", "two"]
        check(c)


async def test_a_prompt_in_the_very_moment_in_which_the_cli_ends(tmp_path: Path) -> None:
    """It is answered once, or said not to be: never lost in silence, and never sent twice by itself."""
    async with chat(
        function=lambda request: text("yes"), tmp=tmp_path, settings=settings(tmp_path, restart_limit=100)
    ) as c:
        await c.ask("begin")
        for number, delay in enumerate((0.0, 0.0, 0.002, 0.01, 0.05)):
            os.kill(c.session.cli_pid, signal.SIGKILL)
            await asyncio.sleep(delay)
            prompt = f"question {number}"
            finished = await c.ask(prompt)
            assert asked(c, prompt) == (0 if finished.is_error else 1), f"after {delay} s"
            if finished.is_error:
                assert "end the prompt again" in finished.error
            await c.until(lambda: states(c)[-1] == "ready")
        check(c)


async def test_a_cli_that_ends_again_and_again_is_given_up(tmp_path: Path) -> None:
    async with chat(text("at last"), tmp=tmp_path) as c:
        for number in range(3):
            old = c.session.cli_pid
            os.kill(old, signal.SIGKILL)
            if number < 2:
                await started_anew(c, old)
                await c.until(lambda: states(c)[-1] == "ready")
        await c.until(lambda: "cli_given_up" in kinds(c))
        said = c.of(Notice)[-1].text
        assert "3 times within a minute (SIGKILL)" in said and "sandbox-chat doctor" in said
        await asyncio.sleep(0.5)
        assert (c.session.cli_pid, states(c)[-1]) == (0, "lost")
        assert not (await c.ask("once more")).is_error, "by the user's word it is started"
        assert c.of(Text)[-1].text == "at last"
        check(c)


@pytest.mark.slow
async def test_a_cli_that_ends_in_every_turn_is_given_up(tmp_path: Path) -> None:
    async with chat(function=lambda request: long(), tmp=tmp_path) as c:
        ends = []
        for _ in range(3):
            count = len(c.of(TextDelta))
            turn = await c.send("write")
            await c.until(lambda: len(c.of(TextDelta)) > count + 5)  # noqa: B023
            os.kill(c.session.cli_pid, signal.SIGKILL)
            ends.append(await c.finished(turn, 30))
        assert [end.kind for end in ends] == ["cli_lost", "cli_lost", "cli_given_up"]
        await asyncio.sleep(0.5)
        assert c.session.cli_pid == 0
        check(c)


async def test_a_cli_that_falls_silent_is_told_and_replaced(tmp_path: Path) -> None:
    limits = settings(tmp_path, silence_notice=0.5, silence_timeout=2.0)
    async with chat(text("one"), long(), text("three"), tmp=tmp_path, settings=limits) as c:
        await c.ask("a")
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        frozen = c.session.cli_pid
        os.kill(frozen, signal.SIGSTOP)
        finished = await c.finished(turn, 30)
        assert finished.kind == "cli_lost" and "it said nothing for 2 s" in finished.error
        assert states(c)[states(c).index("lost") - 1] == "silent"
        await started_anew(c, frozen)
        assert not psutil.pid_exists(frozen)
        assert not (await c.ask("c")).is_error
        check(c)


async def test_a_cli_that_does_not_read_a_long_prompt_is_told_and_replaced(tmp_path: Path) -> None:
    limits = settings(tmp_path, silence_notice=0.5, silence_timeout=2.0)
    async with chat(text("one"), text("three"), tmp=tmp_path, settings=limits) as c:
        await c.ask("a")
        frozen = c.session.cli_pid
        os.kill(frozen, signal.SIGSTOP)
        finished = await c.finished(await c.send("b " * 1_000_000), 30)
        assert finished.kind == "cli_lost" and "it said nothing for 2 s" in finished.error
        await started_anew(c, frozen)
        assert not (await c.ask("c")).is_error
        check(c)


async def test_a_fault_of_ours_in_a_turn_leaves_nothing_of_it_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the CLI goes on to say of it must not be taken for the answer to the next prompt."""
    async with chat(text("one"), long(), text("three"), tmp=tmp_path) as c:
        await c.ask("a")
        old = c.session.cli_pid
        turn = await c.send("b")
        await c.until(lambda: len(c.of(TextDelta)) > 5)

        def broken(*_: object) -> None:
            monkeypatch.undo()
            raise RuntimeError("a fault")

        monkeypatch.setattr(c.session._runner, "_look", broken)
        finished = await c.finished(turn)
        assert (finished.kind, finished.cost_usd) == ("fault", None)
        third = await c.ask("c")
        assert (third.is_error, c.of(Text)[-1].text) == (False, "three")
        assert c.session.cli_pid != old
        check(c)


@pytest.mark.slow
async def test_silence_while_a_tool_runs_means_nothing(tmp_path: Path) -> None:
    limits = settings(tmp_path, silence_notice=2, silence_timeout=3)
    async with chat(call("run_code", code="sleep(5)"), text("done"), tmp=tmp_path, settings=limits) as c:
        assert not (await c.ask("run")).is_error
        assert "silent" not in states(c)
        check(c)


async def test_a_silence_that_ends_is_over(tmp_path: Path) -> None:
    limits = settings(tmp_path, silence_notice=0.3, silence_timeout=0)
    stalled = text("One two three four", stall_at=8, stall=1.5)
    async with chat(stalled, tmp=tmp_path, settings=limits) as c:
        assert not (await c.ask("say")).is_error
        assert states(c)[:2] == ["connecting", "ready"]
        assert states(c)[2:4] == ["silent", "ready"]
        check(c)


@pytest.mark.slow
async def test_a_pause_before_another_try_is_no_silence(tmp_path: Path) -> None:
    limits = settings(tmp_path, silence_notice=4, silence_timeout=5)
    async with chat(rate_limited(10), text("yes"), tmp=tmp_path, settings=limits) as c:
        assert not (await c.ask("say")).is_error
        assert "silent" not in states(c)
        check(c)


async def test_a_sleep_of_the_computer_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = 0.0
    from sandbox_chat.agent import watch

    real = watch.wall_clock
    monkeypatch.setattr("sandbox_chat.agent.running.wall_clock", lambda: real() + asleep)
    async with chat(long(60), tmp=tmp_path, settings=settings(tmp_path, silence_timeout=20)) as c:
        turn = await c.send("write")
        await c.until(lambda: len(c.of(TextDelta)) > 3)
        asleep = 7200.0
        await c.until(lambda: kinds(c) == ["slept"])
        asleep *= 2
        finished = await c.finished(turn, 30)
        assert not finished.is_error
        assert "about 120 min" in c.of(Notice)[0].text
        assert kinds(c) == ["slept"]
        check(c)


async def test_a_tool_of_a_cli_that_was_killed_is_stopped(tmp_path: Path) -> None:
    async with chat(call("run_code", code="sleep(30)"), text("still here"), tmp=tmp_path) as c:
        turn = await c.send("run")
        await c.until(lambda: c.of(ToolOutput))
        os.kill(c.session.cli_pid, signal.SIGKILL)
        assert (await c.finished(turn, 30)).is_error
        assert len(c.of(ToolFinished)) == 1
        assert c.worker.cancelled == 1
        assert not (await c.ask("again")).is_error
        assert len(c.of(TurnFinished)) == 2
        check(c)
