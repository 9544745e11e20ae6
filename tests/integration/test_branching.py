"""Branches from the interface, with the real engine, the real CLI and the demo's model: /fork, /rewind, /retry, /clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.screen import WIDE, screen_text, settled

from sandbox_chat.events import Cleared, SessionForked, TurnStarted
from sandbox_chat.journal.files import read_events
from sandbox_chat.settings import Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.start import make_engine

PATIENCE = 90.0


def real_app(folder: Path) -> ChatApp:
    settings = Settings(
        data_dir=folder / "data", demo=True, sandbox="off", demo_pace=0.0, reduced_motion=True, language="en",
        glyphs="unicode", images="half", theme="dark",
    )  # fmt: skip
    return ChatApp(settings, make_engine)


async def idle(pilot: Any) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle", PATIENCE)


async def turn(pilot: Any, prompt: str) -> None:
    app = pilot.app
    count = sum(each.ended for each in app.chat.state.turns)
    app.chat_screen.composer.offer(prompt)
    await pilot.press("enter")
    await settled(pilot, lambda: sum(each.ended for each in app.chat.state.turns) == count + 1, PATIENCE)
    await idle(pilot)


async def command(pilot: Any, text: str) -> None:
    pilot.app.chat_screen.composer.write_command(text)
    await pilot.press("escape", "enter")


async def test_a_session_is_branched_from_its_end_and_from_an_earlier_turn(tmp_path: Path) -> None:
    app = real_app(tmp_path)
    root = tmp_path / "data" / "sessions"
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        first = app.chat.engine.session_id
        await turn(pilot, "hello one")
        await turn(pilot, "hello two")
        await command(pilot, "/fork")
        await settled(pilot, lambda: app.chat.engine.session_id != first, PATIENCE)
        await idle(pilot)
        branch = app.chat.engine.session_id
        assert [each.prompt for each in app.chat.state.turns] == ["hello one", "hello two"]
        await turn(pilot, "only in the branch")

        await command(pilot, "/rewind 2")
        await settled(pilot, lambda: app.chat.engine.session_id not in (first, branch), PATIENCE)
        await settled(pilot, lambda: app.chat_screen.composer.text == "hello two", PATIENCE)
        await idle(pilot)
        third = app.chat.engine.session_id
        assert [each.prompt for each in app.chat.state.turns] == ["hello one"]
        await pilot.press("end", *" edited", "enter")
        await settled(pilot, lambda: len([t for t in app.chat.state.turns if t.ended]) == 2, PATIENCE)
        assert "hello two edited" in screen_text(app)

    prompts = {
        name: [event.prompt for event in read_events(root / name) if isinstance(event, TurnStarted)]
        for name in (first, branch, third)
    }
    assert prompts[first] == ["hello one", "hello two"]
    assert prompts[branch] == ["hello one", "hello two", "only in the branch"]
    assert prompts[third] == ["hello one", "hello two edited"]
    origins = [event.origin for event in read_events(root / third) if isinstance(event, SessionForked)]
    assert origins[-1] == branch


async def test_clear_and_retry_with_the_real_agent(tmp_path: Path) -> None:
    app = real_app(tmp_path)
    root = tmp_path / "data" / "sessions"
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        session = app.chat.engine.session_id
        await turn(pilot, "hello one")
        await command(pilot, "/clear")
        await settled(
            pilot, lambda: any(isinstance(e, Cleared) for e in read_events(root / session)), PATIENCE
        )
        await idle(pilot)
        await command(pilot, "/retry")
        await settled(pilot, lambda: len([t for t in app.chat.state.turns if t.ended]) == 2, PATIENCE)
        assert [each.prompt for each in app.chat.state.turns] == ["hello one", "hello one"]
