"""What came of tool calls, on the chat's screen: pages, pager, editor, copies, tables; hostile text and much output."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.screen import (
    HOSTILE,
    WIDE,
    PlayedEngine,
    chat_app,
    screen_text,
    settled,
    tool_finished,
    tool_started,
)

from sandbox_chat import events as ev
from sandbox_chat.ui import browser, desktop, outside
from sandbox_chat.ui.screens.page import PageScreen
from sandbox_chat.ui.widgets.text_view import TextView
from sandbox_chat.ui.widgets.tool_list import ToolList

Compare = Callable[..., bool]
TABLE = ev.TableContent(
    ("", "name", "amount"),
    tuple((str(n), f"name {n} 名字", f"{n * 1234.5:.2f}") for n in range(20)),
    1000,
    2,
    result=True,
)
TRACEBACK = """\
---------------------------------------------------------------------------
ZeroDivisionError                         Traceback (most recent call last)
Cell In[3], line 4
      2 def f(x):
      3     return math.sqrt(x)
----> 4 y = f(4) / 0
      5 print(y)

ZeroDivisionError: division by zero"""
FAILING = "import math\ndef f(x):\n    return math.sqrt(x)\ny = f(4) / 0\nprint(y)\n"


def page_of(folder: Path) -> ev.FileContent:
    path = folder / "page.html"
    path.write_text('<script src="https://cdn.example.org/x.js"></script><b>plot</b>')
    return ev.FileContent(str(path), "text/html", 1_234_567, "plotly figure")


def failed(tool_id: str = "u1") -> ev.ToolFinished:
    text = f"[success] False\n[error]\nZeroDivisionError: division by zero\n[traceback]\n{TRACEBACK}"
    return tool_finished(tool_id, ev.TextContent(text), is_error=True)


async def begun(pilot: Any, made: list[PlayedEngine], *events: ev.Event) -> None:
    await settled(pilot, lambda: pilot.app.chat.state.phase == "idle")
    made[0].send("go")
    made[0].emit(*events)
    last = events[-1].seq or made[0].seq
    await settled(pilot, lambda: pilot.app.chat_screen.tool_pane.call is not None and last)
    await pilot.pause(0.1)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Programs that were started instead of being started."""
    commands: list[list[str]] = []
    monkeypatch.setattr(desktop, "opener", lambda: ["opener"])
    monkeypatch.setattr(outside, "opener", lambda: ["opener"])
    monkeypatch.setattr(outside, "spawn", lambda command: commands.append(command) or "")
    return commands


@pytest.mark.parametrize(("key", "online"), [("enter", False), ("o", False), ("n", True)])
async def test_a_page_is_opened_in_its_frame_after_a_question(
    tmp_path: Path, opened: list[list[str]], monkeypatch: pytest.MonkeyPatch, key: str, online: bool
) -> None:
    monkeypatch.setattr(browser, "scratch_folder", lambda: tmp_path)
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        page = page_of(tmp_path)
        await begun(pilot, made, tool_started(), tool_finished("u1", page))
        app.chat_screen.tool_pane.query_one(ToolList).focus()
        await pilot.press("o")
        await settled(pilot, lambda: isinstance(app.screen, PageScreen))
        await settled(pilot, lambda: "cdn.example.org" in screen_text(app))
        shown = screen_text(app)
        assert "plotly figure · 1.2 MB" in shown
        assert page.path in shown.replace("\n", "") or Path(page.path).name in shown
        assert opened == []
        await pilot.press(key)
        await settled(pilot, lambda: opened)
        [[program, path]] = opened
        assert program == "opener"
        text = Path(path).read_text()
        assert 'sandbox="allow-scripts"' in text
        assert ("https:" in text.partition("srcdoc")[0]) is online
        assert not isinstance(app.screen, PageScreen)


async def test_text_and_pictures_of_a_call_are_saved(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, downloads_dir=tmp_path / "down")
    shown = [ev.ImageContent(str(tmp_path / f"{name}.png"), "image/png", 1, 1) for name in "ab"]
    for part in shown:
        Path(part.path).write_bytes(part.path.encode())
    async with app.run_test(size=WIDE) as pilot:
        await begun(pilot, made, tool_started(), tool_finished("u1", ev.TextContent("short")))
        app.chat_screen.tool_pane.query_one(ToolList).focus()
        await pilot.press("s")
        saved = tmp_path / "down" / "output.txt"
        await settled(pilot, lambda: saved.exists() and saved.read_text() == "short")
        made[0].emit(tool_started("u2"), tool_finished("u2", *shown))
        await settled(pilot, lambda: app.chat_screen.tool_pane.selected == "u2")
        await pilot.press("s")
        await settled(pilot, lambda: {path.name for path in saved.parent.iterdir()} >= {"a.png", "b.png"})


async def test_a_page_is_left_alone_or_saved_under_its_name(tmp_path: Path, opened: list[list[str]]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, downloads_dir=tmp_path / "down")
    async with app.run_test(size=WIDE) as pilot:
        await begun(pilot, made, tool_started(), tool_finished("u1", page_of(tmp_path)))
        app.chat_screen.tool_pane.query_one(ToolList).focus()
        await pilot.press("o")
        await settled(pilot, lambda: isinstance(app.screen, PageScreen))
        await pilot.press("escape")
        await settled(pilot, lambda: not isinstance(app.screen, PageScreen))
        assert opened == []
        await pilot.press("s")
        await settled(pilot, lambda: (tmp_path / "down" / "plotly-figure.html").exists())
        app.chat_screen.transcript.focus()
        app.chat_screen.transcript.select_tool("u1")
        await pilot.press("o")
        await settled(pilot, lambda: isinstance(app.screen, PageScreen))


async def test_output_in_the_pager_and_code_in_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged: list[str] = []
    edited: list[tuple[str, str]] = []

    async def pager(app: Any, text: str) -> None:
        paged.append(text)

    async def file_pager(app: Any, path: Path) -> None:
        paged.append(str(path))

    async def editor(app: Any, text: str, suffix: str) -> str:
        edited.append((text, suffix))
        return text + "# more\x1b[2J"

    monkeypatch.setattr(outside, "open_in_pager", pager)
    monkeypatch.setattr(outside, "open_file_in_pager", file_pager)
    monkeypatch.setattr(outside, "open_in_editor", editor)
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        whole = ev.FileContent("/s/output/u2.txt", "text/plain", 10_000_000, "whole output")
        await begun(
            pilot, made,
            tool_started("u1", code="1"), tool_finished("u1", ev.TextContent("[success] True\n[stdout]\nshort"), TABLE),
            tool_started("u2", code="print(2)"), tool_finished("u2", ev.TextContent("[success] True\n[stdout]\nx"), whole),
        )  # fmt: skip
        pane = app.chat_screen.tool_pane
        pane.query_one(ToolList).focus()
        await pilot.press("p")
        await settled(pilot, lambda: paged)
        assert paged == ["/s/output/u2.txt"]
        await pilot.press("e")
        await settled(pilot, lambda: edited)
        assert edited == [("print(2)", ".py")]
        await settled(pilot, lambda: app.chat_screen.composer.text)
        assert app.chat_screen.composer.text == "Run this:\n\n```python\nprint(2)# more␛[2J\n```"
        assert made[0].prompts == ["go"]  # never sent by itself
        pane.query_one(ToolList).focus()
        await pilot.press("up", "p")
        await settled(pilot, lambda: len(paged) == 2)
        assert "0\tname 0 名字\t0.00" in paged[1]


async def test_arguments_and_result_are_copied(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await begun(
            pilot,
            made,
            tool_started("u1", code="1+1", timeout=3),
            tool_finished("u1", ev.TextContent("2"), TABLE),
        )
        app.chat_screen.tool_pane.query_one(ToolList).focus()
        await pilot.press("a")
        assert app.clipboard == '{\n  "code": "1+1",\n  "timeout": 3\n}'
        await pilot.press("y")
        assert app.clipboard.startswith("2\n\n\tname\tamount\n0\tname 0 名字\t0.00\n")


async def test_a_table_has_a_view_of_its_own_that_follows_the_width(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await begun(pilot, made, tool_started(), tool_finished("u1", ev.TextContent("x"), TABLE))
        pane = app.chat_screen.tool_pane
        pane.show_view("table")
        await pilot.pause()
        text = pane.query_one(TextView)
        assert "19 │ name 19 名字 │ 23455.50" in text.text
        await pilot.press("f7", "f7", "f7", "f7", "f7")
        await settled(pilot, lambda: "…" in text.text.splitlines()[0] or text.size.width >= 30)
        await pilot.resize_terminal(60, 30)
        await pilot.press("f2")
        await pilot.pause(0.2)
        assert all(row is None or len(row.row) for row in [text._folded.row(0)])
        made[0].emit(tool_started("u2", code="1"))
        await settled(pilot, lambda: pane.selected == "u2")
        assert pane.view != "table"


async def test_long_code_is_coloured_by_a_thread_and_keeps_its_colours(tmp_path: Path) -> None:  # case T2
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    code = "\n".join(f"value_{n} = 'text {n}'" for n in range(400))
    async with app.run_test(size=WIDE) as pilot:
        await begun(pilot, made, tool_started("u1", code=code))
        pane = app.chat_screen.tool_pane
        text = pane.query_one(TextView)

        def coloured() -> bool:
            return any(run.names for run in text._folded.lines[0])

        await settled(pilot, coloured)
        assert text.text == code
        for key in ("f9", "f6", "f6", "f6", "f9", "f6"):
            await pilot.press(key)
            await pilot.pause()
            assert text.text == code
            assert coloured()
            assert "value_0 = 'text 0'" in screen_text(app)
        styles = {segment.style for segment in text.render_line(0) if segment.text.strip()}
        assert len(styles) > 2


async def test_a_fence_of_code_stays_while_the_theme_changes(tmp_path: Path) -> None:  # case T2
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    draft = '{"code": "' + "\\n".join(f"line_{n} = {n}" for n in range(20)) + '"}'
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].send("go")
        for at in range(0, len(draft), 5):
            made[0].emit(ev.ToolInputDelta(tool_use_id="u1", name="run_code", text=draft[at : at + 5]))
            if at % 60 == 0:
                await pilot.press("f9" if at % 120 else "f6")
        await settled(pilot, lambda: "line_19 = 19" in app.chat_screen.tool_pane.query_one(TextView).text)
        await settled(pilot, lambda: screen_text(app).count("line_19 = 19") == 2)


async def test_a_long_draft_grows_in_the_pane(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    code = "\n".join(f"value_{n} = {n}" for n in range(1200))
    draft = json.dumps({"code": code})
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        made[0].send("go")
        text = app.chat_screen.tool_pane.query_one(TextView)
        for at in range(0, len(draft), 1500):
            made[0].emit(ev.ToolInputDelta(tool_use_id="u1", name="run_code", text=draft[at : at + 1500]))
            await pilot.pause(0.01)
        await settled(pilot, lambda: text.text == code)
        assert "1200 value_1199 = 1199" in screen_text(app)  # the end is in view
        made[0].emit(ev.Retry(reason="busy", attempt=1, delay_ms=0), tool_started("u2", code="1"))
        await settled(pilot, lambda: text.text == "1")


@pytest.mark.parametrize("view", ["code", "output", "result", "table", "raw"])
async def test_hostile_text_stands_to_the_letter_in_every_view(tmp_path: Path, view: str) -> None:  # case T3
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=(200, 60)) as pilot:
        text = "\n".join(HOSTILE)
        table = ev.TableContent(HOSTILE, (HOSTILE,), 1, len(HOSTILE))
        page = ev.FileContent(f"/{HOSTILE[3]}", "text/html", 1, HOSTILE[3])
        await begun(
            pilot, made,
            tool_started("u1", name=HOSTILE[0], code=text),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text=text + "\n"),
            ev.ToolOutput(tool_use_id="u1", stream="stderr", text=text),
            tool_finished("u1", ev.TextContent(text), table, page, is_error=True),
        )  # fmt: skip
        pane = app.chat_screen.tool_pane
        pane.show_view(view)
        await pilot.pause(0.1)
        shown = pane.query_one(TextView).text
        if view != "table":
            for hostile in HOSTILE:
                wanted = hostile.replace("\\", "\\\\") if view == "raw" else hostile
                assert wanted in shown
        else:
            assert HOSTILE[3] in shown
        await pilot.click(TextView, offset=(3, 1))
        assert app.is_running
        pane.query_one(ToolList).focus()
        await pilot.press("o")
        await settled(pilot, lambda: isinstance(app.screen, PageScreen))
        assert HOSTILE[3] in screen_text(app)


async def test_colours_and_progress_of_output(tmp_path: Path) -> None:  # case T5
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await begun(
            pilot, made, tool_started(),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text="ok\n10%", styles=((0, 2, "bold green"),)),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text="20%", rewind=3),
            ev.ToolOutput(tool_use_id="u1", stream="stdout", text="100%", rewind=3),
        )  # fmt: skip
        pane = app.chat_screen.tool_pane
        pane.show_view("output")
        text = pane.query_one(TextView)
        await settled(pilot, lambda: text.text == "ok\n100%")
        assert text._folded.lines[0][0].names == ("ansi:bold green",)
        shown = screen_text(app)
        assert "10%" not in shown.replace("100%", "")
        assert shown.count("100%") == 2


async def test_much_output_is_bounded_everywhere(tmp_path: Path) -> None:  # case T6
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await begun(pilot, made, tool_started())
        pane = app.chat_screen.tool_pane
        pane.show_view("output")
        for number in range(200):
            text = "".join(f"line {number * 500 + n:06}\n" + "x" * 87 + "\n" for n in range(500))
            made[0].emit(ev.ToolOutput(tool_use_id="u1", stream="stdout", text=text))
            if number % 20 == 0:
                await pilot.press("a")
        await settled(pilot, lambda: "line 099999" in pane.query_one(TextView).text, 30)
        assert app.chat_screen.composer.text == "a" * 10  # keys came through
        assert pane.query_one(TextView).line_count < 2000
        call, card = pane.call, app.chat_screen.transcript.transcript.cards["u1"]
        assert call is not None
        assert len(call.output.text()) < 201_000
        assert len(card.output_now.text()) <= 24_000
        made[0].emit(
            tool_finished("u1", ev.FileContent("/s/u1.txt", "text/plain", 10_000_000, "whole output"))
        )
        await settled(pilot, lambda: "whole output · 10 MB · p page  s save" in screen_text(app))
        assert "line 000000" in pane.query_one(TextView).text
        assert "characters cut" in pane.query_one(TextView).text


# -- snapshots ---------------------------------------------------------------------------------------------


def played(
    made: list[PlayedEngine], *events: ev.Event, keys: tuple[str, ...] = ()
) -> Callable[[Any], Awaitable[None]]:
    async def before(pilot: Any) -> None:
        await settled(pilot, lambda: pilot.app.chat.state.phase == "idle")
        pilot.app.chat_screen.composer.insert_text("compare the two and plot them")
        await pilot.press("enter")
        await settled(pilot, lambda: made[0].prompts)
        made[0].emit(*events)
        await pilot.pause(0.4)
        if keys:
            await pilot.press(*keys)
            await pilot.pause(0.4)

    return before


def test_snapshot_of_parallel_tools(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    events = (
        ev.Text(text="Both at once."),
        tool_started("u1", code="import pandas as pd\ndf = pd.read_csv('/tmp/people.csv')\ndf"),
        tool_started("u2", code="import time\nfor n in range(100):\n    time.sleep(1)\n    print(n)"),
        tool_started("u3", "mcp__sandbox__read_file", path="/tmp/notes.txt"),
        ev.ToolOutput(tool_use_id="u2", stream="stdout", text="0\n1\n2\n3\n", styles=((2, 3, "bold green"),)),
        ev.ToolOutput(tool_use_id="u2", stream="stderr", text="4 of 100"),
        tool_finished("u1", ev.TextContent("[success] True\n[result]\n..."), TABLE),
        tool_finished("u3", ev.TextContent("notes")),
        ev.ToolInputDelta(
            tool_use_id="u4", name="mcp__sandbox__run_code", text='{"code": "fig = px.line(df)\\nfig.upd'
        ),
    )
    app = chat_app(tmp_path, made, demo=False, model="claude-sonnet-5")
    assert snap_compare(app, terminal_size=WIDE, run_before=played(made, *events))


@pytest.mark.parametrize("policy", ["never", "failed"])
def test_snapshot_of_a_failed_tool(tmp_path: Path, snap_compare: Compare, policy: str) -> None:
    made: list[PlayedEngine] = []
    events = (
        tool_started("u1", code=FAILING),
        failed(),
        ev.Text(text="Division by zero: I shall try again."),
    )
    app = chat_app(tmp_path, made, demo=False, model="claude-sonnet-5", expand_tools=policy)
    assert snap_compare(app, terminal_size=WIDE, run_before=played(made, *events))


def test_snapshot_of_the_question_before_a_page(tmp_path: Path, snap_compare: Compare) -> None:
    made: list[PlayedEngine] = []
    page = ev.FileContent("/data/sessions/0123/pictures/ab.html", "text/html", 4_823_050, "plotly figure")
    events = (
        tool_started("u1", code="fig.show()"),
        tool_finished("u1", ev.TextContent("[success] True"), page),
    )
    app = chat_app(tmp_path, made, demo=False, model="claude-sonnet-5")
    assert snap_compare(
        app, terminal_size=(100, 30), run_before=played(made, *events, keys=("f6", "f6", "o"))
    )
