"""Files with MCP servers: what is read of good and of hostile ones, and that writing loses nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox_chat.mcp import server_file
from sandbox_chat.mcp.server_file import BYTES_LIMIT, change, read
from sandbox_chat.settings import ConfigError


def put(folder: Path, content: bytes | str) -> Path:
    path = folder / "mcp.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o600)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read(tmp_path / "mcp.json") is None
    assert read(tmp_path / "mcp.json" / "x") is None


@pytest.mark.parametrize("content", ["", " \n", "{}", '{"mcpServers": {}}', '\ufeff{"mcpServers": {}}'])
def test_nothing_in_it(tmp_path: Path, content: str) -> None:
    file = read(put(tmp_path, content))
    assert file is not None
    assert file.servers == {}


def test_the_servers_are_as_they_stand(tmp_path: Path) -> None:
    text = '\ufeff{"globalShortcut": 1, "mcpServers": {"b": {"command": "x"}, "a": 3}}'
    file = read(put(tmp_path, text))
    assert file is not None
    assert dict(file.servers) == {"b": {"command": "x"}, "a": 3}
    assert list(file.servers) == ["b", "a"]


def test_a_name_twice_is_told(tmp_path: Path) -> None:
    file = read(put(tmp_path, '{"mcpServers": {"a": {"command": "x"}, "b": {}, "a": {"command": "y"}}}'))
    assert file is not None
    assert file.servers["a"] == {"command": "y"}
    assert file.repeated == ("a",)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ('{"mcpServers": {\n"a": {"command": "x",}\n}}', "is not valid JSON: line 2, column"),
        ('{"mcpServers": {"a": "\x00"}}', "is not valid JSON: line 1"),
        ("[]", "has no object of servers"),
        ('"text"', "has no object of servers"),
        ('{"mcpServers": []}', "has no object of servers"),
        ('{"servers": {"a": {}}}', 'Its form is {"mcpServers"'),
        ("[" * 200_000, "lie deeper than 16"),
        ('{"mcpServers": {"a": {"env": ' + "[" * 20 + "]" * 20 + "}}}", "lie deeper than 16"),
        ('{"mcpServers": {"a": ' + "9" * 5000 + "}}", "a number that is too long"),
        (b'{"mcpServers": {"a": "\xff\xfe"}}', "is not UTF-8 text"),
        ('{"mcpServers": {}}'.encode("utf-16"), "is not UTF-8 text"),
        (b"{" + b" " * 10_000_000, "is larger than 1 MB"),
        (json.dumps({"mcpServers": {f"s{n}": {} for n in range(65)}}), "holds 65 servers; 64 are the most"),
    ],
    ids=range(13),
)
def test_what_cannot_be_used_is_one_sentence(tmp_path: Path, content: str | bytes, part: str) -> None:
    assert part in refused(put(tmp_path, content))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    os.mkfifo(path, 0o600)
    assert refused(path) == f"{path} is not a file."
    path.unlink()
    path.mkdir()
    assert refused(path) == f"{path} is not a file."
    path.rmdir()
    path.symlink_to("mcp.json")
    assert "Too many levels" in refused(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "is not a file" in refused(path)
    with pytest.raises(ConfigError, match="its name is not valid"):
        read(tmp_path / "a\0b")


def test_a_file_that_everybody_may_change_is_not_believed(tmp_path: Path) -> None:
    path = put(tmp_path, '{"mcpServers": {}}')
    path.chmod(0o666)
    assert "chmod o-w" in refused(path)
    with pytest.raises(ConfigError, match="chmod o-w"):
        change(path, lambda servers: servers.update(a={}))


# --- writing ---------------------------------------------------------------------------------------------


def adding(name: str, raw: Any) -> Any:
    return lambda servers: servers.__setitem__(name, raw)


def test_a_new_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "mcp.json"
    change(path, adding("a", {"command": "x"}))
    assert json.loads(path.read_text()) == {"mcpServers": {"a": {"command": "x"}}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]


def test_what_is_not_known_is_kept(tmp_path: Path) -> None:
    path = put(tmp_path, '{"x": [1, {"ü": null}], "mcpServers": {"b": 5, "a": {"new": "${T}"}}, "y": 1.5}')
    path.chmod(0o644)
    change(path, adding("c", {"command": "é"}))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found == {
        "x": [1, {"ü": None}],
        "mcpServers": {"b": 5, "a": {"new": "${T}"}, "c": {"command": "é"}},
        "y": 1.5,
    }
    assert list(found["mcpServers"]) == ["b", "a", "c"]
    assert "é" in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = put(tmp_path, "{}")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    change(link, adding("a", {"command": "x"}))
    assert link.is_symlink()
    assert "a" in json.loads(real.read_text())["mcpServers"]


def test_half_a_character_survives(tmp_path: Path) -> None:
    path = put(tmp_path, '{"x": "\\ud800", "mcpServers": {}}')
    change(path, adding("a", {}))
    assert json.loads(path.read_text())["x"] == "\ud800"


@pytest.mark.parametrize(
    "content", ['{"mcpServers": {"a": 1,}}', '{"mcpServers": 3}', '{"a": {"b": 1, "b": 2}}']
)
def test_a_file_that_is_not_understood_is_left(tmp_path: Path, content: str) -> None:
    path = put(tmp_path, content)
    with pytest.raises(ConfigError):
        change(path, adding("a", {}))
    assert path.read_text() == content
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_nothing_is_written_when_it_would_be_too_much(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps({"mcpServers": {f"s{n}": {} for n in range(64)}}))
    before = path.read_text()
    with pytest.raises(ConfigError, match="more than 64"):
        change(path, adding("one-more", {}))
    with pytest.raises(ConfigError, match="larger than 1 MB"):
        change(path, adding("s1", {"command": "x" * BYTES_LIMIT}))
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_full_disk_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, '{"mcpServers": {"b": {}}}')

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        change(path, adding("a", {}))
    assert path.read_text() == '{"mcpServers": {"b": {}}}'
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_place_that_is_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="could not be written"):
        change(tmp_path / "file" / "mcp.json", adding("a", {}))


ADD_MANY = """
import sys
from pathlib import Path
from sandbox_chat.mcp.server_file import change
for number in range(10):
    change(Path(sys.argv[1]), lambda servers: servers.update({f"{sys.argv[2]}{number}": {"command": "x"}}))
"""


def test_two_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    writers = [subprocess.Popen([sys.executable, "-c", ADD_MANY, str(path), word]) for word in "ab"]
    for writer in writers:
        assert writer.wait(60) == 0
    assert len(json.loads(path.read_text())["mcpServers"]) == 20


def test_one_that_holds_the_lock_is_not_waited_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_file, "LOCK_SECONDS", 0.0)
    with server_file._alone(tmp_path), pytest.raises(ConfigError, match="Another program is writing"):
        change(tmp_path / "mcp.json", adding("a", {}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.text(max_size=6), JSON, max_size=3), JSON)
def test_whatever_stands_there_is_kept_or_refused(others: dict[str, Any], servers: Any) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder), json.dumps({**others, "mcpServers": servers}))
        try:
            change(path, adding("mine", {"command": "x"}))
        except ConfigError:
            assert json.loads(path.read_text()) == {**others, "mcpServers": servers}
            return
        assert json.loads(path.read_text()) == {
            **others,
            "mcpServers": {**servers, "mine": {"command": "x"}},
        }
