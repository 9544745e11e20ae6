"""The title of a session: made from its first prompt, or given by the user."""

from __future__ import annotations

from support.screen import START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.ui.state import ChatState


def prompt(text: str) -> ev.TurnStarted:
    return ev.TurnStarted(at=START, turn_id=text, prompt=text)


def title(*events: ev.Event) -> str:
    state = ChatState()
    state.apply_all(events)
    return state.title


def test_the_first_prompt_makes_the_title() -> None:
    assert title() == ""
    assert title(prompt("one\n two"), turn_finished("one\n two"), prompt("three")) == "one two"


def test_the_users_title_stands_until_it_is_taken_back() -> None:
    mine = ev.SessionRenamed(title="mine\x1b[2J")
    assert title(prompt("one"), mine, prompt("two")) == "mine␛[2J"
    assert title(mine, prompt("one")) == "mine␛[2J"
    assert title(prompt("one"), mine, ev.SessionRenamed(title="")) == "one"
    assert title(mine, ev.SessionRenamed(title=""), prompt("one")) == "one"
