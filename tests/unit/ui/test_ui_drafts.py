"""The draft on disk: kept while a program lives, found again when it was killed."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandbox_chat.ui.drafts import Drafts
from sandbox_chat.ui.history import ENTRY_LIMIT, History
from sandbox_chat.ui.tokens import Part

DRAFT = [Part("text", "look at "), Part("file", "/w/f.csv", "f.csv", 3), Part("paste", "a\nb")]

KILLED = """
import sys, time
from pathlib import Path
from sandbox_chat.ui.drafts import Drafts
from sandbox_chat.ui.tokens import Part
drafts = Drafts(Path(sys.argv[1]))
drafts.save([Part("text", "first")])
drafts.settle()
drafts.save([Part("text", sys.argv[2]), Part("paste", "long")])
drafts.settle()
print("kept", flush=True)
time.sleep(60)
"""


def recovered(drafts: Drafts) -> list[list[Part]]:
    """The drafts that programs left which are gone, newest first; they are removed."""
    found = [list(parts) for parts in drafts.find()]
    drafts.let_go(remove=True)
    return found


def killed(folder: Path, text: str) -> None:
    """Run a program that keeps a draft, and kill it."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), text], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "kept\n"
        assert recovered(Drafts(folder)) == []  # it lives: its draft is its own
        program.send_signal(signal.SIGKILL)


def test_a_killed_program_leaves_its_draft_once(tmp_path: Path) -> None:
    killed(tmp_path / "drafts", "unsent")
    assert recovered(Drafts(tmp_path / "drafts")) == [[Part("text", "unsent"), Part("paste", "long")]]
    assert recovered(Drafts(tmp_path / "drafts")) == []
    assert list((tmp_path / "drafts").iterdir()) == []


def test_several_are_found_newest_first(tmp_path: Path) -> None:
    for age, text in ((100, "older"), (10, "newer")):
        killed(tmp_path, text)
        [kept] = [path for path in tmp_path.glob("*.json") if text in path.read_text()]
        when = kept.stat().st_mtime - age
        os.utime(kept, (when, when))
        if age == 100:
            for path in tmp_path.iterdir():
                path.rename(path.with_name(path.name + ".aside"))
    for path in tmp_path.glob("*.aside"):
        path.rename(path.with_suffix(""))
    assert [parts[0].text for parts in recovered(Drafts(tmp_path))] == ["newer", "older"]


def test_nobody_else_can_read_it_and_nothing_stays_after_the_end(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path / "drafts")
    drafts.save([])
    assert not (tmp_path / "drafts").exists()
    drafts.save(DRAFT)
    assert drafts.settle()
    assert stat.S_IMODE((tmp_path / "drafts").stat().st_mode) == 0o700
    [kept] = (tmp_path / "drafts").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [Part(*part) for part in json.loads(kept.read_text())] == DRAFT
    drafts.save([])
    assert drafts.settle()
    assert not kept.exists()
    drafts.save(DRAFT)
    drafts.close()
    drafts.close()
    assert list((tmp_path / "drafts").iterdir()) == []


def test_after_a_failure_it_is_kept_for_the_next_run(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    drafts.save(DRAFT)
    drafts.close(keep=True)
    assert recovered(Drafts(tmp_path)) == [DRAFT]


def test_what_was_saved_last_is_kept(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    for number in range(200):
        drafts.save([Part("text", str(number))])
    assert drafts.settle()
    [kept] = tmp_path.glob("*.json")
    assert json.loads(kept.read_text())[0][1] == "199"
    drafts.close()


def test_damaged_and_hostile_files_are_no_drafts(tmp_path: Path) -> None:
    for name, body in {"a": "{", "b": '[["evil", "x", "", 0]]', "c": "[[1]]", "d": "\x00" * 9}.items():
        (tmp_path / f"{name}.json").write_text(body)
        (tmp_path / f"{name}.lock").touch()
    (tmp_path / "e.json").write_text(json.dumps([["text", "x\x1b[2J\u202e", "", 0]]))
    (tmp_path / "e.lock").touch()
    (tmp_path / "f.lock").symlink_to(tmp_path / "nothing")
    assert recovered(Drafts(tmp_path)) == [[Part("text", "x␛[2J<U+202E>")]]


def test_a_folder_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("a file")
    told: list[str] = []
    drafts = Drafts(tmp_path / "drafts", told.append)
    for _ in range(2):
        drafts.save(DRAFT)
        assert drafts.settle()
    assert "cannot be written" in drafts.problem
    assert told == [drafts.problem]
    assert recovered(drafts) == []
    drafts.close()


def test_a_program_that_starts_meanwhile_takes_no_lock_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the lock's file before it is locked, and removes it as one that belongs to nobody."""
    real = fcntl.flock
    other = Drafts(tmp_path)
    went = []

    def flock(fd: int, operation: int) -> None:
        if not went:
            went.append(fd)
            assert recovered(other) == []
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    drafts = Drafts(tmp_path)
    drafts.save([Part("text", "mine")])
    assert drafts.settle()
    assert drafts.problem == ""
    assert recovered(other) == []
    drafts.close(keep=True)
    assert recovered(other) == [[Part("text", "mine")]]


# -- brought back --------------------------------------------------------------------------------------------


def left_by(folder: Path, *texts: str) -> None:
    """Runs that are over left these drafts, the oldest first."""
    for age, text in enumerate(reversed(texts)):
        drafts = Drafts(folder)
        drafts.save([Part("text", text)])
        assert drafts.settle()
        drafts.close(keep=True)
        [kept] = [path for path in folder.glob("*.json") if json.loads(path.read_text())[0][1] == text]
        os.utime(kept, (1000 - age, 1000 - age))


def on_disk(folder: Path) -> list[str]:
    return sorted("".join(part[1] for part in json.loads(path.read_text())) for path in folder.glob("*.json"))


class Desk:
    """Takes a draft, and lets it be kept, as the composer does; or not, if something is being written there."""

    def __init__(self, folder: Path, history: Path, *, free: bool = True) -> None:
        self.drafts = Drafts(folder)
        self.history = History(history)
        self.free = free
        self.taken: list[str] = []

    def offer(self, parts: Sequence[Part]) -> bool:
        if self.free:
            self.taken.append("".join(part.text for part in parts))
            self.drafts.save(parts)
        return self.free

    async def bring(self) -> bool:
        return await self.drafts.bring(self.offer, self.history)


async def test_the_newest_is_offered_and_the_others_are_in_the_history(tmp_path: Path) -> None:
    left_by(tmp_path / "drafts", "oldest", "older", "newest")
    desk = Desk(tmp_path / "drafts", tmp_path / "history")
    assert await desk.bring()
    assert desk.taken == ["newest"]
    assert desk.history.entries == ["older", "oldest"]
    assert on_disk(tmp_path / "drafts") == ["newest"], "it is in the file of this run"
    desk.drafts.close(keep=True)
    assert recovered(Drafts(tmp_path / "drafts")) == [[Part("text", "newest")]]


async def test_one_that_is_not_taken_is_in_the_history(tmp_path: Path) -> None:
    left_by(tmp_path / "drafts", "older", "newest")
    desk = Desk(tmp_path / "drafts", tmp_path / "history", free=False)
    assert not await desk.bring()
    assert desk.history.entries == ["newest", "older"]
    assert on_disk(tmp_path / "drafts") == []
    assert not await desk.bring()


@pytest.mark.parametrize("why", ["slow", "full"])
async def test_it_stays_until_another_file_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    left_by(tmp_path / "drafts", "older", "newest")
    desk = Desk(tmp_path / "drafts", tmp_path / "history")
    if why == "slow":
        monkeypatch.setattr(desk.drafts, "settle", lambda timeout=1.0: False)
    else:

        def full(value: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(desk.drafts, "_write", full)
    assert await desk.bring()
    desk.drafts.close()
    assert on_disk(tmp_path / "drafts") == ["newest"]


@pytest.mark.parametrize("why", ["slow", "unwritable", "too long"])
async def test_one_that_the_history_does_not_keep_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    old = "word " * ENTRY_LIMIT if why == "too long" else "older"
    left_by(tmp_path / "drafts", old, "newest")
    desk = Desk(tmp_path / "drafts", tmp_path / "history")
    if why == "unwritable":
        (tmp_path / "history").mkdir()
    if why == "slow":
        monkeypatch.setattr(desk.history, "close", lambda timeout=1.0: False)
    assert await desk.bring()
    desk.drafts.close()
    assert on_disk(tmp_path / "drafts") == [old]
