"""Case T16, faults of the program itself: the terminal is restored, a sentence names a report, and no content is in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.program import environment, journal_events
from support.terminal import SWITCHED_OFF, terminal

MARKER = "marker-content-violet"
INJECT = f"""
import sys, threading
from sandbox_chat import cli
mode = sys.argv.pop(1)

def fault(*_args, **_options):
    hidden = "{MARKER} in a variable"
    raise RuntimeError("{MARKER} in the message of " + mode)

if mode == "interface":
    from sandbox_chat.ui.screens.chat import ChatScreen
    ChatScreen.on_composer_submitted = fault
elif mode == "worker":
    from sandbox_chat.ui.screens.chat import ChatScreen
    async def work(): fault()
    ChatScreen.on_composer_submitted = lambda self, event: self.app.run_worker(work())
elif mode == "engine":
    from sandbox_chat.engine import Engine
    plain = Engine._run
    async def run(self):
        import asyncio
        task = asyncio.ensure_future(plain(self))
        while not self._seq or not any(kind == "turn_started" for kind, *_ in list(__import__("sandbox_chat.crash").crash.recent._runs)):
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        fault()
    Engine._run = run
elif mode == "turn":
    from sandbox_chat.agent.running import Runner
    Runner._run = fault
elif mode == "thread":
    from sandbox_chat.engine import Engine
    start = Engine.start
    def begin(self):
        threading.Thread(target=fault, name="injected").start()
        start(self)
    Engine.start = begin
elif mode == "headless":
    from sandbox_chat import headless
    headless._follow = fault
sys.exit(cli.main())
"""
SENTENCE = re.compile(
    r"sandbox-chat: (The|A part of the) program failed because of a fault of its own \(RuntimeError\)\. The report is in (\S+)\."
)


def reports(home: Path) -> list[Path]:
    return sorted(home.glob(".local/share/sandbox-chat/crashes/*"))


def check(home: Path, said: str, *, events: bool = True) -> str:
    """One report, private, named on the error output, without content. Returns who failed."""
    [path] = reports(home)
    found = SENTENCE.findall(re.sub(r"\s*\n\s*", "", said)) or SENTENCE.findall(said)
    assert [name for _, name in found] == [str(path)], said
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert MARKER not in text
    assert "RuntimeError" in text and "in fault" in text
    assert "settings that were changed: " in text and "demo" in text
    if events:
        assert re.search(r"last events:\n(  \d[\d-]* \w+\n)+", text)
        assert "turn_started" in text
    return found[0][0]


@pytest.mark.parametrize("mode", ["interface", "worker", "engine", "turn", "thread"])
def test_t16_a_fault_in_the_terminal(tmp_path: Path, mode: str) -> None:
    command = [sys.executable, "-c", INJECT, mode, "--demo"]
    with terminal(command, env=environment(tmp_path), columns=200, rows=50) as at:
        if mode != "thread":
            at.shows("idle", 60)
            at.type(f"{MARKER} is what I ask\r")
        if mode in ("interface", "worker"):
            assert at.ends(60) == 1
        else:
            words = {
                "engine": "because of an internal fault",
                "turn": "Fault in this program",
                "thread": "idle",
            }
            at.shows(words[mode], 60)
            at.type(b"\x15\x11")
            assert at.ends(60) == 0
        written = at.written()
        for sequence in SWITCHED_OFF:
            assert sequence in written
        assert at.mode() == at.mode_before
        assert b"Traceback" not in written
        after = written[written.rindex(b"\x1b[?1049l") :].decode()
        who = check(tmp_path, re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", after), events=mode in ("engine", "turn"))
    assert who == ("The" if mode in ("interface", "worker") else "A part of the")
    if mode in ("engine", "turn"):
        assert journal_events(tmp_path)[-1]["type"] == "session_finished"


@pytest.mark.parametrize("mode", ["headless", "engine", "turn"])
def test_t16_a_fault_without_a_screen(tmp_path: Path, mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INJECT, mode, "run", "--demo", f"{MARKER} is what I ask"],
        env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 130), done.stderr  # with the engine the turn is stopped too
    assert "Traceback" not in done.stderr
    check(tmp_path, done.stderr, events=mode != "headless")
