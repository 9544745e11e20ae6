"""Prompts that wait, with the whole program: the screen, the real engine and CLI, a scripted model (case T13)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from support.screen import NARROW, settled
from support.scripted import Reply, reply, serve
from support.scripted import Text as Said

from sandbox_chat.events import TurnStarted
from sandbox_chat.journal.files import read_events
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.ui.app import ChatApp
from sandbox_chat.ui.start import make_engine

PATIENCE = 90.0


def app_on(server: Any, folder: Path, **options: Any) -> ChatApp:
    settings = Settings(
        anthropic_base_url=server.url, anthropic_auth_token=Secret(server.token), model="scripted-model-1",
        data_dir=folder / "data", sandbox="off", request_retries=0, reduced_motion=True, language="en",
        glyphs="unicode", images="half", theme="dark",
    )  # fmt: skip
    return ChatApp(settings, make_engine, **options)


def last_prompt(request: Any) -> str:
    """The text of the last thing that the user said in a request, without what the CLI adds."""
    said = [message for message in request.body["messages"] if message["role"] == "user"][-1]["content"]
    if isinstance(said, str):
        return said
    return next(str(part["text"]) for part in reversed(said) if not part.get("text", "<").startswith("<"))


async def test_t13_three_wait_the_second_is_edited_the_third_removed(tmp_path: Path) -> None:
    go_on = threading.Event()

    def answer(request: Any) -> Reply:
        if last_prompt(request) == "first":
            go_on.wait(PATIENCE)
        return reply(Said(f"answer to {last_prompt(request)}"))

    with serve(function=answer) as server:
        app = app_on(server, tmp_path)
        async with app.run_test(size=NARROW) as pilot:
            await settled(pilot, lambda: app.chat.state.phase == "idle", PATIENCE)
            composer = app.chat_screen.composer
            for text in ("first", "second", "third", "fourth"):
                composer.insert_text(text)
                await pilot.press("enter")
                await settled(pilot, lambda: composer.text == "")
            await settled(pilot, lambda: app.chat.waiting == ["second", "third", "fourth"])
            await pilot.press("ctrl+t", "home", "down", "e")
            await settled(pilot, lambda: composer.text == "third")
            await pilot.press(*", edited", "enter", "ctrl+t", "end", "d")
            await settled(pilot, lambda: app.chat.waiting == ["second", "third, edited"])
            go_on.set()
            await settled(pilot, lambda: sum(turn.ended for turn in app.chat.state.turns) == 3, PATIENCE)
            assert app.chat.engine is not None
            session = app.chat.engine.session_id
            await pilot.press("ctrl+q")
            await settled(pilot, lambda: not app.is_running, PATIENCE)
        reached = [last_prompt(request) for request in server.requests]
    assert reached == ["first", "second", "third, edited"]
    events = list(read_events(tmp_path / "data/sessions" / session))
    assert [event.prompt for event in events if isinstance(event, TurnStarted)] == reached
    app.keeping.close()
    assert list((tmp_path / "data/waiting").glob("*")) == []
