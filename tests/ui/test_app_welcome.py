"""The first run without a key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled
from textual import events
from textual.widgets import Checkbox, Input

from sandbox_chat.settings import ConfigError


async def test_enter_starts_the_demo(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, ask=True)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: "Where should the answers come from?" in screen_text(app))
        assert not made
        await pilot.press("enter")
        await settled(pilot, lambda: made and made[0].started)
        assert made[0].settings.demo
        await settled(pilot, lambda: "demo, no model" in screen_text(app))
        assert app.focused is app.chat_screen.composer
        await pilot.press(*"hi", "enter")
        await settled(pilot, lambda: made[0].prompts == ["hi"])


async def test_a_key_is_hidden_used_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, ask=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("2")
        await settled(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"sk-secret")
        assert "sk-secret" not in screen_text(app)
        app.screen.query_one("#remember-key", Checkbox).value = True
        await pilot.press("enter")
        await settled(pilot, lambda: made and made[0].started)
        assert made[0].settings.anthropic_api_key.reveal() == "sk-secret"
        assert not made[0].settings.demo
    config = tmp_path / "config" / "config.toml"
    assert tomllib.loads(config.read_text()) == {"anthropic_api_key": "sk-secret"}
    assert config.stat().st_mode & 0o777 == 0o600


async def test_nothing_is_remembered_unless_ticked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, ask=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("down", "down", "enter", *"https://gateway.example.com", "enter")
        await settled(pilot, lambda: made and made[0].started)
        assert made[0].settings.anthropic_base_url == "https://gateway.example.com"
    assert not (tmp_path / "config").exists()


async def test_what_is_wrong_is_said_and_the_screen_stays(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, ask=True)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("4")
        await settled(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("enter")
        await settled(pilot, lambda: "Model is needed." in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: not isinstance(app.focused, Input))
        await pilot.press("3")
        await settled(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"not a url", "enter")
        await settled(pilot, lambda: "must be a URL" in screen_text(app))
        assert not made


async def test_an_engine_that_refuses_is_told(tmp_path: Path) -> None:
    def refuse(engine: PlayedEngine) -> None:
        raise ConfigError("There is no sandbox here. [bold]Do this.")

    app = chat_app(tmp_path, ask=True, set_up=refuse)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("enter")
        await settled(pilot, lambda: "There is no sandbox here. [bold]Do this." in screen_text(app))
        assert app.is_running


async def test_a_refusal_that_no_choice_can_mend_ends_the_program_with_its_own_error(tmp_path: Path) -> None:
    class NoIsolationError(Exception):
        pass

    def refuse(engine: PlayedEngine) -> None:
        raise NoIsolationError("There is no isolation here.")

    app = chat_app(tmp_path, ask=True, set_up=refuse)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("enter")
        await settled(pilot, lambda: not app.is_running)
    assert isinstance(app.refused, NoIsolationError)
    assert app.failure is None


async def test_by_mouse(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, ask=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.click("#choices", offset=(10, 0))
        await settled(pilot, lambda: made and made[0].started)


async def test_leaving_from_the_welcome_screen(tmp_path: Path) -> None:
    app = chat_app(tmp_path, ask=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: not app.is_running)
    assert app.return_code == 0


async def test_what_is_put_into_a_field_is_seen_to_the_letter(tmp_path: Path) -> None:
    app = chat_app(tmp_path, [], ask=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should" in screen_text(app))
        await pilot.press("3")
        await settled(pilot, lambda: isinstance(app.focused, Input))
        field = app.focused
        assert isinstance(field, Input)
        field.value = ""
        field.post_message(events.Paste("a\u202eb\x1b[2J\u200bc\td"))
        await settled(pilot, lambda: field.value == "a<U+202E>b␛[2J<U+200B>c d")
        assert "a<U+202E>b␛[2J<U+200B>c d" in screen_text(app)
        assert app.guard.stopped == 0
