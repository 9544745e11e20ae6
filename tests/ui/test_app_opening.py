"""A session that another program has open: the user chooses a copy, a look, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import NARROW, START, WIDE, PlayedEngine, screen_text, settled, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.journal.errors import SessionInUse
from sandbox_chat.settings import Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.screens.in_use import InUseScreen
from sandbox_chat.ui.waiting_file import Left, WaitingFile

PAST = [
    ev.TurnStarted(at=START, turn_id="old", prompt="what was asked"),
    ev.Text(at=START, text="what was answered"),
    turn_finished("old"),
]


class Elsewhere:
    """Makes engines; the session is open elsewhere unless a way around that is given."""

    def __init__(self) -> None:
        self.asked: list[dict[str, bool]] = []
        self.made: list[PlayedEngine] = []
        self.fails: Exception | None = None

    def __call__(
        self, settings: Settings, sink: ev.Sink, *, resume: Any = None, replay: Any = None, **how: bool
    ) -> PlayedEngine:
        self.asked.append(how)
        if not how:
            raise SessionInUse("It is open in another running Sandbox Chat.")
        if self.fails is not None:
            raise self.fails
        engine = PlayedEngine(settings, sink, resume=resume, replay=replay)
        engine.past = PAST
        if how.get("read_only"):
            engine.read_only = True
            engine.ready = False
        self.made.append(engine)
        return engine


def app_of(folder: Path, make: Elsewhere, **opening: bool) -> Any:
    settings = Settings(
        data_dir=folder / "data",
        images="off",
        reduced_motion=True,
        theme="dark",
        language="en",
        glyphs="unicode",
        demo=True,
    )
    return ChatApp(settings, make, resume="old", opening=opening)


@pytest.mark.parametrize("size", [WIDE, NARROW, (30, 12)], ids=["wide", "narrow", "tiny"])
async def test_a_copy_by_key(tmp_path: Path, size: tuple[int, int]) -> None:
    make = Elsewhere()
    app = app_of(tmp_path, make)
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
        await pilot.press("f")
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        assert make.asked == [{}, {"fork": True}]
        assert make.made[0].started == 1
        await pilot.press(*"go", "enter")
        await settled(pilot, lambda: make.made[0].prompts == ["go"])


async def test_the_question_says_what_each_way_means(tmp_path: Path) -> None:
    make = Elsewhere()
    app = app_of(tmp_path, make)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
        text = screen_text(app)
        for words in ("open in another running Sandbox Chat", "Go on with a copy", "Look only", "Quit"):
            assert words in text


async def test_a_look_by_mouse_sends_nothing(tmp_path: Path) -> None:
    make = Elsewhere()
    app = app_of(tmp_path, make)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
        await pilot.click("#in-use-look")
        await settled(pilot, lambda: "what was answered" in screen_text(app))
        assert make.asked[-1] == {"read_only": True}
        text = screen_text(app)
        assert "This session is only shown here: nothing can be sent." in text
        assert "looking only" in text
        await pilot.press(*"hello", "enter")
        assert make.made[0].prompts == []
        assert app.chat_screen.composer.text == ""
        view = app.chat_screen.transcript
        view.find("answered")
        await settled(pilot, lambda: len(view._hits) == 1)


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_nothing(tmp_path: Path, key: str) -> None:
    make = Elsewhere()
    app = app_of(tmp_path, make)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
        await pilot.press(key)
        await settled(pilot, lambda: app.refused is not None)
    assert isinstance(app.refused, SessionInUse)
    assert make.asked == [{}]


async def test_the_command_line_may_have_chosen(tmp_path: Path) -> None:
    make = Elsewhere()
    app = app_of(tmp_path, make, fork=True)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
    assert make.asked == [{"fork": True}]


async def test_a_copy_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    make = Elsewhere()
    make.fails = SessionInUse("There is no room for it.")
    app = app_of(tmp_path, make)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
        await pilot.press("enter")
        await settled(pilot, lambda: app.refused is not None)
    assert str(app.refused) == "There is no room for it."


@pytest.mark.parametrize("asked", [False, True], ids=["by the command line", "by the question"])
@pytest.mark.parametrize("way", ["fork", "read_only"])
async def test_what_waits_in_a_session_stays_there_when_it_is_copied_or_looked_at(
    tmp_path: Path, way: str, asked: bool
) -> None:
    file = WaitingFile(tmp_path / "data/waiting")
    file.save(Left("old", (Prompt("one"), Prompt("two"))))
    assert file.settle()
    file.close(keep=True)
    make = Elsewhere()
    app = app_of(tmp_path, make, **({} if asked else {way: True}))
    async with app.run_test(size=WIDE) as pilot:
        if asked:
            await settled(pilot, lambda: isinstance(app.screen, InUseScreen))
            await pilot.press("f" if way == "fork" else "l")
        await settled(pilot, lambda: make.made and make.made[0].started)
        await settled(pilot, lambda: "what was answered" in screen_text(app))
        await pilot.press("ctrl+t")
        await pilot.pause(0.2)
        assert app.chat.waiting == []
    app.keeping.close()
    [left] = WaitingFile(tmp_path / "data/waiting").find()
    assert (left.session_id, [prompt.text for prompt in left.prompts]) == ("old", ["one", "two"])
