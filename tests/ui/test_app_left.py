"""What an earlier run left, on the screen: it belongs to its session, and is nowhere lost on the way here or away."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.screen import START, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat import events as ev
from sandbox_chat.ui.drafts import Drafts
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.screens.confirm import ConfirmScreen
from sandbox_chat.ui.tokens import Part
from sandbox_chat.ui.waiting_file import Left, WaitingFile
from sandbox_chat.ui.widgets.waiting import Waiting


def left_by(folder: Path, session: str, *texts: str) -> None:
    """A run that is over left these prompts."""
    file = WaitingFile(folder / "data/waiting")
    file.save(Left(session, tuple(map(Prompt, texts))))
    assert file.settle()
    file.close(keep=True)


def kept(folder: Path) -> dict[str, list[str]]:
    """The prompts that wait of sessions that nobody has open."""
    file = WaitingFile(folder / "data/waiting")
    found = {each.session_id: [prompt.text for prompt in each.prompts] for each in file.find()}
    file.close()
    return found


def slowly(engine: PlayedEngine) -> None:
    """A session that takes a while to be opened."""
    time.sleep(0.4)


class Opening:
    """Opens the session ``old`` only when it is told to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.waits = threading.Event()

    def __call__(self, engine: PlayedEngine) -> None:
        if engine.session_id == "old":
            self.waits.set()
            self.go.wait(20)


async def idle(pilot: Any) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle")


# -- prompts that wait ---------------------------------------------------------------------------------------


async def test_what_comes_back_while_the_session_is_opened_still_belongs_to_it(tmp_path: Path) -> None:
    left_by(tmp_path, "old", "one", "two")

    async def resumed() -> None:
        app = chat_app(tmp_path, resume="old", set_up=slowly)
        async with app.run_test(size=WIDE) as pilot:
            await settled(pilot, lambda: app.chat.waiting == ["one", "two"])
            await idle(pilot)
            assert app.keeping.file.settle()
        app.keeping.close()
        assert kept(tmp_path) == {"old": ["one", "two"]}

    await resumed()
    await resumed()


async def test_what_is_typed_before_the_session_is_opened_belongs_to_it(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    opening = Opening()
    app = chat_app(tmp_path, made, resume="old", set_up=opening, typed="early\n")
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.unconfirmed == ["early"])
        app.chat.submit("later")
        await settled(pilot, lambda: app.chat.waiting == ["later"])
        opening.go.set()
        await settled(pilot, lambda: made and made[0].prompts == ["early"])
        assert app.keeping.file.settle()
    app.keeping.close()
    assert kept(tmp_path) == {"old": ["later"]}


async def test_a_session_that_is_refused_keeps_what_waits_in_it(tmp_path: Path) -> None:
    left_by(tmp_path, "old", "one")

    def refuse(engine: PlayedEngine) -> None:
        time.sleep(0.4)
        raise ValueError("There is no sandbox here.")

    app = chat_app(tmp_path, resume="old", set_up=refuse)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.refused is not None)
    app.keeping.close()
    assert kept(tmp_path) == {"old": ["one"]}


async def test_it_comes_back_after_the_welcome(tmp_path: Path) -> None:
    left_by(tmp_path, "old", "one")
    app = chat_app(tmp_path, ask=True, resume="old")
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "Where should the answers come from?" in screen_text(app))
        assert app.chat.waiting == []
        await pilot.press("enter")
        await settled(pilot, lambda: app.chat.waiting == ["one"])
    app.keeping.close()


async def test_a_dialog_that_is_closed_takes_nothing_from_the_key_that_fetches(tmp_path: Path) -> None:
    left_by(tmp_path, "a", "one", "two")
    left_by(tmp_path, "b", "three")
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "3 prompts of earlier sessions still wait" in screen_text(app))
        find = app.keeping.file.find

        def slow(*wanted: Any) -> Any:
            found = find(*wanted)
            time.sleep(0.2)
            return found

        app.keeping.file.find = slow
        await pilot.press("f1")
        await settled(pilot, lambda: not isinstance(app.screen, ChatScreen))
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))
        await pilot.press("ctrl+t", "ctrl+t")  # and once more, which breaks the first one off
        await settled(pilot, lambda: sorted(app.chat.waiting) == ["one", "three", "two"])
        await settled(pilot, lambda: isinstance(app.focused, Waiting))
        assert "still wait" not in screen_text(app)
        assert app.keeping.file.settle()
        assert kept(tmp_path) == {}
    app.keeping.close()
    [left] = kept(tmp_path).values()
    assert sorted(left) == ["one", "three", "two"]


async def test_what_came_meanwhile_is_told_after_the_others_were_fetched(tmp_path: Path) -> None:
    left_by(tmp_path, "a", "one")
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "1 prompt of an earlier session still waits" in screen_text(app))
        settle = app.keeping.file.settle

        def late() -> Any:
            left_by(tmp_path, "b", "two")
            return settle()

        app.keeping.file.settle = late
        await pilot.press("ctrl+t")
        await settled(pilot, lambda: app.chat.waiting == ["one"])
        widget = app.chat_screen.waiting
        await settled(pilot, lambda: (widget.elsewhere, widget.session) == (1, "b"))
    app.keeping.close()


# -- leaving while one is edited -----------------------------------------------------------------------------


async def editing(pilot: Any, made: list[PlayedEngine]) -> None:
    """The turn is over, and the prompt that comes next is in the composer, half changed."""
    app = pilot.app
    await idle(pilot)
    for text in ("one", "two", "three"):
        await pilot.press(*text, "enter")
    await settled(pilot, lambda: app.chat.waiting == ["two", "three"])
    await pilot.press("ctrl+t", "home", "e")
    await settled(pilot, lambda: app.chat_screen.composer.text == "two")
    made[0].finish()
    await idle(pilot)
    await pilot.press("!")


async def test_quitting_sends_no_half_written_prompt(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await editing(pilot, made)
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.keeping.close()
    assert made[0].prompts == ["one"]
    assert kept(tmp_path) == {made[0].session_id: ["two!", "three"]}


async def test_going_over_sends_no_half_written_prompt(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await editing(pilot, made)
        app.open_session("old")
        await settled(pilot, lambda: app.chat.state.session_id == "old" and not app.former)
        await settled(pilot, lambda: kept(tmp_path) == {made[0].session_id: ["two!", "three"]})
        assert [engine.prompts for engine in made] == [["one"], []]
    app.keeping.close()


async def test_a_turn_that_ends_while_the_program_does_sends_nothing(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=lambda engine: setattr(engine, "close_takes", 0.6))
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press(*"one", "enter", *"two", "enter")
        await settled(pilot, lambda: app.chat.waiting == ["two"])
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: made[0].closes)
        made[0].finish()
        await settled(pilot, lambda: app.return_code is not None)
    app.keeping.close()
    assert made[0].prompts == ["one"]
    assert kept(tmp_path) == {made[0].session_id: ["two"]}


# -- the draft -----------------------------------------------------------------------------------------------


def draft_left(folder: Path, text: str) -> None:
    drafts = Drafts(folder / "data/drafts")
    drafts.save([Part("text", text)])
    assert drafts.settle()
    drafts.close(keep=True)


def drafts_of(folder: Path) -> list[str]:
    drafts = Drafts(folder / "data/drafts")
    found = ["".join(part.text for part in parts) for parts in drafts.find()]
    drafts.close()
    return found


async def test_a_draft_outlives_a_start_that_is_refused(tmp_path: Path) -> None:
    draft_left(tmp_path, "of the crash")

    def refuse(engine: PlayedEngine) -> None:
        time.sleep(0.4)
        raise ValueError("There is no sandbox here.")

    async def refused() -> None:
        app = chat_app(tmp_path, resume="old", set_up=refuse, draft_delay=60.0)
        async with app.run_test(size=WIDE) as pilot:
            await settled(pilot, lambda: app.refused is not None)
        app.drafts.close(keep=True)  # as it is done after a failure
        assert drafts_of(tmp_path) == ["of the crash"]

    await refused()
    await refused()


async def test_a_draft_is_on_disk_again_at_once(tmp_path: Path) -> None:
    draft_left(tmp_path, "of the crash")
    app = chat_app(tmp_path, draft_delay=60.0)
    async with app.run_test(size=WIDE) as pilot:
        await settled(
            pilot, lambda: "The prompt that was not sent in the last run is back" in screen_text(app)
        )
        assert app.chat_screen.composer.text == "of the crash"
        [path] = (tmp_path / "data/drafts").glob("*.json")
        assert "of the crash" in path.read_text() and drafts_of(tmp_path) == [], "in the file of this run"
        await pilot.press("enter")
        await settled(pilot, lambda: not list((tmp_path / "data/drafts").glob("*.json")))
    app.drafts.close()


# -- a turn that begins while another session is opened ------------------------------------------------------


async def begun_meanwhile(pilot: Any, opening: Opening, made: list[PlayedEngine], what: str) -> None:
    app = pilot.app
    await idle(pilot)
    app.open_session("old")
    await settled(pilot, opening.waits.is_set)
    if what == "turn":
        await pilot.press(*"go", "enter")
        await settled(pilot, lambda: made[0].prompts == ["go"])
    else:
        made[0].emit(ev.Progress(at=START, subject="a", label="f.csv", done=1, total=9))
        await settled(pilot, lambda: app.chat.state.attaching)
    opening.go.set()
    await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))


@pytest.mark.parametrize("what", ["turn", "file"])
@pytest.mark.parametrize("yes", [True, False])
async def test_a_turn_that_began_meanwhile_is_not_ended_unasked(tmp_path: Path, yes: bool, what: str) -> None:
    made: list[PlayedEngine] = []
    opening = Opening()
    app = chat_app(tmp_path, made, set_up=opening)
    async with app.run_test(size=WIDE) as pilot:
        await begun_meanwhile(pilot, opening, made, what)
        assert made[0].closes == 0
        await pilot.press("y" if yes else "escape")
        if yes:
            await settled(pilot, lambda: app.chat.state.session_id == "old" and made[0].closes)
            assert made[1].closes == 0
        else:
            await settled(pilot, lambda: made[1].closes == 1)
            assert app.chat.engine is made[0] and made[0].closes == 0 and made[1].started == 0
            await settled(pilot, lambda: not app._switching)


async def test_leaving_while_it_is_asked_closes_both(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    opening = Opening()
    app = chat_app(tmp_path, made, set_up=opening)
    async with app.run_test(size=WIDE) as pilot:
        await begun_meanwhile(pilot, opening, made, "turn")
        app.action_leave()
        await settled(pilot, lambda: app.return_code is not None)
        await settled(pilot, lambda: made[1].closes)
    assert [engine.closes for engine in made] == [1, 1]


async def test_a_no_is_a_no_also_when_the_turn_has_ended_by_then(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot)
        await pilot.press(*"go", "enter")
        await settled(pilot, lambda: made[0].prompts == ["go"])
        app.open_session("old")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        made[0].finish()
        await settled(pilot, lambda: not app.chat.busy)
        await pilot.press("escape")
        await settled(pilot, lambda: not app._switching)
        assert len(made) == 1
