"""Which MCP servers a session has, and what ``run --allow`` may say of them before anything is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sandbox_chat import headless
from sandbox_chat.cli import main
from sandbox_chat.engine_servers import make_servers, server_configs, servers_on
from sandbox_chat.settings import ConfigError, Servers, Settings


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No servers and no settings but those of the test."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path / "data"))
    for name in ("SANDBOX_CHAT_MCP", "SANDBOX_CHAT_MCP_CONFIG", "SANDBOX_CHAT_SANDBOX_MCP"):
        monkeypatch.delenv(name, raising=False)


def settings_with(folder: Path, *names: str, **values: object) -> Settings:
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {name: {"command": sys.executable} for name in names}}))
    return Settings(data_dir=folder / "data", mcp_config=path, **values)  # type: ignore[arg-type]


def test_none_are_made_where_none_are_on(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert server_configs(settings, []) == [] and servers_on(settings) == []
    assert make_servers([], settings, None, lambda _: None) is None


def test_those_of_a_file_and_those_in_the_sandbox(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, "notes", "my.server", sandbox_mcp=Servers({"time": {}}))
    assert servers_on(settings) == ["notes", "my.server", "gateway"]
    warnings: list[str] = []
    configs = server_configs(settings, warnings)
    assert warnings == [] and [each.name for each in configs] == ["notes", "my.server"]
    assert make_servers(configs, settings, None, lambda _: None) is not None  # none of them is started


def test_allowing_looks_at_the_servers_that_are_on(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, "notes")
    assert headless.check_allowed(["overwrite", "mcp"], settings) is None
    assert headless.check_allowed(["mcp:notes", "mcp:notes/add"], settings) is not None
    with pytest.raises(ConfigError, match=r"no MCP server nope .* which are notes\."):
        headless.check_allowed(["mcp:notes", "mcp:nope"], settings)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mcp:nope", "--allow mcp:nope: there is no MCP server nope in this chat, for none is on."),
        ("mcp:nope/tool", "--allow mcp:nope/tool: there is no MCP server nope in this chat, for none is on."),
        ("xyz", "must be overwrite, mcp, mcp:SERVER or mcp:SERVER/TOOL."),
        ("mcp:", "must be overwrite, mcp, mcp:SERVER or mcp:SERVER/TOOL."),
    ],
)
def test_a_mistake_in_allow_is_one_line_and_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, said: str
) -> None:
    assert main(["run", "--demo", "--sandbox", "off", "--allow", word, "hello"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and said in shown.err
    assert not (tmp_path / "data" / "sessions").exists()
