"""Esc in any phase leads to idle within a second, with the real engine, CLI and sandbox (cases T10 and T11)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.engines import Running, engine
from support.scripted import Reply, ToolUse, call, rate_limited, reply, text
from support.scripted import Text as Said

from sandbox_chat import events as ev
from sandbox_chat.phases import Machine

LIMIT = 1.0
"""Seconds from the order to stop until a prompt can be sent."""
IGNORES = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print('deaf', flush=True)
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
"""


class Pulse:
    """Measures how late a thread of this program wakes: what a busy computer takes from everybody."""

    def __init__(self) -> None:
        self.late = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            self.late += max(now - last - 0.02, 0.0)
            last = now


def long(words: int = 600, pace: float = 0.02) -> Reply:
    return reply(Said("word " * words), pace=pace)


def machine(chat: Running) -> Machine:
    made = Machine()
    for event in list(chat.events):
        made.apply(event)
    return made


def stop(chat: Running, turn: str) -> ev.TurnFinished:
    """Interrupt a turn and check that it is over soon; returns its end."""
    with Pulse() as pulse:
        began = time.monotonic()
        chat.engine.interrupt()
        finished = chat.finished(turn)
        took = time.monotonic() - began
    assert took < LIMIT + 2 * pulse.late, f"{took:.2f} s, of which the computer took {pulse.late:.2f} s"
    assert (finished.interrupted, finished.is_error, finished.error) == (True, False, "")
    return finished


def processes(chat: Running) -> list[str]:
    """What runs in the sandbox: command lines of this program's descendants that hold a mark of the tests."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.create_time() < chat.began - 1:
                continue  # of another test
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "sleep 31" in line or "claude" in child.name():
            found.append(line)
    return found


@dataclass(frozen=True)
class Case:
    """A phase: what the model answers, and what is waited for before the interruption."""

    name: str
    answer: Any
    reached: Callable[[list[ev.Event]], bool]


def kind(*kinds: type[ev.Event]) -> Callable[[list[ev.Event]], bool]:
    return lambda events: any(isinstance(event, kinds) for event in events)


CASES = (
    Case("at once", long(), lambda events: True),
    Case("before the first byte", text("late", first_stall=60), lambda events: True),
    Case("thinking", text("x", thinking="hm " * 900, pace=0.02), kind(ev.ThinkingDelta)),
    Case("streaming", long(), lambda events: sum(isinstance(event, ev.TextDelta) for event in events) > 5),
    Case(
        "arguments",
        reply(ToolUse("mcp__sandbox__run_code", {"code": "print(1)\n" * 400}), pace=0.02, piece=4),
        lambda events: sum(isinstance(event, ev.ToolInputDelta) for event in events) > 5,
    ),
    Case("a cold sandbox", call("run_code", code="print(1)"), kind(ev.ToolStarted)),
    Case(
        "a tool",
        call("run_code", code="print('on', flush=True)\nimport time; time.sleep(30)"),
        kind(ev.ToolOutput),
    ),
    Case("retrying", rate_limited(50), kind(ev.Retry)),
)


def test_t10_esc_in_any_phase_leads_to_idle_within_a_second(tmp_path: Path) -> None:
    now: list[Any] = [text("unused")]
    with engine(tmp_path, function=lambda request: now[0], request_retries=3) as chat:
        chat.until(lambda: machine(chat).phase == "idle")
        pid = 0
        for case in CASES:
            now[0] = case.answer
            count, asked = len(chat.events), len(chat.server.requests)
            turn = chat.engine.send(f"Begin: {case.name}.")
            chat.until(lambda: case.reached(chat.events[count:]), case.name)  # noqa: B023
            if case.name == "before the first byte":
                chat.until(lambda: len(chat.server.requests) > asked or time.sleep(0.01), case.name)  # noqa: B023
            stop(chat, turn)
            assert machine(chat).phase == "idle", case.name
            now[0] = text(f"After {case.name}.")
            answer = chat.ask("And now?")
            assert not answer.is_error and not answer.interrupted, case.name
            assert chat.of(ev.Text)[-1].text == f"After {case.name}."
            session = chat.engine._session
            assert session is not None and session.cli_pid
            assert pid in (0, session.cli_pid), f"{case.name}: a CLI that reacts is not replaced"
            pid = session.cli_pid
        assert machine(chat).odd == 0, machine(chat).oddity
        partial = [event.text for event in chat.of(ev.Text) if event.text.startswith("word")]
        assert partial, "what was written is kept"
        assert all(event.interrupted for event in chat.of(ev.ToolFinished))
        said = json.dumps(chat.server.requests[-1].body["messages"])
        assert "word word" in said, "the agent remembers it too"
        assert len(processes(chat)) == 1, processes(chat)


def test_t10_a_tool_that_sleeps_is_stopped_and_nothing_runs_on(tmp_path: Path) -> None:
    code = "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '31'])"
    steps = (call("run_code", before="I shall wait.", code=code), text("Here I am."))
    with engine(tmp_path, *steps) as chat:
        turn = chat.engine.send("wait")
        chat.until(lambda: chat.of(ev.ToolOutput))
        assert any("sleep 31" in line for line in processes(chat))
        stop(chat, turn)
        [card] = chat.of(ev.ToolFinished)
        assert card.interrupted
        chat.until(lambda: not any("sleep 31" in line for line in processes(chat)) or time.sleep(0.02))
        assert machine(chat).phase == "idle"
        assert not chat.ask("are you there?").is_error
        assert [event.text for event in chat.of(ev.Text)] == ["I shall wait.", "Here I am."]


def test_t10_code_that_does_not_listen_is_stopped(tmp_path: Path) -> None:
    steps = (call("run_code", code=IGNORES), call("run_code", code="print('anew')"), text("Done."))
    with engine(tmp_path, *steps) as chat:
        turn = chat.engine.send("run")
        chat.until(lambda: chat.of(ev.ToolOutput))
        stop(chat, turn)
        assert machine(chat).phase == "idle"
        assert not chat.ask("again").is_error
        first, second = chat.of(ev.ToolFinished)
        assert first.interrupted and not second.is_error
        assert any("variables" in event.text for event in chat.of(ev.Notice)), "what was lost is said"


def test_t10_a_question_is_withdrawn(tmp_path: Path) -> None:
    saved = tmp_path / "downloads" / "a.txt"
    saved.parent.mkdir()
    saved.write_text("old")
    steps = (
        call("run_code", code="open('/tmp/a.txt', 'w').write('new')"),
        call("download_file", path="/tmp/a.txt"),
        text("Next."),
    )
    with engine(tmp_path, *steps, asks=True) as chat:
        turn = chat.engine.send("save it")
        chat.until(lambda: chat.of(ev.ApprovalRequested))
        assert machine(chat).phase == "awaiting_approval"
        stop(chat, turn)
        assert [event.by for event in chat.of(ev.ApprovalAnswered)] == ["cancelled"]
        assert machine(chat).phase == "idle"
        assert not chat.ask("next").is_error
        assert saved.read_text() == "old"


def test_t10_while_the_agent_is_being_started(tmp_path: Path) -> None:
    with engine(tmp_path, text("Hello."), sandbox="off") as chat:
        turn = chat.engine.send("one")
        chat.until(lambda: chat.of(ev.TurnStarted))
        assert machine(chat).phase == "connecting"
        stop(chat, turn)
        assert not machine(chat).busy
        assert not chat.ask("two").is_error
        assert len(chat.server.requests) == 1, "the first one was never sent"


@pytest.mark.parametrize("phase", ["streaming", "tool", "before it hears of the prompt"])
def test_t10_a_frozen_cli_is_replaced_within_the_second(tmp_path: Path, phase: str) -> None:
    answers = {
        "streaming": [long()],
        "tool": [call("run_code", code="print('on', flush=True)\nimport time; time.sleep(30)")],
    }
    with engine(tmp_path, text("First."), *answers.get(phase, []), text("Third.")) as chat:
        chat.ask("one")
        session = chat.engine._session
        assert session is not None
        frozen = session.cli_pid
        if phase == "before it hears of the prompt":
            os.kill(frozen, signal.SIGSTOP)
        turn = chat.engine.send("two")
        if phase == "streaming":
            chat.until(lambda: len(chat.of(ev.TextDelta)) > 5)
            os.kill(frozen, signal.SIGSTOP)
        elif phase == "tool":
            chat.until(lambda: chat.of(ev.ToolOutput))
            os.kill(frozen, signal.SIGSTOP)
        else:
            chat.until(lambda: len(chat.of(ev.TurnStarted)) == 2)
            time.sleep(0.3)
        stop(chat, turn)
        chat.until(lambda: session.cli_pid not in (0, frozen) or time.sleep(0.01))
        assert not psutil.pid_exists(frozen)
        assert [event.kind for event in chat.of(ev.Notice)] == ["cli_frozen"]
        chat.until(lambda: machine(chat).phase == "idle")
        assert not chat.ask("three").is_error
        assert chat.of(ev.Text)[-1].text == "Third."
        assert "First." in json.dumps(chat.server.requests[-1].body["messages"])
        assert machine(chat).odd == 0, machine(chat).oddity
        assert len(processes(chat)) == 1


def test_t10_a_frozen_cli_that_does_not_even_read_the_prompt(tmp_path: Path) -> None:
    """A prompt larger than the pipe takes cannot be written to its end."""
    with engine(tmp_path, text("First."), text("Third."), sandbox="off") as chat:
        chat.ask("one")
        session = chat.engine._session
        assert session is not None
        frozen = session.cli_pid
        os.kill(frozen, signal.SIGSTOP)
        turn = chat.engine.send("two " * 500_000)
        chat.until(lambda: len(chat.of(ev.TurnStarted)) == 2)
        time.sleep(0.3)
        finished = stop(chat, turn)
        assert finished.cost_usd is None
        chat.until(lambda: session.cli_pid not in (0, frozen) or time.sleep(0.01))
        assert not chat.ask("three").is_error
        assert chat.of(ev.Text)[-1].text == "Third."
        assert machine(chat).odd == 0, machine(chat).oddity


def test_t11_the_second_turn_shows_only_its_own_answer(tmp_path: Path) -> None:
    with engine(tmp_path, long(), text("Second."), sandbox="off") as chat:
        first = chat.engine.send("one")
        chat.until(lambda: len(chat.of(ev.TextDelta)) > 5)
        stop(chat, first)
        place = len(chat.events)
        chat.ask("two")
        after = chat.events[place:]
        assert [event.text for event in after if isinstance(event, ev.Text)] == ["Second."]
        assert "word" not in "".join(event.text for event in after if isinstance(event, ev.TextDelta))


def test_esc_twice_and_a_prompt_at_once(tmp_path: Path) -> None:
    with engine(tmp_path, long(), text("Second."), text("Third."), sandbox="off") as chat:
        first = chat.engine.send("one")
        chat.until(lambda: len(chat.of(ev.TextDelta)) > 5)
        chat.engine.interrupt()
        chat.engine.interrupt()
        second = chat.engine.send("two")
        assert chat.finished(first).interrupted
        assert not chat.finished(second).interrupted
        assert chat.of(ev.Text)[-1].text == "Second."
        assert len([event for event in chat.of(ev.Status) if event.state == "interrupting"]) == 1
        chat.engine.interrupt()  # nothing runs
        assert not chat.ask("three").interrupted
        assert machine(chat).odd == 0, machine(chat).oddity


def test_esc_between_two_prompts_that_wait(tmp_path: Path) -> None:
    """Each order stops one turn; none is lost, none runs twice."""
    stopped = threading.Event()

    def between(chat: Running, event: ev.Event) -> None:
        if isinstance(event, ev.TurnFinished) and not stopped.is_set():
            stopped.set()
            chat.engine.interrupt()

    with engine(tmp_path, text("One."), long(), text("Three."), sandbox="off", on_event=between) as chat:
        turns = [chat.engine.send(prompt) for prompt in ("one", "two", "three")]
        ends = [chat.finished(turn) for turn in turns]
        assert [end.interrupted for end in ends] == [False, True, False]
        assert chat.of(ev.Text)[-1].text in ("Three.", "word " * 600)
        assert [event.turn_id for event in chat.of(ev.TurnStarted)] == turns


@pytest.mark.slow
def test_esc_at_the_very_end_of_a_turn(tmp_path: Path) -> None:
    """Whatever it meets, a prompt is answered once and the session is idle soon."""

    def at_the_end(chat: Running, event: ev.Event) -> None:
        if isinstance(event, ev.Text):
            chat.engine.interrupt()

    with engine(tmp_path, function=lambda request: text("Done."), sandbox="off", on_event=at_the_end) as chat:
        for number in range(12):
            chat.ask(f"prompt {number}")
            assert machine(chat).phase == "idle"
        assert machine(chat).odd == 0, machine(chat).oddity
        assert len(chat.server.requests) == 12
        assert [event.state for event in chat.of(ev.Status) if event.component == "agent"].count("ready") == 1
