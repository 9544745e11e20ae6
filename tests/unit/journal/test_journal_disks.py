"""Disks that take nothing, for real: a full one, and a folder that the user may only read. The chat goes on in memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.ordinary import open_folder, run_as

from sandbox_chat.events import Text, TurnFinished, TurnStarted
from sandbox_chat.journal import Journal, list_sessions

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
NOBODY = 65534


def finished(seq: int) -> TurnFinished:
    return TurnFinished(
        at=NOON, seq=seq, turn_id="t", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=1,
        cost_usd=0.5, total_cost_usd=0.5,
    )  # fmt: skip


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_t15_a_disk_that_is_full_takes_everything_once_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    journal = Journal.create(small_disk / "sessions", "s")
    journal.append(TurnStarted(at=NOON, seq=1, turn_id="t", prompt="p"))
    assert journal.problem == ""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    picture = b"\x89PNG\r\n\x1a\n" + bytes(9000)
    for seq in range(2, 30):
        journal.append(Text(at=NOON, seq=seq, text="words " * 100))
    kept = journal.save_picture(picture, "image/png", 3, 2)
    assert Path(kept.path).read_bytes() == picture  # elsewhere, for now
    assert "No space left on device" in journal.problem
    assert "The chat goes on in memory" in journal.problem
    ballast.unlink()
    journal.append(finished(30))
    assert journal.problem == ""
    journal.close()
    again = Journal.open(small_disk / "sessions", "s")
    assert [event.seq for event in again.events()] == list(range(1, 31))
    assert again.skipped == 0
    again.close()
    assert [path.read_bytes() for path in (small_disk / "sessions" / "s" / "pictures").iterdir()] == [picture]
    assert list_sessions(small_disk / "sessions")[0].turns == 1


def test_damage_that_cannot_be_kept_aside_yet_holds_the_writing_up(small_disk: Path) -> None:
    root = small_disk / "sessions"
    journal = Journal.create(root, "s")
    for event in (TurnStarted(at=NOON, seq=1, turn_id="t", prompt="p"), finished(2)):
        journal.append(event)
    journal.close()
    path = root / "s" / "events.jsonl"
    with path.open("ab") as out:
        out.write(b"torn " * 2000)
    before = path.read_bytes()
    with (small_disk / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    journal = Journal.open(root, "s")
    assert sum(1 for _ in journal.events()) == 2
    journal.append(TurnStarted(at=NOON, seq=3, turn_id="u", prompt="p"))
    assert "No space left" in journal.problem
    assert path.read_bytes() == before
    (small_disk / "ballast").unlink()
    journal.append(finished(4))
    assert journal.problem == ""
    journal.close()
    assert b"torn torn" in (root / "s" / "events.damaged").read_bytes()
    assert [event.seq for event in journal.events()] == [1, 2, 3, 4]


READER = """
import json, os, sys
from datetime import UTC, datetime
from pathlib import Path
from sandbox_chat.events import TurnStarted
from sandbox_chat.journal import Journal
root = Path(sys.argv[1])
journal = Journal.open(root, "s")
said = {"events": len(list(journal.events()))}
journal.append(TurnStarted(at=datetime(2026, 1, 1, tzinfo=UTC), seq=2, turn_id="u", prompt="again"))
said["first"] = journal.problem
os.chmod(root / "s", 0o700)
for name in ("events.jsonl", "meta.json"):
    os.chmod(root / "s" / name, 0o600)
journal.append(TurnStarted(at=datetime(2026, 1, 1, tzinfo=UTC), seq=3, turn_id="v", prompt="again"))
said["then"] = journal.problem
journal.close()
said["all"] = [event.seq for event in journal.events()]
print(json.dumps(said))
"""


def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user is needed, so root")
    with open_folder() as home:
        root = home / "sessions"
        journal = Journal.create(root, "s")
        journal.append(TurnStarted(at=NOON, seq=1, turn_id="t", prompt="p"))
        journal.close()
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o555 if path.is_dir() else 0o444)
        root.chmod(0o755)
        ended = run_as(NOBODY, home, [sys.executable, "-c", READER, str(root)], env=dict(os.environ))
        assert ended.returncode == 0, ended.stderr
        said = json.loads(ended.stdout.splitlines()[-1])
    assert said["events"] == 1
    assert "cannot be saved" in said["first"] and "Permission denied" in said["first"]
    assert said["then"] == ""
    assert said["all"] == [1, 2, 3]
