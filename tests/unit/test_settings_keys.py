"""The table ``[keys]`` of ``config.toml``: read as it is meant, its slips are told, by ``doctor`` too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox_chat import doctor
from sandbox_chat.settings import ConfigError, load
from sandbox_chat.ui import face

FILE = """
theme = "light"

[keys]
"composer.newline" = "ctrl+n"
"chat.tools" = ["ctrl+b", "f12"]
"app.theme" = ""
chat.cost = "f11"

[interface]
language = "zh"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {"SANDBOX_CHAT_CONFIG_DIR": str(folder), "HOME": str(folder)}


def test_the_keys_are_read_by_the_name_of_the_action(config: Path, tmp_path: Path) -> None:
    found = load(environ=environment(config), folder=tmp_path)
    assert found.keys == {
        "composer.newline": ("ctrl+n",),
        "chat.tools": ("ctrl+b", "f12"),
        "app.theme": (),
        "chat.cost": ("f11",),
    }
    assert (found.theme, found.language, found.warnings) == ("light", "zh", ())
    assert "keys" not in found.origins


def test_what_is_no_key_is_told(config: Path, tmp_path: Path) -> None:
    (config / "config.toml").write_text('[keys]\n"app.help" = 5\n"app.leave" = ["f10", true]\n')
    found = load(environ=environment(config), folder=tmp_path)
    assert found.keys == {}
    assert [warning.split(" in ")[0] for warning in found.warnings] == [
        "The keys of 'app.help'",
        "The keys of 'app.leave'",
    ]


def test_keys_that_are_no_table_are_an_unknown_setting(config: Path, tmp_path: Path) -> None:
    (config / "config.toml").write_text('keys = "vim"\n')
    found = load(environ=environment(config), folder=tmp_path)
    assert found.keys == {}
    assert found.warnings[0].startswith("keys in ")


def test_a_file_that_cannot_be_read_is_still_an_error(config: Path, tmp_path: Path) -> None:
    (config / "config.toml").write_text('[keys\n"a" = 1')
    with pytest.raises(ConfigError):
        load(environ=environment(config), folder=tmp_path)


def test_doctor_tells_of_slips_and_is_content_all_the_same(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (config / "config.toml").write_text('[keys]\n"composer.sned" = "f12"\n"chat.tools" = "f99"\n')
    monkeypatch.chdir(config)
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(config))
    monkeypatch.setattr(doctor, "_guarded", lambda name, check, settings: doctor.Check(name, "ok", ""))
    assert doctor.run({}, as_json=True, faults=face.faults) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(check["state"], check["text"].split(",")[0]) for check in checks if check["name"] == "keys"] == [
        ("note", "There is no action 'composer.sned' to give keys to"),
        ("note", "The key 'f99' of chat.tools is not known and was ignored. Write it like ctrl+n"),
    ]
