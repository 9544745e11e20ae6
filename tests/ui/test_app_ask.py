"""Questions and attached files on the screen: nothing is decided by keys that were meant for the prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.screen import (
    HOSTILE,
    NARROW,
    START,
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
)
from textual import events

from sandbox_chat import events as ev
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.ask import GRACE, AskBox

CHOICES = (
    ev.Choice("replace", "r", "replace it"),
    ev.Choice("keep_both", "k", "keep both"),
    ev.Choice("no", "n", "do not save"),
)


def asked(approval_id: str = "a1", **changes: Any) -> ev.ApprovalRequested:
    values: dict[str, Any] = {
        "at": START,
        "approval_id": approval_id,
        "kind": "overwrite",
        "question": "plot.png exists already. Replace it?",
        "detail": "/home/user/downloads/plot.png\nthere now: 3 bytes, changed 2026-01-02 03:04\nfrom the sandbox: 6 bytes",
        "choices": CHOICES,
        "default": "keep_both",
        "tool_use_id": "u1",
        **changes,
    }
    return ev.ApprovalRequested(**values)


async def asking(pilot: Any, made: list[PlayedEngine], **changes: Any) -> AskBox:
    """A turn in which a call asks."""
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    app.chat_screen.composer.insert_text("save it")
    await pilot.press("enter")
    await settled(pilot, lambda: made[0].prompts)
    made[0].emit(tool_started("u1", "mcp__sandbox__download_file", path="/tmp/plot.png"), asked(**changes))
    box: AskBox = app.chat_screen.query_one(AskBox)
    await settled(pilot, lambda: box.display)
    return box


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_question_is_shown_and_answered_by_a_key(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        box = await asking(pilot, made)
        text = screen_text(app)
        assert "? plot.png exists already. Replace it?" in text
        assert "/home/user/downloads/plot.png" in text and "3 bytes, changed" in text
        assert text.count("waiting for your answer") >= 2  # on the card and in the status
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("k")
        await settled(pilot, lambda: made[0].answers == [("a1", "keep_both")])
        await settled(pilot, lambda: not box.display and app.focused is app.chat_screen.composer)
        await settled(pilot, lambda: "→ keep both" in screen_text(app))


async def test_what_is_typed_when_the_question_comes_goes_into_the_prompt(tmp_path: Path) -> None:  # case T14
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await asking(pilot, made)
        await pilot.press(*"anyrkn")
        await pilot.pause(GRACE * 2)
        await pilot.press(*"rkn")
        await pilot.pause(GRACE)
        assert made[0].answers == []
        assert app.chat_screen.composer.text == "anyrknrkn"


async def test_a_prompt_that_begins_with_an_answers_letter_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_chat.ui.widgets.ask.TYPING", 10.0)  # however slow the machine is
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        box = await asking(pilot, made)
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("n", "o")
        await settled(pilot, lambda: app.chat_screen.composer.text == "no")
        await pilot.press("w")
        await pilot.pause(GRACE)
        assert made[0].answers == []
        assert app.chat_screen.composer.text == "now"


async def test_a_burst_of_letters_goes_into_the_prompt_whole(tmp_path: Path) -> None:
    """A terminal hands on many keys at once: they are on their way to the box when the first ones have left it."""
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        box = await asking(pilot, made)
        await settled(pilot, lambda: app.focused is box)
        for character in "nnn kkk rrr":
            box.post_message(events.Key(character, character))
        await settled(pilot, lambda: app.focused is app.chat_screen.composer)
        await pilot.pause(GRACE)
        assert app.chat_screen.composer.text == "nnn kkk rrr"
        assert made[0].answers == []
        await pilot.press("f6")  # and after that the keys count again
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("k")
        await settled(pilot, lambda: made[0].answers == [("a1", "keep_both")])


async def test_lines_that_come_at_once_go_into_the_prompt_as_lines(tmp_path: Path) -> None:  # cases T7, T14
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        box = await asking(pilot, made)
        await settled(pilot, lambda: app.focused is box)
        for character in "no\rkeep　both\r":
            key = {"\r": "enter", "　": "ideographic_space"}.get(character, character)
            box.post_message(events.Key(key, character))
        await settled(pilot, lambda: app.focused is app.chat_screen.composer)
        await pilot.pause(GRACE)
        assert app.chat_screen.composer.text == "no\nkeep　both\n"
        assert made[0].answers == [] and len(made[0].prompts) == 1


async def test_escape_does_nothing_with_it_and_a_click_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        box = await asking(pilot, made)
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("escape")
        await settled(pilot, lambda: made[0].answers == [("a1", "no")])
        assert made[0].interrupts == 0
        now = [0.0]
        monkeypatch.setattr(box, "_clock", lambda: now[0])
        made[0].emit(asked("a2"))
        await settled(pilot, lambda: box.display)
        assert await pilot.click(AskBox, offset=(6, 4))
        await pilot.pause()
        assert made[0].answers == [("a1", "no")]  # it has not been seen for long enough
        now[0] = GRACE
        assert await pilot.click(AskBox, offset=(6, 4))
        await settled(pilot, lambda: made[0].answers[1:] == [("a2", "replace")])


async def test_two_questions_come_one_after_the_other_and_a_withdrawn_one_goes(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        box = await asking(pilot, made)
        made[0].emit(asked("a2", question="End it?", tool_use_id=""))
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("r")
        await settled(pilot, lambda: "? End it?" in screen_text(app))
        made[0].emit(ev.ApprovalAnswered(at=START, approval_id="a2", choice="", by="cancelled"))
        await settled(pilot, lambda: not box.display)
        await settled(pilot, lambda: "End it? → withdrawn" in screen_text(app))


LONG = "\n".join(["x" * 900, "你" * 900, *"abcdefgh"])


@pytest.mark.parametrize("size", [WIDE, NARROW, (40, 10), (24, 10)])
@pytest.mark.parametrize("question", ["Replace it?", "Replace " + "name" * 300 + "?"], ids=["short", "long"])
async def test_its_choices_and_the_prompt_are_seen_however_much_is_asked(
    tmp_path: Path, size: tuple[int, int], question: str
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        box = await asking(pilot, made, question=question, detail=LONG)
        await pilot.pause()
        text = screen_text(app)
        for words in ("? Replace", "r replace it", "k keep both", "n do not save"):
            assert words in text
        assert "more lines" in text or size[1] <= 10
        assert app.chat_screen.composer.region.bottom < size[1]
        await pilot.resize_terminal(40, 12)
        await settled(pilot, lambda: app.chat_screen.composer.region.bottom == 11)
        await settled(pilot, lambda: box.ready and app.focused is box)
        rows = screen_text(app).splitlines()
        assert any("n do not save" in row for row in rows)
        [(x, y)] = [(row.index("keep both"), y) for y, row in enumerate(rows) if "k keep both" in row]
        assert await pilot.click(offset=(x, y))
        await settled(pilot, lambda: made[0].answers == [("a1", "keep_both")])


async def test_a_question_is_text_to_the_letter(tmp_path: Path) -> None:  # case T3
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await asking(pilot, made, question=HOSTILE[3], detail="\n".join(HOSTILE))
        text = screen_text(app)
        for words in HOSTILE:
            assert words in text


async def test_attach_goes_to_the_engine_and_other_commands_to_the_model(tmp_path: Path) -> None:  # case A6
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("ctrl+l")
        assert app.chat_screen.composer.text == "/attach "
        app.chat_screen.composer.insert_text("'my data.csv' in/")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].attached == [("my data.csv", "in/")])
        assert made[0].prompts == []
        app.chat_screen.composer.insert_text("/clear")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["/clear"])


async def test_a_wrong_attach_says_how_and_keeps_the_words(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("ctrl+l", *"'open", "enter")
        await settled(pilot, lambda: "left open" in screen_text(app))
        assert app.chat_screen.composer.text == "/attach 'open"


async def test_progress_and_end_of_an_attached_file(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].emit(
            ev.Progress(at=START, subject="x1", label="big.csv", done=120_000_000, total=300_000_000)
        )
        await settled(pilot, lambda: "attaching big.csv: 120 MB of 300 MB, 40 %" in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: made[0].interrupts == 1)
        made[0].emit(
            ev.Attached(
                at=START, attach_id="x1", name="big.csv", path="/tmp/attached/big.csv", size=300_000_000
            ),
            ev.Attached(at=START, attach_id="x2", name="no", path="", size=0, error="There is no file no."),
        )
        await settled(pilot, lambda: "attaching" not in screen_text(app))
        assert "Attached big.csv (300 MB): it is at /tmp/attached/big.csv in the sandbox." in screen_text(app)
        assert "There is no file no." in screen_text(app)


async def test_progress_of_a_download_is_on_its_card(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"save", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            tool_started("u1", "mcp__sandbox__download_file", path="/tmp/big"),
            ev.Progress(at=START, subject="u1", label="big", done=5_000_000, total=80_000_000),
        )
        await settled(pilot, lambda: "5.0 MB of 80 MB, 6 %" in screen_text(app))
        made[0].emit(tool_finished("u1", ev.TextContent("Saved /x.")))
        await settled(pilot, lambda: "5.0 MB of" not in screen_text(app))


async def test_background_output_stands_under_the_call(tmp_path: Path) -> None:  # case S5
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"go", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(
            tool_started("u1", code="start()"),
            tool_finished("u1"),
            tool_started("u2", code="2"),
            ev.ToolOutput(at=START, tool_use_id="u1", stream="stdout", text="tick 1\n", late=True),
            tool_finished("u2"),
        )
        await settled(pilot, lambda: "background output" in screen_text(app))
        assert "│ tick 1" in screen_text(app)
        await pilot.press("ctrl+up")
        app.chat_screen.tool_pane.show_view("result")
        await settled(pilot, lambda: screen_text(app).count("background output") == 2)


MANY = "\n".join([f"line {number} " + "你好 " * (number % 40) for number in range(400)] + ["the last word"])


@pytest.mark.parametrize("size", [WIDE, NARROW, (40, 14)])
async def test_all_that_is_asked_about_can_be_read(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        box = await asking(pilot, made, detail=MANY)
        await settled(pilot, lambda: app.focused is box)
        assert "line 0" in screen_text(app)
        await pilot.press("down")
        await settled(pilot, lambda: "line 0 " not in screen_text(app))
        await pilot.press("end")
        await settled(pilot, lambda: "the last word" in screen_text(app))
        assert "lines above" in screen_text(app)
        await pilot.press("home")
        await settled(pilot, lambda: "line 0" in screen_text(app))
        box.post_message(
            events.MouseScrollDown(
                box, 1, 1, 0, 1, 0, shift=False, meta=False, ctrl=False, screen_x=1, screen_y=1
            )
        )
        await settled(pilot, lambda: "line 0 " not in screen_text(app))
        await pilot.press("pagedown", "k")
        await settled(pilot, lambda: made[0].answers == [("a1", "keep_both")])


async def test_a_question_of_a_megabyte_does_not_hold_the_screen_up(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        box = await asking(pilot, made, detail="x" * 500_000 + "\n" + "你" * 200_000 + "end")
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("end")
        await settled(pilot, lambda: "你end" in screen_text(app))


LASTING = (*CHOICES[:2], ev.Choice("always", "s", "replace this file for this session"), CHOICES[2])


async def test_what_holds_for_the_session_is_listed_and_can_be_taken_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        box = await asking(pilot, made, choices=LASTING, lasting=("always",), subject="/d/[bold]plot.png")
        await settled(pilot, lambda: app.focused is box)
        await pilot.press("s")
        await settled(pilot, lambda: made[0].answers == [("a1", "always")])
        made[0].emit(asked("a2", choices=LASTING, lasting=("always",), subject="/d/b.png"))
        await settled(pilot, lambda: box.display and app.focused is box)
        await pilot.press("k")
        await settled(pilot, lambda: len(made[0].answers) == 2)
        await settled(pilot, lambda: app.focused is app.chat_screen.composer)
        await pilot.press(*"/approvals", "enter")
        await settled(pilot, lambda: "What holds for this session" in screen_text(app))
        text = screen_text(app)
        assert "replace this file for this session" in text and "/d/[bold]plot.png" in text
        assert "/d/b.png" not in text
        await pilot.press("d")
        await settled(pilot, lambda: made[0].forgotten == ["a1"])
        await settled(pilot, lambda: "You have answered nothing" in screen_text(app))
        await pilot.press("escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)


def test_what_holds_is_not_carried_over_to_a_resumed_session() -> None:
    state = ChatState()
    question = asked(choices=LASTING, lasting=("always",), subject="/d/a")
    given = ev.ApprovalAnswered(at=START, approval_id="a1", choice="always", by="user")
    state.apply_all([question, given])
    assert [label for _, label in state.allowed.answers.values()] == ["replace this file for this session"]
    state.apply(ev.SessionStarted(at=START, session_id="s", model="", sandbox="local", demo=True))
    assert state.allowed.answers == {}
