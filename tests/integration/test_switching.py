"""Going over to another session with the real engine, the real CLI and the demo's model."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.saved import Saved
from support.screen import WIDE, screen_text, settled

from sandbox_chat.events import SessionFinished
from sandbox_chat.journal.files import read_events
from sandbox_chat.journal.keeping import is_open
from sandbox_chat.settings import Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.start import make_engine

PATIENCE = 90.0


def real_app(folder: Path, **options: Any) -> ChatApp:
    settings = Settings(
        data_dir=folder / "data", demo=True, sandbox="off", demo_pace=0.0, reduced_motion=True, language="en",
        glyphs="unicode", images="half", theme="dark",
    )  # fmt: skip
    return ChatApp(settings, make_engine, **options)


def agents() -> set[int]:
    """Process ids of the agent's programs that this process started and that run."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it ends just now
            if "claude" in " ".join(child.cmdline()[:1]):
                found.add(child.pid)
    return found


async def idle(pilot: Any) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle", PATIENCE)


async def test_a_session_is_left_and_opened_again(tmp_path: Path) -> None:
    app = real_app(tmp_path)
    root = tmp_path / "data" / "sessions"
    before = agents()
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        assert app.chat.engine is not None
        first = app.chat.engine.session_id
        await pilot.press(*"hello there", "enter")
        await settled(pilot, lambda: app.chat.state.last_turn is not None, PATIENCE)
        answer = app.chat_screen.transcript.blocks[-1].text
        assert answer
        app.open_session(None)
        await settled(pilot, lambda: app.chat.engine.session_id != first, PATIENCE)
        await idle(pilot)
        assert app.chat.state.turns == []
        await settled(pilot, lambda: not app.former, PATIENCE)
        assert not is_open(root, first)
        assert isinstance(list(read_events(root / first))[-1], SessionFinished)
        assert len(agents() - before) <= 1
        await pilot.press("f10")
        await settled(
            pilot, lambda: "hello there" in screen_text(app) and "1 session" in screen_text(app), PATIENCE
        )
        await pilot.press("enter")
        await settled(pilot, lambda: app.chat.engine.session_id == first, PATIENCE)
        await idle(pilot)
        assert is_open(root, first)
        assert [turn.prompt for turn in app.chat.state.turns] == ["hello there"]
        assert any(block.text == answer for block in app.chat_screen.transcript.blocks)
        await pilot.press(*"/rename My words", "enter")
        await settled(pilot, lambda: "My words" in screen_text(app).splitlines()[0], PATIENCE)
        await settled(pilot, lambda: '"My words"' in (root / first / "meta.json").read_text(), PATIENCE)
        await pilot.press(*"and again", "enter")
        await settled(pilot, lambda: len([t for t in app.chat.state.turns if t.ended]) == 2, PATIENCE)
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: not app.is_running, PATIENCE)
    assert not is_open(root, first)
    assert [thread.name for thread in threading.enumerate() if thread.name == "engine"] == []


async def test_a_long_session_is_opened_at_an_early_turn(tmp_path: Path) -> None:
    saved = Saved(tmp_path / "data")
    long = [(f"prompt number {n}", f"answer {n} " + "word " * 3000) for n in range(1, 201)]
    saved.session("long", long)
    assert saved.path("long").stat().st_size > 2 << 20
    app = real_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        app.open_session("long", 5)
        await settled(pilot, lambda: "› prompt number 5" in screen_text(app), PATIENCE)
        assert len(app.chat.state.turns) == 200
        assert not app.chat.state.partial


@pytest.mark.slow
async def test_leaving_a_session_whose_turn_runs(tmp_path: Path) -> None:
    """What was written of the answer is in the record; the sandbox and the CLI are gone; nothing of it is seen later."""
    app = real_app(tmp_path)
    app.settings = Settings(
        data_dir=tmp_path / "data", demo=True, demo_pace=0.3, reduced_motion=True, language="en"
    )
    root = tmp_path / "data" / "sessions"
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        first = app.chat.engine.session_id
        await pilot.press(*"tell me what you can do", "enter")
        await settled(
            pilot, lambda: any(b.kind == "answer" for b in app.chat_screen.transcript.blocks), PATIENCE
        )
        app.open_session(None)
        await settled(pilot, lambda: "A turn is running" in screen_text(app), PATIENCE)
        await pilot.press("y")
        await settled(pilot, lambda: app.chat.engine.session_id != first, PATIENCE)
        await settled(pilot, lambda: not app.former, PATIENCE)
        await idle(pilot)
        assert app.chat.state.turns == []
        assert app.chat_screen.transcript.blocks == []
        kinds = [event.type for event in read_events(root / first)]
        assert kinds[-1] == "session_finished"
        assert "text_delta" in kinds
        children = [each.name() for each in psutil.Process().children(recursive=True)]
        assert sum(name == "claude" for name in children) <= 1
