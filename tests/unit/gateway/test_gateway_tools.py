"""The list of tools that the gateway makes of those of its servers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.gateway.library import accepts
from sandbox_chat.gateway.tools import MOST_TOOLS, clean, merged, public, usable

OBJECT = {"type": "object"}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A definition."""
    return {"name": name, "inputSchema": OBJECT, **more}


def kept(tools: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """What is usable of a list, and the complaints."""
    said: list[str] = []
    return usable(tools, accepts, said.append), said


def names(**servers: list[str]) -> dict[str, tuple[str, str]]:
    """Public names of tools, with the server and the original name of each."""
    offered = merged({name: [tool(each) for each in tools] for name, tools in servers.items()})
    assert all(offered[name].definition["name"] == name for name in offered)
    return {name: (each.server, each.original) for name, each in offered.items()}


def test_the_first_server_by_name_keeps_the_name() -> None:
    assert names(b=["x", "y"], a=["x"], c=["x", "b_x"]) == {
        "x": ("a", "x"),
        "b_x": ("b", "x"),
        "y": ("b", "y"),
        "c_x": ("c", "x"),
        "c_b_x": ("c", "b_x"),
    }


def test_a_name_that_is_taken_in_every_form_gets_a_number() -> None:
    assert names(a=["x", "b_x", "b_x_2"], b=["x"])["b_x_3"] == ("b", "x")


def test_names_that_become_the_same_when_clean() -> None:
    assert set(names(a=["x y", "x/y", "x_y"])) == {"x_y", "a_x_y", "a_x_y_2"}
    offered = merged({"github/o/r": [tool("t")], "a": [tool("t")]})
    assert set(offered) == {"t", "github_o_r_t"}


def test_a_name_without_a_plain_letter_gets_one_that_is_made() -> None:
    weather, rain = public("查询天气"), public("🌧")
    found, said = kept([tool("查询天气"), tool("🌧"), tool("查询a")])
    assert said == []
    assert {name: each.original for name, each in merged({"s": found}).items()} == {
        weather: "查询天气",
        rain: "🌧",
        "_a": "查询a",
    }
    assert names(s=["天气", "查询天气"])[weather] == ("s", "查询天气")  # the same in every list
    assert set(names(a=["查询天气"], b=["查询天气"])) == {weather, f"b_{weather}"}


def test_long_names_stay_unique() -> None:
    long = "n" * 300
    found = names(a=[long], b=[long], c=[long])
    assert len(found) == 3
    assert max(map(len, found)) <= 128


@given(st.text())
def test_clean_names(name: str) -> None:
    assert all(sign.isascii() and (sign.isalnum() or sign in "_.-") for sign in clean(name))
    assert len(clean(name)) <= 128


@pytest.mark.parametrize(
    "raw",
    [
        None, [], "x", {}, {"name": 1}, {"name": ""}, {"name": "///"}, tool("a", inputSchema=[]), tool("a", inputSchema="x"),
        tool("a", inputSchema={"type": "string"}), tool("a", inputSchema={"type": ["object"]}),
        tool("a", inputSchema={"type": "object", "properties": []}),
        tool("a", inputSchema={"type": "object", "required": "x"}),
        tool("a", inputSchema={"type": "object", "properties": {"p": {"type": "strange"}}}),
        tool("a", description="x" * 300_000),
    ],
)  # fmt: skip
def test_what_cannot_be_offered_is_left_out_alone(raw: Any) -> None:
    found, said = kept([tool("first"), raw, tool("last")])
    assert [each["name"] for each in found] == ["first", "last"]
    assert said


def test_a_schema_that_is_deep() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}
    found, said = kept([tool("deep", inputSchema=schema), tool("last")])
    assert [each["name"] for each in found] == ["last"]
    assert "deep" in said[0]


def test_a_definition_that_could_not_be_written_costs_itself_only() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    found, said = kept([tool("deep", _meta={"x": deep}), tool("last")])
    assert [each["name"] for each in found] == ["last"]
    assert said == ["the tool deep: left out, its definition is nested too deep"]


@pytest.mark.parametrize(
    "rule",
    [
        {"items": {"allOf": [{}] * 24_000}},
        {"allOf": [True] * 24_000},
        {"type": [{"a": number} for number in range(7000)]},
        {"type": [*(str(number) for number in range(20_000)), None]},
    ],
)
def test_a_schema_that_would_take_long_to_check(rule: dict[str, Any]) -> None:
    begin = time.process_time()
    found, said = kept([tool("a", inputSchema=OBJECT | {"properties": {"a": rule}}), tool("last")])
    assert [each["name"] for each in found] == ["last"]
    assert said == ["the tool a: left out, its schema has too many parts"]
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "pattern", [r"^\p{L}+$", r"(?<y>\d{4})", "[^]", "^a{0,4294967296}$", "(", "a" * 1000 + "{1,9}" * 50]
)
def test_patterns_are_those_of_javascript(pattern: str) -> None:
    schema = OBJECT | {"properties": {"a": {"pattern": pattern}}, "patternProperties": {pattern: {}}}
    found, said = kept([tool("a", inputSchema=schema, outputSchema=schema)])
    assert said == [] and found == [tool("a", inputSchema=schema, outputSchema=schema)]


def test_a_reference_that_leads_nowhere_stays_with_its_tool() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}
    found, _ = kept([tool("a", inputSchema=schema)])
    assert found[0]["inputSchema"] == schema


def test_missing_schemas_are_filled_in() -> None:
    found, said = kept(
        [{"name": "a"}, {"name": "b", "inputSchema": None}, {"name": "c", "inputSchema": {"title": "t"}}]
    )
    assert [each["inputSchema"] for each in found] == [OBJECT, OBJECT, {"type": "object", "title": "t"}]
    assert not said


def test_wrong_extras_do_not_lose_the_tool() -> None:
    wrong = tool("a", description="d", annotations=7, outputSchema={"type": "object", "properties": 1})
    found, said = kept(
        [wrong, tool("b", outputSchema=None, icons="x"), tool("c", outputSchema={"type": "object"})]
    )
    assert found[0] == {"name": "a", "description": "d", "inputSchema": OBJECT}
    assert found[1] == {"name": "b", "inputSchema": OBJECT}
    assert found[2]["outputSchema"] == {"type": "object"}
    assert len(said) == 2


def test_fields_that_nobody_knows_stay() -> None:
    found, _ = kept([tool("a", _meta={"x": 1}, title="T", future={"y": [1]})])
    assert found[0] == tool("a", _meta={"x": 1}, title="T", future={"y": [1]})


def test_twice_and_too_many() -> None:
    found, said = kept([tool("a", description="1"), tool("a", description="2")])
    assert [each["description"] for each in found] == ["1"]
    assert "twice" in said[0]
    found, said = kept([tool(f"t{number}") for number in range(MOST_TOOLS + 5)])
    assert len(found) == MOST_TOOLS
    assert "the first" in said[-1]
