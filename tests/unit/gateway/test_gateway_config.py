"""The configuration and the catalogue of the gateway."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.gateway import catalog, config
from sandbox_chat.gateway.errors import ConfigError


def entry(**more: Any) -> catalog.Entry:
    """An entry of a catalogue that starts this Python."""
    [made] = catalog.read({"servers": {"mine": {"command": [sys.executable], **more}}}).values()
    return made


def arguments(made: catalog.Entry, given: dict[str, Any]) -> list[str]:
    """What stands after the program."""
    return list(made.command_line(made.values(given)))[1:]


def test_every_entry_of_the_catalogue_is_whole() -> None:
    entries = catalog.load(None)
    assert {"duckduckgo", "arxiv", "fetch", "time", "filesystem", "memory", "sequentialthinking"} <= set(
        entries
    )
    for name, made in entries.items():
        assert made.description.endswith("."), name
        assert made.registry in ("pypi", "npm")
        assert all(prop.description.endswith(".") for prop in made.properties.values())


def test_arguments_fall_away_expand_and_depend() -> None:
    made = entry(
        arguments=[
            "a", "--zone={{zone}}", ["--path", "{{path}}"], "{{many}}", ["--each={{many}}"],
            {"if": "flag", "arguments": ["--flag"]}, "{{count}}/{{zone}}",
        ],
        properties={
            "zone": {"type": "string"}, "path": {"type": "string"}, "many": {"type": "array"},
            "flag": {"type": "boolean"}, "count": {"type": "number", "default": 3},
        },
    )  # fmt: skip
    assert arguments(made, {}) == ["a"]
    assert arguments(made, {"zone": "Z"}) == ["a", "--zone=Z", "3/Z"]
    assert arguments(made, {"many": ["x", 2], "flag": True, "path": ""}) == [
        "a", "--path", "", "x", "2", "--each=x", "--each=2", "--flag",
    ]  # fmt: skip
    assert arguments(made, {"many": [], "flag": False}) == ["a"]
    assert arguments(made, {"zone": "{{count}}", "count": 1.5}) == ["a", "--zone={{count}}", "1.5/{{count}}"]


def test_properties_become_variables() -> None:
    made = entry(
        environment={"KEY": "{{key}}", "FIXED": "1"},
        properties={"key": {"type": "string"}, "n": {"type": "number"}},
    )
    assert made.variables({}) == {"FIXED": "1"}
    assert made.variables({"key": "k"}) == {"KEY": "k", "FIXED": "1"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 1), ("string", ["x"]), ("number", "1"), ("number", True), ("boolean", 1), ("boolean", "true"),
        ("array", "x"), ("array", [None]), ("array", [True]), ("string", "a\0b"), ("array", ["a\0"]),
    ],
)  # fmt: skip
def test_types_of_properties(kind: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"mine: the property x"):
        entry(properties={"x": {"type": kind}}).values({"x": value})


@pytest.mark.parametrize("value", [None, "", []])
def test_what_is_required_must_be_there(value: Any) -> None:
    kind = "array" if value == [] else "string"
    with pytest.raises(ConfigError, match="x"):
        entry(properties={"x": {"type": kind, "required": True}}).values({"x": value})


def program(folder: Path, name: str) -> str:
    """An executable file."""
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_an_installed_program_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    entries = catalog.load(None)
    time, files, data = entries["time"], entries["filesystem"], entries["sqlite"]
    for made, given, words in (
        (time, {}, "pip install mcp-server-time"),
        (files, {"paths": ["/a"]}, "npm install -g @modelcontextprotocol/server-filesystem"),
        (data, {"path": "/x"}, "pip install mcp-server-sqlite 'mcp<2'"),
    ):
        with pytest.raises(ConfigError, match="is not installed") as refused:
            made.command_line(made.values(given))
        assert words in str(refused.value)
    uvx, npx = program(tmp_path, "uvx"), program(tmp_path, "npx")
    assert time.command_line({}) == (uvx, "mcp-server-time")
    assert time.command_line({"timezone": "UTC"}) == (uvx, "mcp-server-time", "--local-timezone=UTC")
    assert data.command_line({"path": "/x"}) == (
        uvx,
        "--with",
        "mcp<2",
        "mcp-server-sqlite",
        "--db-path",
        "/x",
    )
    package = "@modelcontextprotocol/server-filesystem"
    assert files.command_line({"paths": ["/a", "/b"]}) == (npx, "-y", package, "/a", "/b")
    on_path = program(tmp_path, "mcp-server-time")
    assert time.command_line({})[0] == on_path
    (tmp_path / "env").mkdir()
    beside = program(tmp_path / "env", "mcp-server-time")
    assert time.command_line({})[0] == beside


def test_a_catalogue_beside_adds_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    own = {
        "time": {"command": ["sh", "-c", "x"]},
        "new": {"registry": "npm", "package": "p", "executable": "q"},
    }
    path.write_text(json.dumps({"servers": own}))
    entries = catalog.load(path)
    assert entries["time"].command == ("sh", "-c", "x")
    assert entries["new"].executable == "q"
    assert "fetch" in entries
    assert catalog.load(tmp_path / "none") == catalog.load(None)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"servers": []}', '{"servers": {"a": 1}}', '{"servers": {"a": {}}}',
        '{"servers": {"a": {"registry": "cargo", "package": "x"}}}', '{"servers": {"a": {"registry": "npm"}}}',
        '{"servers": {"a": {"command": "x"}}}', '{"servers": {"a": {"command": []}}}',
        '{"servers": {"a": {"command": ["x"], "arguments": [1]}}}',
        '{"servers": {"a": {"command": ["x"], "arguments": [{"if": 1, "arguments": []}]}}}',
        '{"servers": {"a": {"command": ["x"], "environment": {"A": 1}}}}',
        '{"servers": {"a": {"command": ["x"], "properties": {"p": {"type": "date"}}}}}',
        '{"servers": {"a": {"command": ["x"], "properties": {"p": {"type": "number", "default": "1"}}}}}',
        '{"servers": {"a": {"command": ["x"], "with": "y"}}}', "[" * 100_000, "\udcff",
    ],
)  # fmt: skip
def test_a_bad_catalogue_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "catalog.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=r"The catalogue .*catalog\.json"):
        catalog.load(path)


def test_a_catalogue_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        catalog.load(tmp_path)
    (tmp_path / "large").write_bytes(b" " * (1 << 20) + b"{}")
    with pytest.raises(ConfigError, match="larger"):
        catalog.load(tmp_path / "large")


def test_the_three_kinds_of_servers() -> None:
    entries = {"mine": entry(properties={"x": {"type": "string"}}, environment={"X": "{{x}}"})}
    made, warnings = config.plans(
        {
            "mine": {"x": "1", "runCmd": "ignored", "envs": {"Y": "2"}},
            "own one": {"runCmd": "run it", "envs": {"A_1": "ü"}},
            "github/Own.er/re-po_": {"runCmd": "run", "installCmd": " make ", "extra": 1},
        },
        entries,
    )
    github, mine, own = made
    assert (github.repository, github.install, github.command[-1]) == ("Own.er/re-po_", "make", "run")
    assert mine.command == (sys.executable,)
    assert mine.environment == {"X": "1", "Y": "2"}
    assert own.command == ("/bin/sh", "-c", "run it")
    assert own.environment == {"A_1": "ü"}
    assert [text.partition(":")[0] for text in warnings] == ["github/Own.er/re-po_", "mine"]
    assert [config.Plan.from_json(json.loads(json.dumps(plan.to_json()))) for plan in made] == made


def test_null_is_no_properties() -> None:
    [plan], warnings = config.plans({"mine": None}, {"mine": entry()})
    assert plan.command == (sys.executable,)
    assert not warnings
    assert config.plans({}, {}) == ([], [])


def test_all_complaints_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        config.plans({f"s{number}": 1 for number in range(20)}, {})
    assert str(refused.value).count("must be an object") == 10
    assert "and 10 more" in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "nul", "[1]", "1", '{"a": {"b": 1, "b": 2}}', "{" * 5000, " " * (1 << 20) + "{}", '{"a": NaN'], ids=range(8)
)  # fmt: skip
def test_text_that_is_no_configuration(text: str) -> None:
    with pytest.raises(ConfigError, match="configuration"):
        config.parse(text)


@pytest.mark.parametrize("name", ["a\x7f", "\u2028", "a\x1b[31m", "\ud800", " ", "x" * 129, "github/", "github//", "github/./a", "github/a/.."])  # fmt: skip
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config.plans({name: {"runCmd": "true"}}, {})
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("envs", [{"": "x"}, {"A-B": "x"}, {"1": "x"}, {"Ä": "x"}, {"A": None}, {"A": "\0"}, {"A": "\ud800"}, "A=1", []])  # fmt: skip
def test_variables_that_are_none(envs: Any) -> None:
    with pytest.raises(ConfigError, match="envs"):
        config.plans({"a": {"runCmd": "true", "envs": envs}}, {})


@pytest.mark.parametrize("sign", ["\0", "\ud800"])
def test_what_no_program_can_be_given_is_said(sign: str) -> None:
    for name, raw, place in (
        ("a", {"runCmd": f"x{sign}"}, "runCmd"),
        ("github/a/b", {"runCmd": "x", "installCmd": sign}, "installCmd"),
        ("a", {"runCmd": "x", "envs": {"A": sign}}, "the value of A in envs"),
    ):
        with pytest.raises(
            ConfigError, match=f"{name}: {place} must not hold NUL characters or half characters"
        ):
            config.plans({name: raw}, {})


def test_values_of_variables_are_in_no_complaint() -> None:
    with pytest.raises(ConfigError) as refused:
        config.plans(
            {"a": {"envs": {"KEY": "very-secret"}}, "b": {"runCmd": 1, "envs": {"K": "very-secret"}}}, {}
        )
    assert "very-secret" not in str(refused.value)
