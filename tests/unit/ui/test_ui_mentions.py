"""The files that the list at ``@`` offers: which are found, within which limits, and what fits."""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest

from sandbox_chat.ui.mentions import FoundFile, fitting, walk


def names(root: Path, **limits: int | float) -> list[str]:
    found = walk(str(root), **{"entries": 1000, "depth": 5, "seconds": 10.0, **limits})  # type: ignore[arg-type]
    return [file.path for file in found.files]


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x" * len(path))


def test_near_files_come_first_and_what_programs_made_is_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        "b.txt",
        "a/deep.txt",
        "a/b/deeper.txt",
        ".env",
        ".git/config",
        "node_modules/x.js",
        "pkg/__pycache__/x.pyc",
        "own-env/pyvenv.cfg",
        "own-env/lib.py",
    )
    assert names(tmp_path) == ["b.txt", "a/deep.txt", "a/b/deeper.txt"]


def test_gitignore_is_heeded(tmp_path: Path) -> None:
    make(tmp_path, "keep.py", "x.log", "out/a.txt", "sub/out/b.txt", "doc/made/c.txt", "doc/d.txt")
    (tmp_path / ".gitignore").write_text("# made\n*.log\nout/\n/doc/made\n!x.log\n")
    assert names(tmp_path) == ["keep.py", "doc/d.txt"]


def test_limits_end_the_walk_and_it_says_so(tmp_path: Path) -> None:
    make(tmp_path, *(f"f{number:03}" for number in range(50)), "a/b/c/d")
    whole = walk(str(tmp_path), entries=1000, depth=9, seconds=10)
    assert whole.whole
    assert len(whole.files) == 51
    few = walk(str(tmp_path), entries=20, depth=9, seconds=10)
    assert not few.whole
    assert len(few.files) < 20
    flat = walk(str(tmp_path), entries=1000, depth=2, seconds=10)
    assert not flat.whole
    assert len(flat.files) == 50
    assert not walk(str(tmp_path), entries=1000, depth=9, seconds=-1).whole


def test_links_to_folders_pipes_and_unreadable_folders(tmp_path: Path) -> None:
    make(tmp_path, "real/f")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real/f")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["link", "real/f"]
    assert names(tmp_path / "nothing") == []


def test_names_are_cleaned_and_paths_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J\n.txt").write_text("")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.bin")).write_text("")
    files = walk(str(tmp_path), entries=100, depth=2, seconds=10).files
    assert [file.shown for file in files] == ["a␛[2J .txt", "�.bin"]
    assert all((tmp_path / file.path).exists() for file in files)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["src/app.py", "README.md", "src/map.py", "docs/app/notes.md"]),
        ("app", ["src/app.py", "docs/app/notes.md", "src/map.py"]),
        ("ap", ["src/app.py", "src/map.py", "docs/app/notes.md"]),
        ("READ", ["README.md"]),
        ("src/m", ["src/map.py"]),
        ("dnmd", ["docs/app/notes.md"]),
        ("[.*", []),
    ],
)
def test_what_fits_best_comes_first(query: str, expected: list[str]) -> None:
    paths = ["src/app.py", "README.md", "src/map.py", "docs/app/notes.md"]
    files = [FoundFile(path, path, path.casefold(), 1) for path in paths]
    assert [file.path for file in fitting(query, files)] == expected


def test_fitting_is_bounded_and_can_be_stopped() -> None:
    files = [FoundFile(str(n), str(n), str(n), 1) for n in range(5000)]
    assert len(fitting("1", files, limit=50)) == 50
    assert fitting("1", files, stopped=lambda: True) == []


def test_letters_in_order_are_found_as_a_pattern_finds_them() -> None:
    chance = random.Random(1)
    paths = ["".join(chance.choices("abA/.*", k=chance.randrange(9))) for _ in range(3000)]
    files = [FoundFile(path, path, path.casefold(), 1) for path in paths]
    for length in range(1, 6):
        query = "".join(chance.choices("ab/.*", k=length))
        pattern = re.compile(".*?".join(map(re.escape, query)))
        expected = {file.path for file in files if pattern.search(file.key)}
        found = [file.path for file in fitting(query, files, limit=len(files))]
        assert set(found) == expected
        whole = [query in path.casefold() for path in found]
        assert whole == sorted(whole, reverse=True), "letters that only follow each other come last"


@pytest.mark.parametrize("query", ["000000001", "0" * 20 + "1", "0" * 200])
def test_a_name_of_many_equal_letters_takes_no_time(query: str) -> None:
    files = [FoundFile(path, path, path, 1) for path in ("data/" + "0" * 40 + ".bin", "0" * 180)]
    began = time.process_time()
    assert fitting(query, files) == []
    assert time.process_time() - began < 0.5
