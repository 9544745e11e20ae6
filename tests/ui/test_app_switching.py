"""Going over to another session without leaving the program: nothing lost, nothing of the old one seen."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.saved import Saved
from support.screen import START, WIDE, PlayedEngine, chat_app, screen_text, settled, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.journal import SessionInUse, SessionNotFound
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.screens.confirm import ConfirmScreen


def past(name: str, turns: int = 1, lines: int = 1) -> list[ev.Event]:
    events: list[ev.Event] = [
        ev.SessionStarted(at=START, session_id=name, model="m", sandbox="local", demo=True),
        ev.Status(at=START, component="agent", state="ready"),
    ]
    for number in range(1, turns + 1):
        answer = "\n\n".join(f"{name} answer {number} line {line}" for line in range(lines))
        events += [
            ev.TurnStarted(at=START, turn_id=f"{name}{number}", prompt=f"{name} prompt {number}"),
            ev.Text(at=START, text=answer),
            turn_finished(f"{name}{number}"),
        ]
    return [*events, ev.SessionFinished(at=START)]


PASTS = {"old": past("old"), "long": past("long", 12, 30)}


def set_up(engine: PlayedEngine) -> None:
    engine.past = PASTS.get(engine.session_id, ()) if engine.resumed else ()


async def idle(pilot: Any, session_id: str) -> None:
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.session_id == session_id and app.chat.state.phase == "idle")


def said(app: Any, words: str) -> bool:
    return any(words in note.message for note in app._notifications)


async def test_another_session_and_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, resume="old", set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, "old")
        assert "old answer 1" in screen_text(app)
        first = app.chat_screen
        app.open_session("long")
        await idle(pilot, "long")
        await settled(pilot, lambda: made[0].closes)
        text = screen_text(app)
        assert "long answer 12" in text
        assert "old" not in text
        assert [turn.prompt for turn in app.chat.state.turns] == [f"long prompt {n}" for n in range(1, 13)]
        assert not first.is_attached
        assert app.focused is app.chat_screen.composer
        await settled(pilot, lambda: not app.former)
        await pilot.press(*"hello", "enter")
        await settled(pilot, lambda: made[1].prompts == ["hello"])
        assert made[0].prompts == []
        made[1].finish(1)
        await idle(pilot, "long")
        app.open_session("old")
        await idle(pilot, "old")
        assert "old answer 1" in screen_text(app)
        assert "long" not in screen_text(app)
        assert len(app.screen_stack) == 1
    assert [engine.closes for engine in made[:2]] == [1, 1]


async def test_a_new_session(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, resume="old", set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, "old")
        app.open_session(None)
        await settled(pilot, lambda: len(made) == 2 and made[1].started)
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        assert app.chat.state.turns == []
        assert not made[1].resumed
        assert "old prompt" not in screen_text(app)
        app.open_session(None)  # it has not been used: there is nothing to leave
        await pilot.pause(0.2)
        assert len(made) == 2


async def test_scrolls_to_the_turn(tmp_path: Path) -> None:
    app = chat_app(tmp_path, resume="old", set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, "old")
        app.open_session("long", 3)
        await settled(pilot, lambda: "long prompt 3" in screen_text(app))
        view = app.chat_screen.transcript
        assert not view.following
        assert screen_text(app).splitlines()[1].strip().startswith("› long prompt 3")
        app.open_session("long", 7)  # the same one: only goes there
        await settled(pilot, lambda: "long prompt 7" in screen_text(app))
        app.open_session("long", 99)  # there is no such turn
        await pilot.pause(0.3)
        assert "long prompt 7" in screen_text(app)


async def test_late_events_of_the_session_that_was_left_are_not_shown(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, resume="old", set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, "old")
        stop = threading.Event()

        def talk() -> None:
            while not stop.wait(0.001):
                made[0].emit(ev.Notice(at=START, level="info", text="a late word"))

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            await settled(pilot, lambda: "a late word" in screen_text(app))
            app.open_session("long")
            await idle(pilot, "long")
            await pilot.pause(0.2)
            made[0].replay(ev.Notice(at=START, level="info", text="a late word"))  # type: ignore[misc]
            await pilot.pause(0.2)
        finally:
            stop.set()
            thread.join()
        assert "a late word" not in screen_text(app)
        assert app._past == 0
        assert not any("late" in block.text for block in app.chat_screen.transcript.blocks)


@pytest.mark.parametrize("yes", [True, False])
async def test_while_a_turn_runs_it_is_asked(tmp_path: Path, yes: bool) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"go", "enter")
        await settled(pilot, lambda: made[0].prompts)
        app.open_session("old")
        app.open_session("long")  # one at a time
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "A turn is running" in screen_text(app)
        await pilot.press("y" if yes else "escape")
        if yes:
            await idle(pilot, "old")
            assert made[0].closes == 1
        else:
            await settled(pilot, lambda: isinstance(app.screen, ChatScreen))
            await pilot.pause(0.2)
            assert len(made) == 1
            assert app.chat.busy
            app.open_session("old")
            await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SessionInUse("Session x is open."), "open in another running Sandbox Chat"),
        (SessionNotFound("There is no session [x]."), "There is no session [x]."),
    ],
)
async def test_a_session_that_cannot_be_opened_is_said(tmp_path: Path, error: Exception, words: str) -> None:
    made: list[PlayedEngine] = []

    def refuse(engine: PlayedEngine) -> None:
        if engine.session_id == "old":
            raise error

    app = chat_app(tmp_path, made, set_up=refuse)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"draft")
        app.open_session("old")
        await settled(pilot, lambda: said(app, words))
        assert app.chat.engine is made[0]
        assert made[0].closes == 0
        assert app.chat_screen.composer.text == "draft"
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["draft"])


async def test_the_draft_stays(tmp_path: Path) -> None:
    app = chat_app(tmp_path, set_up=set_up, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        app.chat_screen.composer.insert_text("\n".join(["pasted"] * 50))
        await pilot.press(*" and more")
        parts = app.chat_screen.composer.parts
        app.open_session("old")
        await idle(pilot, "old")
        assert app.chat_screen.composer.parts == parts
        await pilot.press(*"!")
        await pilot.pause(0.3)
        assert app.drafts.settle()
        [kept] = (tmp_path / "data" / "drafts").glob("*.json")
        assert "and more!" in kept.read_text()


async def test_a_command_whose_word_was_begun_before_is_one(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        for key in "/rename mi":
            await pilot.press(key)
            await pilot.pause(0.015)
        app.open_session("old")
        await idle(pilot, "old")
        await pilot.press("n", "e", "enter")
        await settled(pilot, lambda: made[1].titles == ["mine"])
        assert made[1].prompts == []


async def test_the_draft_stays_while_an_older_prompt_is_looked_at(tmp_path: Path) -> None:
    app = chat_app(tmp_path, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        app.prompts.add("an older one")
        await pilot.press(*"draft", "up")
        assert app.chat_screen.composer.text == "an older one"
        app.open_session("old")
        await idle(pilot, "old")
        assert app.chat_screen.composer.text == "draft"
        await pilot.press("up")
        assert app.chat_screen.composer.text == "an older one"


async def test_waiting_prompts_stay_with_their_session(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"one", "enter", *"two", "enter", *"three", "enter")
        await settled(pilot, lambda: app.chat.waiting == ["two", "three"])
        app.open_session("old")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await idle(pilot, "old")
        await settled(pilot, lambda: "2 waiting prompts stay" in screen_text(app))
        assert app.chat.waiting == []
        assert made[1].prompts == []
        await settled(pilot, lambda: not app.former)
        app.open_session(made[0].session_id)
        await settled(pilot, lambda: app.chat.waiting == ["two", "three"])
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.pause(0.2)
        assert made[2].prompts == []  # nothing is sent by itself
        assert made[2].session_id == made[0].session_id
        await pilot.press("ctrl+g")
        await settled(pilot, lambda: made[2].prompts == ["two"])


async def test_the_arrangement_stays(tmp_path: Path) -> None:
    app = chat_app(tmp_path, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("f3", "f7")
        width = app.chat_screen.arrangement.side_width
        app.open_session("old")
        await idle(pilot, "old")
        assert app.chat_screen.arrangement.side_width == width
        assert not app.chat_screen.query_one("#cost-pane").display
        await pilot.press("f3")
        assert app.chat_screen.query_one("#cost-pane").display


async def test_what_lies_over_the_chat_is_closed(tmp_path: Path) -> None:
    app = chat_app(tmp_path, set_up=set_up)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("f1")
        await settled(pilot, lambda: not isinstance(app.screen, ChatScreen))
        app.open_session("old")
        await idle(pilot, "old")
        assert isinstance(app.screen, ChatScreen)
        for key in ("f1", "escape", "ctrl+p", "escape"):
            await pilot.press(key)
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))


async def test_leaving_waits_for_the_session_that_was_left(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []

    def slow(engine: PlayedEngine) -> None:
        set_up(engine)
        engine.close_takes = 0.6

    app = chat_app(tmp_path, made, set_up=slow)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        app.open_session("old")
        await idle(pilot, "old")
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: not app.is_running)
    assert [engine.closes for engine in made] == [1, 1]
    assert not app.former


async def test_back_at_once_waits_for_the_end(tmp_path: Path) -> None:
    """The session that was left is still closing, and holds its lock until then."""
    made: list[PlayedEngine] = []
    closed: list[str] = []

    def slow(engine: PlayedEngine) -> None:
        set_up(engine)
        if engine.session_id == "old" and closed.count("old") < len(
            [e for e in made if e.session_id == "old"]
        ):
            raise SessionInUse("It is open.")
        engine.close_takes = 0.5
        close = engine.close

        def noted(timeout: float | None = None) -> None:
            close(timeout)
            closed.append(engine.session_id)

        engine.close = noted  # type: ignore[method-assign]

    app = chat_app(tmp_path, made, resume="old", set_up=slow)
    async with app.run_test(size=WIDE) as pilot:
        await idle(pilot, "old")
        app.open_session("long")
        await idle(pilot, "long")
        app.open_session("old")
        await idle(pilot, "old")
        assert not said(app, "open in another")
        assert len(made) == 3


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_wrong_id_after_resume_is_said_and_the_chat_goes_on(tmp_path: Path, language: str) -> None:
    for name in ("aaa", "aab", "bbb"):
        Saved(tmp_path / "data").session(name, [("a prompt", "x")])
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language=language)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        chat = app.chat_screen
        for given, words in (("zzz", "“zzz”"), ("../x", "“../x”"), ("aa", "aaa, aab")):
            chat.composer.write_command(f"/resume {given}")
            await pilot.press("escape", "enter")
            await settled(pilot, lambda words=words: words in screen_text(app))
            assert "/sessions" in screen_text(app)
            assert "sandbox-chat sessions" not in screen_text(app)
            assert chat.composer.text == f"/resume {given}", "it can be mended"
            await pilot.press("ctrl+c")
        assert app.chat_screen is chat
        assert (len(made), made[0].closes, made[0].prompts) == (1, 0, [])
        chat.composer.write_command("/resume BB")
        await pilot.press("escape", "enter")
        await settled(pilot, lambda: len(made) == 2)
        assert made[1].session_id == "bbb"
