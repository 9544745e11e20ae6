"""Properties of servers: how they are read, what is said of wrong ones, and what templates make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.mcp.properties import KINDS, LONGEST, MOST, Property, expand, fill, values
from sandbox_chat.settings import ConfigError


def prop(kind: str = "text", **more: Any) -> Property:
    return Property(name="x", kind=kind, about="A thing.", **more)  # type: ignore[arg-type]


def read(item: Property, given_value: Any, environ: dict[str, str] | None = None) -> Any:
    return values({"x": item}, {"x": given_value}, environ or {}, "trial", None).get("x")


def test_each_kind_is_read(tmp_path: Path) -> None:
    assert read(prop(), " word ") == "word"
    assert read(prop("number"), 4002) == "4002"
    assert read(prop("number"), "2.5") == "2.5"
    assert read(prop("flag"), "yes") is True
    assert read(prop("flag"), False) is False
    assert read(prop("list"), "one, two") == ("one, two",)
    assert read(prop("list"), '["one", "two"]') == ("one", "two")
    assert read(prop("folders"), [str(tmp_path)]) == (str(tmp_path),)
    assert read(prop("folder"), tmp_path.as_posix()) == str(tmp_path)
    assert read(prop("file"), str(tmp_path / "new.db")) == str(tmp_path / "new.db")
    assert read(prop("url"), "redis://host:6379") == "redis://host:6379"


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read(prop("folder"), "here") == str(tmp_path / "here")
    assert read(prop("folder"), "~/here") == str(tmp_path / "here")


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("text", ["a"], "must be text"),
        ("text", "a\x00b", "without control characters"),
        ("text", "\ud800", "without control characters"),
        ("text", "a" * (LONGEST + 1), "at most"),
        ("number", "many", "must be a number"),
        ("number", "٣", "must be a number"),
        ("flag", "perhaps", "must be true or false"),
        ("list", '["one"', "as JSON"),
        ("list", "[" * 100_000, "as JSON"),
        ("list", {"a": 1}, "must be a list of texts"),
        ("list", ["a", ""], "empty elements"),
        ("list", [["a"]], "must be text"),
        ("list", ["a"] * (MOST + 1), "at most"),
        ("folder", "/nowhere/at/all", "a folder that exists"),
        ("folder", "/" + "n" * 5000, "a folder that exists"),
        ("folder", "~nobody-of-that-name/x", "home folder"),
        ("folders", "/etc/hostname", "a folder that exists"),
        ("file", "/nowhere/at/all.db", "in a folder that exists"),
        ("file", "/etc", "must be a file"),
        ("url", "localhost:5432", "must be an address"),
        ("url", "postgresql://a b", "must be an address"),
    ],
)
def test_a_wrong_value_is_one_sentence(kind: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(prop(kind), value)
    assert said in str(error.value)
    assert str(error.value).startswith("x of the MCP server trial ")
    assert "\n" not in str(error.value)


def test_a_wrong_credential_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as error:
        read(prop("url", secret=True), "my-password")
    assert "my-password" not in str(error.value)


def test_where_a_value_comes_from(tmp_path: Path) -> None:
    item = prop(variable="X_URL", default="last")
    assert read(item, "given", {"X_URL": "variable"}) == "given"
    assert read(item, None, {"X_URL": "variable"}) == "variable"
    assert read(item, "", {"X_URL": ""}) == "last"
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = prop("file", programs=("chrome", "chromium"))
    assert read(found, None, {"PATH": str(tmp_path)}) == str(program)
    assert read(found, None, {"PATH": "/nowhere"}) is None


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (prop(required=True), "needs x (a thing): sandbox-chat mcp add trial --property x=…"),
        (prop(required=True, variable="X_URL"), "needs X_URL (a thing): set X_URL in the environment"),
        (
            prop("file", required=True, programs=("chromium",)),
            "needs the program chromium, which is not installed",
        ),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(item: Property, said: str) -> None:
    with pytest.raises(ConfigError, match="The MCP server trial") as error:
        values({"x": item}, {}, {"PATH": "/nowhere"}, "trial", None)
    assert said in str(error.value)


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(ConfigError, match=r"has no property pahts; it has paths\. Did you mean paths\?"):
        values({"paths": prop()}, {"pahts": "/"}, {}, "trial", None)
    with pytest.raises(ConfigError, match="has no properties, but x is given"):
        values({}, {"x": 1}, {}, "trial", None)


def test_own_files_get_a_folder_only_when_they_are_used(tmp_path: Path) -> None:
    item = prop("file", default="{{data}}/memory.jsonl")
    data = tmp_path / "files" / "memory"
    assert values({"x": item}, {"x": str(tmp_path / "own")}, {}, "memory", data)["x"] == str(tmp_path / "own")
    assert not data.exists()
    assert values({"x": item}, {}, {}, "memory", data)["x"] == str(data / "memory.jsonl")
    assert data.stat().st_mode & 0o777 == 0o700
    assert values({"x": item}, {}, {}, "memory", None) == {}


def test_templates_expand() -> None:
    found = {"paths": ("/a", "/b c"), "zone": "UTC", "on": True, "off": False}
    groups = [
        ["stdio"],
        ["{{paths}}"],
        ["--zone={{zone}}"],
        ["--on", "{{on}}"],
        ["--off", "{{off}}"],
        ["-x", "{{unset}}"],
    ]
    assert expand(groups, found) == ["stdio", "/a", "/b c", "--zone=UTC", "--on"]
    assert fill("{{on}} {{paths}} {{zone}}", found) == "true /a,/b c UTC"


def test_a_value_is_no_template() -> None:
    assert expand([["{{a}}", "--b={{b}}"]], {"a": "{{b}}", "b": "{{a}}"}) == ["{{b}}", "--b={{a}}"]


@given(
    st.sampled_from(KINDS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=5,
    ),
)
def test_whatever_is_given_is_read_or_refused(kind: str, value: Any) -> None:
    try:
        found = read(prop(kind), value)
    except ConfigError:
        return
    assert found is None or isinstance(found, str | bool | tuple)
