"""The files of the MCP servers: whole or not at all, private, and no damage of theirs matters."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.mcp import kept, permission
from sandbox_chat.mcp.base import Endpoint, ServerConfig, ToolDefinition
from sandbox_chat.mcp.kept import Damaged, alone, config_key, read_json, read_tools, write_json, write_tools
from sandbox_chat.settings import Secret, Servers, Settings

TOOL = ToolDefinition(
    server="git",
    name="log",
    original="git log",
    description="…",
    schema={"type": "object"},
    output_schema={"a": 1},
)


def test_tools_are_kept_for_their_configuration(tmp_path: Path) -> None:
    path = tmp_path / "mcp" / "tools" / "git.json"
    assert read_tools(path, "k", "git") is None
    write_tools(path, "k", [TOOL])
    assert read_tools(path, "k", "git") == [TOOL]
    assert read_tools(path, "other", "git") is None
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == ["git.json"]


def test_what_is_kept_is_clean_when_it_is_read(tmp_path: Path) -> None:
    write_tools(tmp_path / "x.json", "k", [dataclasses.replace(TOOL, description="a\x1b]52;c;\u202e")])
    [tool] = read_tools(tmp_path / "x.json", "k", "git") or []
    assert tool.description == "a␛]52;c;<U+202E>"


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"version": 2}', "\x00", "[" * 100_000,
        '{"version":1,"key":"k"}', '{"version":1,"key":"k","tools":5}', '{"version":1,"key":"k","tools":[5]}',
        '{"version":1,"key":"k","tools":[{"name":5,"original":"","description":"","schema":{},"output_schema":null,"read_only":true}]}',
        '{"version":1,"key":"k","tools":[{"name":"","original":"","description":"","schema":[],"output_schema":null,"read_only":true}]}',
        '{"version":1,"key":"k","tools":[{"name":"a b","original":"a","description":"","schema":{},"output_schema":null,"read_only":true}]}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_no_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert read_tools(path, "k", "git") is None


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert read_json(tmp_path / "none.json") == {}
    with pytest.raises(Damaged):
        read_json(tmp_path)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(Damaged, match="no JSON"):
        read_json(tmp_path / "a.json")


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"a": 2})
    assert read_json(path)["a"] == 1
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]


def test_the_key_is_of_the_configuration_and_not_of_its_secrets() -> None:
    config = ServerConfig(name="git", command=("a", "b"), env={"TOKEN": Secret("one")})
    settings = Settings()
    key = config_key(config, settings)
    assert config_key(dataclasses.replace(config, env={"TOKEN": Secret("two")}), settings) == key
    for other in (
        dataclasses.replace(config, command=("a", "c")),
        dataclasses.replace(config, env={"OTHER": Secret("one")}),
        dataclasses.replace(config, command=(), endpoint=Endpoint(url="https://x.example.com")),
        dataclasses.replace(config, cwd=Path("/tmp")),
    ):
        assert config_key(other, settings) != key
    inside = ServerConfig(name="gateway", place="sandbox")
    assert config_key(inside, Settings(sandbox_mcp=Servers({"time": {}}))) != config_key(inside, settings)


async def nobody(_: object) -> str:
    pytest.fail("it asked")


def test_what_two_programs_allow_at_the_same_time_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp" / "pins.json"

    def slowly(*arguments: Any) -> None:
        time.sleep(0.02)  # the others read meanwhile what this one is about to replace
        write_json(*arguments)

    monkeypatch.setattr(permission, "write_json", slowly)

    def allow(name: str) -> None:
        tool = dataclasses.replace(TOOL, name=name, original=name)
        decides = permission.Permission(Settings(mcp_allow=("git/*",)), path)
        assert asyncio.run(decides.refusal(ServerConfig(name="git"), tool, "{}", "c", nobody)) == ""

    together = [threading.Thread(target=allow, args=(f"tool{number}",)) for number in range(6)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert sorted(read_json(path)["pins"]) == [f"git/tool{number}" for number in range(6)]
    assert path.parent.stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in path.parent.iterdir())


HOLD = """
import sys
from pathlib import Path
from sandbox_chat.mcp.kept import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_another_program_is_waited_for_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pins.json"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "held\n"
        monkeypatch.setattr(kept, "LOCK_SECONDS", 0.1)
        with pytest.raises(TimeoutError, match="another program is writing it"), alone(path):
            pass
        decides = permission.Permission(Settings(mcp_allow=("git/*",)), path)
        for _ in range(2):  # it holds for this session all the same
            assert asyncio.run(decides.refusal(ServerConfig(name="git"), TOOL, "{}", "c", nobody)) == ""
        assert "another program is writing it" in caplog.text
        other.stdin.close()
    with alone(path):
        pass
