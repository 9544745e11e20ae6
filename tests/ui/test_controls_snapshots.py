"""How the controls look. Update with ``pytest tests/ui/test_controls_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, settled

from sandbox_chat.ui.screens.choose import ChooseScreen
from sandbox_chat.ui.screens.sandbox import SandboxScreen

Compare = Callable[..., bool]

MODELS = (
    ("sonnet", "Sonnet 5.5 · efficient for routine tasks · $3/$15 per Mtok"),
    ("opus", "Opus 5.5 · for the most complex work · $5/$25 per Mtok"),
    ("haiku", "Haiku 5.5 · fastest for quick answers · $1/$5 per Mtok"),
)


def an_app(tmp_path: Path, made: list[PlayedEngine], **settings: Any) -> Any:
    def set_up(engine: PlayedEngine) -> None:
        engine.models = MODELS

    return chat_app(tmp_path, made, demo=False, model="opus", set_up=set_up, **settings)


def opened(
    made: list[PlayedEngine], action: str, screen: type, *prompts: str
) -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        chat = pilot.app.chat
        await settled(pilot, lambda: chat.state.phase == "idle")
        for prompt in prompts:
            chat.submit(prompt)
            made[0].finish()
            await settled(pilot, lambda: not chat.busy)
        await pilot.app.chat_screen.run_action(f"screen.{action}")
        await settled(pilot, lambda: isinstance(pilot.app.screen, screen))
        await pilot.pause()

    return before


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (WIDE, {}),
        (NARROW, {}),
        (NARROW, {"theme": "light", "language": "zh"}),
        (NARROW, {"theme": "terminal"}),
        (NARROW, {"glyphs": "ascii"}),
    ],
    ids=["wide", "narrow", "light-zh", "terminal", "ascii"],
)
def test_the_models(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any]
) -> None:
    made: list[PlayedEngine] = []
    app = an_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=size, run_before=opened(made, "change_model", ChooseScreen))


def test_the_effort(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = an_app(tmp_path, made, effort="high")
    assert snap_compare(app, terminal_size=NARROW, run_before=opened(made, "effort", ChooseScreen))


def test_the_turns_to_go_back_to(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    prompts = ("load the data\nand look at it", "plot 数据 by month", "fit a line to it, " * 20)
    app = an_app(tmp_path, made)
    assert snap_compare(app, terminal_size=NARROW, run_before=opened(made, "rewind", ChooseScreen, *prompts))


@pytest.mark.parametrize("settings", [{}, {"sandbox": "off", "language": "zh"}], ids=["local", "off-zh"])
def test_the_sandbox(tmp_path: Path, snap_compare: Compare, settings: dict[str, Any]) -> None:
    made: list[PlayedEngine] = []
    app = an_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=NARROW, run_before=opened(made, "sandbox", SandboxScreen))
