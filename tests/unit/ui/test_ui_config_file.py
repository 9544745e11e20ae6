"""Settings that are remembered: only their lines change, and only the owner can read them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandbox_chat.settings import ConfigError
from sandbox_chat.ui.config_file import changed, remember


def test_a_new_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "config" / "config.toml"
    remember(path, {"anthropic_api_key": 'sk-"quoted"\\', "demo": False})
    assert path.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(path.read_text()) == {"anthropic_api_key": 'sk-"quoted"\\', "demo": False}


def test_comments_and_the_rest_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('# mine\ntheme = "light"\nmodel = "old"  # was good\n\n[sandbox]\nrun_timeout = 20\n')
    remember(path, {"model": "new", "anthropic_base_url": "http://127.0.0.1:1"})
    text = path.read_text()
    assert "# mine" in text
    assert tomllib.loads(text) == {
        "theme": "light",
        "model": "new",
        "anthropic_base_url": "http://127.0.0.1:1",
        "sandbox": {"run_timeout": 20},
    }


def test_a_key_in_a_table_is_changed_there() -> None:
    text = changed('[model]\nmodel = "old"\n', {"model": "new"})
    assert tomllib.loads(text) == {"model": {"model": "new"}}


@pytest.mark.parametrize(
    "text",
    ['model = """\nold\n"""\n', 'note = """\nmodel = 1\n"""\n', "model = [\n 1,\n]\n", "broken = = 1\n"],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="could not be kept"):
        remember(path, {"model": "new"})
    assert path.read_text() == text
    assert [item.name for item in tmp_path.iterdir()] == ["config.toml"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"could not be kept in .*config\.toml"):
        remember(tmp_path / "file" / "config.toml", {"model": "x"})
