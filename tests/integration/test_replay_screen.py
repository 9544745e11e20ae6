"""The demo's tour on the screen: what was seen live is what a new program shows of the record, wide and narrow."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, clock, screen_text, settled

from sandbox_chat.settings import Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.start import make_engine
from sandbox_chat.ui.state import ChatState

PATIENCE = 240.0
LATER = re.compile(r"The sandbox is a new one|resumed", re.IGNORECASE)


def app_of(folder: Path, resume: str | None = None) -> Any:
    settings = Settings(
        demo=True, demo_pace=0.0, data_dir=folder / "data", downloads_dir=folder / "downloads", images="off",
        reduced_motion=True, theme="dark", language="en", glyphs="unicode", expand_tools="never",
    )  # fmt: skip
    return ChatApp(settings, make_engine, resume=resume, clock=clock)


def rows(app: Any, width: int, *, expanded: bool) -> list[str]:
    out = []
    for block in app.chat_screen.transcript.blocks:
        block.ensure()
        if expanded:
            block.expand()
        else:
            block.collapse()
        out += [row.text.rstrip() for row in block.rows(width)]
    return out


def totals(state: ChatState) -> dict[str, Any]:
    """Everything that the panes show, without what counts events or belongs to one run."""
    passing = {
        "agent",
        "agent_text",
        "sandbox",
        "machine",
        "tool_revision",
        "since",
        "activity",
        "finished",
        "partial",
    }
    out = {
        item.name: getattr(state, item.name)
        for item in dataclasses.fields(state)
        if item.compare and item.name not in passing
    }
    for tool in out["tools"].values():
        tool.revision = 0
    return {**out, "usage": state.usage, "cost": state.cost}


def ended(app: Any) -> int:
    """How many turns have ended."""
    return sum(turn.ended for turn in app.chat.state.turns)


@pytest.mark.slow
async def test_the_tour_looks_the_same_live_and_replayed(tmp_path: Path) -> None:
    seen: dict[tuple[int, bool], list[str]] = {}
    app = app_of(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle", PATIENCE)
        for number, prompt in enumerate(("tour", "make a mistake and fix it"), 1):
            await pilot.press(*prompt, "enter")
            await settled(pilot, lambda: ended(app) == number, PATIENCE)  # noqa: B023 - waited for in here
            await settled(pilot, lambda: app.chat.state.phase == "idle", PATIENCE)
        session = app.chat.engine.session_id
        state = totals(app.chat.state)
        for width in (WIDE[0] - 10, NARROW[0] - 4):
            for expanded in (False, True):
                seen[width, expanded] = rows(app, width, expanded=expanded)
        rows(app, WIDE[0] - 10, expanded=False)
        app.chat_screen.transcript.end()
        screen = transcript_of(app)
    app.chat.engine.close()
    assert len(state["tools"]) >= 4
    assert any(tool.status == "failed" for tool in state["tools"].values())

    app = app_of(tmp_path, session)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle" and not app.chat.state.partial, PATIENCE)
        for (width, expanded), expected in seen.items():
            assert rows(app, width, expanded=expanded) == expected
        rows(app, WIDE[0] - 10, expanded=False)
        again = totals(app.chat.state)
        assert again == state
        app.chat_screen.transcript.end()
        assert transcript_of(app) == screen
        assert "damaged" not in screen_text(app)
    app.chat.engine.close()


def transcript_of(app: Any) -> list[str]:
    """The rows of the transcript that are on the screen."""
    view = app.chat_screen.transcript
    view._relayout()
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]
