"""The whole chat with a real MCP server: its tools are asked about on the screen, run, refused, and shown."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.program import journal_events, run
from support.screen import WIDE, clock, screen_text, settled
from support.scripted import MessagesServer, call, serve, text, tool_results
from support.servers import asked_for

from sandbox_chat.engine import Engine
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.screens.servers import ServersScreen
from sandbox_chat.ui.widgets.ask import AskBox

pytestmark = pytest.mark.slow  # the whole program with its agent and a server, several times

PATIENCE = 120.0
TESTS = Path(__file__).parents[1]
ADD = "mcp__notes__add_note"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A file that says how the server of the notes is started."""
    path = tmp_path / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": ["-m", "support.notes_mcp", str(tmp_path / "notes.txt")],
        "env": {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
    }
    path.write_text(json.dumps({"mcpServers": {"notes": entry}}))
    return path


@pytest.fixture(autouse=True)
def no_servers_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield


def app_of(folder: Path, server: MessagesServer, config: Path, **settings: Any) -> ChatApp:
    """The application over a real engine."""
    values: dict[str, Any] = {
        "anthropic_base_url": server.url,
        "anthropic_auth_token": Secret(server.token),
        "model": "scripted-model-1",
        "request_retries": 0,
        "data_dir": folder / "data",
        "downloads_dir": folder / "downloads",
        "sandbox": "off",
        "mcp_config": config,
        "images": "half",
        "reduced_motion": True,
        "theme": "dark",
        "language": "en",
        "glyphs": "unicode",
        **settings,
    }

    def make(
        chosen: Settings, sink: Any, *, resume: str | None = None, replay: Any = None, **how: bool
    ) -> Engine:
        return Engine(chosen, sink, resume=resume, replay=replay, asks=True, tail_first=True, **how)

    return ChatApp(Settings(**values), make, clock=clock)


async def prompt(pilot: Any, words: str) -> None:
    app = pilot.app
    await settled(pilot, lambda: app.chat.state.phase == "idle", PATIENCE)
    app.chat_screen.composer.offer(words)
    await pilot.press("enter")


async def answered(pilot: Any, key: str) -> None:
    """The question is shown, and is answered by a key once it takes one."""
    app = pilot.app
    box = app.chat_screen.query_one(AskBox)
    await settled(pilot, lambda: box.display and app.focused is box, PATIENCE)
    await pilot.press(key)
    await settled(pilot, lambda: not box.display, PATIENCE)


async def left(pilot: Any) -> None:
    app = pilot.app
    app.action_leave()
    await settled(pilot, lambda: app.chat.state.finished, PATIENCE)


async def test_a_call_is_allowed_on_the_screen_and_its_result_is_shown(tmp_path: Path, served: Path) -> None:
    steps = [call(ADD, text="buy [bold]tea[/bold]"), call("mcp__notes__draw_note"), text("It is noted.")]
    with serve(*steps) as server:
        app = app_of(tmp_path, server, served)
        async with app.run_test(size=WIDE) as pilot:
            await prompt(pilot, "note it")
            box = app.chat_screen.query_one(AskBox)
            await settled(pilot, lambda: box.display, PATIENCE)
            shown = screen_text(app)
            assert (
                "? Run add_note of the server notes?" in shown and '"text": "buy [bold]tea[/bold]"' in shown
            )
            assert not (tmp_path / "notes.txt").exists()  # nothing runs before it is allowed
            for choice in asked_for().choices:
                assert f"{choice.key} {choice.label}" in shown
            await answered(pilot, "o")
            await answered(pilot, "s")
            await settled(pilot, lambda: "It is noted." in screen_text(app), PATIENCE)
            assert (tmp_path / "notes.txt").read_text() == "buy [bold]tea[/bold]\n"
            shown = screen_text(app)
            assert "✓ notes · add_note" in shown and "→ run it once" in shown
            assert "✓ notes · draw_note" in shown and "mcp__" not in shown
            state = app.chat.state
            first, second = state.tools.values()
            assert [part.text for part in first.content if hasattr(part, "text")] == [
                "noted: buy [bold]tea[/bold]"
            ]
            assert [(image.width, image.height) for image in second.images] == [(1, 1)]
            assert [label for _, label in state.allowed.answers.values()] == [
                "always run this tool in this session"
            ]
            await app.chat_screen.run_action("screen.servers")
            await settled(pilot, lambda: isinstance(app.screen, ServersScreen))
            await settled(pilot, lambda: "● notes" in screen_text(app), PATIENCE)
            assert "4 tools · on this machine" in screen_text(app) and "Write a note down." in screen_text(
                app
            )
            await pilot.press("s")
            await settled(pilot, lambda: "⊘ notes" in screen_text(app), PATIENCE)
            await pilot.press("s", "r")
            await settled(pilot, lambda: "● notes" in screen_text(app), PATIENCE)
            await pilot.press("escape")
            await left(pilot)
        assert [result.text for result in tool_results(server, 1)] == ["noted: buy [bold]tea[/bold]"]


async def test_the_model_is_told_that_a_call_was_refused(tmp_path: Path, served: Path) -> None:
    steps = [
        call(ADD, text="a"),
        text("Then not."),
        call(ADD, text="b"),
        text("Never, then."),
        call(ADD, text="c"),
        text("As you say."),
    ]
    with serve(*steps) as server:
        app = app_of(tmp_path, server, served)
        async with app.run_test(size=WIDE) as pilot:
            await prompt(pilot, "note a")
            await answered(pilot, "escape")
            await settled(pilot, lambda: "Then not." in screen_text(app), PATIENCE)
            assert "✗ notes · add_note" in screen_text(app) and "→ do not run it" in screen_text(app)
            assert "The user did not allow this call" in tool_results(server)[0].text
            await prompt(pilot, "note b")
            await answered(pilot, "v")
            await settled(pilot, lambda: "Never, then." in screen_text(app), PATIENCE)
            await prompt(pilot, "note c")  # nothing is asked any more
            await settled(pilot, lambda: "As you say." in screen_text(app), PATIENCE)
            assert "does not allow calls of this tool" in tool_results(server)[0].text
            assert not (tmp_path / "notes.txt").exists()
            await left(pilot)


@pytest.mark.parametrize(
    ("allow", "noted"),
    [
        ((), False),
        (("mcp:notes",), True),
        (("mcp:notes/add_note",), True),
        (("mcp:notes/fail",), False),
        (("mcp:notes/other",), False),
        (("overwrite",), False),
    ],
)
def test_without_a_screen_it_is_denied_unless_it_is_allowed(
    tmp_path: Path, served: Path, allow: tuple[str, ...], noted: bool
) -> None:  # fmt: skip
    with serve(call(ADD, text="tea"), text("Done.")) as server:
        values = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_AUTH_TOKEN": server.token,
            "CLAUDE_MODEL": "scripted-model-1",
            "SANDBOX_CHAT_SANDBOX": "off",
            "SANDBOX_CHAT_MCP_CONFIG": str(served),
        }
        options = [word for each in allow for word in ("--allow", each)]
        ended = run("run", *options, "note it", home=tmp_path, env=values)
        err = ended.stderr
        assert ended.code == 0, err
        assert ended.stdout == "Done.\n"
        assert (tmp_path / "notes.txt").exists() is noted
        [result] = tool_results(server)
        if noted:
            assert result.text == "noted: tea"
            assert "? Run add_note of the server notes? → run it once (option of the command line)" in err
        else:
            assert "did not allow this call" in result.text
            assert "→ do not run it (nobody was asked)" in err
            assert "Allow it with: --allow mcp:notes/add_note" in err
        assert ("warning: --allow mcp:notes/other allows nothing" in err) is ("mcp:notes/other" in allow)
        kinds = [event["kind"] for event in journal_events(tmp_path) if event["type"] == "approval_requested"]
        assert kinds == ["mcp_tool"]


def test_a_server_that_is_not_on_cannot_be_allowed(tmp_path: Path, served: Path) -> None:
    values = {"SANDBOX_CHAT_SANDBOX": "off", "SANDBOX_CHAT_MCP_CONFIG": str(served)}
    ended = run("run", "--demo", "--allow", "mcp:other", "note it", home=tmp_path, env=values)
    assert (ended.code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "there is no MCP server other in this chat" in ended.stderr and "which are notes." in ended.stderr


async def test_a_resumed_session_shows_the_same_calls(tmp_path: Path, served: Path) -> None:
    with serve(call(ADD, text="tea"), call("mcp__notes__fail"), text("Done.")) as server:
        app = app_of(tmp_path, server, served)
        async with app.run_test(size=WIDE) as pilot:
            await prompt(pilot, "note it")
            await answered(pilot, "o")
            await answered(pilot, "o")
            await settled(pilot, lambda: "Done." in screen_text(app), PATIENCE)
            await settled(pilot, lambda: app.chat.state.phase == "idle", PATIENCE)
            assert "Error executing tool fail" in screen_text(app)
            live = [(tool.short_name, tool.status, tool.content) for tool in app.chat.state.tools.values()]
            rows = [block.text for block in app.chat_screen.transcript.blocks]
            session = app.chat.state.session_id
            await left(pilot)
        again = app_of(tmp_path, server, served)
        again._resume = session
        async with again.run_test(size=WIDE) as pilot:
            await settled(pilot, lambda: again.chat.state.phase == "idle", PATIENCE)
            state = again.chat.state
            assert [(tool.short_name, tool.status, tool.content) for tool in state.tools.values()] == live
            assert [block.text for block in again.chat_screen.transcript.blocks][: len(rows)] == rows
            assert state.allowed.answers == {}
            assert list(state.servers) == ["notes"] and len(state.servers["notes"].tools) == 4
            await left(pilot)
