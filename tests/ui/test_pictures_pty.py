"""The program on a real pty that plays a terminal: what it is asked, what it is sent."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from PIL import Image

from sandbox_chat.ui.pictures.encode import PLACEHOLDER

APP = """
import sys
from sandbox_chat.ui.pictures import Probe, choose
probe = Probe()
probe.start()
from textual.app import App
from sandbox_chat import events as ev
info = probe.finish(5.0)
from sandbox_chat.ui.pictures import Painter
from sandbox_chat.ui.transcript import TranscriptView

class Shown(App):
    def compose(self):
        yield TranscriptView()
    def on_mount(self):
        view = self.query_one(TranscriptView)
        view.set_images(Painter(choose("auto", info), info, max_rows=6))
        picture = ev.ImageContent(sys.argv[1], "image/png", 400, 200)
        view.feed([
            ev.ToolStarted(tool_use_id="a", name="run_code", input={"code": "x"}),
            ev.ToolFinished(tool_use_id="a", is_error=False, content=(picture,), duration_ms=5),
        ])
        self.set_interval(0.05, self.look)
        self.rounds = 0
    def look(self):
        view = self.query_one(TranscriptView)
        ready = view._gallery and view._gallery._paints
        self.rounds += bool(ready)
        if self.rounds == 3:
            view.feed([ev.Text(text=f"line {n}") for n in range(30)])
        if self.rounds == 8:
            view.action_scroll_start()
        if self.rounds == 16:
            self.exit()

Shown().run()
"""

KITTY = b"\x1b_Gi=4177;OK\x1b\\\x1b[6;20;10t\x1bP>|kitty(0.32.2)\x1b\\\x1b[?62;c"
XTERM = b"\x1b[6;20;10t\x1bP>|XTerm(379)\x1b\\\x1b[?63;1;2;4;6;9c"


def play(path: Path, replies: bytes, **environ: str) -> str:
    """Run the app on a pty that answers with ``replies``; return all that it wrote."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "STY", "NO_COLOR")}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ}
    process = subprocess.Popen(
        [sys.executable, "-c", APP, str(path)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        start_new_session=True,
    )
    os.close(slave)
    data = b""
    answered = False
    end = time.monotonic() + 60
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                try:
                    data += os.read(master, 65536)
                except OSError:
                    break
            if not answered and b"\x1b[c" in data:
                os.write(master, replies)
                answered = True
        assert process.wait(10) == 0, data[-2000:]
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)
    return data.decode("utf-8", "replace")


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    path = tmp_path / "chart.png"
    image = Image.new("RGB", (400, 200), "white")
    image.paste("red", (0, 90, 400, 110))
    image.save(path)
    return path


@pytest.mark.slow
def test_kitty_gets_the_picture_once_and_it_is_freed(chart: Path) -> None:
    text = play(chart, KITTY)
    sends = [match.start() for match in re.finditer(r"\x1b_Ga=T,U=1", text)]
    assert len(sends) == 1
    assert text.index(PLACEHOLDER) > sends[0]
    assert text.count(PLACEHOLDER) >= 2 * 6 * 24  # drawn again after scrolling, without being sent again
    frees = [match.start() for match in re.finditer(r"\x1b_Ga=d,d=I", text)]
    assert len(frees) == 1
    assert frees[0] > text.rindex(PLACEHOLDER)


@pytest.mark.slow
def test_sixel_goes_row_by_row(chart: Path) -> None:
    text = play(chart, XTERM)
    rows = re.findall(r"\x1bP0;1;0q\"1;1;(\d+);(\d+)", text)
    assert len(rows) >= 12  # six rows, before and after scrolling
    assert set(rows) == {("240", "20")}
    assert PLACEHOLDER not in text
    assert "\x1b_Ga=T" not in text


@pytest.mark.slow
def test_tmux_gets_characters_only(chart: Path) -> None:
    text = play(chart, b"", TMUX="/tmp/none,1,0", TERM="tmux-256color")
    assert "\x1bP" not in text
    assert "\x1b_G" not in text
    assert "█" in text or "▀" in text or "▄" in text or "48;2;255" in text
