"""The controls of the running session: model, effort, thinking, context, branches, retry, sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat import words
from sandbox_chat.ui.screens.choose import ChooseScreen
from sandbox_chat.ui.screens.controlling import read_effort, read_model, read_thinking_word
from sandbox_chat.ui.screens.sandbox import SandboxScreen

MODELS = (
    ("sonnet", "Sonnet 5.5, for most work"),
    ("opus", "Opus 5.5, for the hard parts"),
    ("bad[red]", "x" * 300),
)


def chat(tmp_path: Path, made: list[PlayedEngine], **settings: Any) -> Any:
    def set_up(engine: PlayedEngine) -> None:
        engine.models = MODELS

    return chat_app(tmp_path, made, demo=False, model="sonnet", set_up=set_up, **settings)


async def idle(pilot: Any, app: Any) -> None:
    await settled(pilot, lambda: app.chat.state.phase == "idle")


async def command(pilot: Any, app: Any, text: str) -> None:
    app.chat_screen.composer.write_command(text)
    await pilot.press("escape", "enter")
    await pilot.pause(0.1)


async def turn(pilot: Any, app: Any, engine: PlayedEngine, prompt: str, **end: Any) -> None:
    count = len(engine.prompts)
    app.chat_screen.composer.offer(prompt)
    await pilot.press("enter")
    await settled(pilot, lambda: len(engine.prompts) == count + 1)
    engine.finish(**end)
    await idle(pilot, app)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_models_are_listed_and_one_is_taken(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        await idle(pilot, app)
        await pilot.press("f5")
        await settled(pilot, lambda: isinstance(app.screen, ChooseScreen))
        shown = screen_text(app)
        assert "Opus 5.5, for the hard parts" in shown
        assert "bad[red]" in shown
        assert "Now: sonnet" in shown
        await pilot.press("down", "enter")
        await settled(pilot, lambda: made[0].chosen_models == ["opus"])
        assert app.focused is app.chat_screen.composer


async def test_a_model_that_is_not_listed_can_be_typed(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press("f5")
        await settled(pilot, lambda: isinstance(app.screen, ChooseScreen))
        await pilot.press(*"glm 5")
        await settled(pilot, lambda: "Use “glm 5”" in screen_text(app))
        await pilot.press("enter")
        await settled(pilot, lambda: "A model's name has no spaces." in screen_text(app))
        await pilot.press("backspace", "backspace", "enter")
        await settled(pilot, lambda: made[0].chosen_models == ["glm"])


async def test_part_of_a_name_narrows_the_list_and_escape_changes_nothing(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/model")
        await settled(pilot, lambda: isinstance(app.screen, ChooseScreen))
        await pilot.press(*"hard")
        await settled(pilot, lambda: "for most work" not in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)
        assert made[0].chosen_models == []


async def test_effort_and_thinking_are_set_by_command_and_by_list(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made, effort="low")
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/effort high")
        assert [each.effort for each in made[0].controls] == ["high"]
        await command(pilot, app, "/effort high")
        assert len(made[0].controls) == 1  # it is so already
        await command(pilot, app, "/effort huge")
        assert "The effort is low, medium" in screen_text(app)
        assert app.chat_screen.composer.text == "/effort huge"
        await command(pilot, app, "/thinking 4096")
        assert made[0].controls[-1].thinking == "4096"
        await command(pilot, app, "/thinking 3")
        assert "1024" in screen_text(app)
        await command(pilot, app, "/effort")
        await settled(pilot, lambda: isinstance(app.screen, ChooseScreen))
        await pilot.press(*"max", "enter")
        await settled(pilot, lambda: made[0].controls[-1].effort == "max")


@pytest.mark.parametrize(
    "text", ["/model x", "/effort high", "/thinking on", "/model", "/effort", "/thinking"]
)
async def test_the_demo_has_nothing_to_choose(tmp_path: Path, text: str) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, text)
        assert "nothing to choose" in screen_text(app)
        assert app.screen is app.chat_screen
        assert (made[0].chosen_models, made[0].controls) == ([], [])


async def test_clear_and_compact_reach_the_engine(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/compact")
        assert "nothing to compact" in screen_text(app)
        assert made[0].prompts == []
        await turn(pilot, app, made[0], "one")
        await command(pilot, app, "/compact keep the numbers")
        await settled(pilot, lambda: made[0].prompts[-1] == "/compact keep the numbers")
        await command(pilot, app, "/compact more")
        assert "Compact when this turn has ended" in screen_text(app)
        await pilot.press("ctrl+c")
        made[0].finish()
        await idle(pilot, app)
        await command(pilot, app, "/clear")
        await settled(pilot, lambda: made[0].clears == 1)


async def test_retry_sends_the_last_prompt_once(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/retry")
        assert "no prompt yet" in screen_text(app)
        await turn(pilot, app, made[0], "one", interrupted=True)
        await command(pilot, app, "/retry")
        await settled(pilot, lambda: made[0].prompts == ["one", "one"])
        await command(pilot, app, "/retry")
        assert "still runs" in screen_text(app)
        assert len(made[0].prompts) == 2


async def test_retry_of_a_prompt_that_was_given_back_and_waits_sends_it_once(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await pilot.press(*"one", "enter")
        await settled(pilot, lambda: made[0].prompts == ["one"])
        await pilot.press(*"draft")  # so that the failed prompt cannot come back into the composer
        made[0].finish(is_error=True, subtype="error", error="No.")
        await idle(pilot, app)
        await settled(pilot, lambda: app.chat.waiting == ["one"])
        await pilot.press("ctrl+c")
        await command(pilot, app, "/retry")
        await settled(pilot, lambda: made[0].prompts == ["one", "one"])
        assert app.chat.waiting == []


async def test_the_sandbox_is_shown_and_restarted_only_when_asked_twice(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/sandbox")
        await settled(pilot, lambda: isinstance(app.screen, SandboxScreen))
        assert "not started" in screen_text(app)
        await pilot.press("r")
        await settled(pilot, lambda: "Restart the sandbox?" in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, SandboxScreen))
        assert made[0].restarts == 0
        await pilot.press("r")
        await settled(pilot, lambda: "Restart the sandbox?" in screen_text(app))
        await pilot.press("y")
        await settled(pilot, lambda: made[0].restarts == 1)
        await settled(pilot, lambda: app.screen is app.chat_screen)


async def test_without_a_sandbox_there_is_nothing_to_restart(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made, sandbox="off")
    async with app.run_test(size=NARROW) as pilot:
        await idle(pilot, app)
        await command(pilot, app, "/sandbox")
        await settled(pilot, lambda: "This session has no sandbox." in screen_text(app))
        await pilot.press("r", "escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)
        assert made[0].restarts == 0


async def test_fork_and_rewind_say_what_is_wrong(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        for text in ("/fork", "/rewind", "/fork 1", "/rewind 1"):
            await command(pilot, app, text)
            assert "There is no turn yet" in screen_text(app)
            await pilot.press("ctrl+c")
        await turn(pilot, app, made[0], "one")
        for text in ("/fork 2", "/rewind 0", "/rewind x"):
            await command(pilot, app, text)
            assert "they go from 1 to 1" in screen_text(app)
            assert app.chat_screen.composer.text == text
            await pilot.press("ctrl+c")
        await pilot.press(*"two", "enter")
        await settled(pilot, lambda: len(made[0].prompts) == 2)
        await command(pilot, app, "/fork")
        assert "Wait until this turn has ended" in screen_text(app)
        assert len(made) == 1


async def test_rewind_to_the_first_turn_is_a_new_session_with_its_prompt(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, app)
        await turn(pilot, app, made[0], "first [red]prompt")
        await turn(pilot, app, made[0], "second")
        await command(pilot, app, "/rewind")
        await settled(pilot, lambda: isinstance(app.screen, ChooseScreen))
        assert "1  first [red]prompt" in screen_text(app)
        await pilot.press(*"first", "enter")
        await settled(pilot, lambda: len(made) == 2)
        await settled(pilot, lambda: app.chat_screen.composer.text == "first [red]prompt")
        assert made[1].prompts == []
        assert made[0].closes == 1


def test_what_is_typed_is_read_or_refused_with_a_sentence() -> None:
    assert read_model("default") == ""
    assert read_effort(" HIGH ") == "high"
    assert read_effort("default") == ""
    assert read_thinking_word("4_096") == "4096"
    for read, typed in (
        (read_model, ""),
        (read_effort, "x"),
        (read_thinking_word, "1"),
        (read_thinking_word, ""),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            read(typed)
    words.use("zh")
    try:
        assert read_effort("默认") == read_thinking_word("默认") == ""
    finally:
        words.use("en")


async def test_a_sentence_in_the_last_row_is_whole(tmp_path: Path) -> None:
    sentence = words.tr("controls.thinking_wrong")
    made: list[PlayedEngine] = []
    app = chat(tmp_path, made)
    async with app.run_test(size=(80, 24)) as pilot:
        await idle(pilot, app)
        await turn(pilot, app, made[0], "one")
        await command(pilot, app, "/thinking 5")
        await settled(pilot, lambda: sentence in screen_text(app))
        await pilot.resize_terminal(40, 12)
        await command(pilot, app, "/thinking 5")
        await settled(pilot, lambda: [each.message for each in app._notifications] == [sentence])
        assert app.chat_screen.status.note == ""


async def test_what_is_told_leaves_the_composer_free(tmp_path: Path) -> None:
    app = chat(tmp_path, [])
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await idle(pilot, app)
        app.notify("told " * 20, markup=False)
        await settled(pilot, lambda: "told told" in screen_text(app))
        composer = app.chat_screen.composer.region
        toasts = app.screen.query("Toast")
        assert len(toasts) == 1
        assert not toasts.first().region.overlaps(composer)
