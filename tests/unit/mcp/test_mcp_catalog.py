"""The catalogue: its form, how its servers are started, and where their credentials go."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import catalogue_check, catalogue_doc
from support.catalogue_trials import TRIALS

from sandbox_chat.mcp import catalog, program
from sandbox_chat.mcp.catalog import CatalogEntry
from sandbox_chat.mcp.properties import DATA, LISTS, named
from sandbox_chat.settings import ConfigError

ENTRIES = catalog.load()
NAMED = {
    "filesystem", "git", "memory", "fetch", "everything", "time", "sequential-thinking", "sqlite", "postgres", "postgres-mcp",
    "redis", "mongodb", "greptimedb", "semgrep", "puppeteer", "sentry", "unstructured", "mcp-installer",
}  # fmt: skip
PASSWORD = "hunter2hunter2"


def executable(folder: Path, *names: str) -> dict[str, str]:
    """Programs of these names; returns the environment that finds them, and no others."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def installed_at(data: Path, entry: CatalogEntry, name: str) -> Path:
    """What an installation leaves."""
    home = program.folder(entry, data)
    path = home / "env-1" / name
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o755)
    (path.parent / "python").write_text("")
    told = {
        "format": 1,
        "package": entry.package,
        "version": entry.version,
        "folder": "env-1",
        "program": name,
    }
    (home / program.INSTALLED).write_text(json.dumps(told))
    return path


def test_the_eighteen_are_there_and_tried() -> None:
    assert set(ENTRIES) == NAMED == set(TRIALS)


@pytest.mark.parametrize("name", ENTRIES)
def test_each_is_told_of_fully(name: str) -> None:
    entry = ENTRIES[name]
    assert entry.about.endswith(".") and entry.risk.endswith(".")
    assert re.fullmatch(r">=\d+(\.\d+)?", entry.runtime)
    assert re.fullmatch(r"[\w.]+", entry.version)
    for item in entry.properties.values():
        assert item.about.endswith("."), item.name
        assert not (item.default and str(item.default).startswith(DATA) and item.kind in LISTS)
    for group in entry.arguments:
        for part in group:
            lists = [each for each in named(part) if entry.properties[each].kind in (*LISTS, "flag")]
            assert not lists or part == "{{" + lists[0] + "}}", "a list or a flag stands alone"


@pytest.mark.parametrize("name", ENTRIES)
def test_what_was_checked_is_whole(name: str) -> None:
    checked = ENTRIES[name].checked
    assert checked.started or checked.reason
    assert bool(checked.called) == bool(checked.found)
    assert checked.answered or checked.reason
    assert len(set(checked.tools)) == len(checked.tools)


def test_the_file_stands_as_it_is_written() -> None:
    text = catalog.FILE.read_text(encoding="utf-8")
    assert catalogue_check.formed(json.loads(text)) == text


def test_the_document_is_made_of_it() -> None:
    assert catalogue_doc.written() == catalogue_doc.generated(), (
        "run: python tests/support/catalogue_doc.py --write"
    )


def test_what_is_installed_here_comes_first(tmp_path: Path) -> None:
    entry = ENTRIES["time"]
    environ = executable(tmp_path / "bin", "mcp-server-time", "uvx")
    ours = installed_at(tmp_path, entry, "bin/mcp-server-time")
    assert entry.config({}, environ, tmp_path).command == (str(ours),)
    (ours.parent / "python").unlink()  # the Python that it was made with has gone
    assert entry.config({}, environ, tmp_path).command == (str(tmp_path / "bin/mcp-server-time"),)


def test_a_program_of_node_is_started_by_node(tmp_path: Path) -> None:
    entry = ENTRIES["everything"]
    environ = executable(tmp_path / "bin", "node", "npx")
    ours = installed_at(tmp_path, entry, "node_modules/x/index.js")
    assert entry.config({}, environ, tmp_path).command == (str(tmp_path / "bin/node"), str(ours), "stdio")


def test_what_fetches_gets_the_version_that_was_tried(tmp_path: Path) -> None:
    environ = executable(tmp_path, "uvx", "npx") | {
        "UV_INDEX_URL": "https://u:p@host/x",
        "ANTHROPIC_API_KEY": "k",
    }
    sqlite = ENTRIES["sqlite"].config({"database": str(tmp_path / "a.db")}, environ)
    assert sqlite.command == (
        str(tmp_path / "uvx"), "--with", "mcp<2", "--from", "mcp-server-sqlite==2025.4.25", "mcp-server-sqlite",
        "--db-path", str(tmp_path / "a.db"),
    )  # fmt: skip
    assert set(sqlite.env) == {"UV_INDEX_URL"}
    everything = ENTRIES["everything"].config({}, environ)
    assert everything.command == (
        str(tmp_path / "npx"), "--yes", "--package=@modelcontextprotocol/server-everything@2026.8.31", "--",
        "mcp-server-everything", "stdio",
    )  # fmt: skip
    command = ENTRIES["unstructured"].config({}, {**environ, "UNSTRUCTURED_API_KEY": "k"}).command
    assert command[1:3] == ("--python", ">=3.12")


def test_nothing_to_start_it_with_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"time is not installed\. Install it with: sandbox-chat mcp add time"
    ):
        ENTRIES["time"].config({}, {"PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match="it needs node and npm"):
        ENTRIES["memory"].config({}, {"PATH": str(tmp_path)}, tmp_path)
    environ = executable(tmp_path, "uvx") | {"DATABASE_URI": "postgresql://host/x"}
    with pytest.raises(ConfigError, match="not installed"):  # uvx cannot replace what it asks for in vain
        ENTRIES["postgres-mcp"].config({}, environ)


@pytest.mark.parametrize(
    "name", [name for name, entry in ENTRIES.items() if any(p.secret for p in entry.properties.values())]
)
@pytest.mark.parametrize("given", [True, False])
def test_a_credential_is_never_in_the_command(name: str, given: bool, tmp_path: Path) -> None:
    entry = ENTRIES[name]
    environ = executable(tmp_path / "bin", "node", "npx", "uvx", entry.program)
    installed_at(tmp_path, entry, f"bin/{entry.program}")
    secrets = [item for item in entry.properties.values() if item.secret]
    address = f"redis://u:{PASSWORD}@host:1/x"
    told = {
        item.name if given else item.variable: address if item.kind == "url" else PASSWORD for item in secrets
    }
    config = entry.config(told if given else {}, environ if given else environ | told, tmp_path)
    assert PASSWORD not in " ".join(config.command)
    assert PASSWORD not in repr(config)
    assert any(PASSWORD in value for value in config.secrets())


def test_a_credential_as_an_argument_needs_an_installed_server(tmp_path: Path) -> None:
    environ = executable(tmp_path, "npx", "node") | {"REDIS_URL": f"redis://:{PASSWORD}@host:1"}
    with pytest.raises(ConfigError, match="sandbox-chat mcp add redis") as error:
        ENTRIES["redis"].config({}, environ, tmp_path)
    assert PASSWORD not in str(error.value)


def test_the_launcher_puts_credentials_in_their_place(tmp_path: Path) -> None:
    script = tmp_path / "program.js"
    script.write_text("console.log(JSON.stringify([process.argv.slice(1), process.env.REDIS_URL ?? null]));")
    done = subprocess.run(
        ["node", str(program.NODE_LAUNCHER), "REDIS_URL,OTHER", str(script), "{{REDIS_URL}}", "{{HOME}}", "a b"],
        env={"PATH": program.os.environ["PATH"], "REDIS_URL": "redis://$&:x@h", "HOME": "/home"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout) == [[str(script), "redis://$&:x@h", "{{HOME}}", "a b"], None]


def test_only_what_reaches_the_network_gets_its_variables(tmp_path: Path) -> None:
    environ = executable(tmp_path, "mcp-server-time", "mcp-server-fetch") | {
        "HTTPS_PROXY": "http://p:1",
        "SECRET": "s",
    }
    assert ENTRIES["time"].config({}, environ).env == {}
    assert set(ENTRIES["fetch"].config({}, environ).env) == {"HTTPS_PROXY"}


def test_what_is_missing_is_listed(tmp_path: Path) -> None:
    assert ENTRIES["filesystem"].missing({}, {}) == ["paths"]
    assert ENTRIES["filesystem"].missing({"paths": [str(tmp_path)]}, {}) == []
    assert ENTRIES["sentry"].missing({}, {}) == ["SENTRY_TOKEN"]
    assert ENTRIES["sentry"].missing({}, {"SENTRY_TOKEN": "x"}) == []
    assert ENTRIES["puppeteer"].missing({}, {"PATH": "/nowhere"}) == ["browser"]


def broken(**more: Any) -> str:
    told = json.loads(catalog.FILE.read_text(encoding="utf-8"))["servers"]["time"]
    return json.dumps({"format": 1, "servers": {"time": {**told, **more}}})


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "null", '{"format": 2, "servers": {}}', '{"format": 1}', '{"format": 1, "servers": {"x": {}}}',
        '{"format": 1, "servers": {"x": 3}}', broken(status="new"), broken(registry="cargo"), broken(reaches=["moon"]),
        broken(unknown=1), broken(arguments=[["{{nothing}}"]]), broken(environment={"X": "{{nothing}}"}),
        broken(properties={"timezone": {"kind": "moon", "about": "x"}}), broken(reaches=None),
        broken(properties={"timezone": {"kind": "text", "about": "x", "secret": True}}),
    ],
)  # fmt: skip
def test_a_damaged_catalogue_is_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "catalog.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match="The catalogue "):
        catalog.load(file)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 2}', '{"format": 1, "package": "other"}', '{"format": 1, "program": 3}']
)
def test_a_damaged_record_counts_as_not_installed(text: str, tmp_path: Path) -> None:
    entry = ENTRIES["time"]
    installed_at(tmp_path, entry, "bin/mcp-server-time")
    (program.folder(entry, tmp_path) / program.INSTALLED).write_text(text)
    assert program.installed(entry, tmp_path) is None
    assert program.installed_version(entry, tmp_path) == ""


def test_it_is_light() -> None:
    code = "import sys, sandbox_chat.mcp.catalog as c; c.load(); print([m for m in ('mcp', 'anyio', 'httpx', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
