"""The copy of the skills: what was given and nothing else, always up to date, readable by the sandbox's user."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator

import pytest

from sandbox_chat.sandbox import skills_folder
from sandbox_chat.sandbox.skills_folder import SkillsFolder, packed

Given = dict[str, dict[str, bytes]]


class Rig:
    def __init__(self) -> None:
        self.given: Given = {"one": {"SKILL.md": b"# one", "data/a/b.csv": b"1,2"}}
        self.folder = SkillsFolder(lambda: self.given)

    def there(self) -> dict[str, bytes]:
        path = self.folder.path()
        assert path is not None
        return {
            file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()
        }


@pytest.fixture
def rig() -> Iterator[Rig]:
    found = Rig()
    yield found
    found.folder.close()


def test_the_copy_follows(rig: Rig) -> None:
    assert rig.there() == {"one/SKILL.md": b"# one", "one/data/a/b.csv": b"1,2"}
    path = rig.folder.path()
    rig.given = {"one": {"SKILL.md": b"# other"}, "two": {"two.py": b"x = 1\n"}}
    assert rig.folder.refresh() == ""
    assert rig.there() == {"one/SKILL.md": b"# other", "two/two.py": b"x = 1\n"}
    rig.given = {}
    assert rig.there() == {}
    assert rig.folder.path() == path  # the same folder: it is what sandboxes see
    assert path is not None
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".in-use", "skills"]


def test_any_user_can_read_it_and_only_the_owner_comes_by_its_path(rig: Rig) -> None:
    before = os.umask(0o077)
    try:
        path = rig.folder.path()
    finally:
        os.umask(before)
    assert path is not None
    modes = {each.name: each.stat().st_mode & 0o7777 for each in (path, *path.rglob("*"))}
    assert modes == {
        "skills": 0o755,
        "one": 0o755,
        "SKILL.md": 0o644,
        "data": 0o755,
        "a": 0o755,
        "b.csv": 0o644,
    }
    assert path.parent.stat().st_mode & 0o7777 == 0o700


def test_nothing_is_made_before_it_is_wanted_and_nothing_is_left(rig: Rig) -> None:
    assert rig.folder._scratch is None
    path = rig.folder.path()
    assert path is not None
    rig.folder.close()
    assert not path.parent.exists()
    assert (rig.folder.path(), rig.folder.refresh()) == (None, "")


def test_what_fails_is_said_and_the_copy_is_mended_later(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.there()
    rig.given = {**rig.given, "two": {"two.py": b"x"}}
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> str:
            raise OSError(28, "No space left on device")

        patch.setattr(skills_folder.tempfile, "mkdtemp", full)
        said = rig.folder.refresh()
    assert "no space left on device" in said
    assert "/skills" in said
    assert rig.folder.refresh() == ""
    assert "two/two.py" in rig.there()


def test_the_tar_holds_plain_files_of_root(rig: Rig) -> None:
    given, data = rig.folder.packed(None)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert [(each.name, each.mode, each.uid, each.gid) for each in members] == [
            ("one", 0o755, 0, 0),
            ("one/SKILL.md", 0o644, 0, 0),
            ("one/data", 0o755, 0, 0),
            ("one/data/a", 0o755, 0, 0),
            ("one/data/a/b.csv", 0o644, 0, 0),
        ]
        assert all(each.isfile() or each.isdir() for each in members)
        file = tar.extractfile("one/data/a/b.csv")
        assert file is not None
        assert file.read() == b"1,2"
    assert rig.folder.packed(given) == (given, b"")
    rig.given = {}
    assert rig.folder.packed(given)[1]


def test_a_tar_of_nothing_can_be_unpacked() -> None:
    with tarfile.open(fileobj=io.BytesIO(packed({}))) as tar:
        assert tar.getmembers() == []
