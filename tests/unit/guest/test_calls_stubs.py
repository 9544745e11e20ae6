"""The functions made of a server's tools, and the modules that hold them: whatever a server says, it is text and no code."""

from __future__ import annotations

import ast
import inspect
import keyword
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.guest.calls import (
    ToolArgumentError,
    arguments_of,
    python_name,
    stub,
)

EVIL = "\"\"\"\n'''\nimport os; os.abort()\n\\x22\\N{BULLET}{0}%s\\"


class Fake:
    """A host that only remembers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def ask(self, op: str, **fields: Any) -> Any:
        self.asked.append({"op": op, **fields})
        return "done"


def made(
    properties: Any = None, required: Any = (), *, host: Any = None, name: str = "do", **more: Any
) -> Any:
    schema = {"properties": properties or {}, "required": list(required), **more.pop("schema", {})}
    tool = {"name": "srv__do-it", "description": "Do it.", "schema": schema, **more}
    return stub(host or Fake(), tool, name)


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("git-log", "git_log"),
        ("git_log", "git_log"),
        ("a.b/c d", "a_b_c_d"),
        ("class", "class_"),
        ("None", "None_"),
        ("match", "match"),
        ("2d", "_2d"),
        ("", "_"),
        ("-", "_"),
        ("天气", "天气"),
        ("m²", "m2"),
        ("\N{SUPERSCRIPT TWO}", "_2"),
        ("\N{LATIN SMALL LIGATURE FI}le", "file"),
        ("ｃｌａｓｓ", "class_"),
        ("naïve", "naïve"),
        ("a\x00b\n", "a_b_"),
        ("__class__", "__class___"),
        ("__x", "__x"),
    ],
)
def test_names(name: str, written: str) -> None:
    assert python_name(name) == written


def test_names_that_are_taken() -> None:
    assert python_name("a-b", ["a_b"]) == "a_b_2"
    assert python_name("a b", ["a_b", "a_b_2"]) == "a_b_3"
    assert python_name("a-b", ["a"]) == "a_b"


@given(st.text() | st.sampled_from([*dir(types.ModuleType("x")), "__getattr__", *keyword.kwlist]))
def test_any_name_can_be_written_in_code(name: str) -> None:
    written = python_name(name)
    assert written.isidentifier()
    assert not keyword.iskeyword(written)
    assert not hasattr(types.ModuleType("x"), written)  # it hides nothing that a module has
    node = ast.parse(f"{written} = 1").body[0]
    assert isinstance(node, ast.Assign)
    assert isinstance(node.targets[0], ast.Name)
    assert node.targets[0].id == written  # as Python reads it


@given(st.lists(st.sampled_from(["a-b", "a_b", "a.b", "if", "if_", "a_b_2", "timeout", "more", ""])))
def test_names_do_not_clash(names: list[str]) -> None:
    found: list[str] = []
    for name in names:
        found.append(python_name(name, found))
    assert len(set(found)) == len(found)


# -- signatures --------------------------------------------------------------------------------------------


def test_a_signature_from_a_schema() -> None:
    function = made(
        {
            "limit": {"type": "integer", "description": "How many."},
            "repo-path": {"type": "string", "description": "Where."},
            "from": {"type": ["null", "number"]},
            "tags": {"type": "array"},
            "more": {"type": "object"},
            "timeout": {"type": "boolean"},
            "odd": True,
        },
        ["repo-path", "limit"],
        name="git_log",
    )
    assert str(inspect.signature(function)) == (
        "(repo_path: str, limit: int, from_: float = ..., tags: list = ..., more_2: dict = ..., "
        "timeout_2: bool = ..., odd: Any = ..., *, timeout: float = None)"
    )
    assert (function.__name__, function.__qualname__) == ("git_log", "git_log")
    assert function.__doc__ == "Do it.\nrepo_path: Where.\nlimit: How many."
    assert function.__annotations__["limit"] is int


def test_what_is_needed_comes_first_in_its_own_order() -> None:
    properties = {"a": {}, "b": {}, "c": {}, "d": {}}
    assert list(inspect.signature(made(properties, ["d", "b"])).parameters) == [
        "d", "b", "a", "c", "timeout",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        (None, "(*, timeout: float = None, **more)"),
        ({}, "(*, timeout: float = None, **more)"),
        ({"properties": ["a"]}, "(*, timeout: float = None, **more)"),
        ({"properties": {"a": {}}, "required": "a"}, "(a: Any = ..., *, timeout: float = None)"),
        ({"properties": {"a": {}}, "required": ["a", "a", "gone", 1, ["a"]]}, "(a: Any, *, timeout: float = None)"),
        ({"properties": {"a": {}}, "additionalProperties": True}, "(a: Any = ..., *, timeout: float = None, **more)"),
        ({"properties": {"a": {}}, "additionalProperties": False}, "(a: Any = ..., *, timeout: float = None)"),
        ({"properties": {"a": {"type": "odd"}, "b": {"type": []}}}, "(a: Any = ..., b: Any = ..., *, timeout: float = None)"),
    ],
)  # fmt: skip
def test_odd_schemas(schema: Any, parameters: str) -> None:
    function = stub(Fake(), {"name": "s__t", "description": None, "schema": schema}, "t")  # type: ignore[arg-type]
    assert str(inspect.signature(function)) == parameters
    assert function.__doc__ is not None


@given(st.dictionaries(st.text(max_size=8), st.just({}), max_size=6), st.randoms(use_true_random=False))
def test_each_argument_has_one_parameter_whatever_it_is_called(
    properties: dict[str, Any], random: Any
) -> None:
    required = [name for name in properties if random.random() < 0.5]
    _, needed, names = arguments_of({"properties": properties, "required": required})
    assert needed == required
    assert sorted(names.values()) == sorted(properties)
    assert list(names.values())[: len(required)] == required
    assert {"timeout", "more"}.isdisjoint(names)
    host = Fake()
    made(properties, required, host=host)(**dict.fromkeys(names, 1))
    assert host.asked[0]["arguments"] == dict.fromkeys(properties, 1)


# -- calls -------------------------------------------------------------------------------------------------


async def test_arguments_go_by_the_names_of_the_server() -> None:
    host = Fake()
    function = made({"repo-path": {}, "class": {}, "n": {}, "timeout": {}}, ["repo-path"], host=host)
    assert function("x", class_=None, timeout=2.5, timeout_2=7) == "done"
    assert await function.aio(repo_path="y") == "done"
    assert host.asked == [
        {
            "op": "call",
            "name": "srv__do-it",
            "arguments": {"repo-path": "x", "class": None, "timeout": 7},
            "timeout": 2.5,
        },
        {"op": "call", "name": "srv__do-it", "arguments": {"repo-path": "y"}, "timeout": None},
    ]


def test_what_is_not_given_is_not_sent() -> None:
    """The server has its own defaults; a default that is given as it is shown is none either."""
    host = Fake()
    function = made({"a": {"default": 5}, "b": {}}, host=host)
    function()
    function(inspect.signature(function).parameters["a"].default, 1)
    assert [request["arguments"] for request in host.asked] == [{}, {"b": 1}]


def test_more_than_the_schema_names() -> None:
    host = Fake()
    made({"a": {}}, host=host, schema={"additionalProperties": True})(1, other=2)
    assert host.asked[0]["arguments"] == {"a": 1, "other": 2}


@pytest.mark.parametrize(
    ("args", "options"), [((), {}), ((1, 2, 3), {}), ((1,), {"a": 1}), ((1,), {"other": 1}), ((), {"b": 1})]
)
def test_wrong_arguments_name_the_right_ones(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    host = Fake()
    function = made({"a": {"type": "string"}, "b": {}}, ["a"], host=host)
    with pytest.raises(
        ToolArgumentError, match=r"^do\(a: str, b: Any = \.\.\., \*, timeout: float = None\): "
    ):
        function(*args, **options)
    assert host.asked == []


# -- what a server says is no code -------------------------------------------------------------------------


@pytest.mark.parametrize("text", [EVIL, "\x00", "'''", '"""\n__import__("os").abort()\n"""', "\ud800", "\\"])
def test_a_description_is_text(text: str) -> None:
    function = made({"a": {"description": text}}, description=text)
    assert function.__doc__ == f"{text}\na: {text}"
    assert str(inspect.signature(function)) == "(a: Any = ..., *, timeout: float = None)"


@pytest.mark.parametrize(
    "name",
    ["a=__import__('os').abort()", "a): import os #", "a\nb", '"""', "self", "args", "*a", "lambda: 0"],
)
def test_the_name_of_an_argument_is_a_name(name: str) -> None:
    host = Fake()
    function = made({name: {"type": "string"}}, [name], host=host)
    first = next(iter(inspect.signature(function).parameters))
    assert first.isidentifier()
    function("x")
    assert host.asked[0]["arguments"] == {name: "x"}
