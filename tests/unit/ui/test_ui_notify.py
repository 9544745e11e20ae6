"""Who is called, how, and what leaves the screen for it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from support.screen import HOSTILE, START, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.notify import KEEP_TITLE, Attention, choose, message, window_title
from sandbox_chat.ui.outward import Outward


@pytest.mark.parametrize(
    ("environ", "told", "way"),
    [
        ({"TERM": "xterm-256color"}, "XTerm(390)", "bell"),
        ({"TERM": "xterm-kitty"}, "", "osc9"),
        ({"TERM": "xterm-256color"}, "kitty(0.35.2)", "osc9"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "", "osc9"),
        ({"TERM": "xterm-256color"}, "iTerm2 3.5", "osc9"),
        ({"TERM": "xterm-ghostty"}, "ghostty 1.1.0", "osc777"),
        ({"TERM_PROGRAM": "WezTerm"}, "", "osc777"),
        ({"TERM": "foot"}, "", "osc777"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "", "bell"),
        ({"TERM_PROGRAM": "Apple_Terminal"}, "", "bell"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x,1,0"}, "kitty(0.35.2)", "bell"),
        ({"TERM": "screen", "STY": "1.x"}, "", "bell"),
        ({}, "", "bell"),
    ],
)
def test_auto_takes_what_the_terminal_shows(environ: dict[str, str], told: str, way: str) -> None:
    assert choose("auto", environ, told) == way


@pytest.mark.parametrize("way", ["bell", "osc9", "osc777", "title", "off"])
def test_what_the_user_says_holds_everywhere(way: str) -> None:
    assert choose(way, {"TERM": "xterm-kitty", "TMUX": "x"}) == way


def test_the_bytes_of_each_way() -> None:
    assert message("bell", "t", "x") == "\a"
    assert message("osc9", "chat", "done: a;b") == "\x1b]9;chat: done: a;b\a"
    assert message("osc777", "chat", "done: a;b") == "\x1b]777;notify;chat;done: a,b\a"
    assert message("off", "t", "x") == message("title", "t", "x") == ""
    assert message("osc9", "t", "x", inside="tmux") == "\x1bPtmux;\x1b\x1b]9;t: x\a\x1b\\"
    assert message("osc777", "t", "x", inside="screen") == "\x1bP\x1b]777;notify;t;x\a\x1b\\"
    assert message("bell", "t", "x", inside="tmux") == "\a"


@pytest.mark.parametrize(
    "title", [*HOSTILE, "x\x1b]0;evil\a", "\x9d0;evil\x9c", "a\nb\r\0", "4;1;50", "long " * 200]
)
def test_a_title_cannot_end_or_change_the_sequence(title: str) -> None:
    for data in (message("osc9", "chat", title), message("osc777", "chat", title), window_title(title)):
        assert re.fullmatch(r"\x1b\][^\x00-\x1f\x7f-\x9f]*\a", data)
        assert len(data) < 200
    assert message("osc9", "chat", title).startswith("\x1b]9;chat: ")


def turn(seconds: float, *, turn_id: str = "t1", **changes: object) -> list[ev.Event]:
    """A turn that took so long."""
    end = START + timedelta(seconds=seconds)
    return [
        ev.TurnStarted(at=START, turn_id=turn_id, prompt="p"),
        turn_finished(turn_id, at=end, **changes),
    ]


def called(attention: Attention, events: list[ev.Event]) -> list[str]:
    return [word for event in events if (word := attention.take(event))]


def test_with_the_focus_known_it_decides() -> None:
    attention = Attention(10.0, tells=True)
    assert called(attention, turn(1000)) == []
    attention.focused = False
    assert called(attention, turn(0.1)) == ["done"]
    assert called(attention, turn(0.1, is_error=True)) == ["failed"]
    assert called(attention, turn(0.1, interrupted=True)) == [], "who stopped it is there"


def test_with_the_focus_unknown_the_time_decides() -> None:
    attention = Attention(10.0)
    assert called(attention, turn(9.9)) == []
    assert called(attention, turn(10.0)) == ["done"]
    attention.seen(START + timedelta(seconds=5))
    assert called(attention, turn(12.0)) == [], "a key was used seven seconds ago"
    assert called(attention, turn(15.0)) == ["done"]


def test_a_question_calls_too() -> None:
    attention = Attention(10.0)
    question = ev.ApprovalRequested(
        at=START + timedelta(seconds=11),
        approval_id="a",
        kind="k",
        question="q",
        detail="",
        choices=(),
        default="",
    )
    assert called(attention, [turn(0)[0], question]) == ["asks"]
    attention.focused = True
    assert called(attention, [question]) == []


class Heard:
    """What a chat tells outside of its screen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: object) -> None:
        for name in ("TMUX", "STY"):
            monkeypatch.delenv(name, raising=False)
        self.data: list[str] = []
        self.chat = Chat()
        self.outward = Outward(Settings(**settings), self.data.append)  # type: ignore[arg-type]

    def play(self, events: list[ev.Event]) -> None:
        self.chat.apply(events)
        self.outward.take(events, self.chat)


def test_the_title_of_the_window_follows_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch, notify="off")
    heard.play([ev.TurnStarted(at=START, turn_id="t", prompt="plot a sine\x1b[2J")])
    heard.play([])
    heard.play([ev.SessionRenamed(at=START, title="sines")])
    assert heard.data == [
        f"{KEEP_TITLE}\x1b]2;sandbox-chat · plot a sine␛[2J\a",
        "\x1b]2;sandbox-chat · sines\a",
    ]
    silent = Heard(monkeypatch, notify="off", window_title=False)
    silent.play(turn(100))
    assert silent.data == []


def test_only_the_title_of_the_session_leaves_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch, notify="osc777", window_title=False)
    heard.play([*turn(100)[:1], ev.Text(text="SECRET"), *turn(100, error="SECRET", is_error=True)[1:]])
    assert heard.data == ["\x1b]777;notify;sandbox-chat;the turn has failed: p\a"]


def test_nobody_is_called_while_the_next_prompt_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch, notify="bell", window_title=False)
    heard.play([*turn(100), ev.TurnStarted(at=START, turn_id="t2", prompt="q")])
    assert heard.data == []
    heard.play(turn(100, turn_id="t2")[1:])
    assert heard.data == ["\a"]


def test_a_mark_in_the_title_goes_when_somebody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(monkeypatch, notify="title")
    heard.play(turn(100))
    assert heard.data[-1] == f"{KEEP_TITLE}\x1b]2;* sandbox-chat · p\a"
    heard.outward.used(START, "p")
    heard.outward.used(START, "p")
    assert heard.data[1:] == ["\x1b]2;sandbox-chat · p\a"]
