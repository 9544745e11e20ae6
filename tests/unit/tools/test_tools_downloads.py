"""download_file: the user is asked before anything is replaced, names are safe, nothing leaves the folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.toolbox import Tools

from sandbox_chat.sandbox.base import SandboxError, SandboxFileError
from sandbox_chat.tools import downloads
from sandbox_chat.tools.downloads import NAME_BYTES, Part, look, safe_name


def saved(folder: Path) -> dict[str, bytes]:
    """What lies in the downloads folder."""
    return {path.name: path.read_bytes() for path in (folder / "downloads").iterdir()}


async def twice(tools: Tools, *answers: str) -> str:
    """Download one file, then another one of the same name; return the second answer."""
    tools.answers = list(answers)
    tools.sandbox.files["/tmp/plot.png"] = b"one"
    first = await tools.call("download_file", path="plot.png")
    assert str(tools.settings.downloads_path / "plot.png") in first.text and "3 bytes" in first.text
    tools.sandbox.files["/tmp/plot.png"] = b"second"
    second = await tools.call("download_file", path="plot.png")
    assert not second.is_error
    return second.text


async def test_a_new_name_is_saved_without_a_question(tools: Tools, tmp_path: Path) -> None:
    tools.sandbox.files["/tmp/a.csv"] = b"1,2"
    await tools.call("download_file", path="a.csv")
    assert saved(tmp_path) == {"a.csv": b"1,2"}
    assert not tools.questions


async def test_the_question_names_both_files(tools: Tools, tmp_path: Path) -> None:
    await twice(tools, "no")
    [question] = tools.questions
    assert question.kind == "overwrite" and question.tool_use_id == "id-1"
    assert str(tmp_path / "downloads" / "plot.png") in question.detail
    assert "3 bytes, changed 20" in question.detail and "6 bytes" in question.detail
    assert [choice.key for choice in question.choices] == ["r", "s", "k", "v", "n"]
    assert question.choices[-1].name == "no", "the last one does nothing"
    assert question.subject == str(tmp_path / "downloads" / "plot.png")
    assert question.lasting == ("replace_session", "never")
    assert question.default == "keep_both"


async def test_replace(tools: Tools, tmp_path: Path) -> None:
    text = await twice(tools, "replace")
    assert saved(tmp_path) == {"plot.png": b"second"}
    assert "replace the file of that name" in text


async def test_replace_for_the_session(tools: Tools, tmp_path: Path) -> None:
    text = await twice(tools, "replace_session")
    assert saved(tmp_path) == {"plot.png": b"second"}
    assert "as for the whole session" in text


async def test_never_saves_nothing_and_says_that_it_is_not_asked_again(tools: Tools, tmp_path: Path) -> None:
    text = await twice(tools, "never")
    assert saved(tmp_path) == {"plot.png": b"one"}
    assert "nothing was saved" in text and "not asked again" in text


async def test_keep_both(tools: Tools, tmp_path: Path) -> None:
    text = await twice(tools, "keep_both")
    assert saved(tmp_path) == {"plot.png": b"one", "plot (2).png": b"second"}
    assert "plot (2).png" in text


async def test_do_not_save(tools: Tools, tmp_path: Path) -> None:
    text = await twice(tools, "no")
    assert saved(tmp_path) == {"plot.png": b"one"}
    assert "did not want" in text and "Saved" not in text


async def test_a_file_that_changes_while_the_user_thinks_is_not_replaced(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "downloads" / "plot.png"

    async def ask(self: Tools, question: object) -> str:
        target.write_bytes(b"the user's own work")
        return "replace"

    monkeypatch.setattr(Tools, "_ask", ask)
    text = await twice(tools)
    assert saved(tmp_path) == {"plot.png": b"the user's own work", "plot (2).png": b"second"}
    assert "changed while the user was asked" in text


async def test_a_link_is_replaced_itself_and_never_followed(tools: Tools, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "downloads"
    folder.mkdir()
    (folder / "x").symlink_to(victim)
    (folder / "y").symlink_to(tmp_path / "nowhere")
    tools.sandbox.files.update({"/tmp/x": b"data", "/tmp/y": b"data"})
    tools.answers = ["replace", "keep_both"]
    await tools.call("download_file", path="x")
    await tools.call("download_file", path="y")
    assert victim.read_bytes() == b"precious" and not (tmp_path / "nowhere").exists()
    assert not (folder / "x").is_symlink() and (folder / "x").read_bytes() == b"data"
    assert (folder / "y").is_symlink() and (folder / "y (2)").read_bytes() == b"data"
    assert "a link" in tools.questions[0].detail


async def test_a_folder_of_that_name_is_never_replaced(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "downloads" / "x").mkdir(parents=True)
    tools.sandbox.files["/tmp/x"] = b"data"
    text = (await tools.call("download_file", path="x")).text
    assert not tools.questions
    assert "x (2)" in text and (tmp_path / "downloads" / "x (2)").read_bytes() == b"data"


@pytest.mark.parametrize("error", [SandboxError("gone"), SandboxFileError("no such file")])
async def test_a_failed_download_leaves_nothing(tools: Tools, tmp_path: Path, error: Exception) -> None:
    tools.sandbox.fail = error
    assert (await tools.call("download_file", path="x")).is_error
    assert saved(tmp_path) == {}


async def test_a_withdrawn_question_leaves_nothing(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def ask(self: Tools, question: object) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "replace"

    monkeypatch.setattr(Tools, "_ask", ask)
    task = asyncio.ensure_future(twice(tools))
    await asked.wait()
    assert len(saved(tmp_path)) == 2  # the part waits under its own name
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert saved(tmp_path) == {"plot.png": b"one"}
    assert tools.finished[-1][1].interrupted


async def test_without_hard_links_the_name_is_taken_first(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(os, "link", refuse)
    await twice(tools, "keep_both")
    assert saved(tmp_path) == {"plot.png": b"one", "plot (2).png": b"second"}


def test_what_a_killed_program_left_is_cleared_and_what_another_writes_is_not(tmp_path: Path) -> None:
    left = tmp_path / ".sandbox-chat-0011.part"
    left.write_bytes(b"half")
    with Part.make(tmp_path) as first:
        assert not left.exists()
        with Part.make(tmp_path) as second:
            assert first.path.exists() and second.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_looking_does_not_follow(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    there = look(tmp_path / "link")
    assert there is not None and "a link" in there.words
    assert look(tmp_path / "none") is None


async def test_large_downloads_say_how_far_they_are(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PROGRESS_AFTER", 0.05)
    tools.sandbox.slow = 0.1
    tools.sandbox.files["/tmp/big"] = bytes(1000)
    await tools.call("download_file", path="big")
    await asyncio.sleep(0)
    assert tools.progress[0][:4] == ("id-1", "big", 500, 1000)
    assert tools.progress[-1] == ("id-1", "big", 1000, 1000, True)


async def test_quick_downloads_say_nothing_on_the_way(tools: Tools) -> None:
    tools.sandbox.files["/tmp/small"] = b"x"
    await tools.call("download_file", path="small")
    await asyncio.sleep(0)
    assert tools.progress == []


async def test_download_cannot_leave_its_folder(tools: Tools, tmp_path: Path) -> None:
    tools.sandbox.files["/tmp/x"] = b"data"
    for name in (
        "../../evil",
        "/etc/passwd",
        "..\\evil",
        ".bashrc",
        "a/../../b",
        "..",
        "con",
        "\x1b]0;x\x07n",
        "-rf",
    ):
        outcome = await tools.call("download_file", path="x", name=name)
        assert not outcome.is_error
    saved = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent for path in saved} == {tmp_path / "downloads"}
    assert not [path for path in saved if path.name.startswith((".", "-", "~"))]


async def test_a_folder_that_cannot_be_written_is_said(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "downloads").write_text("a file")
    tools.sandbox.files["/tmp/x"] = b"data"
    outcome = await tools.call("download_file", path="x")
    assert outcome.is_error
    assert "SANDBOX_CHAT_DOWNLOADS_DIR" in outcome.text


@given(st.text(max_size=400))
def test_a_safe_name_is_a_plain_name(name: str) -> None:
    safe = safe_name(name)
    assert safe and safe not in (".", "..")
    assert len(safe.encode()) <= NAME_BYTES
    assert not set(safe) & set('/\\:*?"<>|\0\n\r\x1b\u202e')
    assert not safe.startswith((".", "-", "~", " "))
    assert safe_name(safe) == safe


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("plot.png", "plot.png"),
        ("Bericht März.xlsx", "Bericht März.xlsx"),
        ("a/b/c.csv", "c.csv"),
        ("../x", "x"),
        (".env", "env"),
        ("-.env", "env"),
        ("- ~ 0 .", "0"),
        ("", "file"),
        ("...", "file"),
        ("con.txt", "_con.txt"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("tar.tar.gz", "tar.tar.gz"),
    ],
)
def test_safe_names(name: str, safe: str) -> None:
    assert safe_name(name) == safe
