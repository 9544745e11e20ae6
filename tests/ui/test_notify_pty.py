"""What the terminal is told while its window has no focus, byte by byte, and that its title comes back."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.terminal import Terminal, terminal

TESTS = Path(__file__).parents[1]

PROGRAM = """
import sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.screen import chat_app
from sandbox_chat.ui import start
made = []
app = chat_app(Path(sys.argv[2]), made, notify=sys.argv[3])

from support import screen
send = screen.PlayedEngine.send
def sent(self, prompt):
    turn = send(self, prompt)
    threading.Timer(0.3, lambda: self.finish(is_error=prompt == "fail")).start()
    return turn
screen.PlayedEngine.send = sent
sys.exit(start.run_app(app))
"""
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
BELL, OSC9 = b"\x07", b"\x1b]9;sandbox-chat: the turn has ended: hello\x07"
OSC777 = b"\x1b]777;notify;sandbox-chat;the turn has ended: hello\x07"
TITLE = "\x1b]2;sandbox-chat · hello\x07".encode()
MARK = "\x1b]2;* sandbox-chat · hello\x07".encode()
PUSH, POP = b"\x1b[22;2t", b"\x1b[23;2t"


@contextmanager
def chat(folder: Path, way: str, **env: str) -> Iterator[Terminal]:
    variables = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
    if "TMUX" not in env:
        variables.pop("TMUX", None)
    with terminal([sys.executable, "-c", PROGRAM, str(TESTS), str(folder), way], env=variables) as opened:
        opened.shows("idle")
        yield opened


def say(at: Terminal, text: str) -> None:
    at.type(f"\x1b[200~{text}\x1b[201~")
    at.shows(f"› {text}")
    time.sleep(0.3)  # an Enter that comes as quickly as a key of a paste is one
    at.type("\r")


def ended(at: Terminal) -> None:
    at.wait(lambda: "1 turn" in at.text() or "turns      1" in at.text())
    at.shows("idle")


def bells(data: bytes) -> int:
    """Bells that end no sequence."""
    return re.sub(rb"\x1b\][^\x07\x1b]*\x07", b"", data).count(BELL)


@pytest.mark.parametrize(
    ("way", "env", "wanted"),
    [
        ("osc9", {}, OSC9),
        ("osc777", {}, OSC777),
        ("osc777", {"TMUX": "/tmp/x,1,0"}, b"\x1bPtmux;\x1b" + OSC777 + b"\x1b\\"),
    ],
)
def test_a_message_is_sent_when_the_focus_is_elsewhere(
    tmp_path: Path, way: str, env: dict[str, str], wanted: bytes
) -> None:
    with chat(tmp_path, way, **env) as at:
        say(at, "hello")
        at.type(FOCUS_OUT)
        at.wait(lambda: wanted in at.written())
        assert bells(at.written()) == 0
        at.type(FOCUS_IN)
        at.type("\x11")
        assert at.ends() == 0
        assert at.written().count(wanted) == 1


def test_nobody_is_called_who_looks(tmp_path: Path) -> None:
    with chat(tmp_path, "bell") as at:
        at.type(FOCUS_OUT + FOCUS_IN)
        say(at, "hello")
        ended(at)
        assert bells(at.written()) == 0
        say(at, "fail")
        at.type(FOCUS_OUT)
        at.wait(lambda: bells(at.written()) == 1)
        at.type("\x11")
        assert at.ends() == 0


def test_the_title_is_marked_and_given_back(tmp_path: Path) -> None:
    with chat(tmp_path, "title") as at:
        say(at, "hello")
        at.type(FOCUS_OUT)
        at.wait(lambda: MARK in at.written())
        at.type(FOCUS_IN)
        at.wait(lambda: at.written().rindex(TITLE) > at.written().rindex(MARK))
        assert at.written().count(PUSH) == 1 and POP not in at.written()
        at.type("\x11")
        assert at.ends() == 0
        written = at.written()
        assert written.count(POP) == 1 and written.index(POP) > written.rindex(b"\x1b[?1049l")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_gives_the_title_back_too(tmp_path: Path, number: int) -> None:  # case T16
    with chat(tmp_path, "off") as at:
        say(at, "hello")
        at.wait(lambda: TITLE in at.written())
        at.process.send_signal(number)
        assert at.ends() == 128 + number
        assert at.written().count(POP) == 1
