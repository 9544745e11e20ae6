"""The modules ``tools`` and ``skills`` of code: made of what the host says, when they are imported and not before."""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bridging import Listening

from sandbox_chat.guest.calls import (
    Finder,
    Host,
    ToolError,
    install,
)

EVIL = "\"\"\"\n'''\nimport os; os.abort()\n\\x22\\N{BULLET}{0}%s\\"
TOOLS = [
    {"tool": "add-note", "name": "my-notes__add-note", "description": EVIL, "schema": {"properties": {"text": {}}}},
    {"tool": "add_note", "name": "my-notes__add_note", "description": "", "schema": {}},
    {"tool": "import", "name": "my-notes__import", "description": "", "schema": {}},
    {"tool": "__class__", "name": "my-notes____class__", "description": "", "schema": {}},
    {"tool": "__getattr__", "name": "my-notes____getattr__", "description": "", "schema": {}},
]  # fmt: skip
SKILL = "def double(x):\n    return 2 * x\n\n\ndef fail():\n    raise ValueError('of the skill')\n"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["op"], request.get("name"):
        case "server", "my_notes":
            return {"ok": True, "value": {"server": "my-notes", "tools": TOOLS}}
        case "server", _:
            return {
                "ok": False,
                "kind": "unknown",
                "text": "There is no MCP server 'gone'; there are my_notes.",
            }
        case "skill", "doubler":
            return {"ok": True, "value": {"source": SKILL, "version": 3}}
        case "skill", "broken":
            return {"ok": True, "value": {"source": "def (", "version": 1}}
        case "skill", "drafted":
            return {"ok": False, "kind": "denied", "text": "The skill drafted is a draft."}
        case "skill", _:
            return {"ok": False, "kind": "unknown", "text": "There is no such skill."}
    return {"ok": True, "value": request}


@pytest.fixture(name="host")
def host_fixture(tmp_path: Path) -> Iterator[Listening]:
    """A host whose modules can be imported here, and nowhere after the test."""
    host = Listening(tmp_path, answer)
    before, there = list(sys.meta_path), set(sys.modules)
    names = [name for name in dir(builtins) if not name.startswith("_")]
    install(host.path, host.token)
    yield host
    sys.meta_path[:] = before
    for name in set(sys.modules) - there:
        if name.partition(".")[0] in ("tools", "skills"):
            del sys.modules[name]
    for name in set(dir(builtins)) - {*names, "_"}:
        if not name.startswith("_"):
            delattr(builtins, name)
    host.close()


def load(name: str) -> Any:
    return importlib.import_module(name)


def test_functions_without_an_import(host: Listening) -> None:
    names = ["list_mcp_tools", "get_mcp_tool_details", "call_mcp_tool", "save_skill"]
    code = "\n".join(f"found.append({name})" for name in names)
    found: list[Any] = []
    exec(code, {"found": found})
    assert [each.__name__ for each in found] == names
    assert found[2]("a__b")["op"] == "call"


def test_the_module_of_all(host: Listening) -> None:
    tools = load("tools")
    for name in ("list_mcp_tools", "get_mcp_tool_details", "call_mcp_tool", "search", "parallel",
                 "list_skills", "read_skill", "save_skill", "ToolError"):  # fmt: skip
        assert name in tools.__all__
        assert callable(getattr(tools, name))
    assert issubclass(tools.ToolDeniedError, tools.ToolError)
    assert host.asked == []  # an import alone asks for nothing
    assert tools.search("x") == {"op": "search", "query": "x", "limit": 8}
    namespace: dict[str, Any] = {}
    exec("from tools import *", namespace)
    assert namespace["call_mcp_tool"] is tools.call_mcp_tool


def test_the_module_of_a_server(host: Listening) -> None:
    notes = load("tools.my_notes")
    assert notes.__all__ == ["add_note", "add_note_2", "import_", "__class___", "__getattr___"]
    assert isinstance(notes, types.ModuleType)
    assert notes.add_note("x")["name"] == "my-notes__add-note"
    assert notes.add_note_2()["name"] == "my-notes__add_note"
    assert notes.import_()["name"] == "my-notes__import"
    assert notes.add_note.__doc__ == EVIL
    with pytest.raises(AttributeError):
        _ = notes.gone
    assert load("tools.my_notes") is notes
    assert [request["op"] for request in host.asked].count("server") == 1
    assert load("tools").my_notes is notes


def test_a_server_that_there_is_not(host: Listening) -> None:
    with pytest.raises(
        ModuleNotFoundError, match="There is no MCP server 'gone'; there are my_notes"
    ) as caught:
        load("tools.gone")
    assert caught.value.name == "tools.gone"
    with pytest.raises(ModuleNotFoundError):
        load("tools.my_notes.deeper")


def test_a_host_that_is_gone_is_no_missing_module(host: Listening) -> None:
    host.close()
    with pytest.raises(ToolError, match="The host does not answer"):
        load("tools.my_notes")
    with pytest.raises(ImportError, match="The host does not answer") as caught:
        load("skills.doubler")
    assert not isinstance(caught.value, ModuleNotFoundError)


def test_a_skill(host: Listening) -> None:
    doubler = load("skills.doubler")
    assert doubler.double(4) == 8
    assert (doubler.__version__, doubler.__file__) == (3, "<skill doubler>")
    assert load("skills").doubler is doubler
    with pytest.raises(ValueError, match="of the skill") as caught:
        doubler.fail()
    assert "raise ValueError('of the skill')" in str(caught.getrepr())  # its lines are shown


def test_from_skills_import(host: Listening) -> None:
    namespace: dict[str, Any] = {}
    exec("from skills import doubler", namespace)
    assert namespace["doubler"].double(2) == 4


def test_skills_that_cannot_be_had(host: Listening) -> None:
    with pytest.raises(ModuleNotFoundError, match="no such skill"):
        load("skills.gone")
    with pytest.raises(ImportError, match="The skill drafted is a draft") as caught:
        load("skills.drafted")
    assert not isinstance(caught.value, ModuleNotFoundError)
    with pytest.raises(SyntaxError) as broken:
        load("skills.broken")
    assert broken.value.filename == "<skill broken>"
    assert "skills.broken" not in sys.modules
    with pytest.raises(AttributeError, match="no such skill"):
        _ = load("skills").gone
    with pytest.raises(AttributeError):
        _ = load("skills").__wrapped__
    with pytest.raises(ImportError):
        exec("from skills import gone")


def test_other_modules_are_left_alone(host: Listening) -> None:
    finder = Finder(Host(host.path, host.token))
    for name in ("os", "toolsx", "tool", "my.tools", "skillset", "tools.a.b", "skills.a.b", ""):
        assert finder.find_spec(name) is None
    assert finder.find_spec("tools").submodule_search_locations == []
    assert finder.find_spec("tools.x").submodule_search_locations is None


def test_an_earlier_offer_is_withdrawn(host: Listening, tmp_path: Path) -> None:
    """A restart of the sandbox makes another way with another token."""
    mine = types.ModuleType("tools.of_the_user")
    sys.modules["tools.of_the_user"] = mine
    old = load("tools.my_notes")
    (tmp_path / "new").mkdir()
    other = Listening(tmp_path / "new", answer)
    other.token = "another"
    try:
        install(other.path, other.token)
        assert sum(isinstance(each, Finder) for each in sys.meta_path) == 1
        assert sys.modules["tools.of_the_user"] is mine  # what is not ours stays
        new = load("tools.my_notes")
        assert new is not old
        exec("call_mcp_tool('a__b')")
        assert other.tokens == {"another"}
        assert [request["op"] for request in other.asked] == ["server", "call"]
        assert len(host.asked) == 1
    finally:
        del sys.modules["tools.of_the_user"]
        other.close()


def test_names_of_the_fixture_are_gone() -> None:
    """What a test of this file offered is not there in the next one."""
    assert not hasattr(builtins, "call_mcp_tool")
    assert not any(isinstance(each, Finder) for each in sys.meta_path)
