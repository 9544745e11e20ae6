"""The record of a session through the real engine: damage is said once, a look writes nothing, saving comes before showing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from support.engines import engine
from support.scripted import call, text

from sandbox_chat.engine import Engine
from sandbox_chat.events import Event, Notice, SessionFinished, Status, Text, ToolFinished, TurnFinished
from sandbox_chat.journal import files
from sandbox_chat.settings import Settings


def warnings(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and "damaged place" in event.text]


def resumed(folder: Path, session: str, **how: bool) -> tuple[Engine, list[Event], list[Event]]:
    past: list[Event] = []
    live: list[Event] = []
    settings = Settings(demo=True, demo_pace=0.0, sandbox="off", data_dir=folder / "data")
    return Engine(settings, live.append, resume=session, replay=past.append, **how), past, live


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("session")
    with engine(folder, text("first answer"), text("second answer"), sandbox="off") as e:
        e.ask("prompt one")
        e.ask("prompt two")
        return folder, e.engine.session_id


@pytest.mark.slow
def test_damage_is_said_once_and_kept_aside(session: tuple[Path, str]) -> None:
    folder, session_id = session
    path = folder / "data" / "sessions" / session_id / files.EVENTS
    with path.open("ab") as file:
        file.write(b'{"type":"text","seq":')
    said = []
    for run in range(2):
        with engine(
            folder, text(f"answer {run}"), resume=session_id, sandbox="off", replay=lambda event: None
        ) as e:
            e.ask("go on")
            said.append(warnings(e.events))
    assert [len(each) for each in said] == [1, 0]
    assert "events.damaged" in said[0][0]
    assert b'{"type":"text","seq":' in path.with_name("events.damaged").read_bytes()


@pytest.mark.slow
def test_a_look_writes_nothing_and_starts_nothing(session: tuple[Path, str]) -> None:
    folder, session_id = session
    home = folder / "data" / "sessions" / session_id

    def digests() -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in home.iterdir()
            if path.is_file()
        }

    before = digests()
    looking, past, live = resumed(folder, session_id, read_only=True)
    try:
        looking.start()
        assert looking.read_only
        looking.send("not sent")
        looking.rename("not renamed")
        looking.interrupt()
        for _ in range(500):
            if any(isinstance(event, Status) for event in live):
                break
            looking._closed.wait(0.02)
    finally:
        looking.close()
    assert [event.text for event in past if isinstance(event, Text)][:2] == ["first answer", "second answer"]
    assert [event.state for event in live if isinstance(event, Status)] == ["closed"]
    assert isinstance(live[-1], SessionFinished)
    assert not [event for event in live if event.type in ("turn_started", "session_renamed")]
    assert digests() == before


@pytest.mark.slow
def test_results_are_on_the_disk_before_they_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[tuple[str, int]] = []
    real = os.fsync

    def synced(fd: int) -> None:
        real(fd)
        name = str(Path(f"/proc/self/fd/{fd}").readlink())
        if name.endswith(files.EVENTS):
            data = Path(name).read_bytes()
            order.append(("synced", data.count(b"\n")))

    monkeypatch.setattr(os, "fsync", synced)
    with engine(
        tmp_path,
        call("run_code", code="print(1)"),
        text("done"),
        on_event=lambda e, event: order.append((event.type, event.seq)),
    ) as e:
        finished = e.ask("go")
    assert not finished.is_error
    ends = [place for place, (kind, _) in enumerate(order) if kind in (ToolFinished.type, TurnFinished.type)]
    assert len(ends) >= 2
    for place in ends:
        kind, lines = order[place - 1]
        assert kind == "synced"  # right before it was shown
        assert lines == order[place][1]  # and with this very record
