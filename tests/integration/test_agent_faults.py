"""The endpoint's faults, each in plain words, and the session works on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.agent import chat
from support.scripted import call, error, rate_limited, text

from sandbox_chat.demo.reply import Faults, Reply, ToolUse
from sandbox_chat.demo.reply import Text as TextBlock
from sandbox_chat.events import Retry, Text, TextDelta, ToolInputDelta, ToolStarted
from sandbox_chat.settings import Settings
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed


def settings(tmp: Path, **changes: Any) -> Settings:
    return Settings(**{"request_retries": 1, "data_dir": tmp, **changes})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words", "retried"),
    [
        (error(400, "unsupported thing"), ["400", "unsupported thing", "CLAUDE_MODEL"], False),
        (error(401, "invalid x-api-key"), ["401", "ANTHROPIC_AUTH_TOKEN"], True),
        (error(403, "no access"), ["403", "no access"], False),
        (error(404, "model: nope"), ["does not know the model", "CLAUDE_MODEL"], False),
        (error(413, "too big"), ["too large"], False),
        (rate_limited(0.1), ["429", "slow down"], True),
        (error(500, "oops"), ["500", "oops"], True),
        (error(529, "Overloaded"), ["overloaded", "529"], True),
        (error(400, "prompt is too long: 210000 tokens > 200000 maximum"), ["context"], False),
        (error(400, "Your credit balance is too low to access the Anthropic API."), ["credit"], False),
    ],
    ids=["400", "401", "403", "404", "413", "429", "500", "529", "long", "credit"],
)
async def test_refusals(tmp_path: Path, fault: Any, words: list[str], retried: bool) -> None:
    failing = True

    def answer(request: object) -> Any:
        return fault if failing else text("works again")

    async with chat(function=answer, tmp=tmp_path, settings=settings(tmp_path)) as c:
        finished = await c.ask("hi")
        assert finished.is_error and not finished.interrupted
        for word in words:
            assert word in finished.error
        assert c.of(Text) == []
        assert bool(c.of(Retry)) == retried
        failing = False
        assert not (await c.ask("again")).is_error
        assert [event.text for event in c.of(Text)] == ["works again"]


async def test_a_cut_stream_is_withdrawn_and_written_anew(tmp_path: Path) -> None:
    cut = text("One two three four five six seven eight", cut_at=22, pace=0.05)
    async with chat(cut, text("Whole."), tmp=tmp_path, settings=settings(tmp_path)) as c:
        finished = await c.ask("hi")
        assert not finished.is_error
        events = [event for event in c.events if isinstance(event, TextDelta | Retry | Text)]
        retry = next(index for index, event in enumerate(events) if isinstance(event, Retry))
        assert any(isinstance(event, TextDelta) for event in events[:retry])
        assert "".join(event.text for event in events[retry:] if isinstance(event, TextDelta)) == "Whole."
        assert [event.text for event in c.of(Text)] == ["Whole."]


@pytest.mark.slow
async def test_an_error_event_in_the_stream(tmp_path: Path) -> None:
    broken = text("One two three four five", error_at=12, pace=0.05)
    async with chat(broken, text("Whole."), tmp=tmp_path, settings=settings(tmp_path)) as c:
        assert not (await c.ask("hi")).is_error
        assert [event.text for event in c.of(Text)] == ["Whole."]


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{"cut_at": 50}, {"error_at": 50}], ids=["cut", "error"])
@pytest.mark.parametrize("before", [(), (TextBlock("Let me see."),)], ids=["alone", "after text"])
async def test_a_call_that_was_cut_while_it_was_written(
    tmp_path: Path, faults: dict[str, int], before: tuple[TextBlock, ...]
) -> None:
    """The call that never came to run is withdrawn: on no screen it is left as one that was stopped."""
    use = ToolUse("mcp__sandbox__run_code", {"code": "print(1)\n" * 10})
    broken = Reply((*before, use), pace=0.02, piece=4, faults=Faults(**faults))
    steps = [broken, call("run_code", code="print(2)"), text("Done.")]
    async with chat(*steps, tmp=tmp_path, settings=settings(tmp_path)) as c:
        assert not (await c.ask("hi")).is_error
        assert c.of(ToolInputDelta) and c.of(Retry)
        [started] = c.of(ToolStarted)
        feed, state = Feed(), ChatState()
        for event in c.events:
            feed.apply(event)
            state.apply(event)
        assert list(feed.cards) == list(state.tools) == [started.tool_use_id]


@pytest.mark.slow
async def test_a_dropped_connection(tmp_path: Path) -> None:
    async with chat(text("x", drop=True), text("Whole."), tmp=tmp_path, settings=settings(tmp_path)) as c:
        assert not (await c.ask("hi")).is_error
        assert c.of(Retry)


@pytest.mark.slow
async def test_no_byte_within_the_limit(tmp_path: Path) -> None:
    steps = [text("late", first_stall=20)] * 3
    limited = settings(tmp_path, request_timeout=1.0, request_retries=0)
    async with chat(*steps, tmp=tmp_path, settings=limited) as c:
        finished = await c.ask("hi", 20)
        assert finished.is_error
        assert "within 1 s" in finished.error


async def test_a_stalled_request_can_be_interrupted(tmp_path: Path) -> None:
    async with chat(text("late", first_stall=30), text("next"), tmp=tmp_path) as c:
        turn = await c.send("hi")
        while not c.server.requests:
            await asyncio.sleep(0.02)
        await c.session.interrupt()
        assert (await c.finished(turn, 5)).interrupted
        assert not (await c.ask("again")).is_error


@pytest.mark.slow
async def test_the_limit_of_steps(tmp_path: Path) -> None:
    steps = [call("run_code", code="1")] * 5
    async with chat(*steps, tmp=tmp_path, settings=settings(tmp_path, max_turns=2)) as c:
        finished = await c.ask("go")
        assert finished.subtype == "error_max_turns"
        assert finished.is_error
        assert "2 steps" in finished.error
