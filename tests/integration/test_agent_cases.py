"""Cases T12, T16, A3, A5, A6 with the real CLI; A1 is in ``test_agent_faults.py``, A2 in ``test_agent_troubles.py``."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest
from support.agent import MemorySandbox, chat
from support.engines import Running, engine
from support.pictures import picture
from support.program import PROGRAM, environment, gone_within, journal_events, watching_leftovers
from support.scripted import Text as Said
from support.scripted import ToolUse, Usage, call, reply, text, tool_results
from support.terminal import SWITCHED_OFF, terminal

from sandbox_chat.events import ImageContent, Text, ToolFinished, ToolStarted, TurnFinished
from sandbox_chat.sandbox.base import Execution, RichOutput

PRICED = "claude-opus-4-5"
"""A model whose list price makes round numbers: 5 and 25 dollars for a million tokens."""


def costing(words: str, read: int, written: int) -> object:
    """An answer that used so many tokens."""
    return reply(Said(words), usage=Usage(input_tokens=read, output_tokens=written))


def last(e: Running) -> TurnFinished:
    return e.of(TurnFinished)[-1]


def test_t12_costs_of_turns_of_a_resumed_session_and_of_a_new_one(tmp_path: Path) -> None:
    off = {"sandbox": "off", "model": PRICED}
    with engine(tmp_path, costing("a", 5000, 1000), costing("b", 2000, 400), **off) as e:
        first, second = e.ask("one"), e.ask("two")
        assert first.cost_usd == pytest.approx(0.05, abs=1e-9)
        assert first.total_cost_usd == pytest.approx(0.05, abs=1e-9)
        assert second.cost_usd == pytest.approx(0.02, abs=1e-9)
        assert second.total_cost_usd == pytest.approx(0.07, abs=1e-9)
        session = e.engine.session_id
    with engine(tmp_path, costing("c", 1000, 200), resume=session, **off) as e:
        turn = e.engine.send("three")
        e.until(lambda: [each for each in e.of(TurnFinished) if each.turn_id == turn], "the third turn")
        assert last(e).cost_usd == pytest.approx(0.01, abs=1e-9)
        assert last(e).total_cost_usd == pytest.approx(0.08, abs=1e-9)
    with engine(tmp_path, costing("d", 2000, 400), **off) as e:
        other = e.ask("another session")
        assert other.total_cost_usd == other.cost_usd == pytest.approx(0.02, abs=1e-9)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_t16_a_signal_while_code_runs(tmp_path: Path, number: int) -> None:
    command = [*PROGRAM, "--demo"]
    with watching_leftovers() as left:
        with terminal(command, env=environment(tmp_path)) as at:
            at.shows("idle", 60)
            at.type("import time; print('be' + 'gun'); time.sleep(60)\r")
            at.shows("begun", 60)
            at.process.send_signal(number)
            assert at.ends(30) == 128 + number
            written = at.written()
            for sequence in SWITCHED_OFF:
                assert sequence in written
            assert at.mode() == at.mode_before
            assert b"Session saved: sandbox-chat --resume " in written[written.rindex(b"\x1b[?1049l") :]
        assert gone_within(5, left) == []
    events = journal_events(tmp_path)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"] == "session_finished"
    ends = [event for event in events if event["type"] == "tool_finished"]
    assert ends and ends[-1]["interrupted"]


@pytest.mark.slow
async def test_a3_results_that_are_too_large(tmp_path: Path) -> None:
    worker, large = MemorySandbox(), picture(1500, 1400, noise=True)
    worker.next = [
        Execution(stdout="line of text\n" * 80_000),
        Execution(outputs=(RichOutput({"image/png": picture(3000, 3000, noise=True)}),)),
        Execution(outputs=tuple(RichOutput({"image/png": large}) for _ in range(3))),
    ]
    assert len(worker.next[1].outputs[0].data["image/png"]) > 26_000_000
    steps = (*(call("run_code", code=name) for name in ("text", "huge", "three")), text("done"))
    async with chat(*steps, text("still here"), tmp=tmp_path, worker=worker) as c:
        finished = await c.ask("go")
        assert not finished.is_error
        assert c.of(Text)[-1].text == "done"
        first = tool_results(c.server, 1)[0].text
        assert len(first) <= 20_000 and "cut out of" in first and "persisted-output" not in first
        assert all(len(json.dumps(request.body)) < 8_000_000 for request in c.server.requests)
        sent = json.dumps(c.server.requests[-1].body["messages"])
        assert 3 <= sent.count('"type": "image"') <= 4
        pictures = [
            part for event in c.of(ToolFinished) for part in event.content if isinstance(part, ImageContent)
        ]
        assert len(pictures) >= 3
        assert not (await c.ask("and now?")).is_error
        assert c.session.cli_pid


class SlowFile(MemorySandbox):
    """A sandbox whose file ``slow.txt`` takes a while to read."""

    async def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """Return a file."""
        if path.endswith("slow.txt"):
            await asyncio.sleep(1.5)
        return await super().read_file(path, max_bytes=max_bytes)


async def test_a5_two_tools_at_once_the_quick_one_ends_first(tmp_path: Path) -> None:
    worker = SlowFile()
    worker.files = {"/tmp/slow.txt": b"tortoise", "/tmp/quick.txt": b"hare"}
    both = reply(
        ToolUse("mcp__sandbox__read_file", {"path": "/tmp/slow.txt"}, "toolu_slow"),
        ToolUse("mcp__sandbox__read_file", {"path": "/tmp/quick.txt"}, "toolu_quick"),
    )
    async with chat(both, text("done"), tmp=tmp_path, worker=worker) as c:
        assert not (await c.ask("go")).is_error
        assert {event.tool_use_id for event in c.of(ToolStarted)} == {"toolu_slow", "toolu_quick"}
        ends = c.of(ToolFinished)
        assert [event.tool_use_id for event in ends] == ["toolu_quick", "toolu_slow"]
        for event, word in zip(ends, ("hare", "tortoise"), strict=True):
            said = str(event.content)
            assert word in said and len(re.findall("hare|tortoise", said)) == 1
        results = {result.tool_use_id: result.text for result in tool_results(c.server)}
        assert "tortoise" in results["toolu_slow"] and "hare" in results["toolu_quick"]


@pytest.mark.parametrize(
    "prompt",
    ["/clear", "/compact now", "@/etc/passwd", "look at @{file} and run /cost\n/model x", "!ls", "# note"],
)
async def test_a6_a_prompt_goes_to_the_letter(tmp_path: Path, prompt: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary-of-a-file")
    prompt = prompt.format(file=secret)
    async with chat(text("one"), text("two"), text("three"), tmp=tmp_path) as c:
        await c.ask("first")
        assert not (await c.ask(prompt)).is_error
        body = c.server.requests[-1].body
        content = body["messages"][-1]["content"]
        said = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        assert said == prompt
        wire = json.dumps(body)
        assert "root:" not in wire and "canary-of-a-file" not in wire
        assert "first" in json.dumps(body["messages"][0]), "the conversation goes on"
        assert not c.server.others
