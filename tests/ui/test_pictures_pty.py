"""The program on a real pty that plays a terminal: what it is asked, what it is sent."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from PIL import Image

from sandbox_chat.ui.pictures.protocols import PLACEHOLDER

APP = """
import sys
from sandbox_chat.ui.pictures import Probe
probe = Probe()
probe.start()
from textual.app import App
from sandbox_chat import events as ev
info = probe.finish(5.0)
from sandbox_chat.settings import Settings
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.transcript import TranscriptView
images = Images(Settings(images=sys.argv[2], image_rows=6), info)

class Shown(App):
    def compose(self):
        yield TranscriptView()
    def on_mount(self):
        view = self.query_one(TranscriptView)
        images.connect(view)
        picture = ev.ImageContent(sys.argv[1], "image/png", 400, 200)
        view.feed([
            ev.ToolStarted(tool_use_id="a", name="run_code", input={"code": "x"}),
            ev.ToolFinished(tool_use_id="a", is_error=False, content=(picture,), duration_ms=5),
        ])
        self.set_interval(0.05, self.look)
        self.rounds = 0
    def on_resize(self, event):
        images.resized(event)
    def look(self):
        view = self.query_one(TranscriptView)
        ready = view._gallery and view._gallery._hung
        self.rounds += bool(ready)
        if self.rounds == 3:
            view.feed([ev.Text(text=f"line {n}") for n in range(30)])
        if self.rounds == 8:
            view.action_scroll_start()
        if self.rounds == 16 + 20 * (len(sys.argv) > 3):
            self.exit()

Shown().run()
"""

KITTY = b"\x1b_Gi=4177;OK\x1b\\\x1b[6;20;10t\x1bP>|kitty(0.32.2)\x1b\\\x1b[?62;c"
XTERM = b"\x1b[6;20;10t\x1bP>|XTerm(379)\x1b\\\x1b[?63;1;2;4;6;9c"


def play(path: Path, replies: bytes, mode: str = "auto", *, zoom: bool = False, **environ: str) -> str:
    """Run the app on a pty that answers with ``replies``; return all that it wrote.

    ``zoom``: the font becomes twice as large, so that half as many cells stand in the same window.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 800 * zoom, 480 * zoom))
    env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "STY", "NO_COLOR")}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ}
    process = subprocess.Popen(
        [sys.executable, "-c", APP, str(path), mode, *(["long"] if zoom else [])],
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
            if zoom and b"\x1bP0;1;0q" in data:
                zoom = False
                fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 800, 480))
                os.kill(process.pid, signal.SIGWINCH)
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


@pytest.mark.slow
def test_sixels_follow_the_size_of_the_font(chart: Path) -> None:
    text = play(chart, XTERM, zoom=True)
    sizes = re.findall(r"\x1bP0;1;0q\"1;1;(\d+);(\d+)", text)
    assert sizes[0] == ("240", "20")
    assert sizes[-1] == ("400", "40")  # six rows of forty pixels hold all of it


@pytest.mark.slow
def test_iterm_gets_inline_files(chart: Path) -> None:
    text = play(chart, XTERM, "iterm")
    heads = re.findall(r"\x1b\]1337;File=inline=1;size=\d+;width=(\d+);height=1;", text)
    assert len(heads) >= 12
    assert set(heads) == {"24"}
    assert "\x1bP0" not in text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "kitty"])
def test_an_old_kitty_gets_no_placeholders(chart: Path, mode: str) -> None:
    text = play(chart, KITTY.replace(b"0.32.2", b"0.26.5"), mode)
    assert PLACEHOLDER not in text
    assert "\x1b_Ga=T" not in text
    assert "48;2;255" in text


@pytest.mark.slow
def test_ascii_signs_only(chart: Path) -> None:
    text = play(chart, KITTY, "ascii")
    assert not set("▀▄█▖▗▘▝") & set(text)
    assert "@@@@" in text
