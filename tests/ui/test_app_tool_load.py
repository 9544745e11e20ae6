"""The tools pane when a call changes fast, or is withdrawn."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled, tool_finished, tool_started

from sandbox_chat import events as ev
from sandbox_chat.ui import call_views
from sandbox_chat.ui.calls import Part, ToolCall
from sandbox_chat.ui.widgets import tool_pane
from sandbox_chat.ui.widgets.text_view import TextView

SLOW = 0.05


async def test_output_that_is_slow_to_draw_is_drawn_less_often_and_whole_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []
    real = call_views.output_parts

    def slow(tool: ToolCall) -> list[Part]:
        drawn.append(time.monotonic())
        time.sleep(SLOW)
        return real(tool)

    monkeypatch.setattr(call_views, "output_parts", slow)
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].send("go")
        made[0].emit(tool_started())
        pane = app.chat_screen.tool_pane
        await settled(pilot, lambda: pane.call is not None)
        pane.show_view("output")
        for number in range(40):
            made[0].emit(ev.ToolOutput(tool_use_id="u1", stream="stdout", text=f"line {number}\n"))
            await pilot.pause(0.02)
        gaps = [later - sooner for sooner, later in itertools.pairwise(drawn[1:])]
        assert all(gap >= SLOW * tool_pane.DRAW_SHARE for gap in gaps)
        await settled(pilot, lambda: "line 39" in pane.query_one(TextView).text)  # though nothing more comes
        made[0].emit(ev.ToolOutput(tool_use_id="u1", stream="stdout", text="last"), tool_finished())
        await settled(pilot, lambda: pane.query_one(TextView).text.endswith("last"))


async def test_a_withdrawn_call_leaves_the_list(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].send("go")
        draft = '{"code": "half'
        made[0].emit(ev.ToolInputDelta(tool_use_id="cut", name="mcp__sandbox__run_code", text=draft))
        await settled(pilot, lambda: app.chat_screen.tool_pane.selected == "cut")
        # In one batch, so that the number of calls stays the same.
        made[0].emit(
            ev.Retry(reason="busy", attempt=1, delay_ms=0), tool_started("u1", code="whole"), tool_finished()
        )
        await settled(pilot, lambda: app.chat_screen.tool_pane.selected == "u1")
        assert "half" not in screen_text(app).replace("half-life", "")
        made[0].emit(ev.ToolInputDelta(tool_use_id="cut", name="mcp__sandbox__run_code", text=draft))
        made[0].emit(ev.Retry(reason="busy", attempt=1, delay_ms=0))
        await settled(pilot, lambda: app.chat_screen.tool_pane.summary == "Tools 1")
