"""How the screens look. Update with ``pytest tests/ui/test_app_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import (
    NARROW,
    START,
    WIDE,
    PlayedEngine,
    chat_app,
    settled,
    tool_finished,
    tool_started,
)
from textual.widgets import Input

from sandbox_chat import events as ev
from sandbox_chat.ui.widgets.ask import AskBox

Compare = Callable[..., bool]
Before = Callable[[Any], Awaitable[None]]

ANSWER = """\
I'll generate the curve and fit the **envelope**.

| zero | time |
|---:|---:|
| 1 | 0.785 s |
| 2 | 1.571 s |
"""


async def idle(pilot: Any) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle")


def talk(made: list[PlayedEngine], *, running: bool = False, narrow_tab: str = "") -> Before:
    """One turn with a call that succeeded and one that failed, and perhaps one that runs."""

    async def before(pilot: Any) -> None:
        await idle(pilot)
        pilot.app.chat_screen.composer.insert_text("plot a damped sine and tell me its half-life")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            ev.Status(component="sandbox", state="ready"),
            ev.Text(text=ANSWER),
            tool_started(),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text="half-life 2.08 s\n"),
            tool_finished(),
            tool_started("u2", code="1/0"),
            tool_finished(
                "u2", ev.TextContent("Traceback\nZeroDivisionError: division by zero"), is_error=True
            ),
        )
        if running:
            made[0].emit(tool_started("u3", code="t_half = 3 * np.log(2)\nt_half"))
            await settled(pilot, lambda: pilot.app.chat.state.phase == "tool")
        else:
            made[0].emit(ev.Text(text="The envelope halves every **2.08 s**."))
            made[0].finish()
            await idle(pilot)
        if narrow_tab:
            await pilot.press(narrow_tab)
        await pilot.pause(0.3)

    return before


STREAMED = """\
Two steps:

1. Load the file and keep what is *complete*:

   ```python
   import pandas as pd

   def load(path: str) -> pd.DataFrame:
       \"\"\"Return the rows without gaps.\"\"\"
       frame = pd.read_csv(path)
       return frame.dropna(subset=["pri"""


@pytest.fixture(autouse=True)
def fixed_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The welcome screen names a file: always the same."""
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", "/home/user/.config/sandbox-chat")


def test_idle_wide(tmp_path: Path, snap_compare: Compare) -> None:
    assert snap_compare(chat_app(tmp_path), terminal_size=WIDE, run_before=idle)


def test_after_a_turn(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, demo=False, model="claude-sonnet-5")
    assert snap_compare(app, terminal_size=WIDE, run_before=talk(made))


def test_tool_running(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    assert snap_compare(app, terminal_size=WIDE, run_before=talk(made, running=True))


def test_light(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, theme="light", demo=False, sandbox="unsafe-local", model="claude-sonnet-5")
    assert snap_compare(app, terminal_size=WIDE, run_before=talk(made))


def test_streaming_fence(tmp_path: Path, snap_compare: Compare) -> None:
    """An answer that stops in the middle of a string, in a line of code, in a fence, in a list."""
    made: list[PlayedEngine] = []

    async def before(pilot: Any) -> None:
        await idle(pilot)
        pilot.app.chat_screen.composer.insert_text("how do I drop incomplete rows")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)
        for start in range(0, len(STREAMED), 7):
            made[0].emit(ev.TextDelta(at=START, text=STREAMED[start : start + 7]))
        await settled(pilot, lambda: pilot.app.chat.state.phase == "streaming")
        await pilot.pause(1.0)  # the lexer comes

    assert snap_compare(chat_app(tmp_path, made), terminal_size=WIDE, run_before=before)


@pytest.mark.parametrize("tab", ["", "f2", "f3"])
def test_narrow(tmp_path: Path, snap_compare: Compare, tab: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    assert snap_compare(app, terminal_size=NARROW, run_before=talk(made, running=True, narrow_tab=tab))


def test_waiting_prompts(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []

    async def before(pilot: Any) -> None:
        await talk(made, running=True)(pilot)
        for text in ("and where does it cross zero", "then save it as a CSV"):
            pilot.app.chat.submit(text)
        made[0].emit(ev.Retry(at=START, reason="overloaded", attempt=1, delay_ms=500))
        await settled(pilot, lambda: pilot.app.chat.state.phase == "retrying")

    assert snap_compare(chat_app(tmp_path, made), terminal_size=(110, 30), run_before=before)


def test_welcome(tmp_path: Path, snap_compare: Compare) -> None:
    async def before(pilot: Any) -> None:
        await settled(pilot, lambda: pilot.app.screen is not pilot.app.chat_screen)

    assert snap_compare(chat_app(tmp_path, ask=True), terminal_size=NARROW, run_before=before)


def test_welcome_gateway(tmp_path: Path, snap_compare: Compare) -> None:
    async def before(pilot: Any) -> None:
        await settled(pilot, lambda: pilot.app.screen is not pilot.app.chat_screen)
        await pilot.press("3")
        await pilot.pause(0.2)
        await pilot.press("enter")
        await settled(pilot, lambda: isinstance(pilot.app.focused, Input))
        pilot.app.focused.cursor_blink = False
        await pilot.pause(0.3)

    assert snap_compare(chat_app(tmp_path, ask=True), terminal_size=NARROW, run_before=before)


def test_help(tmp_path: Path, snap_compare: Compare) -> None:
    async def before(pilot: Any) -> None:
        await idle(pilot)
        await pilot.press("f1")
        await pilot.pause(0.3)

    assert snap_compare(chat_app(tmp_path), terminal_size=WIDE, run_before=before)


def asking(made: list[PlayedEngine]) -> Before:
    """A turn with background output, an attached file on its way, and a call that asks."""

    async def before(pilot: Any) -> None:
        await idle(pilot)
        pilot.app.chat_screen.composer.insert_text("save the chart for me")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            ev.Attached(
                at=START, attach_id="x1", name="data.csv", path="/tmp/attached/data.csv", size=1_234_567
            ),
            tool_started("u1", code="import threading\nthreading.Thread(target=watch).start()"),
            tool_finished("u1"),
            ev.ToolOutput(
                at=START, tool_use_id="u1", stream="stdout", text="10 of 50\n20 of 50\n", late=True
            ),
            tool_started("u2", "mcp__sandbox__download_file", path="/tmp/plot.png"),
            ev.Progress(at=START, subject="x2", label="big.csv", done=120_000_000, total=300_000_000),
            ev.ApprovalRequested(
                at=START,
                approval_id="a1",
                kind="overwrite",
                question="plot.png exists already. Replace it?",
                detail="/home/user/downloads/plot.png\nthere now: 12,345 bytes, changed 2026-01-02 03:04\nfrom the sandbox: 23,456 bytes",
                choices=(
                    ev.Choice("replace", "r", "replace it"),
                    ev.Choice("keep_both", "k", "keep both"),
                    ev.Choice("no", "n", "do not save"),
                ),
                default="keep_both",
                tool_use_id="u2",
            ),
        )
        box = pilot.app.chat_screen.query_one(AskBox)
        await settled(pilot, lambda: pilot.app.focused is box)
        await pilot.pause(0.3)

    return before


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "dark"), (WIDE, "light"), (NARROW, "dark")])
def test_asking(tmp_path: Path, snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, theme=theme)
    assert snap_compare(app, terminal_size=size, run_before=asking(made))


def test_commands(tmp_path: Path, snap_compare: Compare) -> None:
    async def before(pilot: Any) -> None:
        await idle(pilot)
        await pilot.press("ctrl+p")
        await pilot.pause(0.5)
        pilot.app.screen.query_one(Input).cursor_blink = False
        await pilot.pause(0.1)

    assert snap_compare(chat_app(tmp_path), terminal_size=WIDE, run_before=before)
