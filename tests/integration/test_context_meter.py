"""The meter of the context: right with a cache, after a summary, after a lost program, and in the next run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.agent import chat
from support.scripted import Request, Usage, reply
from support.scripted import Text as Said

from sandbox_chat.events import Compacted, TextDelta

LARGE = Usage(1000, 50, 20_000, 30_000)
SMALL = Usage(10, 5, 20, 900)


async def test_what_the_last_request_read_is_shown_and_a_summary_makes_it_small(tmp_path: Path) -> None:
    usages = [LARGE, LARGE, SMALL]

    def answer(request: Request) -> object:
        return reply(Said("<summary>short</summary>"), usage=usages.pop(0))

    async with chat(function=answer, tmp=tmp_path) as c:
        first = await c.ask("hello")
        assert (first.context.used, first.context.max) == (51_000, 200_000)
        await c.session.compact("summary")
        compacted = await c.finished("summary")
        [told] = c.of(Compacted)
        assert told.before > 51_000
        assert 0 < told.after < 1000
        assert compacted.context.used == told.after  # not what the request for the summary read
        assert compacted.usage.cache_read == LARGE.cache_read_input_tokens  # which was paid
        assert (await c.ask("go on")).context.used == 930
        assert not c.server.others  # nobody was asked to count tokens


async def test_a_lost_program_leaves_the_meter_where_it_was(tmp_path: Path) -> None:
    steps = (
        reply(Said("hello"), usage=LARGE),
        reply(Said("word " * 300), usage=LARGE, pace=0.05),
        reply(Said("x"), usage=SMALL),
    )
    async with chat(*steps, tmp=tmp_path) as c:
        first = await c.ask("hello")
        turn = await c.send("write")
        await c.until(lambda: len(c.of(TextDelta)) > 5)
        os.kill(c.session.cli_pid, signal.SIGKILL)
        lost = await c.finished(turn)
        assert lost.cost_usd is None
        assert lost.context == first.context
