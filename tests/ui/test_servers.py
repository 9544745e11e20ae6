"""The MCP servers on the screen: what is told of them, what can be done with them, and what is asked about their tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.hostile import TEXTS
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
)
from support.servers import asked_for, server, some_servers

from sandbox_chat import events as ev
from sandbox_chat.text import from_arguments, from_model
from sandbox_chat.ui.screens.servers import ServersScreen
from sandbox_chat.ui.widgets.ask import GRACE, AskBox
from sandbox_chat.ui.widgets.tool_pane import ToolPane


def said(app: Any, words: str) -> bool:
    """Whether a notification with these words was shown."""
    return any(words in note.message for note in app._notifications)


async def opened(pilot: Any, made: list[PlayedEngine], *servers: ev.ServerChanged) -> ServersScreen:
    """The dialog, opened by its command."""
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    made[0].emit(*servers)
    await settled(pilot, lambda: len(app.chat.state.servers) == len(servers))
    app.chat_screen.composer.write_command("/mcp")
    await pilot.press("escape", "enter")
    await settled(pilot, lambda: isinstance(app.screen, ServersScreen))
    await pilot.pause()
    screen: ServersScreen = app.screen
    return screen


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_each_server_is_told_with_state_tools_and_error(tmp_path: Path, size: tuple[int, int]) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, made, *some_servers())
        text = screen_text(app)
        for words in ("● git", "○ time", "◌ postgres", "✗ weather", "! memory", "⊘ fetch"):
            assert words in text
        for words in (
            "ready",
            "not started",
            "starting",
            "failed",
            "lost",
            "off",
            "3 tools · on this machine",
        ):
            assert words in text
        assert "1 tool · on this machine" in text and "3 tools · in the sandbox" in text
        assert "git_log  called git-log by the server" in text
        assert "Newest first" in screen.detail.text
        for _ in range(3):
            await pilot.press("down")
        assert screen.servers.chosen is app.chat.state.servers["weather"]
        await settled(pilot, lambda: "the program uvx was not found" in screen_text(app))
        assert "log: /home/user" in " ".join(screen.detail.text.split())
        await pilot.press("k", "escape")
        await settled(pilot, lambda: app.screen is app.chat_screen)


async def test_it_follows_what_happens_while_it_is_open(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, made)
        assert "No MCP server is on in this session." in screen_text(app)
        assert "sandbox-chat --mcp time" in screen_text(app) and "sandbox-chat mcp add" in screen_text(app)
        await pilot.press("r", "s", "l", "y", "down", "pagedown")  # there is nothing to do anything with
        assert made[0].server_restarts == [] and made[0].server_switches == []
        made[0].emit(server("git", "starting", tools=()))
        await settled(pilot, lambda: "◌ git" in screen_text(app))
        assert "tools not known yet" in screen_text(app)
        made[0].emit(server("git", "ready"))
        await settled(pilot, lambda: "● git" in screen_text(app) and "git_status" in screen_text(app))
        made[0].emit(server("git", "failed", text="[bold]it broke[/bold]"))
        await settled(pilot, lambda: "[bold]it broke[/bold]" in screen_text(app))
        assert screen.detail.server is app.chat.state.servers["git"]


async def test_a_server_is_restarted_and_switched_off_and_on_by_key_and_mouse(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot, made, server(), server("fetch", "off"))
        await pilot.press("r", "s")
        assert made[0].server_restarts == ["git"] and made[0].server_switches == [("git", False)]
        await pilot.press("j", "r")
        assert made[0].server_restarts == ["git"]  # one that is off is not restarted
        await settled(pilot, lambda: said(app, "fetch is off"))
        await pilot.press("s")
        assert made[0].server_switches[1:] == [("fetch", True)]
        rows = screen_text(app).splitlines()
        y = next(number for number, row in enumerate(rows) if "● git" in row)
        await pilot.click(offset=(rows[y].index("git"), y))
        await settled(pilot, lambda: "switch off" in screen_text(app))
        rows = screen_text(app).splitlines()
        y = next(number for number, row in enumerate(rows) if "switch off" in row)
        await pilot.click(offset=(rows[y].index("switch off"), y))
        assert made[0].server_switches[2:] == [("git", False)]
        await pilot.click(offset=(rows[y].index("r restart"), y))
        assert made[0].server_restarts == ["git", "git"]


async def test_the_log_is_paged_and_what_is_known_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged: list[Path] = []

    async def page(app: Any, path: Path) -> None:
        del app
        paged.append(path)

    monkeypatch.setattr("sandbox_chat.ui.outside.open_file_in_pager", page)
    log = tmp_path / "git.log"
    log.write_text("what it said\n")
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await opened(
            pilot, made, server(log=str(log)), server("fetch", log=""), server("gone", log="/nowhere/x")
        )
        await pilot.press("l")
        await settled(pilot, lambda: paged == [log])
        await pilot.press("j", "l")
        await settled(pilot, lambda: said(app, "fetch has no log"))
        await pilot.press("j", "l")
        await settled(pilot, lambda: said(app, "gone has no log"))
        assert paged == [log]
        await pilot.press("k", "k", "y")
        for words in ("git: ready, on this machine, 3 tools", str(log), "git-log", "  Newest first"):
            assert words in app.clipboard


async def test_nothing_is_ordered_of_a_session_that_is_over(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await opened(pilot, made, server())
        made[0].emit(ev.SessionFinished(at=START))
        await settled(pilot, lambda: app.chat.state.finished)
        await pilot.press("r", "s")
        await settled(pilot, lambda: said(app, "The session has ended."))
        assert made[0].server_restarts == [] and made[0].server_switches == []


async def test_many_servers_and_tools_can_all_be_reached(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    tools = tuple(ev.ServerTool(f"tool_{n}", f"tool_{n}", "does something " * 8) for n in range(500))
    async with app.run_test(size=NARROW) as pilot:
        screen = await opened(pilot, made, *(server(f"server-{n}", tools=tools) for n in range(64)))
        for _ in range(63):
            await pilot.press("down")
        await settled(pilot, lambda: "server-63" in screen_text(app))
        assert screen.servers.chosen is app.chat.state.servers["server-63"]
        await pilot.press("down")
        assert screen.servers.place == 63
        detail = screen.detail
        for _ in range(3):
            await pilot.press("pagedown")
        assert detail.scroll_offset.y >= 3 * (detail.size.height - 2)
        before = detail.scroll_offset.y
        made[0].emit(server("server-63", "lost", tools=tools))
        await settled(pilot, lambda: "! server-63" in screen_text(app))
        assert detail.scroll_offset.y == before  # only its state has changed
        detail.scroll_end(animate=False)
        await settled(pilot, lambda: "tool_499" in screen_text(app))
        await pilot.resize_terminal(24, 10)
        await pilot.pause()
        assert "server-63" in screen_text(app)


async def test_a_server_that_failed_is_told_in_the_title_and_nothing_when_all_is_well(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")

        def title() -> str:
            return str(screen_text(app).splitlines()[0])

        before = title()
        made[0].emit(server(), server("time", "idle"), server("x", "off"), server("y", "starting"))
        await settled(pilot, lambda: len(app.chat.state.servers) == 4)
        assert title() == before
        made[0].emit(server("git", "lost"))
        await settled(pilot, lambda: "! git lost" in title())
        made[0].emit(server("time", "failed"))
        await settled(pilot, lambda: "✗ 2 MCP servers are down" in title())
        made[0].emit(server("git", "ready"))
        await settled(pilot, lambda: "✗ time failed" in title())
        assert "sandbox-chat" in title() and "demo" in title()
        await pilot.click(offset=(title().index("time failed"), 0))
        await settled(pilot, lambda: isinstance(app.screen, ServersScreen))
        await pilot.press("q")
        made[0].emit(server("time", "off"))
        await settled(pilot, lambda: title() == before)


async def test_it_speaks_chinese(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made, language="zh")
    async with app.run_test(size=NARROW) as pilot:
        await opened(pilot, made, *some_servers())
        text = screen_text(app)
        for words in ("MCP 服务器", "就绪", "未启动", "已断开", "3 个工具 · 在本机", "r 重启"):
            assert words in text


async def test_the_palette_offers_it(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await pilot.press("ctrl+p")
        await pilot.press(*"Show the MCP")
        await pilot.pause(0.5)
        await pilot.press("enter", "enter")
        await settled(pilot, lambda: isinstance(app.screen, ServersScreen))


# -- the question --------------------------------------------------------------------------------------------


async def asking(pilot: Any, made: list[PlayedEngine], *questions: ev.ApprovalRequested) -> AskBox:
    """A turn in which calls ask."""
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle")
    app.chat_screen.composer.insert_text("what was done?")
    await pilot.press("enter")
    await settled(pilot, lambda: made[0].prompts)
    for number, question in enumerate(questions, 1):
        made[0].emit(
            tool_started(f"u{number}", "mcp__git__git_log", repo_path="/srv/project", max_count=5), question
        )
    box: AskBox = app.chat_screen.query_one(AskBox)
    await settled(pilot, lambda: box.display)
    return box


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_question_shows_long_arguments_to_the_letter(tmp_path: Path, size: tuple[int, int]) -> None:
    query = "".join(f"line {number} of the query; " for number in range(900))
    arguments = {"query": query, "hostile": list(TEXTS), "limit": 5}
    detail = from_model(json.dumps(from_arguments(arguments), indent=2, ensure_ascii=False))
    assert len(detail) > 20_000
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=size) as pilot:
        box = await asking(pilot, made, asked_for(detail=detail))
        await settled(pilot, lambda: app.focused is box)
        seen: list[str] = []
        for _ in range(2000):
            rows = [row[2:] for row in screen_text(app).splitlines() if row.startswith("   ")]
            seen += [row for row in rows if row not in seen[-60:]]
            before = box._top
            await pilot.press("pagedown")
            if box._top == before:
                break
        else:
            raise AssertionError("it does not come to an end")
        shown = "".join("".join(seen).split())
        for words in ("line0ofthequery;", "line450ofthequery;", "line899ofthequery;", '"limit":5'):
            assert words in shown
        for choice in (
            "o run it once",
            "s always run this tool in this session",
            "v never run this tool in this session",
            "n do not run it",
        ):
            assert choice in screen_text(app)
        await pilot.press("home")
        assert "line 0 of the query" in screen_text(app)
        await pilot.press("o")
        await settled(pilot, lambda: made[0].answers == [("m1", "once")])


async def test_several_questions_come_one_after_the_other_each_with_its_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    async with app.run_test(size=NARROW) as pilot:
        first, second = (
            asked_for("m1", "u1"),
            asked_for("m2", "u2", question="Run git_commit of the server git?"),
        )
        box = await asking(pilot, made, first, second, asked_for("m3", "u3"))
        await settled(pilot, lambda: "2 more questions" in screen_text(app))
        await settled(pilot, lambda: app.focused is box)
        now = [0.0]
        monkeypatch.setattr(box, "_clock", lambda: now[0])
        box._seen = -GRACE
        box.decide("session")
        await settled(pilot, lambda: made[0].answers == [("m1", "session")])
        await settled(pilot, lambda: "1 more question" in screen_text(app))
        assert "Run git_commit of the server git?" in screen_text(app)
        box.decide("once")
        assert made[0].answers == [("m1", "session")]  # it has not been seen for long enough
        now[0] += GRACE
        box.decide("no")
        await settled(pilot, lambda: made[0].answers[1:] == [("m2", "no")])
        made[0].emit(ev.ApprovalAnswered(at=START, approval_id="m3", choice="session", by="remembered"))
        await settled(pilot, lambda: not box.display)
        app.chat_screen.composer.write_command("/approvals")
        await pilot.press("escape", "enter")
        await settled(pilot, lambda: "git/git_log #0123456789ab" in screen_text(app))
        assert screen_text(app).count("always run this tool in this session") == 1
        await pilot.press("d")
        await settled(pilot, lambda: made[0].forgotten == ["m1"])


# -- calls ---------------------------------------------------------------------------------------------------


async def test_a_call_is_shown_with_its_server_arguments_and_result(tmp_path: Path) -> None:
    made: list[PlayedEngine] = []
    app = chat_app(tmp_path, made)
    table = ev.TableContent(("sha", "author"), (("a1b2", "Ann"), ("c3d4", "Bo")), 2, 2)
    file = ev.FileContent("/tmp/blob.bin", "application/pdf", 7, "report.pdf")
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        app.chat.submit("what was done?")
        given = {"repo_path": "/srv/project", "max_count": 5, "code": "HEAD~1"}
        made[0].emit(tool_started("u1", "mcp__git__git_log", **given))
        await settled(pilot, lambda: "running git · git_log" in screen_text(app))
        made[0].emit(tool_finished("u1", ev.TextContent("two commits", ()), table, file))
        await settled(pilot, lambda: "✓ git · git_log" in screen_text(app))
        text = screen_text(app)
        assert "repo_path: /srv/project · max_count: 5 · code: HEAD~1" in text
        assert "arguments" in text and '"repo_path": "/srv/project",' in text and '"code": "HEAD~1"' in text
        assert "a1b2" in text and "report.pdf" in text
        assert "mcp__git" not in text
        card = app.chat_screen.transcript.transcript.cards["u1"]
        assert "rerun" not in card.commands and "edit" not in card.commands
        pane = app.chat_screen.query_one(ToolPane)
        pane.show_view("result")
        await settled(pilot, lambda: "two commits" in screen_text(app))
        pane.show_view("table")
        await settled(pilot, lambda: "c3d4" in screen_text(app))
        made[0].emit(tool_started("u2", "mcp__git__git_show", repo_path="/srv/project"))
        made[0].emit(
            tool_finished("u2", ev.TextContent("fatal: bad revision\nrun git log first", ()), is_error=True)
        )
        await settled(pilot, lambda: "fatal: bad revision" in screen_text(app))
