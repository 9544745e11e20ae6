"""The commands of the line-by-line chat that change the agent's work or lead into another session."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.screen import START, turn_finished

from sandbox_chat import engine_branch
from sandbox_chat import events as ev
from sandbox_chat.journal.errors import SessionError
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.settings import Settings
from sandbox_chat.words import tr


class Obeying:
    """An engine that notes what is ordered, and tells what the real one would."""

    session_id = "this"

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.orders: list[Any] = []

    def set_controls(self, **changes: str) -> None:
        self.orders.append(changes)

    def clear(self) -> None:
        self.orders.append("clear")
        self.chat.events.put(ev.Cleared(at=START, agent_id="other"))

    def compact(self, wish: str) -> str:
        self.orders.append(("compact", wish))
        self.chat.events.put(turn_finished("c"))
        return "c"

    def send(self, prompt: str) -> str:
        self.orders.append(("send", prompt))
        self.chat.events.put(ev.TurnStarted(at=START, turn_id="s", prompt=prompt))
        self.chat.events.put(turn_finished("s"))
        return "s"


def chat_of(tmp_path: Path, *prompts: str, **settings: Any) -> tuple[Chat, Obeying, io.StringIO]:
    """A chat after some turns."""
    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path, **settings), Lines(io.StringIO(), out))
    engine = Obeying(chat)
    chat.engine = engine  # type: ignore[assignment] # what the commands need of one
    for number, prompt in enumerate(prompts, 1):
        chat.past.append(ev.TurnStarted(at=START, turn_id=f"t{number}", prompt=prompt))
        chat.past.append(turn_finished(f"t{number}"))
    return chat, engine, out


def said(out: io.StringIO) -> str:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


@pytest.fixture
def branched(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What branches were made."""
    made: list[SimpleNamespace] = []

    def branch(settings: Settings, session_id: str, *, after_turn: str, remember: bool) -> str:
        made.append(SimpleNamespace(session=session_id, after=after_turn, remember=remember))
        return "branch"

    monkeypatch.setattr(engine_branch, "branch", branch)
    return made


def test_effort_and_thinking_are_set_and_told(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path, effort="low")
    for command, order in (
        ("/effort high", {"effort": "high"}),
        ("/effort DEFAULT", {"effort": ""}),
        ("/thinking off", {"thinking": "off"}),
        ("/thinking 2000", {"thinking": "2000"}),
        ("/thinking default", {"thinking": ""}),
    ):
        assert chat._command(command)
        assert engine.orders.pop() == order
        assert "from the next turn on" in said(out)
    for command in ("/effort a lot", "/thinking much", "/thinking 5"):
        assert chat._command(command)
    assert engine.orders == []
    assert said(out).splitlines() == [
        tr("controls.effort_wrong"),
        tr("controls.thinking_wrong"),
        tr("controls.thinking_wrong"),
    ]
    assert chat._command("/effort")
    assert said(out).startswith("Now: low\n")
    chat.past.append(ev.ControlsChanged(at=START, model="", effort="max", thinking=""))
    assert chat._command("/effort") and said(out).startswith("Now: max\n")
    assert chat._command("/thinking") and said(out).startswith("Now: default\n")


def test_the_demo_has_nothing_to_choose(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path, demo=True)
    for command in ("/effort high", "/effort", "/thinking on"):
        assert chat._command(command)
        assert said(out).strip() == tr("controls.demo")
    assert engine.orders == []


def test_the_agent_forgets_and_compacts(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path)
    for command in ("/clear", "/compact"):
        assert chat._command(command)
    assert engine.orders == []
    assert said(out).splitlines() == [tr("linear.no_history"), tr("controls.compact_nothing")]
    chat, engine, out = chat_of(tmp_path, "one")
    assert chat._command("/clear")
    assert "remembers nothing" in said(out)
    assert chat._command("/compact keep the numbers")
    assert engine.orders == ["clear", ("compact", "keep the numbers")]
    assert "turn: " in said(out)


def test_the_last_prompt_is_sent_again(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path)
    assert chat._command("/retry")
    assert said(out).strip() == tr("controls.retry_nothing")
    chat, engine, out = chat_of(tmp_path, "one", "two", "/compact")
    assert chat._command("/retry")
    chat.again = "of a branch"
    assert chat._command("/retry") and chat._command("/retry")
    assert engine.orders == [("send", "two"), ("send", "of a branch"), ("send", "of a branch")]
    assert chat.again == ""


def test_a_branch_is_made_and_opened_next(tmp_path: Path, branched: list[SimpleNamespace]) -> None:
    chat, _, out = chat_of(tmp_path, "one", "two", "three")
    assert chat._command("/fork")
    assert vars(branched.pop()) == {"session": "this", "after": "t3", "remember": False}
    assert chat.opening is not None and chat.opening.session_id == "branch"
    assert chat._command("/fork 2")
    assert vars(branched.pop()) == {"session": "this", "after": "t2", "remember": True}
    chat.opening = None
    for wrong in ("0", "4", "-1", "x", "٣", "9" * 40):
        assert chat._command(f"/fork {wrong}") and chat._command(f"/rewind {wrong}")
    assert said(out).count("There is no turn") == 12
    assert chat.opening is None and branched == []


def test_going_back_brings_the_prompt_along(tmp_path: Path, branched: list[SimpleNamespace]) -> None:
    chat, _, out = chat_of(tmp_path, "one", "two\nlines", "three")
    assert chat._command("/rewind")
    assert said(out).splitlines()[:3] == ["  1 one", "  2 two lines", "  3 three"]
    assert chat._command("/rewind 2")
    assert vars(branched.pop()) == {"session": "this", "after": "t1", "remember": False}
    assert chat.opening is not None
    assert (chat.opening.session_id, chat.opening.again) == ("branch", "two\nlines")
    assert "The prompt was: two lines" in chat.opening.words
    assert chat._command("/rewind 1")
    assert branched == [] and chat.opening is not None
    assert (chat.opening.session_id, chat.opening.again) == (None, "one")


def test_nothing_to_branch_and_a_branch_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, _, out = chat_of(tmp_path)
    assert chat._command("/fork") and chat._command("/rewind")
    assert said(out).splitlines() == [tr("controls.fork_nothing")] * 2

    def branch(*_: Any, **__: Any) -> str:
        raise SessionError("There is no room.")

    monkeypatch.setattr(engine_branch, "branch", branch)
    chat, _, out = chat_of(tmp_path, "one")
    assert chat._command("/fork")
    assert said(out).strip() == "error: There is no room."
    assert chat.opening is None


def test_words_after_a_command_that_takes_none_are_a_prompt(tmp_path: Path) -> None:
    chat, _, _ = chat_of(tmp_path, "one")
    assert not chat._command("/retry now")
    assert not chat._command("/clear all")
    assert not chat._command("/forks")
