"""The functions that code calls: what they ask the host for, what they make of its answers, and how they fail."""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridging import Listening

from sandbox_chat.bridge import finding, server
from sandbox_chat.guest import calls
from sandbox_chat.guest.calls import (
    ERRORS,
    HEADER,
    LONGEST,
    Host,
    ToolArgumentError,
    ToolDeniedError,
    ToolError,
    ToolLimitError,
    ToolNotFoundError,
    ToolStoppedError,
    ToolTimeoutError,
    functions,
)

SOURCE = Path(calls.__file__).read_text("utf-8")
Make = Callable[..., Listening]


@pytest.fixture(name="listen")
def listen_fixture(tmp_path: Path) -> Iterator[Make]:
    """Makes a host that gives the answers of a function, or one answer."""
    made: list[Listening] = []

    def listen(answer: Any = lambda request: {"ok": True, "value": request}) -> Listening:
        made.append(Listening(tmp_path, answer if callable(answer) else lambda request: answer))
        return made[-1]

    yield listen
    for each in made:
        each.close()


def offered(host: Listening) -> dict[str, Any]:
    return functions(Host(host.path, host.token))


# -- the file itself ---------------------------------------------------------------------------------------


def test_python_3_8_can_read_it() -> None:
    """A cloud's own kernel may be as old."""
    ast.parse(SOURCE, feature_version=(3, 8))
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass", feature_version=(3, 8))


def test_and_run_it() -> None:
    """No annotation is evaluated, and nothing is used that came later."""
    tree = ast.parse(SOURCE)
    first = tree.body[1]
    assert isinstance(first, ast.ImportFrom)
    assert first.module == "__future__"
    later = {"removeprefix", "removesuffix", "to_thread", "timeout_at", "TaskGroup", "bit_count", "pairwise"}
    assert later.isdisjoint(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    keywords = {each.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords}
    assert {"strict", "slots", "kw_only"}.isdisjoint(keywords)
    typed = {id(inner) for node in ast.walk(tree) for inner in _annotations(node)}
    subscripted = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and id(node) not in typed and isinstance(node.value, ast.Name)
        and node.value.id in ("list", "dict", "tuple", "set", "type")
    ]  # fmt: skip
    assert subscripted == []
    unions = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in typed
    ]
    assert unions == []


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if each is not None:
            yield from ast.walk(each)


def test_it_needs_the_standard_library_alone() -> None:
    found = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module).partition(".")[0])
    assert found <= sys.stdlib_module_names


# -- what is asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "request_"),
    [
        ("list_mcp_tools", (), {"op": "list", "query": None, "detail": "summary"}),
        ("list_mcp_tools", ("git", "full"), {"op": "list", "query": "git", "detail": "full"}),
        ("get_mcp_tool_details", ("a__b",), {"op": "details", "name": "a__b"}),
        ("call_mcp_tool", ("a__b",), {"op": "call", "name": "a__b", "arguments": {}, "timeout": None}),
        (
            "call_mcp_tool",
            ("a__b", {"x": [1, "é\ud800", None]}, 5),
            {"op": "call", "name": "a__b", "arguments": {"x": [1, "é\ud800", None]}, "timeout": 5},
        ),
        ("search", ("word",), {"op": "search", "query": "word", "limit": 8}),
        ("list_skills", (), {"op": "skills", "query": None}),
        ("read_skill", ("one",), {"op": "skill_text", "name": "one", "file": None}),
        ("read_skill", ("one", "a.txt"), {"op": "skill_text", "name": "one", "file": "a.txt"}),
        (
            "save_skill",
            ("one", "x = 1", "One."),
            {"op": "draft", "name": "one", "code": "x = 1", "description": "One."},
        ),
    ],
)
async def test_requests(name: str, arguments: Any, request_: dict[str, Any], listen: Make) -> None:
    """Waited for or awaited, they are the same."""
    host = listen()
    function = offered(host)[name]
    assert await asyncio.to_thread(function, *arguments) == request_
    assert await function.aio(*arguments) == request_
    assert host.tokens == {host.token}
    assert function.aio.__name__ == name
    assert function.__doc__


def test_the_host_knows_every_detail_that_is_named() -> None:
    words = functions(Host("", ""))["list_mcp_tools"].__doc__
    assert all(f"``{detail}``" in words for detail in finding.DETAILS)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_arguments_and_results_are_what_they_were(value: Any, tmp_path_factory: Any) -> None:
    host = Listening(
        tmp_path_factory.mktemp("way"),
        lambda request: {"ok": True, "value": request["arguments"]["value"]},
    )
    try:
        assert offered(host)["call_mcp_tool"]("a__b", {"value": value}) == value
    finally:
        host.close()


# -- what comes back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"value": {"a": 1}}, {"a": 1}),
        ({"value": None}, None),
        ({}, None),
        ({"parts": [{"text": "a"}, {"data": base64.b64encode(b"\0\1").decode()}]}, ["a", b"\0\1"]),
        ({"parts": [{"data": base64.b64encode(b"\0\1").decode()}]}, b"\0\1"),
        ({"parts": []}, []),
    ],
)
def test_results(answer: dict[str, Any], value: object, listen: Make) -> None:
    assert offered(listen({"ok": True, **answer}))["call_mcp_tool"]("a__b") == value


@pytest.mark.parametrize("data", ["A", "é"])
def test_damaged_bytes(data: str, listen: Make) -> None:
    call = offered(listen({"ok": True, "parts": [{"data": data}]}))["call_mcp_tool"]
    with pytest.raises(ToolError, match=r"^The tool gave damaged bytes\.$"):
        call("a__b")


@pytest.mark.parametrize(
    ("kind", "error", "also"),
    [
        ("arguments", ToolArgumentError, TypeError),
        ("unknown", ToolNotFoundError, LookupError),
        ("denied", ToolDeniedError, PermissionError),
        ("timeout", ToolTimeoutError, TimeoutError),
        ("stopped", ToolStoppedError, ToolError),
        ("limit", ToolLimitError, ToolError),
        ("failed", ToolError, Exception),
        ("of a later version", ToolError, Exception),
        (None, ToolError, Exception),
    ],
)
def test_errors(kind: object, error: type[ToolError], also: type[Exception], listen: Make) -> None:
    call = offered(listen({"ok": False, "kind": kind, "text": "In the server's words."}))["call_mcp_tool"]
    with pytest.raises(ToolError) as caught:
        call("a__b")
    assert type(caught.value) is error
    assert isinstance(caught.value, also)
    assert str(caught.value) == "In the server's words."
    assert caught.value.__doc__


def test_each_kind_that_the_host_says_has_its_error() -> None:
    """All kinds that are written in the host's end, but for ``failed``, which is any other."""
    said = set()
    for node in ast.walk(ast.parse(inspect.getsource(server))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_failure":
            said |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert said - {"failed"} <= set(ERRORS)
    assert {"arguments", "denied", "limit", "stopped", "unknown"} <= said


async def test_an_error_is_raised_where_it_is_awaited(listen: Make) -> None:
    call = offered(listen({"ok": False, "kind": "denied", "text": "No."}))["call_mcp_tool"]
    with pytest.raises(ToolDeniedError, match="No"):
        await call.aio("a__b")


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), "recursive"])
def test_arguments_that_are_no_json(value: Any, listen: Make) -> None:
    host = listen()
    if value == "recursive":
        value = []
        value.append(value)
    with pytest.raises(ToolArgumentError, match="The arguments cannot be written as JSON: "):
        offered(host)["call_mcp_tool"]("a__b", {"x": value})
    assert host.asked == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "the call was stopped, or no run may make calls now"),
        (b"\0\0", "the connection was closed"),
        (HEADER.pack(10) + b"short", "the connection was closed"),
        (HEADER.pack(LONGEST + 1), "an answer that is too long"),
    ],
)
def test_a_host_that_does_not_answer(answer: bytes | None, why: str, listen: Make) -> None:
    call = offered(listen(lambda request: answer))["call_mcp_tool"]
    with pytest.raises(ToolStoppedError) as caught:
        call("a__b")
    assert why in str(caught.value)
    assert str(caught.value).startswith("The host does not answer (")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(ToolStoppedError, match=r"The host does not answer \(No such file or directory\)"):
        functions(Host(str(tmp_path / "gone"), "t"))["search"]("x")


def test_what_the_host_refuses_by_its_length_is_still_told(tmp_path: Path) -> None:
    """The host answers and hangs up while the rest of a long request is on its way."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "other"))
    listener.listen()

    def refuse() -> None:
        sock, _ = listener.accept()
        sock.recv(4)
        data = json.dumps({"ok": False, "kind": "limit", "text": "Too long."}).encode()
        sock.sendall(HEADER.pack(len(data)) + data)
        sock.shutdown(socket.SHUT_RD)
        sock.close()

    thread = threading.Thread(target=refuse)
    thread.start()
    try:
        with pytest.raises(ToolLimitError, match="Too long"):
            functions(Host(str(tmp_path / "other"), "t"))["call_mcp_tool"]("a", {"x": "y" * 5_000_000})
    finally:
        thread.join()
        listener.close()


# -- several at the same time ------------------------------------------------------------------------------


def test_calls_side_by_side(listen: Make) -> None:
    """All are under way before the first is answered, and their results have the order of the calls."""
    together = threading.Barrier(5, timeout=30)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return {"ok": True, "value": request["name"]}

    host = listen(answer)
    wanted = [("a", {"x": 1}), ["b", {}], ("c",), ("d", None), ("e",)]
    assert offered(host)["parallel"](iter(wanted), timeout=7) == ["a", "b", "c", "d", "e"]
    assert {request["timeout"] for request in host.asked} == {7}
    assert next(request for request in host.asked if request["name"] == "a")["arguments"] == {"x": 1}


def test_no_calls_at_all(listen: Make) -> None:
    assert offered(listen())["parallel"]([]) == []


def test_the_first_error_is_raised_after_all_have_ended(listen: Make) -> None:
    ended = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        ended.append(request["name"])
        if request["name"] in "bc":
            return {"ok": False, "kind": "failed", "text": f"{request['name']} failed"}
        return {"ok": True, "value": 1}

    with pytest.raises(ToolError, match=r"^b failed$"):
        offered(listen(answer))["parallel"]([(name,) for name in "abcd"])
    assert sorted(ended) == ["a", "b", "c", "d"]


async def test_awaited_side_by_side(listen: Make) -> None:
    together = threading.Barrier(8, timeout=30)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return {"ok": True, "value": request["name"]}

    call = offered(listen(answer))["call_mcp_tool"]
    assert await asyncio.gather(*(call.aio(str(number)) for number in range(8))) == [
        str(number) for number in range(8)
    ]


def test_a_process_has_its_own_threads() -> None:
    """Those of its parent are not there after a fork."""
    assert calls._pool(1) is calls._pool(1)
    assert calls._pool(1) is not calls._pool(2)


# -- the token ---------------------------------------------------------------------------------------------


def test_what_is_printed_holds_no_token() -> None:
    host = Host("/way", "the-t0ken")
    shown = repr(host) + repr(vars(host)) + repr(functions(host)) + repr(host.ask.args)
    assert "the-t0ken" not in shown
