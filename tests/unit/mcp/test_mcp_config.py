"""Which servers are on, from where, and that a folder starts none by itself."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.mcp import catalog
from sandbox_chat.mcp.base import ServerConfig
from sandbox_chat.mcp.config import load_servers, look, not_taken, program_problem
from sandbox_chat.settings import ConfigError, Secret, Settings, load


class Place:
    """A configuration folder, a working folder and an environment of the test's own."""

    def __init__(self, root: Path) -> None:
        self.config, self.work, self.data = root / "config", root / "work", root / "data"
        for each in (self.config, self.work):
            each.mkdir()
        self.environ = {
            "SANDBOX_CHAT_CONFIG_DIR": str(self.config),
            "SANDBOX_CHAT_DATA_DIR": str(self.data),
            "PATH": str(root / "bin"),
            "HOME": str(root),
        }

    def own(self, **servers: Any) -> Path:
        return self.put(self.config / "mcp.json", servers)

    def put(self, path: Path, servers: Any) -> Path:
        path.write_text(json.dumps({"mcpServers": servers}))
        path.chmod(0o600)
        return path

    def settings(self, **overrides: Any) -> Settings:
        return load(overrides, environ=self.environ, folder=self.work)

    def load(self, **overrides: Any) -> tuple[list[ServerConfig], list[str]]:
        warnings: list[str] = []
        found = load_servers(self.settings(**overrides), self.environ, self.work, warnings)
        return found, warnings

    def names(self, **overrides: Any) -> list[str]:
        return [config.name for config in self.load(**overrides)[0]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_is_on_by_itself(place: Place) -> None:
    assert place.load() == ([], [])


def test_what_was_added_is_on_unless_disabled(place: Place) -> None:
    path = place.own(a={"command": "x"}, b={"command": "y", "disabled": True}, c={"url": "https://h/"})
    assert place.names() == ["a", "c"]
    assert place.load()[0][0].source == str(path)
    assert place.names(mcp="b") == ["a", "b", "c"]
    assert place.names(mcp="off") == []
    assert place.names(mcp="off,c") == ["c"]


def test_what_is_installed_anew_is_started_where_it_lies_now(place: Place) -> None:
    home = place.data / "mcp" / "servers" / "time"

    def put(folder: str) -> Path:
        shutil.rmtree(home, ignore_errors=True)
        program = home / folder / "bin" / "mcp-server-time"
        program.parent.mkdir(parents=True)
        for name in ("mcp-server-time", "python"):
            program.with_name(name).write_text("")
        told = {"format": 1, "package": "mcp-server-time", "folder": folder, "program": "bin/mcp-server-time"}
        (home / "installed.json").write_text(json.dumps(told))
        return program

    place.own(clock={"catalogue": "time", "properties": {"timezone": "UTC"}})
    old = put("env-1")
    [config], _ = place.load()
    assert config.command[0] == str(old)
    for folder in ("env-2", "env-3"):
        new = put(folder)
        assert config.renewed is not None
        config = config.renewed()
        assert (config.name, config.command[0]) == ("clock", str(new))
        assert any("UTC" in word for word in config.command)
    shutil.rmtree(home)
    (place.config.parent / "bin").mkdir()
    fetcher = place.config.parent / "bin" / "uvx"
    fetcher.write_text("")
    fetcher.chmod(0o755)
    assert config.renewed is not None
    config = config.renewed()  # removed: it is not fetched instead
    assert fetcher.name not in config.command[0]
    assert config.renewed is not None and config.renewed().command[0] != str(fetcher)
    again = put("env-4")
    assert config.renewed().command[0] == str(again)


def test_a_further_file(place: Place, tmp_path: Path) -> None:
    place.own(a={"command": "mine"})
    further = place.put(tmp_path / "more.json", {"a": {"command": "theirs"}, "d": {"command": "z"}})
    found, warnings = place.load(mcp_config=str(further))
    assert [(config.name, config.command, config.source) for config in found] == [
        ("a", ("mine",), str(place.config / "mcp.json")),
        ("d", ("z",), str(further)),
    ]
    assert warnings == []
    survey = look(place.settings(mcp_config=str(further)), place.environ, place.work)
    assert survey.servers["a"].hides == (str(further),)
    with pytest.raises(ConfigError, match=r"There is no file .*/nowhere\.json with MCP servers"):
        place.load(mcp_config=str(tmp_path / "nowhere.json"))


def test_one_s_own_wins_over_the_catalogue(place: Place) -> None:
    place.own(time={"command": "my-clock"})
    assert place.load()[0][0].command == ("my-clock",)
    assert look(place.settings(), place.environ, place.work).servers["time"].hides == ("catalogue",)


def test_one_of_the_catalogue(place: Place, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("mcp-server-time", "mcp-server-git"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    [config] = place.load(mcp="time")[0]
    assert (config.name, config.source) == ("time", "catalogue")
    assert config.command[0].endswith("mcp-server-time")
    place.own(
        work={
            "catalogue": "git",
            "properties": {"repository": "${REPO}"},
            "env": {"A": "${B:-1}"},
            "timeout": 7,
            "cwd": "sub",
        }
    )
    place.environ["REPO"] = str(tmp_path)
    [config] = place.load()[0]
    assert config.name == "work"
    assert config.command[0].endswith("mcp-server-git")
    assert str(tmp_path) in config.command
    assert config.env["A"].reveal() == "1"
    assert (config.call_timeout, config.cwd) == (7, place.config / "sub")
    assert config.source == str(place.config / "mcp.json")


def test_one_that_is_wrong_does_not_lose_the_others(place: Place) -> None:
    place.own(
        a={"command": "x"},
        b={"command": 5},
        c={"command": "${NO}"},
        d={"catalogue": "tim"},
        e={"url": "http://h/"},
        **{"f g": {"command": "x"}},
        z={"command": "y", "unknown": 1},
    )
    found, warnings = place.load()
    assert [config.name for config in found] == ["a", "z"]
    text = "\n".join(warnings)
    assert len(warnings) == 6
    assert "command of the server b" in text
    assert "needs the variable NO" in text
    assert "Did you mean time?" in text
    assert "is not encrypted" in text
    assert "is called 'f g'" in text
    assert "unknown of the server z" in text


@pytest.mark.parametrize(
    ("name", "part"),
    [("b", "command of the server b"), ("c", "needs the variable NO"), ("tiem", "Did you mean time?"), ("zzz", "There is no MCP server 'zzz' (named by the command line). See: sandbox-chat mcp list")],
)  # fmt: skip
def test_one_that_was_named_must_be_had(place: Place, name: str, part: str) -> None:
    place.own(b={"command": 5}, c={"command": "${NO}"})
    with pytest.raises(ConfigError) as caught:
        place.load(mcp=name)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_file_is_said(place: Place) -> None:
    (place.config / "mcp.json").write_text("{\n,")
    with pytest.raises(ConfigError, match="is not valid JSON: line 2"):
        place.load()
    assert place.load(mcp="off") == ([], [])


def test_there_is_a_most(place: Place, tmp_path: Path) -> None:
    place.own(**{f"a{n}": {"command": "x"} for n in range(40)})
    further = place.put(tmp_path / "more.json", {f"b{n}": {"command": "x"} for n in range(25)})
    with pytest.raises(ConfigError, match="65 MCP servers are on; 64 are the most"):
        place.load(mcp_config=str(further))


# --- a folder that came from somewhere -------------------------------------------------------------------


def test_nothing_of_the_folder_is_started(place: Place) -> None:
    path = place.put(place.work / ".mcp.json", {"evil": {"command": "evil"}, "time": {"command": "evil"}})
    assert place.load() == ([], [])
    with pytest.raises(ConfigError, match="There is no MCP server 'evil'"):
        place.load(mcp="evil")
    place.own(mine={"command": "x"})
    assert place.names() == ["mine"]
    found = not_taken(place.settings(), place.work, [])
    assert [(each.name, each.origin, each.source, each.on) for each in found] == [
        ("evil", "folder", str(path), False),
        ("time", "folder", str(path), False),
    ]


def test_a_broken_file_of_the_folder_does_not_matter(place: Place) -> None:
    (place.work / ".mcp.json").write_text("{")
    place.own(mine={"command": "x"})
    assert place.load()[1] == []
    warnings: list[str] = []
    assert not_taken(place.settings(), place.work, warnings) == []
    assert "is not valid JSON" in warnings[0]


@pytest.mark.parametrize("named", [".mcp.json", "sub/../.mcp.json", "link.json"])
def test_a_folder_cannot_name_its_own_file(place: Place, named: str) -> None:
    place.put(place.work / ".mcp.json", {"evil": {"command": "evil"}})
    (place.work / "link.json").symlink_to("/etc/hosts")
    (place.work / ".env").write_text(f"SANDBOX_CHAT_MCP_CONFIG={named}\n")
    assert place.load() == ([], [])
    assert any("SANDBOX_CHAT_MCP_CONFIG in " in warning for warning in place.settings().warnings)


def test_the_user_can_name_it(place: Place, tmp_path: Path) -> None:
    place.put(place.work / ".mcp.json", {"tool": {"command": "x"}})
    place.environ["SANDBOX_CHAT_MCP_CONFIG"] = ".mcp.json"
    assert place.names() == ["tool"]
    assert not_taken(place.settings(), place.work, []) == []
    del place.environ["SANDBOX_CHAT_MCP_CONFIG"]
    outside = place.put(tmp_path / "mine.json", {"other": {"command": "x"}})
    place.environ["SANDBOX_CHAT_MCP_CONFIG"] = str(outside)
    assert place.names() == ["other"]


def test_a_folder_does_not_decide_what_a_server_is(place: Place) -> None:
    """Neither by naming one, nor by a data folder with programs of its own, nor by what lies in it."""
    data = place.work / "data"
    listed = catalog.load()["time"]
    for path in (data / "mcp" / "servers" / "time" / "e" / "bin", place.work / "bin"):
        path.mkdir(parents=True)
        for name in ("mcp-server-time", "python", "uvx"):
            (path / name).touch(0o700)
    told = {"format": 1, "package": listed.package, "folder": "e", "program": "bin/mcp-server-time"}
    (data / "mcp" / "servers" / "time" / "installed.json").write_text(json.dumps(told))
    del place.environ["SANDBOX_CHAT_DATA_DIR"]
    (place.work / ".env").write_text(f"SANDBOX_CHAT_DATA_DIR={data}\nSANDBOX_CHAT_MCP=time\n")
    assert place.load() == ([], [])
    assert not place.settings().data_path.is_relative_to(place.work)
    place.environ |= {
        "SANDBOX_CHAT_MCP": "time",
        "PATH": f"bin{os.pathsep}{os.pathsep}{place.environ['PATH']}",
    }
    with contextlib.chdir(place.work), pytest.raises(ConfigError, match="not installed"):
        place.load()
    theirs = Path(place.environ["HOME"]) / "bin"
    theirs.mkdir()
    (theirs / "uvx").touch(0o700)
    with contextlib.chdir(place.work):
        [config] = place.load()[0]
    assert config.command[0] == str(theirs / "uvx")
    assert config.cwd == Path("/")  # and there is no .npmrc, no node_modules
    del place.environ["SANDBOX_CHAT_MCP"]
    place.own(
        mine={"command": "npx", "args": ["-y", "x"]},
        other={"command": "bin/x"},
        here={"command": "x", "cwd": "${PWD}"},
    )
    place.environ["PWD"] = str(place.work)
    assert [each.cwd for each in place.load()[0]] == [place.config, place.config, place.work]


# --- what is not there -----------------------------------------------------------------------------------


def test_programs_that_are_missing(place: Place, tmp_path: Path) -> None:
    def problem(*command: str, **more: Any) -> str:
        return program_problem(ServerConfig(name="x", command=command, **more), place.environ)

    assert problem("nothing-of-that-name") == "the program nothing-of-that-name is not installed"
    assert problem(str(tmp_path / "no")).endswith("is no program")
    (tmp_path / "text").touch(0o600)
    assert problem(str(tmp_path / "text")).endswith("is no program")
    assert problem("/bin/sh") == ""
    assert problem("sh", env={"PATH": Secret("/bin:/usr/bin")}) == ""
    assert problem("./sh", cwd=Path("/bin")) == ""
    assert "does not exist" in problem("/bin/sh", cwd=tmp_path / "gone")
    assert program_problem(ServerConfig(name="x"), place.environ) == ""
