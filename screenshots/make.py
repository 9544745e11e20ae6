"""Make the pictures of this folder from the running program, in a real xterm with sixel graphics.

    python screenshots/make.py [NAME …]

Needs Xvfb, xterm, xdotool, ImageMagick's ``import`` and the DejaVu fonts, and ``sandbox-chat`` installed
beside the interpreter that runs this. Each picture is one run of the demo with a fresh home; the script
types what a person would type and waits for the session's journal to say that the answer is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROGRAM = Path(sys.executable).parent / "sandbox-chat"
NEEDED = ("Xvfb", "xterm", "xdotool", "import")
SINE = "plot a damped sine and tell me its half-life"


@dataclass
class Window:
    """One xterm with the program in it."""

    display: str
    window: str
    home: Path
    turns: int = 0

    def keys(self, *names: str) -> None:
        """Press keys by their X names, one after another."""
        for name in names:
            self._xdotool("key", "--window", self.window, name)
            time.sleep(0.25)

    def type(self, text: str) -> None:
        """Type text as a person does."""
        self._xdotool("type", "--delay", "15", text)

    def ask(self, prompt: str) -> None:
        """Type a prompt, send it, wait until its turn is finished and drawn."""
        self.type(prompt)
        self.keys("Return")
        self.turns += 1
        self.wait_for(lambda: self.events("turn_finished") >= self.turns, f"the answer to {prompt!r}")
        self.settle()

    def settle(self) -> None:
        """Wait until the window has not changed for two seconds: xterm needs a while to draw sixels."""
        last, since = b"", time.monotonic()
        end = since + 60
        while time.monotonic() < end and time.monotonic() - since < 2:
            time.sleep(0.4)
            now = subprocess.run(
                ["import", "-window", self.window, "rgb:-"], check=True, env=self._env(), capture_output=True
            ).stdout
            if now != last:
                last, since = now, time.monotonic()

    def events(self, kind: str) -> int:
        """How many events of a type the session's journal holds."""
        count = 0
        for path in self.home.glob("data/sessions/*/events.jsonl"):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    count += json.loads(line)["type"] == kind
        return count

    def wait_for(self, ready: Callable[[], bool], what: str, seconds: float = 90) -> None:
        """Wait until ``ready`` or fail."""
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError(f"waited {seconds} s for {what}")
            time.sleep(0.2)

    def shoot(self, path: Path) -> None:
        """Take the picture."""
        subprocess.run(["import", "-window", self.window, str(path)], check=True, env=self._env())

    def _xdotool(self, *args: str) -> None:
        subprocess.run(["xdotool", *args], check=True, env=self._env(), stdout=subprocess.DEVNULL)

    def _env(self) -> dict[str, str]:
        return {**os.environ, "DISPLAY": self.display}


@contextlib.contextmanager
def opened(
    arguments: list[str],
    *,
    columns: int,
    rows: int,
    font: float,
    theme: str,
    before: Sequence[Sequence[str]] = (),
) -> Iterator[Window]:
    """Run the program in an xterm of its own under an X server of its own; first the commands ``before``."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        read, write = os.pipe()
        server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "2400x1600x24", "-nolisten", "tcp", "-noreset"],
            pass_fds=[write], stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(write)
        terminal = None
        try:
            with os.fdopen(read) as pipe:
                display = ":" + pipe.readline().strip()
            env = {
                "DISPLAY": display, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": folder,
                "SANDBOX_CHAT_REDUCED_MOTION": "1", "SANDBOX_CHAT_DATA_DIR": str(home / "data"),
                "SANDBOX_CHAT_THEME": theme,
            }  # fmt: skip
            for command in before:
                subprocess.run(
                    [PROGRAM, *command],
                    check=True,
                    env={**os.environ, **env},
                    cwd=folder,
                    capture_output=True,
                )
            background, foreground = ("#ffffff", "#000000") if theme == "light" else ("#000000", "#ffffff")
            terminal = subprocess.Popen(
                ["xterm", "-ti", "vt340", "+lc", "-u8", "-tn", "xterm-256color", "-fa", "DejaVu Sans Mono",
                 "-fs", str(font), "-geometry", f"{columns}x{rows}+0+0", "-bg", background, "-fg", foreground,
                 "+sb", "-b", "0", "-xrm", "XTerm*maxGraphicSize: 4000x4000",
                 "-xrm", "XTerm*numColorRegisters: 1024", "-xrm", "XTerm*sixelScrolling: true",
                 "-e", "env", "COLORTERM=truecolor", str(PROGRAM), *arguments],
                env=env, cwd=folder,
            )  # fmt: skip
            window = _window(display)
            subprocess.run(["xdotool", "windowfocus", window], env=env, check=False)
            time.sleep(3)
            opened_window = Window(display, window, home)
            yield opened_window
            opened_window.keys("ctrl+q")  # so that nothing writes into the home while it is removed
            with contextlib.suppress(subprocess.TimeoutExpired):
                terminal.wait(20)
        finally:
            for process in (terminal, server):
                if process is not None:
                    process.terminate()
                    process.wait(20)


def _window(display: str) -> str:
    env = {**os.environ, "DISPLAY": display}
    for _ in range(100):
        found = subprocess.run(
            ["xdotool", "search", "--onlyvisible", "--class", "xterm"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        if found:
            return found[-1]
        time.sleep(0.1)
    raise TimeoutError("the terminal did not open")


@dataclass
class Shot:
    """One picture: how the program is started and what is done before it is taken."""

    name: str
    act: Callable[[Window], None]
    columns: int = 150
    rows: int = 42
    font: float = 11
    theme: str = "dark"
    arguments: list[str] = field(default_factory=lambda: ["--demo"])
    before: Sequence[Sequence[str]] = ()


def chat(window: Window) -> None:
    """The main job: a chart in the transcript, a follow-up that uses its variables."""
    window.ask(SINE)
    window.ask("and where does it cross zero")


def mended(window: Window) -> None:
    """A failed call and its mended one, chosen in the tools pane."""
    window.ask("make a mistake and fix it")


def calls(window: Window) -> None:
    """Code that calls a tool of an MCP server three times at once; the user allows it for the session."""
    window.type("what time is it in Tokyo, Berlin and New York?")
    window.keys("Return")
    window.wait_for(lambda: window.events("approval_requested") > 0, "the question")
    time.sleep(2)
    window.keys("s")
    window.turns += 1
    window.wait_for(lambda: window.events("turn_finished") >= window.turns, "the answer")
    window.settle()


def nothing(window: Window) -> None:
    """The screen as it opens."""
    window.settle()


SHOTS = [
    Shot("chat", chat),
    Shot("tools", mended, columns=130, rows=36),
    Shot(
        "calls",
        calls,
        columns=130,
        rows=36,
        arguments=["--demo", "--code-mode", "on"],
        before=[("mcp", "add", "time", "--yes")],
    ),
    Shot("welcome", nothing, columns=110, rows=32, arguments=[]),
    Shot("light", lambda window: window.ask("histogram of normal data"), theme="light"),
    Shot("narrow", lambda window: window.ask(SINE), columns=80, rows=24),
]


def main(names: list[str]) -> int:
    """Make the pictures named, or all."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing or not PROGRAM.exists():
        print("needed and not found:", ", ".join(missing) or str(PROGRAM), file=sys.stderr)
        return 2
    for shot in SHOTS:
        if names and shot.name not in names:
            continue
        with opened(
            shot.arguments,
            columns=shot.columns,
            rows=shot.rows,
            font=shot.font,
            theme=shot.theme,
            before=shot.before,
        ) as window:
            shot.act(window)
            window.shoot(FOLDER / f"{shot.name}.png")
        print(f"{shot.name}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
