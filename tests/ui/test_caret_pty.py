"""Input methods open at the terminal's own cursor: it stands at the composer's caret after every frame (case T17)."""

from __future__ import annotations

import os
import re
import sys
from itertools import pairwise
from pathlib import Path

import pyte
import pytest
from rich.cells import cell_len
from support.terminal import Terminal, terminal

TESTS = Path(__file__).parents[1]
FRAME = re.compile(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)

PROGRAM = """
import sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.screen import START, PlayedEngine, chat_app
from sandbox_chat import events as ev
from sandbox_chat.ui import start

def streams(engine):
    def go():
        time.sleep(0.5)
        engine.emit(ev.TurnStarted(at=START, turn_id="t0", prompt="stream"))
        for number in range(150):
            engine.emit(ev.TextDelta(text=f"word {number} 你好\\n\\n"))
            if number == 60:
                engine.emit(ev.ApprovalRequested(
                    at=START, approval_id="a", kind="overwrite", question="May it?", detail="x\\ny",
                    choices=(ev.Choice("yes", "y", "Yes"), ev.Choice("no", "n", "No")), default="no"))
            time.sleep(0.02)
    threading.Thread(target=go, daemon=True).start()

app = chat_app(Path(sys.argv[2]), set_up=streams, reduced_motion=False)
sys.exit(start.run_app(app))
"""


def carets(raw: bytes, columns: int, rows: int) -> list[tuple[int, int, str]]:
    """Where the cursor is after each frame that shows the composer: row, column, and the composer's row there."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    found = []
    place = 0
    for frame in FRAME.finditer(raw):
        stream.feed(raw[place : frame.end()])
        place = frame.end()
        row = screen.cursor.y
        found.append((row, screen.cursor.x, screen.display[row].rstrip()))
    return found


def end_of(text: str) -> int:
    """The column after what is written in a row of the composer; -1 for any other row."""
    if "Type a prompt" in text or text.strip() in ("›", ""):
        return 3
    return cell_len(text) if text.startswith((" › ", "   ")) else -1


def typed(at: Terminal, text: str) -> None:
    for character in text:
        at.type(character)
        at.wait(lambda c=character: c in at.text())


def reached(at: Terminal, number: int) -> None:
    """Wait until so much of the answer is on the screen."""
    at.wait(lambda: any(int(word) >= number for word in re.findall(r"word (\d+)", at.text())))


@pytest.mark.parametrize("size", [(100, 30), (60, 16)])
def test_the_cursor_is_at_the_caret_after_every_frame(tmp_path: Path, size: tuple[int, int]) -> None:
    env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    env.pop("TMUX", None)
    command = [sys.executable, "-c", PROGRAM, str(TESTS), str(tmp_path)]
    columns, rows = size
    with terminal(command, env=env, columns=columns, rows=rows) as at:
        at.type(b"\x1b[?2026;2$y")  # the terminal says that it knows frames
        at.shows("Type a prompt")
        start = len(at.written())
        typed(at, "你好한글é👍x")
        reached(at, 40)
        at.type("\n")  # ctrl+j: the composer grows
        typed(at, "世界")
        reached(at, 100)
        reached(at, 149)
        raw = at.written()[: at.written().rfind(b"\x1b[?2026l") + 8]
        before = carets(raw[:start], columns, rows)
        found = carets(raw, columns, rows)[len(before) :]
    assert len(found) > 30
    # A frame of the transcript may come between a key and the frame that draws it: the cursor is right already.
    for (row, column, text), (_, _, soon) in pairwise([*found, found[-1]]):
        assert column in (end_of(text), end_of(soon)), (row, column, text, soon)
