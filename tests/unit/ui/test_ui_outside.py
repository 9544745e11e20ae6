"""Other programs: which are chosen, what is written for them, what is taken back."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from sandbox_chat.ui import outside
from sandbox_chat.ui.folder import remove_scratch, scratch_folder
from sandbox_chat.ui.outside import (
    Outside,
    clipboard_command,
    copy_text,
    editor_command,
    open_in_editor,
    open_in_pager,
    open_path,
    pager_command,
    save_text,
)


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    yield
    remove_scratch()


def program(folder: Path, name: str, body: str = "exit 0") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class Told(App[None]):
    """An app that remembers what it said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def notify(self, message: str, **options: Any) -> None:  # type: ignore[override]
        assert options["markup"] is False
        self.said.append(message)


def test_the_users_editor_is_taken_with_its_arguments(tmp_path: Path) -> None:
    editor = program(tmp_path, "my editor")
    assert editor_command({"EDITOR": f"'{editor}' --wait -x 'a b'"}) == [str(editor), "--wait", "-x", "a b"]
    visual = program(tmp_path, "visual")
    assert editor_command({"EDITOR": str(editor), "VISUAL": str(visual)}) == [str(visual)]
    assert pager_command({"PAGER": str(visual)}) == [str(visual)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no-such-editor-here --x", "was not found"),
        ("'open quote", "cannot be read"),
        ("'' x", "was not found"),
    ],
)
def test_a_wrong_editor_is_said(value: str, words: str) -> None:
    with pytest.raises(Outside, match=words):
        editor_command({"EDITOR": value})


def test_cat_is_no_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "less")
    program(tmp_path, "cat")
    monkeypatch.setenv("PATH", str(tmp_path))
    for value in ("cat", "/bin/cat", " cat "):
        assert pager_command({"PAGER": value}) == ["less"]


@pytest.mark.parametrize(("body", "said"), [("exit 0", []), ("exit 7", ["pg ended with code 7"])])
async def test_a_pager_that_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: list[str]
) -> None:
    monkeypatch.setenv("PAGER", str(program(tmp_path, "pg", body)))

    async def run(app: App[Any], command: list[str]) -> int:
        return await outside._wait(command)

    monkeypatch.setattr(outside, "_run", run)
    app = Told()
    async with app.run_test():
        await open_in_pager(app, "text")
    assert [words.partition(";")[0] for words in app.said] == said
    assert list(scratch_folder().glob("text-*")) == []


def test_nothing_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside.shutil, "which", lambda _: None)
    with pytest.raises(Outside, match="EDITOR"):
        editor_command({})
    with pytest.raises(Outside, match="PAGER"):
        pager_command({})
    assert clipboard_command({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}) is None


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is pbcopy")
def test_the_clipboard_of_the_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside.shutil, "which", lambda name: f"/bin/{name}")
    assert clipboard_command({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}) == ["wl-copy"]
    assert clipboard_command({"DISPLAY": ":0"}) == ["xclip", "-selection", "clipboard"]
    assert clipboard_command({}) is None


async def test_a_copy_goes_to_the_terminal_and_to_the_desktop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "clip"
    command = [str(program(tmp_path, "clip-program", f"cat > '{target}'"))]
    monkeypatch.setattr(outside, "clipboard_command", lambda _: command)
    app = Told()
    async with app.run_test() as pilot:
        copy_text(app, "text 你好")
        assert app.clipboard == "text 你好"
        for _ in range(200):
            if target.exists() and target.read_text() == "text 你好":
                break
            await pilot.pause(0.02)
        assert target.read_text() == "text 你好"


async def test_where_no_program_can_have_the_terminal_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", str(program(tmp_path, "ed")))
    monkeypatch.setenv("PAGER", str(program(tmp_path, "pg")))
    monkeypatch.delenv("VISUAL", raising=False)
    app = Told()
    async with app.run_test():
        assert await open_in_editor(app, "text") is None
        await open_in_pager(app, "text")
        assert app.said == ["Another program cannot have this terminal."] * 2
    assert list(scratch_folder().glob("text-*")) == []


@pytest.mark.parametrize(
    ("body", "text", "result", "said"),
    [
        ('printf "new text\\n" > "$1"', "old", "new text", ""),
        ('printf "new text\\n" > "$1"', "old\n", "new text\n", ""),
        ("exit 0", "old", None, ""),
        ("exit 3", "old", None, "ended with code 3"),
        ('rm "$1"', "old", None, "could not be read"),
        ('rm "$1"; mkfifo "$1"', "old", None, "could not be read"),
        ('head -c 5000000 /dev/zero > "$1"', "old", None, "too large"),
    ],
)
async def test_what_the_editor_leaves_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, text: str, result: str | None, said: str
) -> None:
    monkeypatch.setenv("VISUAL", str(program(tmp_path, "ed", body)))

    async def run(app: App[Any], command: list[str]) -> int:
        path = Path(command[-1])
        assert path.read_text() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.suffix == ".py"
        return await outside._wait(command)

    monkeypatch.setattr(outside, "_run", run)
    app = Told()
    async with app.run_test():
        assert await open_in_editor(app, text, ".py") == result
        assert (not said and not app.said) or said in app.said[0]
    assert list(scratch_folder().glob("text-*")) == []


def test_a_saved_text_never_overwrites(tmp_path: Path) -> None:
    folder = tmp_path / "down"
    assert save_text("one", folder, "answer.md").endswith("answer.md")
    assert save_text("two", folder, "answer.md").endswith("answer-1.md")
    assert (folder / "answer.md").read_text() == "one"
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "could not be saved" in save_text("x", blocked, "answer.md")


def test_a_file_that_is_gone_or_without_a_desktop_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not there any more" in open_path(tmp_path / "gone.png")
    monkeypatch.setattr(outside, "opener", lambda: None)
    here = tmp_path / "here.png"
    here.write_bytes(b"")
    assert str(here) in open_path(here)
