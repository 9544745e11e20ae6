"""The chat as a web page: textual-serve runs the program, a headless browser types a prompt and looks at the answer.

Needs Chromium; without one the test says that it was not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pyte
import pytest
from PIL import Image
from support.program import environment

pytest.importorskip("textual_serve", reason="not run: textual-serve is not installed")

from support.browser import Page, browser, program

SIZE = (1200, 800)
SERVE = """
import sys
from textual_serve.server import Server
Server(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2])).serve()
"""
PAPER, BLUE, ORANGE = (255, 255, 255), (42, 111, 219), (224, 112, 43)
"""The ground of the demo's chart, its curve and its envelope."""


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def served(home: Path) -> AsyncIterator[str]:
    """Serve the demo and yield the address of the page."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, f"{sys.executable} -m sandbox_chat --demo", str(port)],
        env={**environment(home), "SANDBOX_CHAT_REDUCED_MOTION": "1"},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, "the server ended"
            await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Terminal:
    """What the page's terminal shows, read from what its socket was sent."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._screen = pyte.Screen(300, 100)
        self._stream = pyte.ByteStream(self._screen)
        self._read = 0

    def text(self) -> str:
        data = self._page.received[self._read :]
        self._read += len(data)
        # The server's own messages are between the terminal's bytes.
        self._stream.feed(re.sub(rb'\["\w+", ?"?[^"\]]*"?\]', b"", data))
        return "\n".join(line.rstrip() for line in self._screen.display)


async def until(condition: Callable[[], bool], terminal: Terminal, seconds: float = 120) -> None:
    for _ in range(int(seconds / 0.2)):
        if condition():
            return
        await asyncio.sleep(0.2)
    raise AssertionError(terminal.text())


def count(picture: Image.Image, colour: tuple[int, int, int]) -> int:
    """Return how many pixels are about of a colour."""
    colours: list[tuple[int, tuple[int, int, int]]] = picture.getcolors(1 << 24)  # type: ignore[assignment]
    return sum(
        number
        for number, found in colours
        if all(abs(a - b) < 24 for a, b in zip(found, colour, strict=True))
    )


@pytest.mark.slow
@pytest.mark.skipif(program() is None, reason="not run: there is no Chromium")
async def test_a_prompt_an_answer_and_a_picture_in_a_browser(tmp_path: Path) -> None:
    async with served(tmp_path) as address, browser() as page:
        terminal = Terminal(page)
        await page.open(address, *SIZE)
        await until(lambda: "Type a prompt" in terminal.text(), terminal)
        await page.click(SIZE[0] // 4, SIZE[1] - 40)
        before = Image.open(io.BytesIO(await page.screenshot())).convert("RGB")
        assert count(before, PAPER) < 20_000
        await page.type("plot a damped sine")
        await until(lambda: "› plot a damped sine" in terminal.text(), terminal)
        await page.press("Enter")
        await until(lambda: "The envelope halves every 2.08 s" in terminal.text(), terminal)
        await until(lambda: "zoom" in terminal.text() and "preparing" not in terminal.text(), terminal)
        for _ in range(50):  # what was sent is drawn a moment later
            shot = await page.screenshot()
            after = Image.open(io.BytesIO(shot)).convert("RGB")
            if count(after, PAPER) > 60_000:
                break
            await asyncio.sleep(0.2)
        (tmp_path / "page.png").write_bytes(shot)
        assert count(after, PAPER) > 60_000
        assert count(after, BLUE) > 300
        assert count(after, ORANGE) > 300
    (journal,) = tmp_path.glob(".local/share/sandbox-chat/sessions/*/events.jsonl")
    kinds = [json.loads(line)["type"] for line in journal.read_text().splitlines()]
    assert "turn_finished" in kinds
