"""How an engine is made and ends: nothing is left of one that cannot be made, and the end comes whatever fails on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.screen import START, turn_finished

from sandbox_chat import engine as module
from sandbox_chat import events as ev
from sandbox_chat import sandbox
from sandbox_chat.engine import Engine
from sandbox_chat.journal import Journal
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import Settings

SESSION = "11111111-1111-4111-8111-111111111111"


def settings_of(folder: Path) -> Settings:
    return Settings(demo=True, sandbox="off", data_dir=folder, close_timeout=2.0)


def one_session(settings: Settings) -> Path:
    """Write a session with one turn; return the folder of all sessions."""
    root = settings.data_path / "sessions"
    journal = Journal.create(root, SESSION)
    begun = ev.TurnStarted(at=START, seq=1, turn_id="a", prompt="p")
    for event in (begun, turn_finished("a", seq=2)):
        journal.append(event)
    journal.close()
    return root


def sessions(root: Path) -> set[str]:
    return {each.name for each in root.iterdir() if each.is_dir()}


def test_a_copy_that_cannot_be_gone_on_with_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path)
    root = one_session(settings)

    def none_here(*_: Any, **__: Any) -> None:
        raise SandboxUnavailable("There is none here.")

    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "make_worker", none_here)
        with pytest.raises(SandboxUnavailable):
            Engine(settings, lambda event: None, resume=SESSION, fork=True)
    assert sessions(root) == {SESSION}
    engine = Engine(settings, lambda event: None, resume=SESSION, fork=True)
    engine.close()
    assert engine.resumed and sessions(root) == {SESSION, engine.session_id}


def test_who_looks_at_a_session_sees_the_model_that_it_had_last(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    one_session(settings)
    journal = Journal.open(settings.data_path / "sessions", SESSION)
    began = ev.SessionStarted(at=START, seq=3, session_id=SESSION, model="one", sandbox="off", demo=False)
    asked = ev.TurnStarted(
        at=START, seq=5, turn_id="b", prompt="p"
    )  # before the first one nothing is written
    for event in (began, ev.ControlsChanged(at=START, seq=4, model="two"), asked):
        journal.append(event)
    journal.close()
    live: list[ev.Event] = []
    seen = threading.Event()

    def take(event: ev.Event) -> None:
        live.append(event)
        if isinstance(event, ev.Status):
            seen.set()

    engine = Engine(settings, take, resume=SESSION, read_only=True)
    engine.start()
    assert seen.wait(10)
    engine.close()
    assert [event.model for event in live if isinstance(event, ev.SessionStarted)] == ["two"]


@pytest.mark.parametrize("fails", ["logs", "prompts"])
def test_the_record_is_closed_whatever_fails_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("I/O operation on closed file")

    def no_demo(pace: float) -> None:
        raise OSError("no socket to be had")

    faults: list[type[BaseException] | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: faults.append(args.exc_type))
    monkeypatch.setattr(module, "start_demo", no_demo)
    if fails == "logs":
        monkeypatch.setattr(module.logs, "note", broken)
    settings = settings_of(tmp_path)
    root = one_session(settings)
    engine = Engine(settings, lambda event: None, resume=SESSION)
    if fails == "prompts":
        monkeypatch.setattr(engine, "_give_up_unsent", broken)
    engine.start()
    engine.close()
    assert engine._closed.is_set()
    engine._thread.join(10)
    assert faults == [ValueError], "it is not hidden either"
    Journal.open(root, SESSION).close()  # nobody holds it any more
