"""Temporary folders: removed by their program, or by the next one when that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from sandbox_chat.scratch import LOCK, PREFIX, Scratch, clear_leftovers

HOLD = (
    "import time; from sandbox_chat.scratch import Scratch; print(Scratch().path, flush=True); time.sleep(60)"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_private_and_goes_with_its_content(place: Path) -> None:
    with Scratch() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(place.iterdir()) == []


def test_removing_twice_is_harmless() -> None:
    scratch = Scratch()
    scratch.remove()
    scratch.remove()
    assert not scratch.path.exists()


def test_what_a_killed_program_left_is_cleared_and_a_living_ones_is_kept(place: Path) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        env = {**os.environ, "TMPDIR": str(place)}
        process = subprocess.Popen([sys.executable, "-c", HOLD], env=env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    killed, left = start()
    living, kept = start()
    try:
        (left / "rest").write_text("x")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_dir()
        with Scratch() as mine:
            assert {path.name for path in place.iterdir()} == {kept.name, mine.name}
    finally:
        for process in (killed, living):
            process.kill()
            process.communicate()


def test_only_what_is_surely_ours_is_cleared(place: Path) -> None:
    other = place / "sandbox-chat-project"
    other.mkdir()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    unlocked = place / f"{PREFIX}unlocked"
    unlocked.mkdir()
    (unlocked / "work").touch()
    fifo = place / f"{PREFIX}fifo"
    fifo.mkdir()
    os.mkfifo(fifo / LOCK)
    old = time.time() - 3600
    os.utime(unlocked, (old, old))
    before = set(place.iterdir()) - {fifo}
    clear_leftovers()
    assert set(place.iterdir()) - {fifo} == before
    assert (elsewhere / LOCK).exists()


def test_an_empty_folder_without_a_lock_is_cleared_when_it_is_old(place: Path) -> None:
    old, new = place / f"{PREFIX}old", place / f"{PREFIX}new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (time.time() - 3600,) * 2)
    clear_leftovers()
    assert not old.exists()
    assert new.exists()


def test_a_place_that_cannot_be_listed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    clear_leftovers()
