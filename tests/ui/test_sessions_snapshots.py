"""How the list of sessions looks. Update with ``pytest tests/ui/test_sessions_snapshots.py --snapshot-update`` and look at it."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.saved import NOON, Saved
from support.screen import NARROW, WIDE, chat_app, screen_text, settled

from sandbox_chat.ui.screens.sessions import SessionsScreen

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The list shows local times: always the same."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    saved = Saved(tmp_path / "data")
    sine = ("plot a damped sine and tell me its half-life", "The envelope halves every **2.08 s**.")
    saved.session(
        "a1b2c3d4-0001", [sine, ("and where does it cross zero?", "At 0.785 s, then each 0.785 s.")]
    )
    saved.session(
        "b1b2c3d4-0002", [("数据分析：请读取文件 sales.csv 并画图", "已读取文件。")], model="claude-opus-5-5"
    )
    saved.session(
        "c1b2c3d4-0003", [("what is [bold]this[/bold]", "Half of it is markup.", "halve(x)", "0.5")] * 5
    )
    saved.session("d1b2c3d4-0004", [("make a mistake and fix it", "Done.")], model="demo", demo=True)
    for number, path in enumerate(sorted(saved.root.iterdir())):
        when = NOON.timestamp() + 86_400 * (3 - number)
        os.utime(path / "events.jsonl", (when, when))
    saved.rename("c1b2c3d4-0003", "Markup, and what it is not")
    return saved


def listed(*keys: str, shows: str, words: str = "") -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        app = pilot.app
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("f10")
        await settled(pilot, lambda: isinstance(app.screen, SessionsScreen))
        if words:
            await pilot.press("slash", *words)
        await settled(pilot, lambda: shows in screen_text(app))
        await pilot.press(*keys)
        await pilot.pause(0.3)

    return before


def test_wide(tmp_path: Path, saved: Saved, snap_compare: Compare) -> None:
    assert snap_compare(chat_app(tmp_path), terminal_size=WIDE, run_before=listed("down", shows="4 sessions"))


def test_narrow(tmp_path: Path, saved: Saved, snap_compare: Compare) -> None:
    assert snap_compare(chat_app(tmp_path), terminal_size=NARROW, run_before=listed(shows="4 sessions"))


def test_found_light(tmp_path: Path, saved: Saved, snap_compare: Compare) -> None:
    before = listed(shows="found in 2 sessions", words="half")
    assert snap_compare(chat_app(tmp_path, theme="light"), terminal_size=WIDE, run_before=before)


def test_found_narrow_in_chinese(tmp_path: Path, saved: Saved, snap_compare: Compare) -> None:
    before = listed(shows="在 1 个会话中找到", words="文件")
    assert snap_compare(chat_app(tmp_path, language="zh"), terminal_size=NARROW, run_before=before)


def test_empty(tmp_path: Path, snap_compare: Compare) -> None:
    before = listed(shows="There are no sessions yet")
    assert snap_compare(chat_app(tmp_path), terminal_size=NARROW, run_before=before)


def test_asking_to_delete(tmp_path: Path, saved: Saved, snap_compare: Compare) -> None:
    before = listed("d", shows="4 sessions")
    assert snap_compare(chat_app(tmp_path), terminal_size=NARROW, run_before=before)
