"""A long session costs no more than a short one: what is mounted, laid out and drawn is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled, turn_finished

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript.answer import AnswerBlock

ANSWER = "Some **bold** words and `code`.\n\n- an item\n- another\n\n```python\nx = {n}\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n"


def history(turns: int) -> list[ev.Event]:
    out: list[ev.Event] = []
    for number in range(turns):
        out += [
            ev.TurnStarted(turn_id=f"old{number}", prompt=f"question {number}"),
            ev.Text(text=ANSWER.replace("{n}", str(number))),
            turn_finished(f"old{number}"),
        ]
    return out


class Counted:
    """How many answers are parsed or measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prepared: set[str] = set()
        for name in ("prepare", "prepare_end", "strips"):
            real = getattr(AnswerBlock, name)

            def counted(block: AnswerBlock, *given: object, _real: object = real) -> object:
                self.prepared.add(block.id)
                return _real(block, *given)  # type: ignore[operator]

            monkeypatch.setattr(AnswerBlock, name, counted)


def resumed(turns: int, made: list[PlayedEngine], folder: Path, **settings: object) -> object:
    def past(engine: PlayedEngine) -> None:
        engine.past = history(turns)

    return chat_app(folder, made, resume="old", set_up=past, **settings)


async def test_typing_while_a_reply_streams_after_1200_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case T1."""
    made: list[PlayedEngine] = []
    app = resumed(600, made, tmp_path)
    counted = Counted(monkeypatch)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "x = 599" in screen_text(app), 30)
        counted.prepared.clear()
        app.chat.submit("go on")
        for number in range(50):
            made[0].emit(ev.TextDelta(text=f"word {number} "), ev.TextDelta(text="**and** more\n\n"))
            await pilot.press("k")
        await settled(pilot, lambda: "word 49 and more" in screen_text(app))
        assert app.chat_screen.composer.text == "k" * 50
        assert len(counted.prepared) <= 12  # what is in sight, however long the session is
        assert len(app.screen.query("*")) <= 200
        view = app.chat_screen.transcript
        assert len(view.blocks) >= 1201
        view.action_scroll_start()
        await settled(pilot, lambda: "question 0" in screen_text(app))


async def test_a_new_size_lays_out_only_what_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PlayedEngine] = []
    app = resumed(600, made, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "x = 599" in screen_text(app), 30)
        view = app.chat_screen.transcript
        view._layout.go(view._layout.total // 2)
        view._moved()
        await pilot.pause()
        counted = Counted(monkeypatch)
        for size in (NARROW, WIDE, NARROW):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert len(counted.prepared) <= 40
        assert "Some bold words" in screen_text(app)


async def test_a_session_larger_than_its_memory_is_readable_to_its_first_message(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    text = "A paragraph of some length that says nothing. " * 60

    def past(engine: PlayedEngine) -> None:
        events: list[ev.Event] = []
        for number in range(800):
            events += [
                ev.TurnStarted(turn_id=f"old{number}", prompt=f"question {number}"),
                ev.Text(text=f"{text}\n\nEnd of answer {number}."),
                turn_finished(f"old{number}"),
            ]
        engine.past = events

    app = chat_app(tmp_path, made, resume="old", set_up=past, transcript_memory_mb=1)
    async with app.run_test(size=WIDE) as pilot:
        view = app.chat_screen.transcript
        await settled(pilot, lambda: "End of answer 799." in screen_text(app), 30)
        await settled(pilot, lambda: view._storage.keeper.held <= 1_000_000, 30)
        assert sum(block.away for block in view.blocks) > 300
        view.focus()
        await pilot.press("home")
        await settled(pilot, lambda: "question 0" in screen_text(app) and "says nothing" in screen_text(app))
        await pilot.press("pagedown", "pagedown")
        assert view.unseen_lines == 0
        await settled(
            pilot, lambda: "End of answer 1." in screen_text(app) and "reading" not in screen_text(app)
        )
        view.find("answer 400.")
        await settled(pilot, lambda: "End of answer 400." in screen_text(app), 30)
        view.find_done(back=True)
        await pilot.press("end")
        await settled(pilot, lambda: "End of answer 799." in screen_text(app))


async def test_scrolled_up_by_20_rows_it_holds_still(tmp_path: Path) -> None:
    """Case T9, in the whole program."""
    made: list[PlayedEngine] = []
    app = resumed(20, made, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "x = 19" in screen_text(app))
        app.chat.submit("go on")
        await pilot.pause(0.1)
        view = app.chat_screen.transcript
        view.action_scroll_rows(-20)
        await pilot.pause()

        def rows() -> Sequence[str]:
            return [view.render_line(y).text[:-2] for y in range(view.size.height - 1)]

        before = rows()
        for number in range(30):
            made[0].emit(ev.TextDelta(text=f"new {number}\n\n"))
            await pilot.pause(0.01)
        await settled(pilot, lambda: view.unseen_lines >= 58)
        after = rows()
        assert len(after) >= len(before) - 1  # the hint takes one
        assert after == before[: len(after)]
        assert "new lines" in screen_text(app)
        await pilot.press("ctrl+end")
        await settled(pilot, lambda: "new 29" in screen_text(app))
        assert "new lines" not in screen_text(app)


async def test_the_find_line_opens_above_the_composer_and_gives_the_keys_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = resumed(30, made, tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: "x = 29" in screen_text(app))
        view = app.chat_screen.transcript
        await pilot.press("ctrl+f", *"question 3")
        await settled(pilot, lambda: "1 of 1\n" in screen_text(app) and "› question 3" in screen_text(app))
        await pilot.press("backspace", "backspace")
        await settled(pilot, lambda: "of 30" in screen_text(app))
        await pilot.press("enter", "enter", "shift+enter")
        await pilot.press("escape")
        await settled(pilot, lambda: view.following and app.focused is app.chat_screen.composer)
        assert "of 30" not in screen_text(app)
        await pilot.press("ctrl+f")
        await settled(pilot, lambda: "of 30" in screen_text(app))
        await pilot.press("tab", "n", "N")
        assert app.focused is view
        await pilot.press("escape")
        assert not view._marks.any


async def test_an_item_is_asked_for_again_through_the_composer(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = resumed(3, made, tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "x = 2" in screen_text(app))
        view = app.chat_screen.transcript
        view.focus()
        await pilot.press("k", "k", "r")
        await settled(pilot, lambda: app.chat_screen.composer.text == "question 2")
        assert made[0].prompts == []
        view.focus()
        await pilot.press("r")
        await settled(pilot, lambda: "The composer is not empty." in screen_text(app))


async def test_an_answer_is_saved_under_a_free_name(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = resumed(1, made, tmp_path, downloads_dir=tmp_path / "out")
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "x = 0" in screen_text(app))
        view = app.chat_screen.transcript
        view.focus()
        await pilot.press("k", "s")
        await settled(pilot, lambda: (tmp_path / "out" / "answer.md").exists())
        await pilot.press("s")
        await settled(pilot, lambda: (tmp_path / "out" / "answer-1.md").exists())
        assert (tmp_path / "out" / "answer.md").read_text() == ANSWER.replace("{n}", "0")
