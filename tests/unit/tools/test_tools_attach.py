"""Files that the user attaches: which can be, where they go, what the model is told, what a lost sandbox does."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any, cast

import pytest
from support.agent import MemorySandbox

from sandbox_chat.events import Attached, Event, Notice, Progress
from sandbox_chat.sandbox.base import SandboxError, SandboxFileError
from sandbox_chat.settings import Settings
from sandbox_chat.tools import downloads
from sandbox_chat.tools.attach import AttachError, Attachments, open_source


class Desk:
    """Attachments over a sandbox in memory."""

    def __init__(self, *, sandbox: bool = True, **settings: Any) -> None:
        self.worker = MemorySandbox()
        self.events: list[Event] = []
        self.notes: list[str] = []
        worker = cast(Any, self.worker) if sandbox else None
        self.attachments = Attachments(worker, Settings(**settings), self.events.append, self.notes.append)

    async def add(self, path: Path | str, target: str = "") -> Attached:
        self.attachments.add(f"x{len(self.events)}", str(path), target)
        await self.attachments.settled()
        return self.ends[-1]

    @property
    def ends(self) -> list[Attached]:
        return [event for event in self.events if isinstance(event, Attached)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "my data.csv"
    path.write_text("a,b\n1,2\n")
    return path


async def test_a_file_is_put_there_and_told_once(data: Path) -> None:
    desk = Desk()
    end = await desk.add(data)
    assert (end.name, end.path, end.size, end.kind, end.error) == (
        "my data.csv", "/tmp/attached/my data.csv", 8, "text/csv", "",
    )  # fmt: skip
    assert desk.worker.files == {"/tmp/attached/my data.csv": b"a,b\n1,2\n"}
    words = desk.attachments.preface()
    assert "my data.csv at /tmp/attached/my data.csv in the sandbox: 8 bytes, text/csv" in words
    assert desk.attachments.preface() == words, "until it was told"
    desk.attachments.told()
    assert desk.attachments.preface() == ""


async def test_where_a_file_goes(tmp_path: Path, data: Path) -> None:
    desk = Desk()
    other = tmp_path / "other" / data.name
    other.parent.mkdir()
    other.write_text("x")
    assert (await desk.add(data, "in/")).path == "/tmp/in/my data.csv"
    assert (await desk.add(data, "/srv/x.csv")).path == "/srv/x.csv"
    assert (await desk.add(data)).path == "/tmp/attached/my data.csv"
    assert (await desk.add(other)).path == "/tmp/attached/my data-2.csv"
    data.write_text("new")
    assert (await desk.add(data)).path == "/tmp/attached/my data.csv", "attached again: in its old place"
    assert desk.worker.files["/tmp/attached/my data.csv"] == b"new"
    assert desk.attachments.preface().count("/tmp/attached/my data.csv") == 1


async def test_a_hostile_name_is_made_plain(tmp_path: Path) -> None:
    path = tmp_path / "-\x1b[2Ja\u202eb.txt"
    path.write_text("x")
    desk = Desk()
    end = await desk.add(path)
    assert end.path == "/tmp/attached/[2Jab.txt"
    assert not set("\x1b\u202e") & set(end.name + desk.attachments.preface())


def test_what_cannot_be_attached(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(5000)
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for name, words in (
        ("none", "no file"),
        (".", "folder"),
        ("large", "5,000 bytes, more than the 4,000"),
        ("pipe", "Only regular files"),
        ("socket", "socket"),
        ("nul\0byte", "cannot be opened"),
        ("large/inside", "no file"),
        ("x" * 5000, "cannot be opened"),
    ):
        with pytest.raises(AttachError, match=words):
            open_source(f"{tmp_path}/{name}", 4000)
    with pytest.raises(AttachError, match="Only regular files"):
        open_source("/dev/zero", 4000)
    with pytest.raises(AttachError, match="No file was named"):
        open_source("", 4000)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")
def test_a_file_whose_size_is_not_known_is_refused_and_not_taken_for_empty() -> None:
    with pytest.raises(AttachError, match="its size is not known"):
        open_source("/proc/self/status", 1000)


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read everything
    with pytest.raises(AttachError, match="permission"):
        open_source(str(tmp_path / "x"), 1)


async def test_home_and_working_folder(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert (await Desk().add("~/my data.csv")).error == ""
    assert (await Desk().add("my data.csv")).error == ""
    assert "cannot be opened" in (await Desk().add("~nobody-of-that-name/x")).error


async def test_without_a_sandbox(data: Path) -> None:
    assert "no sandbox" in (await Desk(sandbox=False).add(data)).error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SandboxFileError("No space."), "No space."),
        (SandboxError("The key sk-12345 is wrong."), "sandbox failed"),
    ],
)
async def test_failures_of_the_sandbox_are_said(data: Path, error: Exception, words: str) -> None:
    from sandbox_chat.settings import Secret

    desk = Desk(e2b_api_key=Secret("sk-12345"))
    desk.worker.fail = error
    end = await desk.add(data)
    assert words in end.error and "sk-12345" not in end.error
    assert desk.attachments.preface() == ""


async def test_stopping(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()

    async def upload(*args: object) -> str:
        await asyncio.sleep(60)
        return ""

    monkeypatch.setattr(desk.worker, "upload", upload)
    desk.attachments.add("x", str(data))
    await asyncio.sleep(0.1)
    desk.attachments.stop()
    await desk.attachments.settled()
    assert "was stopped" in desk.ends[0].error


async def test_a_lost_sandbox_gets_the_file_back_before_the_next_call(data: Path) -> None:
    desk = Desk()
    await desk.add(data)
    await desk.attachments.restore()
    assert desk.notices == []
    desk.worker.files.clear()
    desk.attachments.gone()
    await desk.attachments.restore()
    assert desk.worker.files == {"/tmp/attached/my data.csv": b"a,b\n1,2\n"}
    assert "put back" in desk.notices[0] and "put back" in desk.notes[0]
    await desk.attachments.restore()
    assert len(desk.notices) == 1


@pytest.mark.parametrize("change", ["changed", "removed"])
async def test_a_file_that_is_not_what_it_was_is_not_put_back(data: Path, change: str) -> None:
    desk = Desk()
    await desk.add(data)
    if change == "changed":
        data.write_text("something else")
    else:
        data.unlink()
    desk.worker.files.clear()
    desk.attachments.gone()
    await desk.attachments.restore()
    assert desk.worker.files == {}
    assert "could not be put back" in desk.notices[0] and "Attach it again" in desk.notices[0]
    assert "gone" in desk.notes[0] and "my data.csv" in desk.notes[0]


async def test_a_sandbox_that_fails_is_tried_again_with_the_next_call(data: Path) -> None:
    desk = Desk()
    await desk.add(data)
    desk.attachments.gone()
    desk.worker.fail = SandboxError("not now")
    await desk.attachments.restore()
    desk.worker.fail = None
    desk.worker.files.clear()
    await desk.attachments.restore()
    assert desk.worker.files


async def test_progress_of_a_large_file(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PROGRESS_AFTER", 0.0)
    desk = Desk()

    async def upload(source: Any, size: int, path: str, on_progress: Any) -> str:
        on_progress(4, 8)
        on_progress(8, 8)
        return path

    monkeypatch.setattr(desk.worker, "upload", upload)
    await desk.add(data)
    await asyncio.sleep(0)
    shown = [event for event in desk.events if isinstance(event, Progress)]
    assert [(event.done, event.over) for event in shown] == [(4, False), (8, False), (8, True)]
    assert shown[0].label == "my data.csv"
