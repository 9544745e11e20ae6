"""MCP servers as events tell of them, for tests of what shows them."""

from __future__ import annotations

from typing import Any

from support.screen import START

from sandbox_chat import events as ev

GIT_TOOLS = (
    ev.ServerTool("git_status", "git_status", "Shows the working tree status"),
    ev.ServerTool("git_log", "git-log", "Shows the commit logs.\nNewest first, ten by default."),
    ev.ServerTool("git_diff_unstaged", "git_diff_unstaged", "Shows changes in the working directory that are not yet staged"),
)  # fmt: skip


def server(name: str = "git", state: ev.ServerState = "ready", **changes: Any) -> ev.ServerChanged:
    """What is told of a server: one on this machine with three tools, unless ``changes`` say otherwise."""
    values: dict[str, Any] = {
        "at": START,
        "name": name,
        "place": "host",
        "state": state,
        "tools": GIT_TOOLS,
        "log": f"/home/user/.local/share/sandbox-chat/logs/mcp/{name}.log",
        **changes,
    }
    return ev.ServerChanged(**values)


def some_servers() -> tuple[ev.ServerChanged, ...]:
    """A server in each state."""
    return (
        server(),
        server("time", "idle", tools=GIT_TOOLS[:1]),
        server("postgres", "starting", tools=()),
        server("weather", "failed", tools=(), text="weather did not start: the program uvx was not found. Install uv, or take the server off the list."),
        server("memory", "lost", text="memory ended by itself (exit code 1)."),
        server("fetch", "off", place="sandbox", transport="http", log=""),
    )  # fmt: skip


def asked_for(
    approval_id: str = "m1", tool_use_id: str = "u1", detail: str = '{\n  "repo_path": "/srv/project"\n}', **changes: Any
) -> ev.ApprovalRequested:  # fmt: skip
    """The question about a call of ``git_log``, as the servers' host asks it."""
    values: dict[str, Any] = {
        "at": START,
        "approval_id": approval_id,
        "kind": "mcp_tool",
        "question": "Run git_log of the server git?",
        "detail": detail,
        "choices": (
            ev.Choice("once", "o", "run it once"),
            ev.Choice("session", "s", "always run this tool in this session"),
            ev.Choice("never", "v", "never run this tool in this session"),
            ev.Choice("no", "n", "do not run it"),
        ),
        "default": "no",
        "tool_use_id": tool_use_id,
        "subject": "git/git_log #0123456789ab",
        "lasting": ("session", "never"),
        **changes,
    }
    return ev.ApprovalRequested(**values)
