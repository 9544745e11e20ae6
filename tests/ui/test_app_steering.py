"""Steering at the interface: a prompt of the user's goes into the running turn, and stands under it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled, shown

from sandbox_chat import events as ev


async def ready(pilot: object, app: object) -> None:
    await settled(pilot, lambda: app.chat.state.phase == "idle")  # type: ignore[attr-defined]


async def test_a_typed_command_sends_into_the_running_turn(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: app.chat.busy)
        made[0].emit(ev.TextDelta(text="I am writing"))
        await pilot.press(*"/steer and two", "enter")
        await settled(pilot, lambda: made[0].steers == ["and two"])
        await settled(pilot, lambda: "› and two" in screen_text(app))
        assert app.chat.waiting == []
        assert app.screen.composer.text == ""


async def test_the_action_takes_the_draft_or_begins_the_command(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: app.chat.busy)
        await pilot.press(*"draft")
        app.screen.action_steer()
        await settled(pilot, lambda: made[0].steers == ["draft"])
        assert app.screen.composer.text == ""
        app.screen.action_steer()
        await settled(pilot, lambda: app.screen.composer.text == "/steer ")


@pytest.mark.parametrize("stopping", [False, True])
async def test_without_a_turn_nothing_is_sent_and_nothing_lost(tmp_path: Path, stopping: bool) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        if stopping:
            await pilot.press(*"one", "enter")
            await settled(pilot, lambda: app.chat.busy)
            await pilot.press("escape")
        await pilot.press(*"/steer and two", "enter")
        await settled(pilot, lambda: "No turn runs" in screen_text(app))
        assert made[0].steers == []
        assert app.screen.composer.text == "/steer and two"


async def steer_with_file(pilot: object, app: object) -> None:
    """Type the command with a file from the list at ``@``."""
    composer = app.screen.composer  # type: ignore[attr-defined]
    await pilot.press(*"/steer look at ")  # type: ignore[attr-defined]
    composer.put(composer.tokens.mention("/w/f.csv", "f.csv", 3))
    await pilot.press(*" now", "enter")  # type: ignore[attr-defined]


async def test_a_file_in_a_typed_command_is_attached(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: app.chat.busy)
        await steer_with_file(pilot, app)
        await settled(pilot, lambda: made[0].steers == ["look at @f.csv now"])
        assert made[0].attached == [("/w/f.csv", "")]
        assert app.screen.composer.text == ""


async def test_a_file_in_a_command_that_came_too_early_is_still_one(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await ready(pilot, app)
        await steer_with_file(pilot, app)
        await settled(pilot, lambda: "No turn runs" in screen_text(app))
        composer = app.screen.composer
        assert composer.text == "/steer look at @f.csv now"
        assert [part.kind for part in composer.parts] == ["text", "file", "text"]
        assert made[0].attached == []
        app.chat.submit("one")
        await settled(pilot, lambda: app.chat.state.busy)
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].steers == ["look at @f.csv now"])
        assert made[0].attached == [("/w/f.csv", "")]


def test_the_replay_is_equal() -> None:
    events: list[ev.Event] = [
        ev.TurnStarted(turn_id="t", prompt="one"),
        ev.TextDelta(text="I am "),
        ev.Steered(turn_id="t", prompt="and two"),
        ev.TextDelta(text="writing"),
        ev.Text(text="I am writing"),
        ev.Text(text="Two, too."),
        ev.Cleared(agent_id="a"),
        ev.Compacted(before=24_000, after=1_200),
    ]
    rows, state = shown(events, [1])
    assert (rows, state) == shown(events, [len(events)])
    text = "\n".join(rows)
    assert text.index("I am writing") < text.index("› and two") < text.index("Two, too.")
    assert "remembers nothing" in text and "24,000 → 1,200 tokens" in text
