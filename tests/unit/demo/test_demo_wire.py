"""Requests as the agent's program sends them, and odd ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.demo.wire import (
    IMAGE_TOKENS,
    Request,
    WireError,
    count_tokens,
    input_usage,
    parse_request,
    text_tokens,
)

REMINDER = "<system-reminder>\n# Environment\nwhat time it is\n</system-reminder>"


def parsed(*messages: dict[str, Any], **more: Any) -> Request:
    return parse_request(json.dumps({"model": "m", "messages": list(messages), **more}).encode())


def user(*content: Any) -> dict[str, Any]:
    """A user message of one plain string, or of blocks."""
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def result(value: Any, id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": value, **more}


CALL = {
    "role": "assistant",
    "content": [
        text("I run it."),
        {"type": "tool_use", "id": "t1", "name": "mcp__sandbox__run_code", "input": {"code": "1+1"}},
    ],
}


def test_prompt_as_plain_string() -> None:
    request = parsed(user("what is 1+1"), {"role": "system", "content": REMINDER}, stream=True, max_tokens=7)
    assert request.prompt == "what is 1+1"
    assert request.stream
    assert request.max_tokens == 7
    assert request.results == ()


def test_reminders_are_not_the_users_words() -> None:
    assert parsed(user(text(REMINDER), text("draw it"))).prompt == "draw it"
    assert parsed(user(text(f"{REMINDER}\n\ndraw it {REMINDER} now"))).prompt == "draw it  now"


def test_result_belongs_to_the_prompt_before_it() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    note = text("[Image: source: /home/somebody/x.png]")
    request = parsed(user("go"), CALL, user(result([text("[success] True"), image, note])))
    assert request.prompt == "go"
    (found,) = request.results
    assert (found.tool_use_id, found.text, found.images, found.is_error) == ("t1", "[success] True", 1, False)
    assert request.messages[1].calls[0].input == {"code": "1+1"}


def test_failed_result_as_string() -> None:
    request = parsed(user("go"), CALL, user(result("it broke", is_error=True)))
    assert request.results[0].is_error
    assert request.results[0].text == "it broke"


def test_prompt_after_an_interrupted_answer() -> None:
    request = parsed(
        user("first"),
        {"role": "assistant", "content": [text("I beg")]},
        user(text("[Request interrupted by user]\n"), text("second")),
    )
    assert request.prompt == "second"


def test_prompt_after_an_interrupted_tool_shares_its_message() -> None:
    request = parsed(
        user("first"),
        CALL,
        user(
            result("The user doesn't want to proceed with this tool use.", is_error=True),
            text("[Request interrupted by user for tool use]\n"),
            text("second"),
        ),
    )
    assert request.prompt == "second"
    assert request.results == ()
    assert len(request.messages[-1].results) == 1


def test_system_and_tools() -> None:
    request = parsed(
        user("x"),
        system=[text("one"), text("two")],
        tools=[{"name": "mcp__sandbox__run_code"}, {"name": "Read"}, "odd", {}],
    )
    assert request.system == "one\n\ntwo"
    assert request.tool("run_code") == "mcp__sandbox__run_code"
    assert request.tool("Read") == "Read"
    assert request.tool("code") == ""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "model: Field required"),
        (b'{"model": "m"}', "at least one message"),
        (b'{"model": "m", "messages": []}', "at least one message"),
        (b'{"model": "m", "messages": [{"role": "boss"}]}', "messages.0.role"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_requests(body: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says.replace(".", r"\.")):
        parse_request(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "role", "content", "text", "input", "id", "name", "tool_use_id", "source"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(st.lists(json_values, max_size=4), json_values, json_values)
def test_any_json_is_read_or_refused(messages: list[Any], system: Any, tools: Any) -> None:
    body = json.dumps({"model": "m", "messages": messages, "system": system, "tools": tools}).encode()
    try:
        request = parse_request(body)
    except WireError:
        return
    assert isinstance(request.prompt, str)
    assert count_tokens(request.body) >= 0
    assert input_usage(request.body).input_tokens >= 0


def test_tokens() -> None:
    assert text_tokens("") == 0
    assert text_tokens("abcd" * 10) == 10
    assert text_tokens("正弦") == 2
    image = {"type": "image", "source": {"data": "A" * 1_000_000}}
    assert count_tokens({"messages": [user(image)]}) < IMAGE_TOKENS + 20


def test_usage_counts_each_token_once() -> None:
    marked = {**text("one two three four"), "cache_control": {"type": "ephemeral"}}
    first: dict[str, Any] = {"model": "m", "system": "s" * 400, "messages": [user(marked)]}
    usage = input_usage(first)
    assert usage.cache_read_input_tokens == 0
    assert usage.cache_creation_input_tokens + usage.input_tokens == count_tokens(first)
    second = {**first, "messages": [*first["messages"], CALL, user(result("ok"))]}
    usage = input_usage(second)
    assert usage.cache_read_input_tokens > 100
    total = usage.cache_read_input_tokens + usage.cache_creation_input_tokens + usage.input_tokens
    assert total == count_tokens(second)


def test_usage_without_cache_marks() -> None:
    usage = input_usage({"messages": [user("hello")]})
    assert usage.input_tokens > 0
    assert usage.cache_creation_input_tokens == usage.cache_read_input_tokens == 0
