"""The list of sessions: reading, searching, opening, renaming, deleting, by keys and by mouse."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.saved import NOON, Saved
from support.screen import NARROW, WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat.journal import Journal
from sandbox_chat.journal import search as journal_search
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.screens.chat import ChatScreen
from sandbox_chat.ui.screens.confirm import ConfirmScreen
from sandbox_chat.ui.screens.rename import RenameScreen
from sandbox_chat.ui.screens.sessions import SessionsScreen
from sandbox_chat.ui.waiting_file import Left, WaitingFile
from sandbox_chat.ui.widgets.session_table import Columns, SessionTable


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    saved = Saved(tmp_path / "data")
    saved.session("aaa", [("plot a damped sine", "The envelope halves."), ("and a cosine", "Here it is.")])
    saved.session("bbb", [("数据分析", "中文结果"), ("[bold]x[/] \x1b[2J", "y")], model="m-2")
    saved.session("ccc", [("a last one", "z")], model="demo", demo=True)
    for number, name in enumerate(("aaa", "bbb", "ccc")):
        time = NOON.timestamp() + 60 * number
        os.utime(saved.path(name), (time, time))
    return saved


async def opened(pilot: Any, *, rows: int = 3) -> SessionTable:
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    await pilot.press("f10")
    await settled(pilot, lambda: isinstance(app.screen, SessionsScreen) and len(table_of(app).rows) == rows)
    return table_of(app)


def table_of(app: Any) -> SessionTable:
    found = app.screen.query_one(SessionTable)
    assert isinstance(found, SessionTable)
    return found


def said(app: Any, words: str) -> bool:
    return any(words in note.message for note in app._notifications)


def ids(table: SessionTable) -> list[str]:
    return [row.summary.id for row in table.rows if row.place is None and not row.more]


async def search(pilot: Any, words: str) -> SessionTable:
    await pilot.press("slash")
    await pilot.press(*words)
    return table_of(pilot.app)


async def test_the_list_has_all_there_is_to_know(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=(160, 30)) as pilot:
        table = await opened(pilot)
        assert ids(table) == ["ccc", "bbb", "aaa"]
        text = screen_text(app)
        for words in (
            "3 sessions",
            "2026-03-04",
            "plot a damped sine",
            "and a cosine",
            "$0.0200",
            "m-2",
            "[bold]x[/] ␛[2J",
        ):
            assert words in text
        await pilot.press("down", "down")
        assert "aaa" in screen_text(app).splitlines()[-2]
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.focused is app.chat_screen.composer


async def test_narrow_the_rest_stands_below(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot)
        await pilot.press("G")
        lines = screen_text(app).splitlines()
        assert "last prompt: and a cosine" in lines[-2]
        assert "m-1" in lines[-2]


@pytest.mark.parametrize("width", [1, 2, 3, 10, 20, 40, 55, 56, 80, 109, 110, 149, 150, 300])
def test_columns_fit_into_any_width(width: int) -> None:
    columns = Columns.of(width)
    used = [
        each
        for each in (columns.when, columns.turns, columns.cost, columns.model, columns.title, columns.last)
        if each
    ]
    assert all(each > 0 for each in used)
    assert 2 + sum(used) + 2 * (len(used) - 1) <= max(width, 8)


async def test_it_is_searched_while_one_types(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        await search(pilot, "cosin")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        assert (table.row.place.turn, table.row.turn) == (2, 2)
        assert "turn 2" in screen_text(app)
        assert "found in 1 session" in screen_text(app)
        await pilot.press(*["backspace"] * 5, *"中文")
        await settled(pilot, lambda: ids(table) == ["bbb"])
        await pilot.press(*["backspace"] * 2, *"nowhere to be found")
        await settled(pilot, lambda: table.rows == [])
        assert "Nothing was found" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot, lambda: len(table.rows) == 3)
        await pilot.press("escape")
        assert app.focused is table
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))


async def test_keys_do_not_search_one_by_one(
    tmp_path: Path, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    find = journal_search.SessionSearch.find
    threads: list[str] = []

    def count(self: Any, text: str, **options: Any) -> Any:
        asked.append(text)
        threads.append(threading.current_thread().name)
        return find(self, text, **options)

    monkeypatch.setattr(journal_search.SessionSearch, "find", count)
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        app.screen.query_one("#sessions-input").value = "d"
        app.screen.query_one("#sessions-input").value = "da"
        app.screen.query_one("#sessions-input").value = "damped"
        await settled(pilot, lambda: ids(table) == ["aaa"])
    assert asked == ["damped"]
    assert threads == ["search"]


async def test_enter_opens_at_the_place(tmp_path: Path, saved: Saved) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        calls: list[tuple[str, int | None]] = []
        app.open_session = lambda *place: calls.append(place)
        await opened(pilot)
        await pilot.press("down", "enter")
        await settled(pilot, lambda: calls == [("bbb", None)])
        table = await opened(pilot)
        await search(pilot, "cosine")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        await pilot.press("enter")
        await settled(pilot, lambda: calls[1:] == [("aaa", 2)])
        table = await opened(pilot)
        await search(pilot, "cosine")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        await pilot.press("up", "enter")  # the session's own row: the first place in it
        await settled(pilot, lambda: calls[2:] == [("aaa", 2)])


async def test_by_mouse(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        calls: list[tuple[str, int | None]] = []
        app.open_session = lambda *place: calls.append(place)
        table = await opened(pilot)
        await pilot.click(SessionTable, offset=(30, 2))
        assert table.row.summary.id == "aaa"
        assert calls == []
        rows = screen_text(app).splitlines()
        place = rows[-1].index("rename")
        await pilot.click(offset=(place, len(rows) - 1))
        await settled(pilot, lambda: isinstance(app.screen, RenameScreen))
        await pilot.press("escape")
        await pilot.click(SessionTable, offset=(30, 1), times=2)
        await settled(pilot, lambda: calls == [("bbb", None)])


async def test_renaming(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        await pilot.press("down", "r")
        await settled(pilot, lambda: isinstance(app.screen, RenameScreen))
        await pilot.press("ctrl+a", "delete")
        app.screen.query_one("Input").value = "Mine [x]"
        await pilot.press("enter")
        await settled(pilot, lambda: "Mine [x]" in screen_text(app))
        assert table.row.summary.id == "bbb"
        assert '"title": "Mine [x]"' in (saved.root / "bbb" / "meta.json").read_text()
        journal = Journal.open(saved.root, "aaa")
        await pilot.press("G", "r")
        await settled(pilot, lambda: isinstance(app.screen, RenameScreen))
        await pilot.press("x", "enter")
        await settled(pilot, lambda: said(app, "open in another running"))
        journal.close()


async def test_deleting_asks(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        await pilot.press("d")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "a last one" in screen_text(app)
        await pilot.press("enter", "escape")
        await settled(pilot, lambda: isinstance(app.screen, SessionsScreen))
        assert saved.path("ccc").exists()
        await pilot.press("d", "y")
        await settled(pilot, lambda: ids(table) == ["bbb", "aaa"])
        assert not saved.path("ccc").exists()
        journal = Journal.open(saved.root, "bbb")
        await pilot.press("d", "y")
        await settled(pilot, lambda: said(app, "open in another running"))
        journal.close()
        await pilot.press("d", "y")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        await pilot.press("d", "y")
        await settled(pilot, lambda: "There are no sessions yet" in screen_text(app))


async def test_the_present_session_is_marked_renamed_here_and_not_deleted(
    tmp_path: Path, saved: Saved
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, resume="bbb")
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot)
        assert "● 2026" in screen_text(app)
        await pilot.press("down", "d")
        await settled(pilot, lambda: said(app, "is open here"))
        assert isinstance(app.screen, SessionsScreen)
        await pilot.press("r")
        await settled(pilot, lambda: isinstance(app.screen, RenameScreen))
        app.screen.query_one("Input").value = "Here"
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].titles == ["Here"])
        assert "Here" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert "Here" in screen_text(app).splitlines()[0]


async def test_no_sessions(tmp_path: Path) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot, rows=0)
        await settled(pilot, lambda: "There are no sessions yet" in screen_text(app))
        await pilot.press("enter", "d", "r", "down", "pagedown", "G")
        assert isinstance(app.screen, SessionsScreen)


async def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sessions").write_text("no folder")
    app = chat_app(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot, rows=0)
        await settled(pilot, lambda: "cannot be read: Not a directory" in screen_text(app))


async def test_without_an_index_the_sessions_are_read(tmp_path: Path, saved: Saved) -> None:
    (saved.data / journal_search.NAME).mkdir()
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        await search(pilot, "cosine")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        await settled(pilot, lambda: "no search index" in screen_text(app))


async def test_thousands_of_sessions_are_drawn_as_they_are_seen(tmp_path: Path) -> None:
    sessions = tmp_path / "data" / "sessions"
    for number in range(2000):
        folder = sessions / f"s{number}"
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_bytes(b"\n")
        (folder / "meta.json").write_text(
            f'{{"title":"session {number}","created":"2026-01-01T00:00:00","updated":"2026-01-01T00:00:00","turns":1,'
            '"model":"m","sandbox":"local","demo":false,"total_cost_usd":0.5}'
        )
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot, rows=2000)
        drawn = 0
        render = table.render_line

        def count(y: int) -> Any:
            nonlocal drawn
            drawn += 1
            return render(y)

        table.render_line = count  # type: ignore[method-assign]
        await pilot.press("G")
        await settled(pilot, lambda: table.cursor == 1999)
        await pilot.press("up", "up", "pageup")
        assert "2,000 sessions" in screen_text(app)
        assert 0 < drawn < 600


async def test_sizes(tmp_path: Path, saved: Saved) -> None:
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        for size in ((20, 6), (1, 1), (2, 3), (200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "up")
        await search(pilot, "cosine")
        await settled(pilot, lambda: ids(table) == ["aaa"])
        await pilot.resize_terminal(8, 8)
        await pilot.press("down")


# -- the title -------------------------------------------------------------------------------------------------


async def test_rename_as_a_command(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"first prompt", "enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].finish()
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press(*"/rename My own title", "enter")
        await settled(pilot, lambda: "My own title" in screen_text(app).splitlines()[0])
        assert made[0].titles == ["My own title"]
        await pilot.press(*"/rename", "enter")
        await settled(pilot, lambda: isinstance(app.screen, RenameScreen))
        assert app.screen.query_one("Input").value == "My own title"
        app.screen.query_one("Input").value = ""
        await pilot.press("enter")
        await settled(pilot, lambda: "first prompt" in screen_text(app).splitlines()[0])
        assert made[0].titles[-1] == ""
        assert app.focused is app.chat_screen.composer
        await pilot.press(*"/sessions", "enter")
        await settled(pilot, lambda: isinstance(app.screen, SessionsScreen))


async def test_words_that_come_at_once_are_searched_for(tmp_path: Path, saved: Saved) -> None:
    """The stroke and the words after it in one piece, as a quick hand or a slow machine gives them."""
    from textual import events

    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        table = await opened(pilot)
        for character in "/a cosine":
            key = {"/": "slash", " ": "space"}.get(character, character)
            app.post_message(events.Key(key, character))
        await settled(pilot, lambda: ids(table) == ["aaa"])


async def test_what_waits_elsewhere_goes_with_its_session(tmp_path: Path, saved: Saved) -> None:
    file = WaitingFile(tmp_path / "data" / "waiting")
    file.save(Left("ccc", (Prompt("later"),)))
    assert file.settle()
    file.close(keep=True)
    app = chat_app(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: "--resume ccc opens that session" in screen_text(app))
        table = await opened(pilot)
        await pilot.press("d")
        await settled(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "its waiting prompts" in screen_text(app)
        await pilot.press("y")
        await settled(pilot, lambda: ids(table) == ["bbb", "aaa"])
        assert list((tmp_path / "data" / "waiting").iterdir()) == []
        await pilot.press("escape")
        await settled(pilot, lambda: isinstance(app.screen, ChatScreen))
        await settled(pilot, lambda: "--resume ccc" not in screen_text(app))
