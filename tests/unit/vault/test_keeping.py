"""A vault on disk: what is kept, when, and what cannot be opened is left as it is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sandbox_chat.settings import Secret, Settings
from sandbox_chat.vault import Vault
from sandbox_chat.vault.keeping import MAGIC, CannotOpen, Keeper, seal, unseal

RIGHT, WRONG = Secret("correct horse battery"), Secret("incorrect horse batt")
VALUE = "ann@example.org"


def vault() -> Vault:
    return Vault(Settings(pii="on"))


def kept(path: Path, text: str = f"to {VALUE}") -> tuple[Vault, str]:
    """A vault that was kept, and what it made of a text."""
    one = vault()
    hidden = one.hide(text)
    assert Keeper(one, path, RIGHT).save() == ""
    return one, hidden


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    _, hidden = kept(tmp_path / "vault")
    other = vault()
    Keeper(other, tmp_path / "vault", RIGHT).load()
    assert other.reveal(hidden) == f"to {VALUE}"
    assert other.hide(f"to {VALUE}") == hidden


def test_the_file_is_the_owners_and_holds_no_value(tmp_path: Path) -> None:
    kept(tmp_path / "vault")
    data = (tmp_path / "vault").read_bytes()
    assert stat.S_IMODE((tmp_path / "vault").stat().st_mode) == 0o600
    assert VALUE.encode() not in data
    assert b"EMAIL" not in data
    assert [path.name for path in tmp_path.iterdir()] == ["vault"]


def test_nothing_is_written_when_there_is_nothing_new(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    one = vault()
    keeper = Keeper(one, path, RIGHT)
    assert keeper.save() == ""
    assert not path.exists()
    one.hide(VALUE)
    keeper.save()
    before = path.read_bytes()
    keeper.save()
    assert path.read_bytes() == before
    one.hide("ben@example.org")
    keeper.save()
    assert path.read_bytes() != before
    assert set(unseal(path.read_bytes(), RIGHT).values()) == {VALUE, "ben@example.org"}


def test_values_of_two_runs_are_kept_together(tmp_path: Path) -> None:
    path = tmp_path / "vault"
    kept(path)
    second = vault()
    keeper = Keeper(second, path, RIGHT)
    keeper.load()
    second.hide("ben@example.org")
    keeper.save()
    assert set(unseal(path.read_bytes(), RIGHT).values()) == {VALUE, "ben@example.org"}


@pytest.mark.parametrize("what", ["passphrase", "flipped", "cut", "other", "empty"])
def test_what_cannot_be_opened_is_left_as_it_is(tmp_path: Path, what: str) -> None:
    path = tmp_path / "vault"
    kept(path)
    data = path.read_bytes()
    if what == "flipped":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif what == "cut":
        path.write_bytes(data[:40])
    elif what == "other":
        path.write_bytes(b"something else")
    elif what == "empty":
        path.write_bytes(b"")
    before = path.read_bytes()
    other = vault()
    keeper = Keeper(other, path, WRONG if what == "passphrase" else RIGHT)
    with pytest.raises(CannotOpen, match="kept vault"):
        keeper.load()
    assert other.count == 0
    other.hide("ben@example.org")
    assert keeper.save() == ""
    assert path.read_bytes() == before


def test_a_folder_that_takes_nothing_is_told(tmp_path: Path) -> None:
    one = vault()
    one.hide(VALUE)
    assert "could not be kept" in Keeper(one, tmp_path / "none" / "vault", RIGHT).save()


def test_the_salt_belongs_to_what_is_encrypted() -> None:
    data = seal({"<EMAIL:aaaaaaaaaa>": VALUE}, RIGHT)
    assert unseal(data, RIGHT) == {"<EMAIL:aaaaaaaaaa>": VALUE}
    at = len(MAGIC)
    with pytest.raises(CannotOpen):
        unseal(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], RIGHT)
    assert seal({}, RIGHT) != seal({}, RIGHT)
