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
    "import time; from sandbox_chat.scratch import Scratch; s = Scratch(); "
    "print(s.path, s._guard.pid, flush=True); time.sleep(60)"
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


def hold(place: Path) -> tuple[subprocess.Popen[str], Path, int]:
    """Start a program that has a folder; returns it, the folder, and the process id of the folder's guard."""
    env = {**os.environ, "TMPDIR": str(place)}
    process = subprocess.Popen([sys.executable, "-c", HOLD], env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    path, pid = process.stdout.readline().rsplit(" ", 1)
    return process, Path(path), int(pid)


def gone(path: Path) -> bool:
    """Wait until ``path`` is no more."""
    end = time.monotonic() + 30
    while path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not path.exists()


def test_a_killed_programs_folder_goes_with_it(place: Path) -> None:
    process, folder, guard = hold(place)
    try:
        (folder / "deep").mkdir()
        (folder / "deep" / "link").symlink_to(place)
        (place / "other").write_text("x")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert gone(folder)
        assert (place / "other").read_text() == "x"
        assert gone(Path(f"/proc/{guard}"))
    finally:
        process.kill()
        process.communicate()


def test_a_name_with_odd_characters_is_removed_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = place / "-rf $HOME; 'x' \"y\" *"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    process, folder, _guard = hold(odd)
    process.kill()
    process.communicate()
    assert gone(folder)
    assert odd.is_dir()


def test_the_guard_ends_with_the_folder() -> None:
    scratch = Scratch()
    guard = scratch._guard
    assert guard is not None
    assert guard.poll() is None
    scratch.remove()
    assert guard.returncode == 0


def test_without_a_guard_what_a_killed_program_left_is_cleared_by_the_next(place: Path) -> None:
    killed, left, guard = hold(place)
    living, kept, _guard = hold(place)
    try:
        (left / "rest").write_text("x")
        os.kill(guard, signal.SIGKILL)
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
