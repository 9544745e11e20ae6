"""Users apart: their folders, their settings, which session is whose."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox_chat.serve.users import Users, check, folder_name
from sandbox_chat.settings import ConfigError, Secret, Settings

ID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return Users(Settings(data_dir=tmp_path, skills_dir=tmp_path / "all", http_token=Secret("canary-" * 4)))


def make(users: Users, user: str, session: str = ID) -> None:
    folder = users.folder(user) / "sessions" / session
    folder.mkdir(parents=True)
    (folder / "events.jsonl").touch()


@pytest.mark.parametrize("user", [".", "..", "...", "-", "con", "a" * 64, "Ann", "a@b.c", "~root"])
def test_a_folder_is_one_plain_name(user: str) -> None:
    name = folder_name(user)
    assert name.strip("abcdefghijklmnopqrstuvwxyz0123456789_-") == "" and len(name) <= 33


def test_users_that_differ_have_folders_that_differ() -> None:
    names = ["ann", "Ann", "ANN", "ann.", "ann_", "ann@", "a" * 63, "a" * 64]
    assert len({folder_name(name).lower() for name in names}) == len(names)


def test_each_has_folders_of_their_own(users: Users, tmp_path: Path) -> None:
    (tmp_path / "mcp" / "servers").mkdir(parents=True)
    ann, bob = users.settings_of("ann"), users.settings_of("bob")
    for name in ("data_path", "downloads_path"):
        assert getattr(ann, name).is_relative_to(tmp_path / "users")
        assert getattr(ann, name) != getattr(bob, name)
    assert ann.skills_dir is None
    assert users.folder("ann").stat().st_mode & 0o777 == 0o700
    # what is the same for all is not made anew for each
    assert ann.cache_path.resolve() == bob.cache_path.resolve() == tmp_path / "cache"
    assert (ann.data_path / "mcp" / "servers").resolve() == tmp_path / "mcp" / "servers"
    assert users.settings_of("ann") == ann


def test_a_session_is_its_users(users: Users) -> None:
    make(users, "ann")
    assert users.has("ann", ID) and not users.has("bob", ID) and not users.has("Ann", ID)
    assert users.owner_folder(ID) == users.folder("ann")
    for wrong in ("", ".", "../x", f"../{folder_name('ann')}/sessions/{ID}", ID + "/../" + ID):
        assert not users.has("ann", wrong) and users.owner_folder(wrong) is None


def test_a_removed_session_is_there_no_more(users: Users) -> None:
    make(users, "ann")
    users.remove(users.folder("ann"), ID)
    assert not users.has("ann", ID) and users.owner_folder(ID) is None
    assert (users.folder("ann") / "sessions" / ID / "events.jsonl").is_file()


def test_nobody_has_one_yet(users: Users) -> None:
    assert users.owner_folder(ID) is None


@pytest.mark.parametrize(
    "settings", [Settings(sandbox_workspace=Path("/tmp/x")), Settings(local_tools=("Read",))]
)
def test_what_users_would_share_is_refused(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="Leave SANDBOX_CHAT_"):
        check(settings)


def test_a_file_is_read_by_its_name_alone(users: Users, tmp_path: Path) -> None:
    make(users, "ann")
    pictures = users.folder("ann") / "sessions" / ID / "pictures"
    pictures.mkdir()
    name = "0" * 64 + ".png"
    (pictures / name).write_bytes(b"picture")
    (pictures / ("1" * 64 + ".png")).symlink_to(pictures / name)
    (pictures / "other.png").write_bytes(b"x")
    assert users.read_file("ann", ID, name) == users.read_file("", ID, name) == b"picture"
    for user, session, wanted in (
        ("bob", ID, name),
        ("ann", ID, "1" * 64 + ".png"),
        ("ann", ID, "2" * 64 + ".png"),
        ("ann", ID, "other.png"),
        ("ann", ID, "../events.jsonl"),
        ("ann", "..", name),
        ("", "..", name),
    ):
        assert users.read_file(user, session, wanted) is None
    users.remove(users.folder("ann"), ID)
    assert users.read_file("ann", ID, name) is users.read_file("", ID, name) is None
