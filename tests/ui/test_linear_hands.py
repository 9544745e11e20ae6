"""What hands do at the plain chat: keys that come before a question is put, and Ctrl+C just after Enter."""

from __future__ import annotations

import io
import os
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.terminal import Terminal, terminal

from sandbox_chat import events as ev
from sandbox_chat import linear
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.settings import Settings

PROGRAM = """
import os, sys, time
from sandbox_chat import events as ev
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.settings import Settings

class Engine:
    def answer(self, approval_id, choice, by):
        print("answered", approval_id, choice, by, flush=True)

def asked(name):
    choices = tuple(ev.Choice(f"choice-{n}", "", f"choice {n}") for n in (1, 2, 3))
    return ev.ApprovalRequested(approval_id=name, kind="k", question=name, detail="", choices=choices, default="choice-3")

out = sys.stdout if sys.argv[1] == "edited" else os.fdopen(1, "w", closefd=False)
chat = Chat(Settings(), Lines(sys.stdin, out))
assert chat.lines._edited == (sys.argv[1] == "edited")
chat.engine = Engine()
chat._take(asked("first"))
print("busy", flush=True)
time.sleep(float(sys.argv[2]))
chat._take(asked("second"))
print("prompt is", repr(chat.lines.prompt()), flush=True)
"""


def said(shown: Terminal, words: str, count: int = 1) -> None:
    shown.wait(lambda: shown.written().count(words.encode()) >= count)


@pytest.mark.parametrize("how", ["edited", "plain"])
@pytest.mark.parametrize(
    ("at_once", "meanwhile", "kept"),
    [
        ("1\r1\r", "", "1"),  # the key was pressed twice
        ("1\r", "1\r", "1"),
        ("1\r", "1", "1"),  # Enter is still to come
        ("1\r", "and the\rnext\r1\r", "and the\nnext\n1"),
        ("1\r", "\r", ""),
    ],
    ids=["twice", "later", "unended", "lines", "enter"],
)
def test_what_was_typed_before_a_question_is_no_answer_to_it(
    how: str, at_once: str, meanwhile: str, kept: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, how, "1.0" if meanwhile else "0.0"]
    with terminal(command, env=dict(os.environ), columns=150) as shown:
        said(shown, "answer with a number:")
        shown.type(at_once)
        said(shown, "answered first choice-1 user")
        if meanwhile:
            said(shown, "busy")
            shown.type(meanwhile)
        said(shown, "answer with a number:", 2)
        assert b"answered second" not in shown.written()
        shown.type("2\r")
        said(shown, "answered second choice-2 user")
        said(shown, "prompt: ")
        assert (b"Typed before a question came" in shown.written()) == bool(kept)
        shown.type("\r")
        said(shown, f"prompt is {kept!r}")
        assert shown.ends() == 0
        assert shown.mode() == shown.mode_before


def test_at_a_pipe_every_line_is_for_what_asks_next() -> None:
    lines = Lines(io.StringIO("1\n2\n"), io.StringIO())
    lines.hold_back()
    assert (lines.ask("?"), lines.ask("?")) == ("1", "2")


def test_a_terminal_without_modes_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> list[Any]:
        raise termios.error(25, "not a typewriter")

    monkeypatch.setattr(termios, "tcgetattr", none)
    lines = by_hand("hello\n")
    lines.hold_back()
    assert lines.ask("?") == "hello"


class Typed(io.StringIO):
    """Lines that a hand types."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0


def by_hand(text: str) -> Lines:
    return Lines(Typed(text), io.StringIO())


class Sending:
    """An engine that notes what is sent, and answers at once."""

    session_id = "s"

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.sent: list[str] = []

    def start(self) -> None:
        self.chat.events.put(ev.Status(component="agent", state="ready"))

    def send(self, prompt: str) -> str:
        self.sent.append(prompt)
        self.chat.events.put(ev.SessionFinished())
        return "t"


def at_work(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch, looked: Callable[[Chat], list[Any]]
) -> Any:
    """A chat whose look for more lines, after Enter, is ``looked``."""
    chat = Chat(Settings(data_dir=tmp_path), lines)
    monkeypatch.setattr(linear.select, "select", lambda *_: (looked(chat), [], []))
    engine: Any = Sending(chat)
    chat.talk(engine)
    out: Any = lines._out
    return engine.sent, out.getvalue()


def press(chat: Chat) -> None:
    chat.signals._interrupt(signal.SIGINT, None)


def test_ctrl_c_just_after_enter_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[bool] = []

    def looked(chat: Chat) -> list[Any]:
        if not pressed:
            pressed.append(True)
            press(chat)
        return []

    sent, text = at_work(tmp_path, by_hand("hello\n"), monkeypatch, looked)
    assert sent == [] and "Ctrl+C once more quits." in text


def test_ctrl_c_in_a_paste_drops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []

    def looked(chat: Chat) -> list[Any]:
        looks.append(True)
        if len(looks) == 3:
            press(chat)
        return [1] if len(looks) < 3 else []

    sent, text = at_work(tmp_path, by_hand("one\ntwo\nthree\n"), monkeypatch, looked)
    assert sent == ["three"] and "The prompt is empty." in text


def test_ctrl_c_before_the_prompt_goes_out_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = by_hand("hello\n")
    chat = Chat(Settings(data_dir=tmp_path), lines)
    monkeypatch.setattr(linear.select, "select", lambda *_: ([], [], []))
    drain = chat._drain

    def drained() -> None:
        if lines._source.read(1) == "":  # the line was read
            monkeypatch.setattr(chat, "_drain", drain)
            press(chat)
        else:
            lines._source.seek(0)
        drain()

    monkeypatch.setattr(chat, "_drain", drained)
    engine: Any = Sending(chat)
    chat.talk(engine)
    assert engine.sent == []
