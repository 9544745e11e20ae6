"""Schemas of tools: what is offered, what loses its tool, and the check of arguments."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sandbox_chat.mcp import definitions as of_server
from sandbox_chat.mcp.schemas import SchemaError, offered, wrong_arguments


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"items": found}
    return found


def with_argument(rule: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": rule}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "no schema"),
        ("x", "not an object"),
        ([], "not an object"),
        ({"type": "string"}, "not one of an object"),
        ({"type": ["object", "null"]}, "not one of an object"),
        (nested(200), "levels deep"),
        (with_argument({"description": "x" * 100_001}), "more than 100,000"),
        (with_argument({"$ref": "#/$defs/x"}), "'#/$defs/x', which is not in it"),
        (with_argument({"$ref": "other.json"}), "which is not in it"),
        (with_argument({"$ref": "#nowhere"}), "which is not in it"),
        (with_argument({"$ref": "#/allOf/²"}) | {"allOf": [{}]}, "which is not in it"),
        (with_argument({"$ref": "#/allOf/" + "1" * 5000}) | {"allOf": [{}]}, "which is not in it"),
        (with_argument({"$ref": "#/allOf/-1"}) | {"allOf": [{}]}, "which is not in it"),
        (with_argument({"items": {"allOf": [{}] * 24_000}}), "too many parts"),
        (with_argument({"allOf": [True] * 16_000}), "too many parts"),
        (with_argument({"type": [{"a": number} for number in range(7000)]}), "too many parts"),
        (with_argument({"type": "strng"}), "not valid at properties/a/type"),
        ({"type": "object", "required": "a"}, "not valid at required"),
        ({"type": "object", "properties": {"a b": {}}}, "'a b'"),
        ({"type": "object", "properties": {"x" * 65: {}}}, "an argument with the name"),
    ],
)
def test_schemas_that_are_not_offered(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words.replace("$", r"\$")):
        offered(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        with_argument({"$ref": "#"}),
        with_argument({"$ref": "#/$defs/a~1b"}) | {"$defs": {"a/b": {"type": "string"}}},
        with_argument({"$ref": "#name"}) | {"$defs": {"x": {"$anchor": "name"}}},
        with_argument({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        with_argument(True),
        with_argument({"$ref": "#/$defs/a/allOf/1"}) | {"$defs": {"a": {"allOf": [{}, {}]}}},
        with_argument({"enum": list(range(15_000))}),
        with_argument({"pattern": r"^\p{L}+$"}),
        with_argument({"pattern": r"(?<y>\d{4})"}),
        with_argument({"pattern": "[^]", "patternProperties": {r"^\p{L}": {}}}),
        with_argument({"pattern": "^a{0,4294967296}$"}),
    ],
)
def test_schemas_that_are_offered_as_they_are(schema: dict[str, Any]) -> None:
    assert offered(schema) == {"type": "object", **schema}


def test_alternatives_at_the_top_are_taken_apart() -> None:
    found = offered(
        {
            "oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}],
            "properties": {"c": {"type": "string"}},
            "additionalProperties": False,
        }
    )
    assert set(found["properties"]) == {"a", "b", "c"} and "oneOf" not in found
    assert wrong_arguments("t", found, {"a": "x"}) == ""


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["a", "b"]},
        "deep": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}}},
    },
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "'n' is a required property"),
        (
            {"n": "1"},
            "The argument 'n' of t is not as its schema says: '1' is not of type 'integer'. Expected is type:",
        ),
        ({"n": 0}, "Expected is minimum: 1"),
        ({"n": 1, "mode": "c"}, 'enum: ["a", "b"]'),
        ({"n": 1, "other": 1}, "'other' was unexpected"),
        ({"n": 1, "deep": {"x": [1]}}, "The argument 'deep.x.0' of t"),
    ],
)
def test_wrong_arguments_are_named_with_what_is_expected(given: dict[str, Any], words: str) -> None:
    assert words in wrong_arguments("t", SCHEMA, given)


def test_right_arguments() -> None:
    assert wrong_arguments("t", SCHEMA, {"n": 1, "mode": "a", "deep": {"x": ["y"]}}) == ""


def test_a_message_is_short() -> None:
    assert len(wrong_arguments("t", SCHEMA, {"n": "x" * 100_000})) < 1000


def test_no_schema_makes_a_check_endless() -> None:
    begin = time.process_time()
    slow = with_argument({"type": "string", "pattern": "^(a+)+$"})
    assert wrong_arguments("t", offered(slow), {"a": "a" * 40 + "!"}) == ""
    doubling: dict[str, Any] = {"type": "object", "$defs": {"d0": {"type": "object"}}}
    for number in range(1, 40):
        reference = {"$ref": f"#/$defs/d{number - 1}"}
        doubling["$defs"][f"d{number}"] = {"allOf": [reference, reference]}
    doubling["properties"] = {"a": {"$ref": "#/$defs/d39"}}
    assert wrong_arguments("t", offered(doubling), {"a": {}}) == ""
    turning = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"$ref": "#/$defs/x"}},
    }
    assert wrong_arguments("t", offered(turning), {"a": {}}) == ""
    names = {"type": "object", "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
    assert wrong_arguments("t", offered(names), {"a" * 40 + "!": 1}) == ""
    assert time.process_time() - begin < 5


ZEROS = [0] * 50
LARGE = ["x" * 50] * 3000


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ({"items": {"allOf": [{}] * 24_000}}, ZEROS),
        ({"items": {"anyOf": [{"enum": [1]}] * 6000}}, ZEROS),
        ({"items": {"enum": list(range(1, 15_000))}}, [0] * 60_000),
        ({"items": {"required": [f"a{number}" for number in range(9000)]}}, [{}] * 20_000),
        ({"items": {"type": ["string"] * 9000}}, [0] * 20_000),
        ({"allOf": [False] * 16_000}, LARGE),
        ({"anyOf": [False] * 16_000}, LARGE),
        ({"oneOf": [{}] + [False] * 16_000}, LARGE),
        ({"uniqueItems": True}, [{"a": number} for number in range(20_000)]),
    ],
)
def test_a_check_that_takes_long_is_left_to_the_server(rule: dict[str, Any], given: Any) -> None:
    begin = time.process_time()
    assert wrong_arguments("t", with_argument(rule), {"a": given}) == ""
    assert time.process_time() - begin < 2


def test_a_part_of_another_draft_is_checked_by_the_same_rules() -> None:
    """Else its patterns would be tried."""
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "pattern": "^b+$"}
    assert wrong_arguments("t", with_argument(old), {"a": "a"}) == ""
    assert "'string'" in wrong_arguments("t", with_argument(old), {"a": 1})


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> None:
        asked.append(_)

    asked: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", fetch)
    elsewhere = {"y": {"properties": {"b": {"$id": "http://127.0.0.1:9/z", "$ref": "#/properties"}}}}
    schema = offered(with_argument({"$ref": "#/x/y"}) | {"x": elsewhere})
    assert wrong_arguments("t", schema, {"a": {"b": 1}}) == ""
    assert asked == []


def test_a_check_that_fails_costs_its_tool_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(schema: Any) -> Any:
        if "x" in schema:
            raise OverflowError
        return offered(schema)

    monkeypatch.setattr(of_server, "offered", check)
    tools, notes = of_server.definitions(
        "s", [{"name": "a", "inputSchema": {"x": 1}}, {"name": "b", "inputSchema": {}}]
    )
    assert [tool.name for tool in tools] == ["b"]
    assert notes == ["Its tool a is not offered: its schema cannot be read."]


def test_older_drafts_are_put_into_the_words_of_the_newest() -> None:
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": False}
    data = {"const": {"items": [1]}, "default": {"items": [1]}}
    count = {
        "type": "number",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 9,
        "exclusiveMaximum": False,
    }
    found = offered({"properties": {"pair": pair, "data": data, "count": count, "items": {"type": "array"}}})
    assert found["properties"] == {
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
        "data": data,
        "count": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
        "items": {"type": "array"},
    }
    assert wrong_arguments("t", found, {"pair": ["a", 1]}) == ""
    assert "'pair.1'" in wrong_arguments("t", found, {"pair": ["a", "b"]})
