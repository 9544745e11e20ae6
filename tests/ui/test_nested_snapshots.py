"""How calls look that code made. Update with ``pytest tests/ui/test_nested_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.nested_events import nested, run_of
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, settled

from sandbox_chat import events as ev
from sandbox_chat.ui.screens.real_values import RealValuesScreen

Compare = Callable[..., bool]
Before = Callable[[Any], Awaitable[None]]

LARGE = (200, 60)
RESULT = '[\n  {"id": 1, "total": 12.5},\n  {"id": 2, "total": 7.25}\n]'
VALUES = {"<EMAIL:k3f7qz27ab>": "ann@example.org", "<PHONE:b2c3d4e5f6>": "+1 415 555 0132"}


def calls(
    made: list[PlayedEngine],
    *,
    running: bool = False,
    opened: bool = False,
    keys: tuple[str, ...] = (),
    view: str = "",
) -> Before:
    """A run whose code calls a tool: some succeed, one fails, and perhaps one still runs."""

    async def before(pilot: Any) -> None:
        app = pilot.app
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        app.chat_screen.composer.insert_text("sum up the orders")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            *run_of(
                nested(1, text=RESULT),
                nested(2, error=True, text="no such table: orders\nhint: call list_tables first"),
                nested(3, text=RESULT),
                nested(4, ends=not running),
                nested(5, ends=not running),
                finished=not running,
            )
        )
        if not running:
            made[0].emit(ev.Text(text="The orders of <EMAIL:k3f7qz27ab> come to **19.75**."))
            made[0].finish()
            await settled(pilot, lambda: app.chat.state.phase == "idle")
        else:
            await settled(pilot, lambda: app.chat.state.phase == "tool")
        if opened:
            await pilot.press("f6", "k", "enter")
        if keys:
            await pilot.press(*keys)
        if view:
            app.chat_screen.tool_pane.show_view(view)
        await pilot.pause(0.3)

    return before


@pytest.mark.parametrize("running", [True, False], ids=["running", "ended"])
@pytest.mark.parametrize(
    ("size", "settings"),
    [(WIDE, {}), (NARROW, {}), (WIDE, {"theme": "light"}), (WIDE, {"language": "zh"}), (NARROW, {"glyphs": "ascii"})],
    ids=["wide", "narrow", "light", "zh", "ascii"],
)  # fmt: skip
def test_a_folded_card(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any], running: bool
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=size, run_before=calls(made, running=running))


@pytest.mark.parametrize("size", [WIDE, NARROW, LARGE], ids=["wide", "narrow", "large"])
def test_an_open_card(tmp_path: Path, snap_compare: Compare, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, expand_tools="always")
    assert snap_compare(app, terminal_size=size, run_before=calls(made))


@pytest.mark.parametrize(
    "settings", [{}, {"theme": "light"}, {"language": "zh"}], ids=["dark", "light", "zh"]
)
def test_the_tools_pane(tmp_path: Path, snap_compare: Compare, settings: dict[str, Any]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=WIDE, run_before=calls(made, view="calls"))


@pytest.mark.parametrize(
    ("size", "settings"),
    [(WIDE, {}), (NARROW, {}), (NARROW, {"theme": "light"}), (NARROW, {"language": "zh"})],
    ids=["wide", "narrow", "light", "zh"],
)
def test_real_values(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    turn = calls(made)

    async def before(pilot: Any) -> None:
        await turn(pilot)
        made[0].values = VALUES
        await pilot.press("alt+v")
        await settled(pilot, lambda: isinstance(pilot.app.screen, RealValuesScreen))
        await pilot.pause(0.3)

    assert snap_compare(app, terminal_size=size, run_before=before)
