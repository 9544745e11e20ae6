"""The skills that code gets as files: those that are as promoted, as they were checked, read anew when something changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox_chat.skills import Given, Store, given

CODE = "def double(x):\n    return 2 * x\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "skills")


def promote(store: Store, name: str, code: str = CODE) -> None:
    store.promote(name, expected=store.save_draft(name, code, "Does it.", origin="").digest)


def test_only_what_is_as_promoted(store: Store, tmp_path: Path) -> None:
    give = Given(store)
    assert give() == {}
    promote(store, "good")
    promote(store, "bent")
    promote(store, "linked")
    promote(store, "linked_folder")
    (store.folder / "bent" / "bent.py").write_text("BAD = 1\n")
    (tmp_path / "secret").write_text("SECRET")
    (store.folder / "linked" / "more.txt").symlink_to(tmp_path / "secret")
    (store.folder / "linked_folder" / "more").symlink_to(tmp_path)
    store.save_draft("mere_draft", CODE, "A draft.", origin="")
    (store.folder / "never_promoted").mkdir()
    (store.folder / "never_promoted" / "never_promoted.py").write_text(CODE)
    (store.folder / "link_to_all").symlink_to(tmp_path)
    found = give()
    assert list(found) == ["good"]
    assert found["good"]["good.py"] == CODE.encode()
    assert sorted(found["good"]) == ["SKILL.md", "good.py"]


def test_it_follows_and_reads_only_what_changed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    promote(store, "one")
    give = Given(store)
    first = give()
    monkeypatch.setattr(store, "skills", lambda: pytest.fail("read again"))
    assert give() is first
    monkeypatch.undo()
    promote(store, "two")
    assert sorted(give()) == ["one", "two"]
    (store.folder / "one" / "one.py").write_text("BAD = 1\n")
    assert sorted(give()) == ["two"]
    (store.folder / "one" / "one.py").write_text(CODE)
    assert sorted(give()) == ["one", "two"]
    (store.folder / "one" / "new.txt").write_text("x")
    assert sorted(give()) == ["two"]
    store.remove("two")
    assert give() == {}


def test_a_change_that_hides_gives_what_was_checked(store: Store) -> None:
    promote(store, "one")
    give = Given(store)
    give()
    path = store.folder / "one" / "one.py"
    facts = path.stat()
    path.write_text(CODE.replace("2", "9"))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert give()["one"]["one.py"] == CODE.encode()


def test_it_is_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    promote(store, "aa")
    promote(store, "bb", CODE + "#" * 5000)
    monkeypatch.setattr(given, "ALL_BYTES", 2000)
    assert list(Given(store)()) == ["aa"]
    assert "bb" in caplog.text
