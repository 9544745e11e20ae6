"""The prompts that wait, on the screen: edited in the composer, moved, removed, sent on; nothing of them is lost."""

from __future__ import annotations

import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from support.chat_program import chat_program
from support.screen import HOSTILE, NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.tokens import Part
from sandbox_chat.ui.waiting_file import Left, WaitingFile
from sandbox_chat.ui.widgets.waiting import Waiting


async def waiting(pilot: Any, made: list[PlayedEngine], *texts: str) -> Waiting:
    """A turn runs, and these prompts wait for its end."""
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    for text in ("one", *texts):
        app.chat_screen.composer.insert_text(text)
        await pilot.press("enter")
        await settled(pilot, lambda: app.chat_screen.composer.text == "")
    await settled(pilot, lambda: app.chat.waiting == list(texts))
    widget: Waiting = app.chat_screen.query_one(Waiting)
    await settled(pilot, lambda: widget.display)
    return widget


def sent(engine: PlayedEngine, count: int) -> bool:
    return len(engine.prompts) == count


async def end_of_turns(pilot: Any, engine: PlayedEngine, count: int) -> None:
    for number in range(count):
        await settled(pilot, partial(sent, engine, number + 1))
        engine.finish()


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_t13_three_wait_the_second_is_edited_and_the_third_removed(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        widget = await waiting(pilot, made, "two", "three", "four")
        composer = app.chat_screen.composer
        await pilot.press("ctrl+t")
        await settled(pilot, lambda: app.focused is widget)
        await pilot.press("up")
        await settled(pilot, lambda: "› 2 three" in screen_text(app))
        await pilot.press("e")
        await settled(pilot, lambda: app.focused is composer and composer.text == "three")
        assert "prompt 2 is in the composer" in screen_text(app)
        await pilot.press(*", edited", "enter")
        await settled(pilot, lambda: app.chat.waiting == ["two", "three, edited", "four"])
        assert composer.text == ""
        await pilot.press("ctrl+t", "end", "d")
        await settled(pilot, lambda: app.chat.waiting == ["two", "three, edited"])
        assert app.prompts.entries[-1] == "four", "it is in the history"
        await end_of_turns(pilot, made[0], 3)
        assert made[0].prompts == ["one", "two", "three, edited"]
        await settled(pilot, lambda: not widget.display and app.focused is composer)


async def test_escape_leaves_it_as_it_was_and_the_draft_comes_back(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, draft_delay=0.05)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two")
        composer = app.chat_screen.composer
        await pilot.press(*"my draft", "alt+up", "e", *" more")
        await settled(pilot, lambda: composer.text == "two more")
        await pilot.press("escape")
        await settled(pilot, lambda: composer.text == "my draft")
        assert (app.chat.waiting, made[0].interrupts) == (["two"], 0)
        assert app.prompts.entries[-1] == "two more", "what was written is not lost"
        await pilot.press("escape")
        await settled(pilot, lambda: made[0].interrupts == 1)


async def test_while_the_first_one_is_edited_the_queue_waits_for_it(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two", "three")
        await pilot.press("ctrl+t", "home", "e")
        await settled(pilot, lambda: app.chat_screen.composer.text == "two")
        made[0].finish()
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        assert made[0].prompts == ["one"]
        await pilot.press("2", "enter")
        await settled(pilot, lambda: made[0].prompts == ["one", "two2"])


async def test_a_prompt_that_comes_back_meanwhile_waits_and_a_command_ends_the_edit(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two")
        await pilot.press("ctrl+t", "e")
        await settled(pilot, lambda: app.chat_screen.composer.text == "two")
        made[0].finish(is_error=True, error="The endpoint refused.")
        await settled(pilot, lambda: app.chat.waiting == ["one", "two"])
        assert app.chat_screen.composer.text == "two"
        await pilot.press("ctrl+c", *"/cost", "enter")
        await settled(pilot, lambda: app.chat.queue.editing == "")
        assert app.chat.waiting == ["one", "two"]


async def test_an_emptied_prompt_is_removed(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two", "three")
        await pilot.press("ctrl+t", "home", "e", "ctrl+c", "enter")
        await settled(pilot, lambda: app.chat.waiting == ["three"])
        assert "two" in app.prompts.entries


async def test_moved_by_keys_and_held_ones_sent_on_by_enter(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two", "three", "four")
        await pilot.press("ctrl+t", "K", "shift+up")
        await settled(pilot, lambda: app.chat.waiting == ["four", "two", "three"])
        await pilot.press("J")
        await settled(pilot, lambda: app.chat.waiting == ["two", "four", "three"])
        made[0].finish(interrupted=True)
        await settled(pilot, lambda: "held after the interruption" in screen_text(app))
        assert made[0].prompts == ["one"]
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["one", "two"])
        await pilot.press("escape")
        await settled(pilot, lambda: app.focused is app.chat_screen.composer)
        assert made[0].interrupts == 0


async def test_everything_by_mouse(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)

    async def click(words: str) -> None:
        await settled(pilot, lambda: words in screen_text(app))
        rows = screen_text(app).splitlines()
        [(x, y)] = [(row.index(words), y) for y, row in enumerate(rows) if words in row]
        assert await pilot.click(offset=(x + len(words) - 1, y))

    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two", "three", "four")
        await click("2 three")
        await click("move up")
        await settled(pilot, lambda: app.chat.waiting == ["three", "two", "four"])
        await click("move down")
        await settled(pilot, lambda: app.chat.waiting == ["two", "three", "four"])
        await click("remove")
        await settled(pilot, lambda: app.chat.waiting == ["two", "four"])
        await click("2 four")
        await click(" edit")
        await settled(pilot, lambda: app.chat_screen.composer.text == "four")
        await pilot.press("4", "enter")
        await settled(pilot, lambda: app.chat.waiting == ["two", "four4"])
        made[0].finish(interrupted=True)
        await click("sends them on")
        await settled(pilot, lambda: made[0].prompts == ["one", "two"])


async def test_files_and_long_pastes_come_back_as_they_were(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    parts = [Part("text", "look at "), Part("file", "/w/f.csv", "f.csv", 3), Part("paste", "x\n" * 50)]
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two")
        composer = app.chat_screen.composer
        composer.load_parts(parts)
        await pilot.press("enter")
        await settled(pilot, lambda: len(app.chat.queue) == 2)
        await pilot.press("ctrl+t", "e")
        await settled(pilot, lambda: [part.kind for part in composer.parts] == ["text", "file", "paste"])
        await pilot.press("!", "enter")
        await settled(pilot, lambda: composer.text == "")
        await end_of_turns(pilot, made[0], 3)
        assert made[0].attached == [("/w/f.csv", "")]
        assert made[0].prompts[2] == "look at @f.csv" + "x\n" * 50 + "!"


MANY = [
    f"prompt number {number} 你好 한글 👩‍🔬 e\u0301 " + "word " * (number * 40) for number in range(1, 101)
]


@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [WIDE, NARROW, (24, 12), (2, 3)])
async def test_a_hundred_prompts_fit_any_screen(
    tmp_path: Path, size: tuple[int, int], language: str, glyphs: str
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language=language, glyphs=glyphs)
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        for text in ("one", *MANY, *HOSTILE, "x" * 2_000_000, "\n\n\t \n" * 1000 + "."):
            app.chat.submit(text)
        app.chat_screen.update_state()
        widget: Waiting = app.chat_screen.query_one(Waiting)
        await settled(pilot, lambda: widget.display)
        for keys in (("ctrl+t",), ("home",), ("pagedown",), ("end",), ("up",), ("K",), ("d",)):
            await pilot.press(*keys)
            await pilot.pause()
            assert all(cell_len(row) <= size[0] for row in screen_text(app).splitlines())
            if size[1] > 20:
                assert app.chat_screen.composer.region.bottom < size[1]
                sign = ">" if glyphs == "ascii" else "›"
                assert sum(row.strip().startswith(sign) for row in screen_text(app).splitlines()) >= 2
            if glyphs == "ascii" and language == "en":
                rows = [strip.plain for strip in widget._rows]
                assert all(row.replace("…", "").isascii() for row in rows if "number" not in row)
        assert len(app.chat.queue) == 107


def fits(widget: Waiting, width: int) -> bool:
    return widget.size.width == width == max(row.cell_length for row in widget._rows)


async def test_the_rows_follow_another_size(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        widget = await waiting(pilot, made, "word " * 60 + "end")
        await pilot.press("ctrl+t")
        for columns in (120, 60, 120, 30):
            await pilot.resize_terminal(columns, 30)
            await settled(pilot, partial(fits, widget, columns - 2))


# -- on disk -------------------------------------------------------------------------------------------------


def kept(folder: Path) -> list[list[str]]:
    """The texts of each file of waiting prompts."""
    found = WaitingFile(folder / "data/waiting")
    left = [[prompt.text for prompt in each.prompts] for each in found.find()]
    found.let_go(remove=False)
    return left


LONG = "long " * 30_000


async def test_what_waits_when_the_program_quits_comes_back_with_the_session(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two")
        app.chat_screen.composer.insert_text(LONG)
        await pilot.press("enter")
        await settled(pilot, lambda: len(app.chat.queue) == 2)
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.keeping.close()
    assert kept(tmp_path) == [["two", LONG.strip()]]
    again = chat_app(tmp_path, made, resume=made[0].session_id)
    async with again.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: again.chat.waiting == ["two", LONG.strip()])
        await settled(pilot, lambda: "left by an earlier run" in screen_text(again))
        await settled(pilot, lambda: again.chat.state.phase == "idle")
        await pilot.press("enter")
        await pilot.press(*"new", "enter")
        await settled(pilot, lambda: made[1].prompts == ["new"])
        made[1].finish()
        await settled(pilot, lambda: again.chat.state.phase == "idle")
        assert made[1].prompts == ["new"], "never by itself"
        await pilot.press("ctrl+g")
        await settled(pilot, lambda: made[1].prompts == ["new", "two"])
        made[1].finish()
        await settled(pilot, lambda: made[1].prompts == ["new", "two", LONG.strip()])
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: again.return_code is not None)
    again.keeping.close()
    assert kept(tmp_path) == []


async def test_another_session_tells_of_them_and_fetches_them_by_a_key(tmp_path: Path) -> None:
    file = WaitingFile(tmp_path / "data/waiting")
    file.save(Left("abcd-session", (Prompt("two"), Prompt("three"))))
    assert file.settle()
    file.close(keep=True)
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "2 prompts of earlier sessions still wait" in screen_text(app))
        assert "--resume abcd-ses opens" in screen_text(app)
        assert app.chat.waiting == [] and kept(tmp_path) == [["two", "three"]]
        await pilot.press("ctrl+t")
        await settled(pilot, lambda: app.chat.waiting == ["two", "three"])
        await settled(pilot, lambda: isinstance(app.focused, Waiting))
        assert made[0].prompts == []
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts == ["two"])
    app.keeping.close()


async def test_quitting_while_one_is_edited_keeps_the_edit_and_the_draft(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two")
        await pilot.press(*"draft", "ctrl+t", "e", "!", "ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.keeping.close()
    assert kept(tmp_path) == [["two!"]]
    assert app.prompts.entries[-1] == "draft"


@pytest.mark.parametrize("editing", [False, True])
def test_what_waits_when_the_program_is_killed_comes_back(tmp_path: Path, editing: bool) -> None:
    with chat_program(tmp_path) as at:
        for text in ("one", "two", "three"):
            at.type(f"\x1b[200~{text}\x1b[201~")
            at.shows(f"› {text}")
            time.sleep(0.3)  # an Enter that comes as quickly as a key of a paste is one
            at.type("\r")
            at.shows("› Type a prompt")
        at.shows("2 prompts wait")
        if editing:
            at.type("\x1b[200~draft\x1b[201~")
            at.shows("› draft")
            at.type("\x14")  # ctrl+t
            at.shows("2/2")
            at.type("e")
            at.shows("prompt 2 is in the composer")
            at.type("!")
            at.shows("three!")
            at.wait(
                lambda: any(
                    "three!" in path.read_text() for path in (tmp_path / "data/drafts").glob("*.json")
                )
            )
        at.process.send_signal(signal.SIGKILL)
        at.process.wait()
    assert kept(tmp_path) == [["two", "three"]]
    with chat_program(tmp_path) as at:
        at.shows("2 prompts of earlier sessions still wait")
        if editing:
            at.shows("draft")
            at.shows("three!")


async def test_an_older_prompt_that_is_looked_at_meanwhile_takes_nobodys_place(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await waiting(pilot, made, "two", "three")
        composer = app.chat_screen.composer
        await pilot.press("ctrl+t", "home", "e", "!", "up")
        await settled(pilot, lambda: composer.text == "three")
        await pilot.press("ctrl+q")
        await settled(pilot, lambda: app.return_code is not None)
    app.keeping.close()
    assert kept(tmp_path) == [["two!", "three"]]
