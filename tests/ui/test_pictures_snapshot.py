"""How pictures look. Update with ``pytest tests/ui/test_pictures_snapshot.py --snapshot-update`` and look at them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, settled, tool_finished, tool_started

from sandbox_chat import events as ev

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours do not depend on where the tests run."""
    monkeypatch.delenv("NO_COLOR", raising=False)


def bars(path: Path, colour: str) -> ev.ImageContent:
    """Draw a chart of bars."""
    image = Image.new("RGB", (640, 400), "white")
    draw = ImageDraw.Draw(image)
    for number, height in enumerate((120, 300, 200, 340)):
        left = 80 + 130 * number
        draw.rectangle((left, 360 - height, left + 80, 360), fill=colour)
    draw.line((40, 360, 600, 360), fill="black", width=8)
    image.save(path)
    return ev.ImageContent(str(path), "image/png", *image.size)


@pytest.mark.parametrize("images", ["half", "ascii", "off"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_two_pictures_of_a_call(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: str, size: tuple[int, int]
) -> None:
    made: list[PlayedEngine] = []
    monkeypatch.chdir(tmp_path)  # so that no temporary path is seen
    content = [
        bars(Path(name), colour) for name, colour in (("north.png", "#2a6fdb"), ("south.png", "#e0702b"))
    ]

    async def before(pilot: Any) -> None:
        app = pilot.app
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].send("compare north and south")
        made[0].emit(tool_started(), tool_finished("u1", *content), ev.Text(text="South is **warmer**."))
        made[0].finish()
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await settled(pilot, lambda: app.chat_screen.tool_pane.call is not None)
        app.chat_screen.tool_pane.show_view("image")
        await pilot.pause(0.2)
        view = app.chat_screen.transcript

        def ready() -> bool:
            rows = [view.render_line(y).text for y in range(view.size.height)]
            return any("south.png" in row for row in rows) and not any("preparing" in row for row in rows)

        await settled(pilot, ready)
        await pilot.pause(0.5)

    app = chat_app(tmp_path, made, images=images, image_rows=12)
    assert snap_compare(app, terminal_size=size, run_before=before)
