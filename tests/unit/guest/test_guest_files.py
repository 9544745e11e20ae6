"""File operations as the guest does them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox_chat.guest import files


def test_write_makes_folders_and_appends(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b.bin")
    assert files.write(path, b"one", append=False) == {"path": path}
    files.write(path, b"two", append=True)
    assert Path(path).read_bytes() == b"onetwo"
    files.write(path, b"3", append=False)
    assert Path(path).read_bytes() == b"3"


def test_relative_paths_are_under_tmp() -> None:
    assert files.absolute("x/../y") == "/tmp/y"
    assert files.absolute("/var//x") == "/var/x"


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_impossible_paths(path: str) -> None:
    with pytest.raises(files.FileError):
        files.absolute(path)


def test_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    assert files.read(str(path), 4, 3) == ({"path": str(path), "size": 10}, b"456")
    assert files.read(str(path), 10, 3)[1] == b""


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, word in (
        (tmp_path, "folder"),
        (tmp_path / "pipe", "regular"),
        (tmp_path / "none", "no file"),
    ):
        with pytest.raises(files.FileError, match=word):
            files.read(str(path), 0, 10)
    with pytest.raises(files.FileError):
        files.write(str(tmp_path / "pipe"), b"x", append=False)


def test_entries_are_sorted_and_limited(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        (tmp_path / name).write_bytes(b"xy")
    (tmp_path / "d").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    found = files.entries(str(tmp_path), 3)
    times = {name: (tmp_path / name).lstat().st_mtime_ns for name in ("a", "b", "broken", "d")}
    assert found == {
        "path": str(tmp_path),
        "entries": [
            ["a", False, 2, False, times["a"]],
            ["b", False, 2, False, times["b"]],
            ["broken", False, 7, True, times["broken"]],
        ],
        "total": 5,
    }
    assert ["d", True, 0, False, times["d"]] in files.entries(str(tmp_path), 10)["entries"]
    (tmp_path / "to-d").symlink_to("d")
    assert next(row for row in files.entries(str(tmp_path), 10)["entries"] if row[0] == "to-d")[1:4] == [
        True,
        0,
        True,
    ]
    with pytest.raises(files.FileError):
        files.entries(str(tmp_path / "a"), 3)


def test_what_is_refused_is_not_left_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name, words in ((".", "a folder, not a file"), ("pipe", "not a regular file")):
        with pytest.raises(files.FileError, match=words):
            files.read(str(tmp_path / name), 0, 10)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
