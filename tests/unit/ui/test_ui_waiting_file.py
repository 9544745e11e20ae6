"""What waits on disk: whole, private, found once, kept until it is in another file, and no trouble for the chat."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.ui.controller import Chat
from sandbox_chat.ui.keeping import Keeping
from sandbox_chat.ui.own_file import BYTES_LIMIT
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.tokens import Part
from sandbox_chat.ui.waiting_file import Left, WaitingFile

PARTS = (Part("text", "look at "), Part("file", "/w/f.csv", "f.csv", 3), Part("paste", "a\nb"))

KILLED = """
import sys, time
from pathlib import Path
from sandbox_chat.ui.queue import Prompt
from sandbox_chat.ui.waiting_file import Left, WaitingFile
file = WaitingFile(Path(sys.argv[1]))
for number in range(50):
    file.save(Left(sys.argv[2], tuple(Prompt(f"{sys.argv[2]} {each}") for each in range(number + 1))))
file.settle()
print("kept", flush=True)
time.sleep(60)
"""


def left_by(folder: Path, session: str, *texts: str) -> None:
    """A run that is over left these prompts."""
    file = WaitingFile(folder)
    file.save(Left(session, tuple(map(Prompt, texts))))
    assert file.settle()
    file.close(keep=True)


def texts(chat: Chat) -> list[str]:
    return [prompt.text for prompt in chat.queue]


def test_they_come_back_as_they_were_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    file = WaitingFile(tmp_path / "waiting")
    prompt = Prompt.of(PARTS)
    file.save(Left("s1", (prompt, Prompt("plain"))))
    assert file.settle()
    [kept] = (tmp_path / "waiting").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert WaitingFile(tmp_path / "waiting").find() == [], "its program lives"
    file.close(keep=True)
    other = WaitingFile(tmp_path / "waiting")
    [left] = other.find()
    assert left.session_id == "s1"
    first = left.prompts[0]
    assert (first.id, first.text, first.left) == (prompt.id, prompt.text, True)
    assert left.prompts[0].parts == PARTS
    assert other.find() == [], "it is held"
    other.let_go(remove=False)
    assert len(other.find()) == 1
    other.let_go(remove=True)
    assert list((tmp_path / "waiting").iterdir()) == []


def test_a_killed_program_leaves_what_waited_last(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), "s"], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "kept\n"
        assert WaitingFile(tmp_path).find() == []
        program.send_signal(signal.SIGKILL)
    file = WaitingFile(tmp_path)
    [left] = file.find()
    assert [prompt.text for prompt in left.prompts] == [f"s {number}" for number in range(50)]
    file.close()


def test_what_is_not_wanted_stays(tmp_path: Path) -> None:
    left_by(tmp_path, "s1", "one")
    left_by(tmp_path, "s2", "two")
    file = WaitingFile(tmp_path)
    assert [left.session_id for left in file.find(lambda left: left.session_id == "s2")] == ["s2"]
    file.let_go(remove=True)
    assert [left.session_id for left in file.find()] == ["s1"]
    file.close()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        '{"session": "s"}',
        '{"session": "s", "prompts": [{"id": "a"}]}',
        "\x00" * 99,
        pytest.param("[" * 100_000, id="deep"),
        '{"session": "s", "prompts": [{"id": "a", "parts": [["file", "x", "x", Infinity]]}]}',
        '{"session": "s", "prompts": [{"id": "a", "parts": [["evil", "x", "", 0]]}]}',
    ],
)
def test_a_damaged_file_is_none(tmp_path: Path, body: str) -> None:
    (tmp_path / "a.json").write_text(body)
    (tmp_path / "a.lock").touch()
    assert WaitingFile(tmp_path).find() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reason", [errno.EIO, errno.EMFILE, errno.EACCES])
@pytest.mark.parametrize("of", ["read_bytes", "stat"])
def test_what_cannot_be_read_now_is_found_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, reason: int
) -> None:
    left_by(tmp_path, "s1", "one")
    left_by(tmp_path, "s2", "two")
    real = getattr(Path, of)

    def fails(path: Path, *args: Any, **options: Any) -> Any:
        if path.suffix == ".json" and "one" in path.open().read():
            raise OSError(reason, os.strerror(reason))
        return real(path, *args, **options)

    file = WaitingFile(tmp_path)
    monkeypatch.setattr(Path, of, fails)
    assert [left.session_id for left in file.find()] == ["s2"]
    file.let_go(remove=True)
    monkeypatch.undo()
    assert [left.session_id for left in file.find()] == ["s1"]
    file.close()


def test_one_that_is_too_large_stays(tmp_path: Path) -> None:
    left_by(tmp_path, "s1", "one")
    [kept] = tmp_path.glob("*.json")
    os.truncate(kept, BYTES_LIMIT + 1)
    file = WaitingFile(tmp_path)
    assert file.find() == []
    file.let_go(remove=True)
    assert kept.exists() and kept.with_suffix(".lock").exists()
    os.truncate(kept, kept.read_bytes().index(b"\0"))
    assert [left.session_id for left in file.find()] == ["s1"]
    file.close()


def test_hostile_text_in_it_is_cleaned(tmp_path: Path) -> None:
    prompts = [{"id": "a\x1b[2J", "parts": [["text", "x\x1b[2J\u202e", "", 0]]}]
    (tmp_path / "a.json").write_text(json.dumps({"session": "s\n\x07", "prompts": prompts}))
    (tmp_path / "a.lock").touch()
    file = WaitingFile(tmp_path)
    [left] = file.find()
    assert (left.session_id, left.prompts[0].id, left.prompts[0].text) == ("s ␇", "a␛[2J", "x␛[2J<U+202E>")
    file.close()


# -- of a chat -----------------------------------------------------------------------------------------------


async def test_a_resumed_session_gets_its_own_back_in_order(tmp_path: Path) -> None:
    left_by(tmp_path, "s1", "one", "two")
    left_by(tmp_path, "s2", "else")
    chat = Chat()
    keeping = Keeping(chat, tmp_path)
    assert await keeping.resume("s1") == 2
    assert texts(chat) == ["one", "two"] and chat.queue.left
    assert await keeping.elsewhere() == (1, "s2")
    chat.queue.go_on(left=True)
    keeping.close()
    assert {left.session_id for left in WaitingFile(tmp_path).find()} == {"s2", ""}


async def test_it_is_never_only_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the run before goes when what was in it is in the file of this run; twice found is once there."""
    left_by(tmp_path, "s1", "one")
    chat = Chat()
    keeping = Keeping(chat, tmp_path)
    monkeypatch.setattr(keeping.file, "settle", lambda timeout=1.0: False)  # the disk is slow
    assert await keeping.resume("s1") == 1
    monkeypatch.undo()
    assert await keeping.resume("s1") == 0, "it is here already"
    assert texts(chat) == ["one"]
    keeping.close()
    assert sum(len(left.prompts) for left in WaitingFile(tmp_path).find()) == 1


async def test_what_happens_while_the_program_ends_changes_nothing(tmp_path: Path) -> None:
    chat = Chat()
    keeping = Keeping(chat, tmp_path)
    chat.submit("one")
    chat.submit("two")
    keeping.freeze()
    chat.queue.take()
    keeping.close()
    [left] = WaitingFile(tmp_path).find()
    assert [prompt.text for prompt in left.prompts] == ["one", "two"]


def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "waiting").write_text("a file")
    told: list[str] = []
    chat = Chat()
    keeping = Keeping(chat, tmp_path / "waiting", told.append)
    for text in ("one", "two"):
        chat.submit(text)
        assert keeping.file.settle()
    assert told == [keeping.file.problem] and "cannot be written" in told[0]
    keeping.close()
