"""Model, effort and thinking of a resumed session: what is shown is what is in force."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.agent.controls import Controls
from sandbox_chat.engine_past import NOTED, Past
from sandbox_chat.journal import Journal, fork
from sandbox_chat.journal.files import read_events
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.settings import COMMAND_LINE, Settings, load
from sandbox_chat.ui.controller import Chat as Driven
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.title import TitleBar


def started(model: str = "one") -> ev.SessionStarted:
    return ev.SessionStarted(at=START, session_id="s", model=model, sandbox="off", demo=False)


def changed(model: str = "one", effort: str = "", thinking: str = "") -> ev.ControlsChanged:
    return ev.ControlsChanged(at=START, model=model, effort=effort, thinking=thinking)


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        ((started(),), None),
        ((started(), changed(effort="high", thinking="off")), Controls("now", "high", "off")),
        ((started(), changed("two", "low")), Controls("two", "low", "")),
        ((started(), changed("two"), changed("", "low")), Controls("", "low", "")),
        ((started(), changed("two"), started(), changed("two", "low")), Controls("two", "low", "")),
        ((started(), changed("two", "high"), started()), None),  # that run began without them
    ],
)
def test_what_the_user_changed_last_goes_on(events: tuple[ev.Event, ...], kept: Controls | None) -> None:
    past = Past()
    for event in events:
        past.take(event)
    assert past.controls(Settings(model="now", effort="medium")) == kept
    assert past.controls(Settings(demo=True)) is None
    assert ev.ControlsChanged in NOTED, "also of a long session of which only the end is read"


def test_a_model_on_the_command_line_comes_first(tmp_path: Path) -> None:
    past = Past()
    for event in (started(), changed("two", "high")):
        past.take(event)
    settings = load({"model": "asked"}, environ={}, folder=tmp_path)
    assert settings.origins["model"] == COMMAND_LINE
    assert past.controls(settings) == Controls("asked", "high", "")
    settings = load({}, environ={"CLAUDE_MODEL": "asked"}, folder=tmp_path)
    assert past.controls(settings) == Controls("two", "high", "")


def test_a_branch_has_them_too(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "origin")
    begun = ev.TurnStarted(at=START, turn_id="a", prompt="p")
    for number, event in enumerate((started(), begun, turn_finished("a"), changed("two", "high")), 1):
        journal.append(dataclasses.replace(event, seq=number))
    journal.close()
    fork.fork(tmp_path, "origin", "branch")
    past = Past()
    for event in read_events(tmp_path / "branch"):
        past.take(event)
    assert past.controls(Settings()) == Controls("two", "high", "")


def test_the_panes_show_those_of_this_run() -> None:
    settings = Settings(model="one", effort="medium", thinking="on")
    driven = Driven()
    state = driven.state

    def told() -> tuple[str, str, str]:
        return driven.model(settings), driven.effort(settings), driven.thinking(settings)

    for event in (started(), changed("two", "high", "off")):
        state.apply(event)
    assert told() == ("two", "high", "off")
    state.apply(started())
    assert told() == ("one", "medium", "on")
    state.apply(changed("two", "high", "off"))  # the engine tells what goes on
    assert told() == ("two", "high", "off")
    state.apply(changed("", "", ""))
    assert told() == ("", "", "")


def test_the_title_does_not_name_a_model_that_was_given_up() -> None:
    state = ChatState()
    bar = TitleBar(Settings(model="one"), state)
    assert "one" in str(bar.parts()[1])
    for event in (started(), changed("")):
        state.apply(event)
    assert "one" not in str(bar.parts()[1]) and "default" in str(bar.parts()[1])


def test_line_by_line_too(tmp_path: Path) -> None:
    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path, model="one", effort="low"), Lines(io.StringIO(), out))
    chat.engine = SimpleNamespace()  # type: ignore[assignment] # nothing is ordered
    chat.past += [started(), changed("two", "max")]
    assert chat._command("/effort")
    chat.past.append(started())
    assert chat._command("/effort")
    assert [line for line in out.getvalue().splitlines() if line.startswith("Now")] == [
        "Now: max",
        "Now: low",
    ]


def test_what_is_kept_is_said_when_the_session_goes_on(tmp_path: Path) -> None:
    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path, model="one", effort="low"), Lines(io.StringIO(), out))
    chat.engine = SimpleNamespace()  # type: ignore[assignment]
    for event in (started(), changed("two", "max"), ev.Status(component="agent", state="ready")):
        chat.events.put(event)
    chat._connect()
    assert out.getvalue().splitlines() == [
        "Connecting.",
        "The model is two from the next turn on.",
        "Effort from the next turn on: max.",
        "Ready.",
    ]
