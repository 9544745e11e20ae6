"""What is kept of a workspace: plain files under good names, within bounds, all or nothing; nothing else gets out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from sandbox_chat.guest import files as guest_files
from sandbox_chat.sandbox import kept_workspace
from sandbox_chat.sandbox.base import FileEntry, Sandbox, SandboxFileError, SandboxLost
from sandbox_chat.sandbox.kept_workspace import KeptWorkspace


class Box:
    """A sandbox whose ``/workspace`` is a folder of the test, read by the guest's own functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.downloads = 0
        self.before: Callable[[str], None] = lambda path: None

    def place(self, path: str) -> str:
        assert path == "/workspace" or path.startswith("/workspace/"), path
        assert "/../" not in path + "/"
        return str(self.folder) + path.removeprefix("/workspace")

    def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        try:
            rows = guest_files.entries(self.place(path), limit)["entries"]
        except guest_files.FileError as problem:
            raise SandboxFileError(str(problem)) from None
        return [FileEntry(f"{path}/{name}", *rest) for name, *rest in rows]

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Any = None) -> str:
        target = Path(self.place(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read(size))
        return path

    def download(self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Any = None) -> int:
        self.downloads += 1
        self.before(path)
        try:
            facts, data = guest_files.read(self.place(path), 0, max_bytes + 1)
        except guest_files.FileError as problem:
            raise SandboxFileError(str(problem)) from None
        if facts["size"] > max_bytes:
            raise SandboxFileError("too large")
        target.write(data)
        return len(data)


class Rig:
    def __init__(self, folder: Path, megabytes: int = 1) -> None:
        self.session = folder / "session"
        self.session.mkdir(exist_ok=True)
        self.said: list[str] = []
        self.kept = KeptWorkspace(self.session, megabytes, self.said.append)
        self.box = Box(folder / "inside")

    @property
    def sandbox(self) -> Sandbox:
        return cast("Sandbox", self.box)

    def there(self) -> dict[str, bytes]:
        """All that is kept, by path."""
        found = {}
        for top, folders, names in os.walk(self.kept.folder):
            for name in (*folders, *names):
                assert not Path(top, name).is_symlink()
            found |= {
                Path(top, name).relative_to(self.kept.folder).as_posix(): Path(top, name).read_bytes()
                for name in names
            }
        return found

    def left(self) -> list[str]:
        return sorted(path.name for path in self.session.iterdir())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_there_and_back(rig: Rig, tmp_path: Path) -> None:
    (rig.box.folder / "a.txt").write_text("one")
    (rig.box.folder / "deep" / "er").mkdir(parents=True)
    (rig.box.folder / "deep" / "er" / "ü 你.bin").write_bytes(bytes(range(256)))
    rig.kept.save(rig.sandbox)
    assert rig.there() == {"a.txt": b"one", "deep/er/ü 你.bin": bytes(range(256))}
    assert (rig.left(), rig.said) == (["workspace"], [])
    again = KeptWorkspace(rig.session, 1, rig.said.append)
    other = Box(tmp_path / "other")
    again.bring(cast("Sandbox", other))
    assert (other.folder / "a.txt").read_text() == "one"
    assert (other.folder / "deep" / "er" / "ü 你.bin").read_bytes() == bytes(range(256))
    assert rig.said == []


def test_what_did_not_change_is_not_fetched_again(rig: Rig) -> None:
    (rig.box.folder / "a.txt").write_text("one")
    rig.kept.save(rig.sandbox)
    rig.kept.save(rig.sandbox)
    assert rig.box.downloads == 1
    (rig.box.folder / "a.txt").write_text("three")
    rig.kept.save(rig.sandbox)
    assert (rig.box.downloads, rig.there()) == (2, {"a.txt": b"three"})


def test_what_was_deleted_is_not_kept(rig: Rig) -> None:
    (rig.box.folder / "a.txt").write_text("one")
    rig.kept.save(rig.sandbox)
    (rig.box.folder / "a.txt").unlink()
    rig.kept.save(rig.sandbox)
    assert (rig.there(), rig.left()) == ({}, ["workspace"])


def test_nothing_is_made_for_an_empty_workspace(rig: Rig) -> None:
    rig.kept.save(rig.sandbox)
    rig.kept.bring(rig.sandbox)
    assert (rig.left(), rig.said) == ([], [])


def test_no_link_is_followed_and_nothing_is_kept_but_plain_files(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("SECRET")
    (rig.box.folder / "file").symlink_to(tmp_path / "outside" / "secret")
    (rig.box.folder / "folder").symlink_to(tmp_path / "outside")
    (rig.box.folder / "self").symlink_to(".")
    os.mkfifo(rig.box.folder / "pipe")
    (rig.box.folder / "program").write_text("#!/bin/sh\n")
    (rig.box.folder / "program").chmod(0o6777)
    rig.kept.save(rig.sandbox)
    assert rig.there() == {"program": b"#!/bin/sh\n"}
    assert (rig.kept.folder / "program").stat().st_mode & 0o7777 == 0o600
    assert rig.kept.folder.stat().st_mode & 0o777 == 0o700
    (said,) = rig.said
    assert all(name in said for name in ("file", "folder", "self", "pipe"))
    assert "program" not in said


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a\0b", "x" * 256, "\ud83c", "../../../etc/cron.d/x", "/etc/passwd", "a/../../b"]
)
def test_names_that_lead_elsewhere(name: str, rig: Rig, tmp_path: Path) -> None:
    """A guest that was taken over may say anything. What it calls a path is a name here, in the folder it was asked for."""
    rows = {"/workspace": [FileEntry(f"/workspace/{name}", False, 3), FileEntry("/workspace/good", False, 3)]}

    def download(path: str, target: BinaryIO, *, max_bytes: int, on_progress: Any = None) -> int:
        rig.box.place(path)
        return target.write(b"abc")

    rig.box.list_files = lambda path, limit: rows.get(path, [])  # type: ignore[method-assign]
    rig.box.download = download  # type: ignore[method-assign]
    rig.kept.save(rig.sandbox)
    last = name.rpartition("/")[2]
    plain = {last: b"abc"} if last != name else {}
    assert rig.there() == {"good": b"abc", **plain}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "session"]
    assert rig.left() == ["workspace"]


def test_a_listing_without_end(rig: Rig) -> None:
    rig.box.list_files = lambda path, limit: [FileEntry(f"{path}/d", True, 0)]  # type: ignore[method-assign]
    rig.kept.save(rig.sandbox)
    assert rig.there() == {}
    assert len(rig.said) == 1
    many = [FileEntry(f"/workspace/{number}", False, 0) for number in range(kept_workspace.MOST_FILES + 1)]
    for entry in many[:-1]:
        (rig.box.folder / entry.path.rpartition("/")[2]).touch()
    rig.box.list_files = lambda path, limit: many  # type: ignore[method-assign]
    rig.kept.save(rig.sandbox)
    assert len(rig.there()) == kept_workspace.MOST_FILES
    assert many[-1].path.rpartition("/")[2] in rig.said[-1]


def test_a_file_and_a_folder_of_one_name_spoil_nothing(rig: Rig) -> None:
    (rig.box.folder / "a").write_text("x")
    rig.kept.save(rig.sandbox)
    rows = {
        "/workspace": [FileEntry("/workspace/a", False, 1), FileEntry("/workspace/a", True, 0)],
        "/workspace/a": [FileEntry("/workspace/a/b", False, 1)],
    }
    rig.box.list_files = lambda path, limit: rows.get(path, [])  # type: ignore[method-assign]
    rig.kept.save(rig.sandbox)
    assert (rig.there(), rig.left()) == ({"a": b"x"}, ["workspace"])
    assert "could not be kept" in rig.said[0]
    assert str(rig.kept.folder) in rig.said[0]


def test_what_is_too_large_is_named(rig: Rig) -> None:
    (rig.box.folder / "a-large.bin").write_bytes(bytes(600_000))
    (rig.box.folder / "b-large.bin").write_bytes(bytes(600_000))
    (rig.box.folder / "c-small.txt").write_text("fits")
    rig.kept.save(rig.sandbox)
    assert sorted(rig.there()) == ["a-large.bin", "c-small.txt"]
    (said,) = rig.said
    assert "1 MB" in said
    assert "b-large.bin" in said
    rig.kept.save(rig.sandbox)
    assert len(rig.said) == 1  # nothing new


def test_a_file_that_grows_meanwhile_stays_within_the_bound(rig: Rig) -> None:
    (rig.box.folder / "a").write_text("small")
    rig.box.before = lambda path: (rig.box.folder / "a").write_bytes(bytes(2_000_000)) and None
    rig.kept.save(rig.sandbox)
    assert rig.there() == {}
    assert " a." in rig.said[0]


def test_it_is_all_or_nothing(rig: Rig) -> None:
    (rig.box.folder / "a").write_text("first")
    (rig.box.folder / "b").write_text("first")
    rig.kept.save(rig.sandbox)
    (rig.box.folder / "a").write_text("second")
    stop: list[bool] = []
    rig.box.before = lambda path: stop.append(True)
    rig.kept.save(rig.sandbox, lambda: bool(stop))
    assert (rig.there(), rig.left()) == ({"a": b"first", "b": b"first"}, ["workspace"])
    assert "there was no time for it" in rig.said[0]

    def lost(path: str) -> None:
        raise SandboxLost("It is gone.")

    rig.box.before = lost
    with pytest.raises(SandboxLost):
        rig.kept.save(rig.sandbox)
    assert (rig.there(), rig.left()) == ({"a": b"first", "b": b"first"}, ["workspace"])
    assert "It is gone" in rig.said[1]


def test_what_cannot_be_brought_back_is_not_written_over(rig: Rig, tmp_path: Path) -> None:
    (rig.box.folder / "a").write_text("first")
    rig.kept.save(rig.sandbox)
    again = KeptWorkspace(rig.session, 1, rig.said.append)
    full = Box(tmp_path / "full")

    def upload(source: BinaryIO, size: int, path: str, on_progress: Any = None) -> str:
        raise SandboxFileError("no space left on device")

    full.upload = upload  # type: ignore[method-assign]
    again.bring(cast("Sandbox", full))
    assert "(a)" in rig.said[0]
    (full.folder / "new").write_text("x")
    again.save(cast("Sandbox", full))
    assert rig.there() == {"a": b"first"}


def test_a_program_that_ended_between_two_steps_has_lost_nothing(rig: Rig) -> None:
    (rig.box.folder / "a").write_text("first")
    rig.kept.save(rig.sandbox)
    rig.kept.folder.rename(rig.session / "workspace.old")
    again = KeptWorkspace(rig.session, 1, rig.said.append)
    (rig.box.folder / "a").unlink()
    again.bring(rig.sandbox)
    assert (rig.box.folder / "a").read_text() == "first"


def test_links_in_the_kept_folder_are_not_brought(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    rig.kept.folder.mkdir()
    (rig.kept.folder / "link").symlink_to(tmp_path / "secret")
    (rig.kept.folder / "up").symlink_to(tmp_path)
    rig.kept.bring(rig.sandbox)
    assert list(rig.box.folder.iterdir()) == []


def test_a_full_disk_is_said(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    (rig.box.folder / "a").write_text("first")
    monkeypatch.setattr(kept_workspace.tempfile, "mkdtemp", full)
    rig.kept.save(rig.sandbox)
    assert "No space left on device" in rig.said[0]
    assert "kept before" not in rig.said[0]  # nothing was
