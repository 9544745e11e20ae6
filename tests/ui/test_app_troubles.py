"""Case A2 at the interface: in 80×24 each failure can be read, the prompt is kept, and the next one goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.screen import (
    NARROW,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
    turn_finished,
)

from sandbox_chat import events as ev
from sandbox_chat import failures, words
from sandbox_chat.words.failures import EN

KINDS = [name.removeprefix("title_") for name in EN if name.startswith("title_")]
ABOUT: ev.About = (
    ("url", "https://gateway.example.com:8443/some/path"), ("model", "a-model-with-a-long-name-20260101"),
    ("said", "This request would exceed your organization's rate limit of 30,000 input tokens per minute [/bold] [@click=app.quit]x[/]"),
    ("status", "503"), ("seconds", "600"), ("steps", "30"), ("host", "gateway.example.com"), ("reason", "SIGKILL"),
    ("system", "Linux x86_64"),
    ("count", "3"), ("spent", "$1.02"), ("limit", "$1.00"), ("percent", "80"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    words.use("en")


def failed(kind: str) -> dict[str, Any]:
    """The changes that make a turn fail."""
    return {"is_error": True, "error": failures.recorded(kind, ABOUT), "kind": kind, "about": ABOUT}


def flat(app: Any) -> str:
    """The screen's words without rows, frames, and blanks."""
    return re.sub(r"[\s▐]+", "", screen_text(app))


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a2_each_failure_is_readable_and_gives_the_prompt_back(tmp_path: Path, language: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language=language)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        for number, kind in enumerate(KINDS, 1):
            app.chat_screen.composer.text = "why"
            app.chat_screen.composer.send_now()
            await settled(pilot, lambda number=number: len(made[0].prompts) == number)
            made[0].finish(**failed(kind))
            await settled(pilot, lambda: app.chat_screen.composer.text == "why")
            shown = failures.shown(turn_finished("t", **failed(kind)))
            await settled(pilot, lambda shown=shown: re.sub(r"\s+", "", shown) in flat(app), 5)
        assert made[0].prompts == ["why"] * len(KINDS)


async def test_a2_a_prompt_that_was_answered_in_part_stays_and_it_is_said(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"why", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(ev.TextDelta(text="Because"), tool_started(), tool_finished("u1"))
        made[0].finish(**failed("overloaded"))
        await settled(pilot, lambda: "answered before" in screen_text(app))
        assert app.chat_screen.composer.text == ""
        await pilot.press(*"go on", "enter")
        await settled(pilot, lambda: made[0].prompts == ["why", "go on"])


async def test_a1_a_partial_text_that_was_withdrawn_is_no_answer(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"why", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(ev.ThinkingDelta(text="Hm."), ev.TextDelta(text="Because of the"))
        await settled(pilot, lambda: "Because of the" in screen_text(app))
        about = failures.recorded("again_529")
        made[0].emit(ev.Retry(reason=about, attempt=1, delay_ms=2000, kind="again_529"))
        await settled(pilot, lambda: "The model is overloaded (529). Trying again in 2 s" in screen_text(app))
        assert "Because of the" not in screen_text(app)
        made[0].finish(**failed("overloaded"))
        await settled(pilot, lambda: app.chat_screen.composer.text == "why")
        assert "answered before" not in screen_text(app)


async def test_a2_a_prompt_is_not_lost_when_another_one_is_being_written(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: made[0].prompts)
        await pilot.press(*"second")
        made[0].finish(**failed("overloaded"))
        await settled(pilot, lambda: app.chat.waiting == ["first"])
        await settled(pilot, lambda: screen_text(app).count("first") == 3)  # title, prompt, and that it waits
        assert app.chat.held
        assert app.chat_screen.composer.text == "second"


async def test_a2_reasons_of_retries_are_translated(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language="zh")
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"why", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            ev.Retry(reason="too many requests for now (429)", attempt=1, delay_ms=2000, kind="again_429")
        )
        await settled(pilot, lambda: "当前请求过多（429）。将在2秒后重试" in flat(app))
