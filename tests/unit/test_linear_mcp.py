"""MCP servers in the line-by-line chat: ``/mcp``, the calls of their tools, the question about them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from support.screen import tool_finished, tool_started
from support.servers import asked_for, server, some_servers

from sandbox_chat import events as ev
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.linear_commands import unescaped
from sandbox_chat.settings import Settings
from sandbox_chat.words import use


class Ordered:
    """An engine that notes what it was told to do."""

    def __init__(self) -> None:
        self.orders: list[tuple[Any, ...]] = []

    def restart_server(self, name: str) -> None:
        self.orders.append(("restart", name))

    def switch_server(self, name: str, on: bool) -> None:
        self.orders.append(("switch", name, on))

    def answer(self, approval_id: str, choice: str, by: str) -> None:
        self.orders.append((approval_id, choice, by))


def chat_of(tmp_path: Path, typed: str = "") -> tuple[Chat, Ordered, io.StringIO]:
    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path), Lines(io.StringIO(typed), out))
    engine = Ordered()
    chat.engine = engine  # type: ignore[assignment] # what the command needs of one
    return chat, engine, out


def said(out: io.StringIO) -> str:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def test_the_servers_are_told_and_each_with_its_tools(tmp_path: Path) -> None:
    chat, _, out = chat_of(tmp_path)
    assert chat._command("/mcp")
    assert "No MCP server is on in this session.\nSwitch some on" in said(out)
    for event in some_servers():
        chat._take(event)
    assert said(out) == ""
    assert chat._command("/mcp")
    lines = said(out).splitlines()
    assert lines[0] == "  git: ready, on this machine, 3 tools"
    assert lines[5] == "  fetch: off, in the sandbox, 3 tools"
    assert lines[6].startswith("/mcp NAME reads its tools.")
    assert chat._command("/mcp weather")
    assert "the program uvx was not found" in said(out)
    assert chat._command("/mcp git")
    assert "git_log  called git-log by the server\n  Shows the commit logs.\n  Newest first" in said(out)
    assert chat._command("/mcp \x1b[2Jx")
    assert said(out) == "There is no MCP server ␛[2Jx in this session.\n"


def test_a_server_is_restarted_and_switched(tmp_path: Path) -> None:
    chat, engine, out = chat_of(tmp_path)
    for event in (server(), server("fetch", "off"), server("restart")):
        chat._take(event)
    for command in (
        "/mcp restart git",
        "/mcp off git",
        "/mcp on fetch",
        "/mcp restart fetch",
        "/mcp off nothing",
        "/mcp restart",
    ):
        assert chat._command(command)
    assert engine.orders == [("restart", "git"), ("switch", "git", False), ("switch", "fetch", True)]
    text = said(out)
    for words in (
        "Restarting git.",
        "Switching git off.",
        "Switching fetch on.",
        "fetch is off",
        "no MCP server nothing",
        "restart: ready",
    ):
        assert words in text


def test_servers_of_an_earlier_run_are_not_told(tmp_path: Path) -> None:
    chat, _, out = chat_of(tmp_path)
    chat.replayed(server("old"))
    chat._take(ev.SessionStarted(session_id="s", model="m", sandbox="local", demo=False))
    assert chat._command("/mcp")
    assert "No MCP server is on" in said(out)
    assert unescaped("//mcp git") == "/mcp git"


def test_a_call_its_arguments_and_its_result_are_read_out(tmp_path: Path) -> None:
    chat, _, out = chat_of(tmp_path)
    given = {"repo_path": "/srv/project", "max_count": 5}
    chat._take(tool_started("u1", "mcp__git__git_log", **given))
    chat._take(tool_finished("u1", ev.TextContent("two\ncommits", ())))
    text = said(out)
    assert "tool git · git_log started: repo_path: /srv/project · max_count: 5\n" in text
    assert "  two\n  commits\ntool git · git_log ok, 0.42 s\n" in text
    assert chat._command("/code")
    assert said(out) == '  {\n    "repo_path": "/srv/project",\n    "max_count": 5\n  }\n'
    chat._take(tool_started("u2", "mcp__git__git_log", **given))
    chat._take(tool_finished("u2", ev.TextContent("fatal: no repository\nhint: init one", ()), is_error=True))
    assert "tool git · git_log failed, 0.42 s: fatal: no repository\n" in said(out)


def test_the_question_is_answered_by_its_number(tmp_path: Path) -> None:
    detail = '{\n  "repo_path": "\x1b[2J[bold]"\n}'
    chat, engine, out = chat_of(tmp_path, "yes\n2\n")
    chat._take(asked_for(detail=detail))
    text = said(out)
    assert "Run git_log of the server git?" in text and '"repo_path": "␛[2J[bold]"' in text
    assert (
        "1 run it once" in text and "4 do not run it" in text and "Please type a number from 1 to 4." in text
    )
    assert engine.orders == [("m1", "session", "user")]
    chat, engine, _ = chat_of(tmp_path, "")
    chat._take(asked_for())
    assert engine.orders == [("m1", "no", "default")]  # nobody is there any more


def test_the_question_is_asked_in_chinese(tmp_path: Path) -> None:
    detail = '{\n  "text": "run it once"\n}\nIt runs on this computer, with your rights.'
    use("zh")
    try:
        chat, engine, out = chat_of(tmp_path, "2\n")
        chat._take(asked_for(detail=detail))
        chat._take(ev.ApprovalAnswered(approval_id="m1", choice="session", by="user"))
        assert chat._command("/approvals")
    finally:
        use("en")
    text = said(out)
    assert "运行服务器 git 的 git_log？" in text and "它在本机运行，拥有你的权限。" in text
    assert "1 运行一次" in text and '"text": "run it once"' in text and "4 不运行" in text
    assert text.count("本会话内始终运行此工具") == 3  # a choice, the answer, what /approvals tells
    assert "always run" not in text and engine.orders == [("m1", "session", "user")]
