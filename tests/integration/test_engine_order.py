"""What the engine says first, and its numbers, whatever is asked of it before its thread runs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, SessionFinished, SessionStarted, TurnFinished
from sandbox_chat.settings import Settings


def run(folder: Path, resume: str | None = None) -> tuple[str, list[Event], list[Event]]:
    """One prompt, with the sandbox asked for before the engine starts; return id, past and live events."""
    past: list[Event] = []
    live: list[Event] = []
    over = threading.Event()

    def take(event: Event) -> None:
        live.append(event)
        if isinstance(event, TurnFinished):
            over.set()

    settings = Settings(demo=True, demo_pace=0.0, data_dir=folder)
    engine = Engine(settings, take, resume=resume, replay=past.append)
    try:
        engine.prestart_sandbox()
        time.sleep(0.1)
        engine.start()
        engine.send("x = 41")
        assert over.wait(60)
    finally:
        engine.close()
    return engine.session_id, past, live


@pytest.mark.slow
def test_an_early_prestart_keeps_order_and_numbers(tmp_path: Path) -> None:
    session, _, first = run(tmp_path)
    _, past, second = run(tmp_path, session)
    assert isinstance(first[0], SessionStarted) and isinstance(second[0], SessionStarted)
    assert isinstance(second[-1], SessionFinished)
    assert past == first
    assert [event.seq for event in [*past, *second]] == list(range(1, len(past) + len(second) + 1))


def test_prompts_that_never_reach_the_agent_are_in_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pace: float) -> None:
        raise OSError("no socket to be had")

    monkeypatch.setattr("sandbox_chat.engine.start_demo", broken)
    live: list[Event] = []
    engine = Engine(Settings(demo=True, data_dir=tmp_path), live.append)
    turn = engine.send("x = 41")
    engine.start()
    engine.close()
    kinds = [event.type for event in live]
    assert kinds[0] == "session_started"
    assert kinds[-3:] == ["turn_started", "turn_finished", "session_finished"]
    (finished,) = [event for event in live if isinstance(event, TurnFinished)]
    assert finished.turn_id == turn
    assert "send the prompt again" in finished.error
    assert [event.seq for event in live] == list(range(1, len(live) + 1))
