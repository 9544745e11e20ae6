"""How MCP servers look. Update with ``pytest tests/ui/test_servers_snapshots.py --snapshot-update`` and look at them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, PlayedEngine, chat_app, settled, tool_finished, tool_started
from support.servers import asked_for, server, some_servers

from sandbox_chat import events as ev
from sandbox_chat.ui.screens.servers import ServersScreen
from sandbox_chat.ui.widgets.ask import AskBox

Compare = Callable[..., bool]
LARGE = (200, 60)
SIZES = [(NARROW, {}), (LARGE, {}), (NARROW, {"theme": "light"}), (LARGE, {"theme": "light"})]
NAMES = ["narrow", "large", "narrow-light", "large-light"]


def dialog(
    made: list[PlayedEngine], *servers: ev.ServerChanged, down: int = 0
) -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        app = pilot.app
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].emit(*servers)
        await settled(pilot, lambda: len(app.chat.state.servers) == len(servers))
        await app.chat_screen.run_action("screen.servers")
        await settled(pilot, lambda: isinstance(app.screen, ServersScreen))
        for _ in range(down):
            await pilot.press("down")
        await pilot.pause()

    return before


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        *SIZES,
        (NARROW, {"language": "zh"}),
        (NARROW, {"glyphs": "ascii"}),
        (NARROW, {"theme": "terminal"}),
    ],
    ids=[*NAMES, "zh", "ascii", "terminal"],
)
def test_the_servers(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=size, run_before=dialog(made, *some_servers()))


def test_a_server_that_failed(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    assert snap_compare(app, terminal_size=NARROW, run_before=dialog(made, *some_servers(), down=3))


@pytest.mark.parametrize("settings", [{}, {"language": "zh"}], ids=["en", "zh"])
def test_no_servers(tmp_path: Path, snap_compare: Compare, settings: dict[str, Any]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    assert snap_compare(app, terminal_size=NARROW, run_before=dialog(made))


@pytest.mark.parametrize(("size", "settings"), SIZES, ids=NAMES)
def test_a_call_that_asks(
    tmp_path: Path, snap_compare: Compare, size: tuple[int, int], settings: dict[str, Any]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, **settings)
    given = {
        "repo_path": "/srv/project",
        "max_count": 5,
        "revision": "main",
        "paths": [f"src/part_{n}.py" for n in range(12)],
    }
    detail = json.dumps(given, indent=2)

    async def before(pilot: Any) -> None:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].emit(server(), server("time", "failed"))
        app.chat.submit("what was done in the last week?")
        made[0].emit(
            tool_started("u0", "mcp__git__git_status", repo_path="/srv/project"),
            tool_finished("u0", ev.TextContent("On branch main\nnothing to commit", ())),
            tool_started("u1", "mcp__git__git_log", **given),
            asked_for(detail=detail),
            asked_for("m2", "u2"),
        )
        box = app.chat_screen.query_one(AskBox)
        await settled(pilot, lambda: box.display and app.focused is box)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=before)
