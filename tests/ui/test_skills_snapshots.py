"""How skills look. Update with ``pytest tests/ui/test_skills_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, chat_app, settled
from support.skills import some_skills

from sandbox_chat.ui.screens.confirm import ConfirmScreen
from sandbox_chat.ui.screens.skills import SkillsScreen

Compare = Callable[..., bool]
LARGE = (200, 60)
LOOKS = {
    "narrow": (NARROW, {}),
    "large": (LARGE, {}),
    "narrow-light": (NARROW, {"theme": "light"}),
    "large-light": (LARGE, {"theme": "light"}),
    "zh": (NARROW, {"language": "zh"}),
    "ascii": (NARROW, {"glyphs": "ascii"}),
    "terminal": (NARROW, {"theme": "terminal"}),
}


def dialog(down: int = 0) -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        app = pilot.app
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await app.chat_screen.run_action("screen.skills")
        await settled(pilot, lambda: isinstance(app.screen, SkillsScreen))
        await settled(pilot, lambda: app.screen.skills.items)
        for _ in range(down):
            await pilot.press("down")
        await settled(pilot, lambda: app.screen.detail.entry is app.screen.skills.chosen)

    return before


@pytest.mark.parametrize(("size", "settings"), LOOKS.values(), ids=LOOKS)
def test_the_skills(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any]
) -> None:
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on", **settings)
    assert snap_compare(app, terminal_size=size, run_before=dialog())


def test_a_skill_that_is_promoted_where_code_mode_is_off(tmp_path: Path, snap_compare: Compare) -> None:
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills")
    assert snap_compare(app, terminal_size=NARROW, run_before=dialog(down=5))


def test_the_question_before_a_draft_is_promoted(tmp_path: Path, snap_compare: Compare) -> None:
    some_skills(tmp_path / "skills")
    app = chat_app(tmp_path, [], skills_dir=tmp_path / "skills", code_mode="on")

    async def before(pilot: Any) -> None:
        await dialog()(pilot)
        await pilot.press("p")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))

    assert snap_compare(app, terminal_size=NARROW, run_before=before)
