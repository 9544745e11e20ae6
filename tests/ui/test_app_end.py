"""Every way out is one way: the engine is closed, the terminal restored, and the end is said."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled
from support.terminal import SWITCHED_OFF, Terminal, terminal

TESTS = Path(__file__).parents[1]

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
folder, mode = Path(sys.argv[2]), sys.argv[3]
from support.screen import PlayedEngine, chat_app
from sandbox_chat.ui import private, start
PlayedEngine.close = lambda self, timeout=None: (folder / "closed").write_text("yes")
app = chat_app(folder, reduced_motion=False)
if mode == "fail":
    def fail():
        canary = "sk-canary-value"
        raise RuntimeError("of the test")
    PlayedEngine.prestart_sandbox = lambda self: app.call_later(fail)
if mode == "worker":
    async def fail():
        raise RuntimeError("of the test")
    PlayedEngine.prestart_sandbox = lambda self: app.run_worker(fail())
if mode == "refuse":
    def refuse(*args, **options):
        raise ValueError("There is no sandbox here.")
    app._make_engine = refuse
try:
    code = start.run_app(app)
except BaseException as error:
    print("FAILED", error, flush=True)
    code = 1
sys.exit(code)
"""


@contextmanager
def program(folder: Path, mode: str = "plain") -> Iterator[Terminal]:
    env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    env.pop("TMUX", None)
    with terminal([sys.executable, "-c", PROGRAM, str(TESTS), str(folder), mode], env=env) as opened:
        if mode != "refuse":
            opened.shows("idle")
        yield opened


def restored(at: Terminal) -> None:
    written = at.written()
    for sequence in SWITCHED_OFF:
        assert sequence in written
    assert at.mode() == at.mode_before
    assert b"Traceback" not in written
    assert b"sk-canary" not in written


async def test_quitting_closes_the_engine_and_says_so(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=lambda engine: setattr(engine, "close_takes", 0.4))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"unsent draft", "ctrl+q")
        await settled(pilot, lambda: "closing…" in screen_text(app))
        assert app.prompts.entries == ["unsent draft"]
        await settled(pilot, lambda: not app.is_running)
    assert made[0].closes == 1
    assert app.return_code == 0


async def test_an_engine_that_does_not_close_does_not_hold_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_chat.ui.app.CLOSE_EXTRA", 0.1)
    app = chat_app(tmp_path, close_timeout=0.5, set_up=lambda engine: setattr(engine, "close_takes", 3.0))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: not app.is_running, 2.9)


def test_an_orderly_end_names_the_session_that_has_turns(tmp_path: Path) -> None:
    with program(tmp_path) as at:
        at.type("hi\r")
        at.shows("› hi")
        at.type(b"\x11")
        assert at.ends() == 0
        assert "Session saved: sandbox-chat --resume 0123-session" in at.text()
        restored(at)
    assert (tmp_path / "closed").exists()


def test_an_unused_session_is_not_named(tmp_path: Path) -> None:
    with program(tmp_path) as at:
        at.type(b"\x11")
        assert at.ends() == 0
        assert "Session saved" not in at.text()
        restored(at)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_t16_signals(tmp_path: Path, number: int) -> None:
    with program(tmp_path) as at:
        at.type("hi\r")
        at.shows("› hi")
        at.process.send_signal(number)
        assert at.ends() == 128 + number
        assert "Session saved" in at.text()
        restored(at)
    assert (tmp_path / "closed").exists()


def test_a_terminal_that_is_gone(tmp_path: Path) -> None:
    with program(tmp_path) as at:
        at.type("hi\r")
        at.shows("› hi")
        at.hang_up()
        assert at.process.wait(5) == 128 + signal.SIGHUP
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize("mode", ["fail", "worker"])
def test_t16_a_fault_of_the_interface(tmp_path: Path, mode: str) -> None:
    with program(tmp_path, mode) as at:
        at.type("hi\r")
        assert at.ends() == 1
        assert "FAILED" in at.text()
        restored(at)
    assert (tmp_path / "closed").exists()


def test_an_engine_that_cannot_be_made(tmp_path: Path) -> None:
    with program(tmp_path, "refuse") as at:
        assert at.ends() == 1
        assert "FAILED There is no sandbox here." in at.text()
        restored(at)


def test_keys_as_terminals_send_them(tmp_path: Path) -> None:
    with program(tmp_path) as at:
        at.type(b"one\x1b\rtwo\ra third\rline")  # Alt+Enter without the kitty protocol, then a raw paste
        at.shows("a third")
        at.shows(" line")
        assert "thinking" not in at.text()
        at.type(b"\x1b[200~more\rlines\x1b[201~")
        at.shows("lines")
        assert "thinking" not in at.text()
        at.type(b"\r")
        at.shows("thinking")
        at.type(b"\x11")
        assert at.ends() == 0
