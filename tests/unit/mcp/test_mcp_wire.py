"""Lines of JSON-RPC: broken, deep, too long."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from sandbox_chat.gateway.json_text import whole_characters
from sandbox_chat.mcp.wire import DEPTH, OWN, answered, read_message, shallow


def test_messages() -> None:
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","method":"x"}'), JSONRPCNotification)
    assert isinstance(read_message(b'{"id":1,"result":{}}'), JSONRPCResponse)  # without its version


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"[1]", b"{", b"{}", b"\xff\xfe", b"null", b'{"jsonrpc":"2.0"}']
)
def test_what_is_no_message(line: bytes) -> None:
    assert read_message(line) is None


def test_answers_that_are_none() -> None:
    for body in (b'"result":5', b'"nothing":1', b'"result":null'):
        message = read_message(b'{"jsonrpc":"2.0","id":7,' + body + b"}")
        assert isinstance(message, JSONRPCError) and message.error.code == OWN and message.id == 7
    message = read_message(b'{"jsonrpc":"2.0","id":7,"error":"boom"}')
    assert isinstance(message, JSONRPCError) and message.error.message == "boom"


def test_broken_characters_and_depth() -> None:
    message = read_message(b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}')
    assert isinstance(message, JSONRPCResponse) and message.result == {"a": "\ufffd"}
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    message = read_message(('{"jsonrpc":"2.0","id":1,"result":{"x":' + deep + ',"y":2}}').encode())
    assert isinstance(message, JSONRPCResponse) and message.result["y"] == 2


def test_half_characters() -> None:
    line = rb'{"jsonrpc":"2.0","id":1,"result":{"\ud83d":"\uDE00 \ud83d\ud83D\ude00 \\ud83d \\\ud83d"}}'
    message = read_message(line)
    assert isinstance(message, JSONRPCResponse)
    assert message.result == {"\ufffd": "\ufffd \ufffd\U0001f600 \\ud83d \\\ufffd"}
    assert read_message(message.model_dump_json().encode()) == message


@given(st.text(st.characters() | st.sampled_from("\ud83d\ude00\\")))
def test_only_half_characters_are_replaced(text: str) -> None:
    halves = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert json.loads(whole_characters(json.dumps(text))) == halves


def test_shallow_leaves_the_rest_as_it_is() -> None:
    text = '{"a":"}]\\"{[","b":[1,{"c":2}]}'
    assert shallow(text) == text
    found = json.loads(shallow("[" * 300 + "]" * 300))
    depth = 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == DEPTH
    assert shallow("[" * 300) == ""


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_shallow_keeps_any_shallow_value(value: object) -> None:
    text = json.dumps(value)
    assert shallow(text) == text


@pytest.mark.parametrize(
    ("head", "tail", "number"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":{"x', b'zz"}}', 5),
        (b'{"id": 5, "jsonrpc": "2.0", "result"', b"zz", 5),
        (b'{"result":{"content":[', b'"}]},"jsonrpc":"2.0","id":12}', 12),
        (b'{"result":{', b'"},"id":12,"jsonrpc":"2.0"}', 12),
        (b'{"jsonrpc":"2.0","id":"8","result":{"x', b'zz"}}', 8),
        (b'{"result":{"id":5,', b'"id":5,"x":1}}', None),
        (b'xx{"jsonrpc":"2.0","id":5,', b"", None),
        (b"\xff\xfe", b"\xff", None),
    ],
)
def test_whose_answer_was_too_long(head: bytes, tail: bytes, number: int | None) -> None:
    assert answered(head, tail) == number
