"""What the tokens of personal data stand for: shown to the user, by a key, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.hostile import TEXTS
from support.nested_events import nested, run_of
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat import events as ev
from sandbox_chat.ui.screens.real_values import VALUES, RealValuesScreen, lines_of

TOKEN, VALUE = "<EMAIL:k3f7qz27ab>", "ann@example.org"
OTHER = "<PHONE:b2c3d4e5f6>"


def words(text: str, values: dict[str, str]) -> list[str]:
    return ["".join(run.text for run in row) for row in lines_of(text, values)]


async def turn(pilot: Any, made: list[PlayedEngine]) -> None:
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    app.chat_screen.composer.insert_text("who is it")
    await pilot.press("enter")
    await settled(pilot, lambda: made[0].prompts)
    made[0].emit(*run_of(nested(1, text=f"rows of {OTHER}")), ev.Text(text=f"It is {TOKEN}."))
    made[0].finish()
    await settled(pilot, lambda: app.chat.state.phase == "idle")


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_key_shows_them_and_closes_again(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        await turn(pilot, made)
        made[0].values = {TOKEN: VALUE, OTHER: "+1 415 555 0132"}
        await settled(pilot, lambda: f"It is {TOKEN}." in screen_text(app))
        assert VALUE not in screen_text(app)
        await pilot.press("alt+v")
        await settled(pilot, lambda: isinstance(app.screen, RealValuesScreen))
        await pilot.pause()
        shown = screen_text(app)
        assert f"It is {VALUE}." in shown
        assert "+1 415 555 0132" in shown
        await pilot.press("alt+v")
        await settled(pilot, lambda: app.screen is app.chat_screen)
        await pilot.pause()
        assert VALUE not in screen_text(app)


async def test_the_item_under_the_cursor_and_the_call_in_use(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await turn(pilot, made)
        made[0].values = {TOKEN: VALUE, OTHER: "+1 415 555 0132"}
        app.chat_screen.tool_pane.query_one("#tool-text").focus()
        await pilot.press("alt+v")
        await settled(pilot, lambda: isinstance(app.screen, RealValuesScreen))
        await pilot.pause()
        assert "rows of +1 415 555 0132" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)
        app.chat_screen.transcript.focus()
        await pilot.press("k")
        await pilot.press("k")
        await pilot.press("alt+v")
        await settled(pilot, lambda: isinstance(app.screen, RealValuesScreen))
        await pilot.pause()
        assert "rows of +1 415 555 0132" in screen_text(app)


@pytest.mark.parametrize(
    ("values", "said"), [(None, "Nothing is hidden in this session"), ({}, "No personal data was found")]
)
async def test_nothing_to_show_is_said(tmp_path: Path, values: dict[str, str] | None, said: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].values = values
        app.chat_screen.composer.write_command("/values")
        await pilot.press("escape", "enter")
        await settled(pilot, lambda: said in screen_text(app))


async def test_copying_takes_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr("sandbox_chat.ui.outside.copy_text", lambda app, text: copied.append(text))
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await turn(pilot, made)
        made[0].values = {TOKEN: VALUE}
        await pilot.press("alt+v")
        await settled(pilot, lambda: isinstance(app.screen, RealValuesScreen))
        await pilot.press("c")
        assert copied == [f"It is {VALUE}.\n\nAll of this session\n{TOKEN}  {VALUE}"]


def test_an_item_without_tokens_is_left_out() -> None:
    assert words("nothing here", {TOKEN: VALUE}) == [f"{TOKEN}  {VALUE}"]


def test_tokens_of_other_sessions_stay() -> None:
    assert words("<EMAIL:aaaaaaaaaa> and " + TOKEN, {TOKEN: VALUE})[0] == f"<EMAIL:aaaaaaaaaa> and {VALUE}"


def test_the_last_of_many_are_listed() -> None:
    many = {f"<EMAIL:{number:010d}>": f"p{number}@example.org" for number in range(VALUES + 5)}
    found = words("", many)
    assert found[0] == "… 5 earlier ones …"
    assert len(found) == VALUES + 1
    assert found[-1].endswith(f"p{VALUES + 4}@example.org")


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_values_are_made_harmless(text: str) -> None:
    for row in lines_of(f"{TOKEN} {text}", {TOKEN: text}):
        for run in row:
            assert "\x1b" not in run.text
            assert "\n" not in run.text
