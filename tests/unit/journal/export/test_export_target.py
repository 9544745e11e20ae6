"""A document stands under its name whole or not at all, and replaces nothing by itself."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox_chat.journal.export import ExportError, TargetExists, export, markdown
from sandbox_chat.journal.export.target import ENDING, OLD, Target, clear_left


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_document_is_placed(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with Target.make(tmp_path / "a.md", force=False) as target:
            target.out.write("hé\nx")
            assert not (tmp_path / "a.md").exists()
            target.place()
    finally:
        os.umask(old)
    assert (tmp_path / "a.md").read_bytes() == "hé\nx".encode()
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o640
    assert names(tmp_path) == ["a.md"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    there = tmp_path / "a.md"
    there.write_text("mine")
    with pytest.raises(TargetExists, match="exists already, and nothing was written"):
        Target.make(there, force=False)
    with Target.make(there, force=True) as target:
        target.out.write("new")
    assert there.read_text() == "mine"  # it was never placed
    with Target.make(there, force=True) as target:
        target.out.write("new")
        target.place()
    assert there.read_text() == "new"
    assert names(tmp_path) == ["a.md"]


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(
            os, "link", lambda *_args, **_more: (_ for _ in ()).throw(OSError(errno.EPERM, "no"))
        )
    with Target.make(tmp_path / "a.md", force=False) as target:
        target.out.write("new")
        (tmp_path / "a.md").write_text("mine")
        with pytest.raises(TargetExists):
            target.place()
    assert (tmp_path / "a.md").read_text() == "mine"
    assert names(tmp_path) == ["a.md"]
    with Target.make(tmp_path / "b.md", force=False) as target:
        target.out.write("new")
        target.place()
    assert (tmp_path / "b.md").read_text() == "new"
    assert names(tmp_path) == ["a.md", "b.md"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.write_text("mine")
    (tmp_path / "a.md").symlink_to(aim)
    (tmp_path / "b.md").symlink_to(tmp_path / "nowhere")
    for name in ("a.md", "b.md"):
        with pytest.raises(TargetExists):
            Target.make(tmp_path / name, force=False)
        with Target.make(tmp_path / name, force=True) as target:
            target.out.write("new")
            target.place()
        assert not (tmp_path / name).is_symlink()
    assert aim.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_what_can_be_no_document(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    os.mkfifo(tmp_path / "b.md")
    for name, words in (
        ("a.md", "is a folder"),
        ("b.md", "no ordinary file"),
        ("c/d.md", "There is no folder"),
    ):
        for force in (False, True):
            with pytest.raises(ExportError, match=words):
                Target.make(tmp_path / name, force=force)


def test_files_beside_are_named_by_their_content(tmp_path: Path) -> None:
    with Target.make(tmp_path / "a.md", force=False) as target:
        first = target.add(b"one", "png")
        assert target.add(b"one", "png") == first
        assert target.add(b"two", "png") != first
        target.place()
    assert len(list((tmp_path / "a_files").iterdir())) == 2
    with Target.make(tmp_path / "a.md", force=True) as target:  # again: what is there is the same
        assert target.add(b"one", "png") == first
        assert target.files == []
        target.place()
    assert len(list((tmp_path / "a_files").iterdir())) == 2


def test_a_file_beside_replaces_nothing(tmp_path: Path) -> None:
    with Target.make(tmp_path / "a.md", force=False) as target:
        name = target.add(b"one", "png")
        target.place()
    (tmp_path / name).write_bytes(b"mine")
    with Target.make(tmp_path / "a.md", force=True) as target:
        other = target.add(b"one", "png")
        assert other != name
        target.place()
    assert (tmp_path / name).read_bytes() == b"mine"
    assert (tmp_path / other).read_bytes() == b"one"


def test_a_document_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Target.make(tmp_path / "a.md", force=False) as target:
        target.add(b"one", "png")
        target.out.write("half")
        raise RuntimeError
    assert names(tmp_path) == []


def test_a_full_disk_is_said(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(markdown, "write", full)
    with pytest.raises(ExportError, match=r"could not be written \(No space left on device\)"):
        export(session, session.parent / "a.md")
    assert names(session.parent) == [session.name]


KILLED = """
import os, signal, sys
from pathlib import Path
from sandbox_chat.journal.export.target import Target
with Target.make(Path(sys.argv[1]), force=False) as target:
    target.out.write("half")
    print("there", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def old(path: Path) -> None:
    then = time.time() - 2 * OLD
    os.utime(path, (then, then))


def test_what_a_killed_export_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "a.md")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None and program.stdin is not None
        assert program.stdout.readline() == "there\n"
        [left] = tmp_path.iterdir()
        old(left)
        clear_left(tmp_path)
        assert left.exists(), "its program lives"
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.wait(60) == -signal.SIGKILL
    assert names(tmp_path) == [left.name]
    os.utime(left)
    with Target.make(tmp_path / "b.md", force=False) as target:
        target.place()
    assert names(tmp_path) == [left.name, "b.md"], "it is not old yet"
    old(left)
    with Target.make(tmp_path / "c.md", force=False) as target:
        target.place()
    assert names(tmp_path) == ["b.md", "c.md"]


def test_what_was_left_beside_a_document_is_removed_too(tmp_path: Path) -> None:
    left = tmp_path / "a_files" / f".0123.png.01234567{ENDING}"
    left.parent.mkdir()
    left.touch()
    old(left)
    with Target.make(tmp_path / "a.md", force=False) as target:
        target.add(b"one", "png")
        target.place()
    assert not left.exists()
    assert len(list((tmp_path / "a_files").iterdir())) == 1


def test_nothing_else_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [
        tmp_path / name
        for name in (
            ".a.md.01234567.tmp",
            f".a.md.0123456{ENDING}",
            f".a.md.0123456X{ENDING}",
            f"a.md.01234567{ENDING}",
            f".a.md.01234567{ENDING}.md",
            ENDING,
        )
    ]
    for path in kept:
        path.write_text("mine")
        old(path)
    folder = tmp_path / f".b.md.01234567{ENDING}"
    folder.mkdir()
    old(folder)
    link = tmp_path / f".c.md.01234567{ENDING}"
    link.symlink_to(kept[0])
    os.mkfifo(tmp_path / f".d.md.01234567{ENDING}")
    left = tmp_path / f".e.md.01234567{ENDING}"
    left.write_text("half")
    old(left)
    before = names(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
        clear_left(tmp_path)
    assert names(tmp_path) == before
    with monkeypatch.context() as patch:  # no locks here: nobody knows whether somebody writes it
        patch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no")))
        clear_left(tmp_path)
    assert names(tmp_path) == before
    clear_left(tmp_path)
    assert set(before) - set(names(tmp_path)) == {left.name}
    clear_left(tmp_path / "none")


def test_a_long_name_fits(tmp_path: Path) -> None:
    for name in ("长" * 80, "𝒜" * 62):
        path = tmp_path / f"{name}.md"
        with Target.make(path, force=False) as target:
            target.place()
        assert path.exists()
