"""A long session opens with its last turns; the earlier ones come in behind, and nobody sees anything move."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.screen import (
    NARROW,
    START,
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
    turn_finished,
)

from sandbox_chat import events as ev

ANSWER = (
    "Some **bold** words of answer {n}.\n\n- an item\n- another\n\n```python\nx = {n}\n```\n\n"
    + "More words. " * 40
)


def turns(first: int, last: int) -> list[ev.Event]:
    out: list[ev.Event] = []
    for number in range(first, last):
        picture = ev.ImageContent(
            path=f"/nowhere/{'0' * 60}{number:04}.png", mime="image/png", width=40, height=30
        )
        out += [
            ev.TurnStarted(at=START, turn_id=f"old{number}", prompt=f"question {number}"),
            tool_started(f"call{number}"),
            tool_finished(f"call{number}", ev.TextContent("[success] True\n[stdout]\nout"), picture),
            ev.Text(at=START, text=ANSWER.replace("{n}", str(number))),
            turn_finished(f"old{number}"),
        ]
    return out


class Held:
    """Older events that come only when ``go`` is set; ``fails`` in place of them."""

    def __init__(self, events: Sequence[ev.Event], *, fails: bool = False) -> None:
        self.go = threading.Event()
        self._events = events
        self._fails = fails

    def __iter__(self) -> Iterator[ev.Event]:
        self.go.wait(30)
        if self._fails:
            raise OSError(5, "Input/output error")
        yield from self._events

    def __bool__(self) -> bool:
        return True


def resumed(
    folder: Path, made: list[PlayedEngine], older: Any, tail: Sequence[ev.Event], **settings: Any
) -> Any:
    def past(engine: PlayedEngine) -> None:
        engine.older_past = older
        engine.past = tail

    return chat_app(folder, made, resume="old", set_up=past, **{"images": "off", **settings})


def rows(app: Any, width: int) -> list[str]:
    out = []
    for block in app.chat_screen.transcript.blocks:
        block.ensure()
        out += [row.text.rstrip() for row in block.rows(width)]
    return out


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_what_came_in_two_parts_is_what_comes_at_once(tmp_path: Path, size: tuple[int, int]) -> None:
    whole: list[PlayedEngine] = []
    app = resumed(tmp_path / "a", whole, (), turns(0, 40))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        expected, state = rows(app, size[0] - 10), app.chat.state
        shown = screen_text(app)
    made: list[PlayedEngine] = []
    older = Held(turns(0, 30))
    app = resumed(tmp_path / "b", made, older, turns(30, 40))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        assert app.chat.state.partial
        assert len(app.chat.state.turns) == 10
        assert "n/a" in screen_text(app) or app.chat.state.demo
        assert "Earlier turns are being read" in "\n".join(rows(app, 60))
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        state.tool_revision = app.chat.state.tool_revision
        assert app.chat.state == state
        assert rows(app, size[0] - 10) == expected
        assert screen_text(app) == shown
        blocks = app.chat_screen.transcript.blocks
        assert [app.chat_screen.transcript.transcript.index(block) for block in blocks] == list(
            range(len(blocks))
        )


async def test_what_happens_while_they_are_read_is_there_afterwards(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 20))
    app = resumed(tmp_path, made, older, turns(20, 30))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"go on", "enter")
        await settled(pilot, lambda: made[0].prompts == ["go on"])
        made[0].emit(ev.TextDelta(at=START, text="new words"), tool_started("live"))
        await settled(pilot, lambda: "new words" in screen_text(app))
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        made[0].emit(tool_finished("live"), ev.Text(at=START, text="the end"), turn_finished("t1"))
        await settled(pilot, lambda: "the end" in screen_text(app) and app.chat.state.phase == "idle")
        assert len(app.chat.state.turns) == 31
        assert app.chat.state.tools["live"].status == "ok"
        assert app.chat.state.cost[0] == pytest.approx(31 * 0.0123)
        text = "\n".join(rows(app, 100))
        assert (
            text.index("question 0") < text.index("question 29") < text.index("go on") < text.index("the end")
        )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("where", ["middle", "top", "below-top"])
async def test_what_is_read_holds_still(tmp_path: Path, size: tuple[int, int], where: str) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 30))
    app = resumed(tmp_path, made, older, turns(30, 40))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        view = app.chat_screen.transcript
        if where == "middle":
            view.action_scroll_rows(-60)
        else:
            view.action_scroll_start()
            view.action_scroll_rows(1 if where == "below-top" else 0)
        await pilot.pause()

        def seen() -> list[str]:
            # A picture without a name is called by its number, which is not known before.
            rows = [view.render_line(y).text[:-2].rstrip() for y in range(view.size.height)]
            return [re.sub(r"picture \d+.*|0{6,}\d+.png.*", "picture", row) for row in rows]

        before = seen()
        assert ("Earlier turns" in "".join(before)) == (where == "top")
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        await pilot.pause()
        after = seen()
        if where == "middle":
            assert after == before
        else:  # the words at the top have given way to the rows of older turns
            rest = [row for row in before if "Earlier turns" not in row]
            assert after[-(len(rest) - 1) :] == rest[-(len(rest) - 1) :]
            assert "Earlier turns" not in "".join(after)
        assert view.unseen_lines == 0
        view.action_scroll_start()
        await settled(pilot, lambda: "question 0" in screen_text(app))
        view.end()
        await settled(pilot, lambda: "answer 39" in screen_text(app) or "More words" in screen_text(app))


async def test_cursor_selection_and_search_stay_with_their_text(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 20))
    app = resumed(tmp_path, made, older, turns(20, 26))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        view = app.chat_screen.transcript
        view.focus()
        await pilot.press("k")
        chosen = view.selected
        view.find("question 2")  # 20 … 25
        await settled(pilot, lambda: len(view._hits) == 6)
        view.find_step(1)
        now = view.blocks[view._marks.now.block]
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        assert view.selected is chosen
        await settled(pilot, lambda: len(view._hits) == 7)  # also question 2
        assert view.blocks[view._marks.now.block] is now
        view.find_done(back=True)
        assert app.chat_screen.tool_pane is not None


async def test_turns_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held((), fails=True)
    app = resumed(tmp_path, made, older, turns(30, 32))
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        older.go.set()
        await settled(pilot, lambda: "cannot be read (Input/output error)" in "\n".join(rows(app, 200)))
        await pilot.press(*"go on", "enter")
        await settled(pilot, lambda: made[0].prompts == ["go on"])


async def test_output_of_an_older_call_finds_its_card(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 5))
    late = ev.ToolOutput(at=START, tool_use_id="call3", stream="stdout", text="from a thread", late=True)
    app = resumed(tmp_path, made, older, [*turns(5, 7)[:-1], late, turns(6, 7)[-1]])
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        assert "from a thread" in app.chat_screen.transcript.transcript.cards["call3"].text
        assert "from a thread" in app.chat.state.tools["call3"].late.text()


async def test_the_program_ends_while_they_are_read(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 5))
    app = resumed(tmp_path, made, older, turns(5, 7))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
    older.go.set()
    assert made[0].closes or app.return_code is None


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (4, 6)])
async def test_they_come_in_where_nothing_can_be_seen(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 10))
    app = resumed(tmp_path, made, older, turns(10, 14))
    async with app.run_test(size=size) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        older.go.set()
        await settled(pilot, lambda: not app.chat.state.partial)
        await pilot.resize_terminal(*WIDE)
        view = app.chat_screen.transcript
        await settled(pilot, lambda: "More words" in screen_text(app))
        view.action_scroll_start()
        await settled(pilot, lambda: "question 0" in screen_text(app))


async def test_a_new_width_and_theme_while_they_are_read(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    older = Held(turns(0, 20))
    app = resumed(tmp_path, made, older, turns(20, 24))
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        older.go.set()
        await pilot.resize_terminal(*NARROW)
        await pilot.press("f9")
        await settled(pilot, lambda: not app.chat.state.partial)
        await pilot.resize_terminal(*WIDE)
        view = app.chat_screen.transcript
        view.action_scroll_start()
        await settled(pilot, lambda: "question 0" in screen_text(app))
        await pilot.press("ctrl+end")
        await settled(pilot, lambda: view.following)


@pytest.mark.parametrize("state", ["ready", "lost", "closed"])
async def test_they_are_read_once_the_agent_is_there_or_is_known_not_to_come(
    tmp_path: Path, state: str
) -> None:
    made: list[PlayedEngine] = []

    def past(engine: PlayedEngine) -> None:
        engine.older_past, engine.past, engine.ready = turns(0, 20), turns(20, 30), False

    app = chat_app(tmp_path, made, resume="old", set_up=past, images="off")
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: len(app.chat.state.turns) == 10)
        made[0].emit(ev.Status(at=START, component="agent", state="connecting"))
        await pilot.pause(0.3)
        assert app.chat.state.partial
        made[0].emit(ev.Status(at=START, component="agent", state=state))
        await settled(pilot, lambda: not app.chat.state.partial)
        assert len(app.chat.state.turns) == 30
