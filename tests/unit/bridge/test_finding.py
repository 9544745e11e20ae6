"""How code finds tools: by any way to write a name, by words, and with what it needs to call them."""

from __future__ import annotations

import ast
import inspect
import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bridging import tool

from sandbox_chat.bridge.finding import (
    DETAILS,
    FIRST_LINE,
    details,
    find,
    first_line,
    listed,
    name_of,
    search,
    signature,
    stubs,
)
from sandbox_chat.guest.calls import Host, stub
from sandbox_chat.mcp.base import ToolDefinition

LOG = tool("git-log", server="my-git", description="Show the log.\nOf a repository.", read_only=True)
ADD = tool("add", server="my-git", description="Stage files.")
NOTE = tool(
    "add_note", description="Write a note down.", properties={"text": {"type": "string"}}, required=["text"]
)
CLASS = tool("class", server="import", description="")
TOOLS = [LOG, ADD, NOTE, CLASS]


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "my-git__git-log",
        "mcp__my-git__git-log",
        "my-git.git-log",
        "my-git/git-log",
        "my_git__git_log",
        "mcp__my_git__git_log",
    ],
)
def test_a_tool_is_found_by_each_way_to_write_it(name: str) -> None:
    assert find(TOOLS, name) is LOG


@pytest.mark.parametrize(
    "name", ["", "git-log", "my-git", "my-git__", "__git-log", "my-git__git-log ", "my-git__GIT-LOG", "mcp__"]
)
def test_and_by_no_other(name: str) -> None:
    assert find(TOOLS, name) is None


def test_a_keyword_is_found_as_python_writes_it() -> None:
    assert find(TOOLS, "import__class") is CLASS
    assert find(TOOLS, "import___class_") is CLASS


def test_the_exact_name_goes_before_the_python_one() -> None:
    hyphen, line = tool("a-b"), tool("a_b")
    assert find([hyphen, line], "notes__a_b") is line
    assert find([hyphen, line], "notes__a-b") is hyphen
    assert find([hyphen], "notes__a_b") is hyphen


# -- lists -------------------------------------------------------------------------------------------------


def test_lists() -> None:
    assert listed(TOOLS, "names") == [
        "my-git__git-log",
        "my-git__add",
        "notes__add_note",
        "import__class",
    ]
    assert listed(TOOLS, "summary")[0] == {"name": "my-git__git-log", "about": "Show the log."}
    assert listed(TOOLS, "full") == [details(each) for each in TOOLS]
    assert DETAILS == ("names", "summary", "full")
    assert all(listed([], detail) == [] for detail in DETAILS)


def test_details() -> None:
    assert details(LOG) == {
        "name": "my-git__git-log",
        "call": "from tools.my_git import git_log",
        "signature": "git_log()",
        "description": "Show the log.\nOf a repository.",
        "schema": {"type": "object"},
        "read_only": True,
    }
    assert details(CLASS)["call"] == "from tools.import_ import class_"
    given_back = {"type": "object", "properties": {"a": {}}}
    assert details(tool("x", output_schema=given_back))["output_schema"] == given_back
    assert details(NOTE)["read_only"] is False


def test_what_the_module_of_a_server_is_made_of() -> None:
    assert stubs([NOTE]) == [
        {
            "tool": "add_note",
            "name": "notes__add_note",
            "description": "Write a note down.",
            "schema": NOTE.schema,
        }
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n ", ""),
        ("One.\nTwo.", "One."),
        ("\n\n  One.  \r\nTwo.", "One."),
        ("\x1b[31mred\x1b[0m\u202e", "red<U+202E>"),
    ],
)
def test_first_line(text: str, line: str) -> None:
    assert first_line(tool("x", description=text)) == line


def test_a_first_line_is_bounded() -> None:
    assert len(first_line(tool("x", description="a" * 10_000))) <= FIRST_LINE


# -- signatures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "required", "shown"),
    [
        ({}, [], "x()"),
        ({"a": {"type": "string"}}, ["a"], "x(a: str)"),
        ({"a": {"type": "integer"}}, [], "x(a: int = …)"),
        (
            {"z": {"type": "number"}, "a": {"type": "boolean"}, "m": {}},
            ["a", "m"],
            "x(a: bool, m: Any, z: float = …)",
        ),
        ({"a": {"type": "array"}, "b": {"type": "object"}}, ["b", "a"], "x(b: dict, a: list)"),
        ({"a": {"type": ["null", "string"]}}, [], "x(a: str = …)"),
        ({"a": {"type": ["null"]}}, [], "x(a: Any = …)"),
        ({"a": {"type": "odd"}, "b": True}, ["b"], "x(b: Any, a: Any = …)"),
        ({"from": {"type": "string"}, "max-count": {}}, ["from"], "x(from_: str, max_count: Any = …)"),
        ({"a": {}}, ["gone"], "x(a: Any = …)"),
        ({"a": {}}, "a", "x(a: Any = …)"),
        ([], [], "x()"),
        (None, [], "x()"),
    ],
)
def test_signature(properties: object, required: object, shown: str) -> None:
    assert signature(tool("x", properties=properties, required=required)) == shown


kinds = st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9-]{0,6}", fullmatch=True), kinds, min_size=1, max_size=5
    ).filter(lambda found: not {"timeout", "more"} & set(found)),
    st.integers(0, 31),
)
def test_it_is_that_of_the_function_which_code_gets(properties: dict[str, str], mask: int) -> None:
    """The words of an error name the parameters of the stub, in its order; it is Python but for the dots."""
    names = list(properties)
    found = tool(
        "call",
        properties={name: {"type": kind} for name, kind in properties.items()},
        required=[name for number, name in enumerate(names) if mask >> number & 1],
    )
    words = signature(found)
    parsed = ast.parse(f"def {words.replace('…', '...')}: pass").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    made = inspect.signature(stub(Host("", ""), stubs([found])[0], "call"))
    mine = [each for each in made.parameters.values() if each.name != "timeout"]
    assert [each.arg for each in parsed.args.args] == [each.name for each in mine]
    needed = [each.name for each in mine if each.default is inspect.Parameter.empty]
    assert len(parsed.args.args) - len(parsed.args.defaults) == len(needed)
    assert not any(keyword.iskeyword(each.name) for each in mine)


# -- search ------------------------------------------------------------------------------------------------


def names(found: list[ToolDefinition]) -> list[str]:
    return [name_of(each) for each in found]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("note", "notes__add_note"),
        ("NOTE", "notes__add_note"),
        ("write", "notes__add_note"),
        ("stage", "my-git__add"),
        ("git log", "my-git__git-log"),
        ("git_log", "my-git__git-log"),
        ("repository", "my-git__git-log"),
        ("class", "import__class"),
    ],
)
def test_search(query: str, first: str) -> None:
    assert names(search(TOOLS, query))[0] == first


def test_what_does_not_fit_is_left_out() -> None:
    assert names(search(TOOLS, "note")) == ["notes__add_note"]
    assert search(TOOLS, "zebra") == []


def test_a_name_counts_more_than_text_and_a_whole_word_more_than_a_part() -> None:
    in_text = tool("a", description="It can copy, copy and copy.")
    in_part = tool("copyfile", description="")
    whole = tool("copy", description="")
    assert names(search([in_text, in_part, whole], "copy")) == ["notes__copy", "notes__copyfile", "notes__a"]


def test_the_name_of_the_server_and_its_own_name_of_a_tool_count() -> None:
    renamed = tool("x_1", original="weather", description="")
    assert search([NOTE, renamed], "weather") == [renamed]
    assert search(TOOLS, "my-git") == [LOG, ADD]


def test_what_fits_alike_keeps_its_order() -> None:
    many = [tool(f"copy_{number}", description="") for number in (3, 1, 2)]
    assert search(many, "copy") == many


@pytest.mark.parametrize("query", ["", " ", "_-.", "?!"])
def test_no_words_are_all_tools(query: str) -> None:
    assert search(TOOLS, query) == TOOLS
    assert search(TOOLS, query, 2) == TOOLS[:2]


def test_a_limit() -> None:
    many = [tool(f"copy_{number}") for number in range(10)]
    assert len(search(many, "copy", 3)) == 3
    assert search(many, "copy", 0) == []
    assert search(many, "copy", -1) == []


def test_words_of_any_language() -> None:
    weather = tool("weather", description="查询 天气。")
    assert search([NOTE, weather], "天气") == [weather]
