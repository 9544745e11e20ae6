"""Faults of the endpoint that end well, because it is asked again; the others are in ``test_agent_troubles.py``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.agent import chat
from support.scripted import call, text

from sandbox_chat.demo.reply import Faults, Reply, ToolUse
from sandbox_chat.demo.reply import Text as TextBlock
from sandbox_chat.events import Retry, Text, TextDelta, ToolInputDelta, ToolStarted
from sandbox_chat.settings import Settings
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.transcript import Feed


def settings(tmp: Path, **changes: Any) -> Settings:
    return Settings(**{"request_retries": 1, "data_dir": tmp, **changes})


async def test_a1_a_cut_stream_is_withdrawn_and_written_anew(tmp_path: Path) -> None:
    cut = text("One two three four five six seven eight", cut_at=22, pace=0.05)
    async with chat(cut, text("Whole."), tmp=tmp_path, settings=settings(tmp_path)) as c:
        finished = await c.ask("hi")
        assert not finished.is_error
        events = [event for event in c.events if isinstance(event, TextDelta | Retry | Text)]
        retry = next(index for index, event in enumerate(events) if isinstance(event, Retry))
        assert any(isinstance(event, TextDelta) for event in events[:retry])
        assert "".join(event.text for event in events[retry:] if isinstance(event, TextDelta)) == "Whole."
        assert [event.text for event in c.of(Text)] == ["Whole."]
        assert c.of(Retry)[0].kind == "again_cut"
        feed = Feed()
        for event in c.events:
            feed.apply(event)
        shown = [row.text for block in feed.blocks if block.visible for row in block.rows(60)]
        assert sum("Whole." in row for row in shown) == 1
        assert not any("One two" in row for row in shown)
        assert any("Trying again" in row for row in shown)


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
