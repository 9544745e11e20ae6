"""The folder in which the program was started is removed while it runs: what needs it says so, all else goes on."""

from __future__ import annotations

import asyncio
import io
import threading
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat import events as ev
from sandbox_chat.agent.controls import Controls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import AgentError
from sandbox_chat.engine import Engine
from sandbox_chat.journal.export import ExportError
from sandbox_chat.journal.export.asked import read
from sandbox_chat.linear import Chat, Lines
from sandbox_chat.sandbox import workspace
from sandbox_chat.settings import Secret, Settings
from sandbox_chat.tools.context import ToolInputError
from sandbox_chat.tools.downloads import download_file


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which is there no more."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(FileNotFoundError):
        Path.cwd()
    return folder


def options_of(tmp_path: Path, settings: Settings) -> Any:
    from sandbox_chat.agent import options

    folders = options.Folders(tmp_path / "home", tmp_path / "temp")
    folders.make()
    return options.build_options(
        settings,
        Endpoint("https://gw.example", Secret("token"), Secret(""), "m"),
        folders,
        session_id="00000000-0000-0000-0000-000000000001",
        resume=False,
        new_run=False,
        servers={},
        controls=Controls(),
        on_stderr=print,
    )


def test_the_agent_is_told_of_the_folder_that_its_tools_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = options_of(tmp_path, Settings(local_tools=("Read", "Grep")))
    assert made.add_dirs == [Path.cwd()]
    assert f"Read, Grep read the user's working folder, {tmp_path}," in made.system_prompt
    made = options_of(tmp_path, Settings())
    assert made.add_dirs == [] and "working folder" not in made.system_prompt


def test_tools_that_read_it_are_the_only_ones_to_need_it(tmp_path: Path, gone: Path) -> None:
    assert options_of(tmp_path, Settings()).add_dirs == []
    with pytest.raises(AgentError, match=r"no longer exists\. Start the program again") as caught:
        options_of(tmp_path, Settings(local_tools=("Read",)))
    assert caught.value.kind == "folder_gone"


def test_the_session_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live: list[ev.Event] = []
    over = threading.Event()

    def take(event: ev.Event) -> None:
        live.append(event)
        if isinstance(event, ev.TurnFinished):
            over.set()

    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    settings = Settings(demo=True, demo_pace=0.0, data_dir=tmp_path, sandbox="off", local_tools=("Read",))
    engine = Engine(settings, take)
    folder.rmdir()
    engine.start()
    engine.send("hello")
    try:
        assert over.wait(60)
        (finished,) = [event for event in live if isinstance(event, ev.TurnFinished)]
        assert finished.kind == "folder_gone" and not finished.interrupted
        assert not any(isinstance(event, ev.SessionFinished) for event in live)
    finally:
        engine.close()
    assert not any("internal fault" in event.text for event in live if isinstance(event, ev.Notice))


def test_a_download_says_what_is_wrong(gone: Path) -> None:
    class Context:
        settings = Settings()

    with pytest.raises(
        ToolInputError, match=r"No such file or directory \(downloads\).*SANDBOX_CHAT_DOWNLOADS_DIR"
    ):
        asyncio.run(download_file(Context(), "u", {"path": "/tmp/a"}))  # type: ignore[arg-type]
    assert Settings(downloads_dir=Path("/elsewhere")).downloads_path == Path("/elsewhere")


@pytest.mark.parametrize("typed", ["/export", "/export chat.md"])
def test_an_export_says_what_is_wrong(tmp_path: Path, gone: Path, typed: str) -> None:
    from sandbox_chat.journal import Journal

    journal = Journal.create(tmp_path / "sessions", "s")
    journal.append(ev.TurnStarted(seq=1, turn_id="a", prompt="p"))
    journal.close()

    class Silent:
        session_id = "s"

    out = io.StringIO()
    chat = Chat(Settings(data_dir=tmp_path), Lines(io.StringIO(), out))
    chat.engine = Silent()  # type: ignore[assignment] # an export asks for its name alone
    assert chat._command(typed)
    assert out.getvalue().splitlines()[-1].startswith("error: ")
    with pytest.raises(ExportError, match="There is no folder"):
        read("chat.md")


def test_a_shared_folder_is_still_looked_at(tmp_path: Path, gone: Path) -> None:
    names = [name for name, _ in workspace._guarded(Settings(data_dir=tmp_path))]
    assert "the working folder" not in names and "your home folder" in names
