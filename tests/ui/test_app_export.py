"""Exporting from the chat's screen: where the document goes, what is said, and that the screen goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.exported import past, write_session
from support.screen import WIDE, PlayedEngine, chat_app, screen_text, settled

from sandbox_chat.journal import export as exporting
from sandbox_chat.ui.app import ChatApp


@pytest.fixture
def made() -> list[PlayedEngine]:
    """The engines that the screen has made."""
    return []


@pytest.fixture
def app(tmp_path: Path, made: list[PlayedEngine], monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatApp]:
    """A chat whose session has been recorded."""
    monkeypatch.chdir(tmp_path)
    yield chat_app(tmp_path, made)


def record(app: ChatApp, made: list[PlayedEngine]) -> Path:
    """Write the record of the session that is open."""
    root = app.settings.data_path / "sessions"
    folder = write_session(root, past)
    return folder.rename(root / made[0].session_id)


async def typed(pilot: Any, text: str) -> None:
    """Type a command and send it."""
    await pilot.press(*["space" if letter == " " else letter for letter in text], "enter")


def told(app: ChatApp) -> str:
    """What was said, all of it."""
    return "\n".join(note.message for note in app._notifications)


async def test_a_file_that_is_named(app: ChatApp, made: list[PlayedEngine], tmp_path: Path) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        record(app, made)
        await typed(pilot, "/export a.md")
        await settled(pilot, lambda: "Exported to" in told(app))
        assert f"Exported to {tmp_path}/a.md, with 2 files in {tmp_path}/a_files" in told(app)
        assert "1 page for the browser" in told(app)
        assert (tmp_path / "a.md").read_text().startswith("# Plot a damped sine")
        assert made[0].prompts == []
        assert app.chat_screen.composer.text == ""


async def test_without_a_name_it_goes_to_the_downloads(app: ChatApp, made: list[PlayedEngine]) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        record(app, made)
        for count in (1, 2):
            await typed(pilot, "/export")
            await settled(pilot, lambda count=count: told(app).count("Exported to") == count)
        names = sorted(path.name for path in app.settings.downloads_path.iterdir())
        assert names == [
            "Plot-a-damped-sine-and-tell-me-its-half-life-2.html",
            "Plot-a-damped-sine-and-tell-me-its-half-life.html",
        ]


async def test_from_the_palette(app: ChatApp, made: list[PlayedEngine]) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        record(app, made)
        await pilot.press("ctrl+p")
        await settled(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.press(*"export")
        await settled(pilot, lambda: "Export the session" in screen_text(app))
        await pilot.press("enter")
        await settled(pilot, lambda: "Exported to" in told(app))


async def test_what_is_wrong_comes_back(app: ChatApp, made: list[PlayedEngine], tmp_path: Path) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        await typed(pilot, "/export a.md")
        await settled(pilot, lambda: "nothing to export" in told(app))  # no prompt yet
        await typed(pilot, "/export a.pdf")
        await settled(pilot, lambda: app.chat_screen.composer.text == "/export a.pdf")
        assert "Use .md, .html, .ipynb or .json" in screen_text(app)
        app.chat_screen.composer.text = ""
        record(app, made)
        (tmp_path / "a.md").write_text("mine")
        await typed(pilot, "/export a.md")
        await settled(pilot, lambda: "exists already" in told(app))
        assert (tmp_path / "a.md").read_text() == "mine"
        await typed(pilot, "/export --force a.md")
        await settled(pilot, lambda: "Exported to" in told(app))
        assert made[0].prompts == []


async def test_the_screen_goes_on_while_a_document_is_written(
    app: ChatApp, made: list[PlayedEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, begun = threading.Event(), threading.Event()
    real = exporting.Target.place

    def slow(target: Any) -> None:
        begun.set()
        assert hold.wait(60)
        real(target)

    monkeypatch.setattr(exporting.Target, "place", slow)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        record(app, made)
        await typed(pilot, "/export a.md")
        await settled(pilot, begun.is_set)
        await settled(pilot, lambda: "Exporting the session … 100 %, 1 s" in screen_text(app))
        await settled(pilot, lambda: "Exporting the session … 100 %, 2 s" in screen_text(app))
        await typed(pilot, "/export b.md")
        await settled(pilot, lambda: "An export is running already." in screen_text(app))
        await typed(pilot, "hello")
        await settled(pilot, lambda: made[0].prompts == ["hello"])
        assert "Exporting the session …" in screen_text(app)
        hold.set()
        await settled(pilot, lambda: "Exported to" in told(app))
        assert "Exporting the session" not in screen_text(app)


async def test_leaving_stops_an_export(
    app: ChatApp, made: list[PlayedEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def export(*_args: Any, stop: Any, **_more: Any) -> Any:
        begun.set()
        while not stop():
            hold.wait(0.01)
        ended.set()
        raise exporting.ExportStopped

    monkeypatch.setattr("sandbox_chat.journal.export.asked.export", export)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot, lambda: app.chat.state.phase == "idle")
        record(app, made)
        await typed(pilot, "/export a.md")
        await settled(pilot, begun.is_set)
    assert ended.wait(60)
    assert not (tmp_path / "a.md").exists()
