"""Replies in their two forms: streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.demo.reply import (
    Reply,
    Text,
    Thinking,
    ToolUse,
    complete,
    error_body,
    error_type,
    frames,
    whole,
)
from sandbox_chat.demo.wire import Message, Request, Usage

REQUEST = Request("m", (Message("user", "hi"),), body={"messages": [{"role": "user", "content": "hi"}]})


def assembled(reply: Reply) -> dict[str, Any]:
    """Put the events of a stream together as a client does."""
    message: dict[str, Any] = {}
    parts: dict[int, str] = {}
    for frame in frames(reply):
        event: Any = frame.event
        match event["type"]:
            case "message_start":
                message = json.loads(json.dumps(event["message"]))
            case "content_block_start":
                message["content"].append(dict(event["content_block"]))
                parts[event["index"]] = ""
            case "content_block_delta":
                delta = event["delta"]
                block = message["content"][event["index"]]
                if delta["type"] == "signature_delta":
                    block["signature"] = delta["signature"]
                    continue
                parts[event["index"]] += delta.get(
                    "text", delta.get("thinking", delta.get("partial_json", ""))
                )
            case "content_block_stop":
                block = message["content"][event["index"]]
                value = parts[event["index"]]
                match block["type"]:
                    case "tool_use":
                        block["input"] = json.loads(value)
                    case kind:
                        block[kind] = value
            case "message_delta":
                message["stop_reason"] = event["delta"]["stop_reason"]
                message["usage"] = event["usage"]
    return message


texts = st.text(max_size=60)
blocks = st.lists(
    st.builds(Text, texts)
    | st.builds(Thinking, texts)
    | st.builds(ToolUse, st.just("mcp__sandbox__run_code"), st.dictionaries(texts, texts, max_size=3)),
    max_size=4,
)


@given(blocks, st.integers(0, 30))
def test_streamed_equals_whole(found: list[Any], piece: int) -> None:
    reply = complete(Reply(tuple(found), piece=piece), REQUEST)
    streamed, at_once = assembled(reply), whole(reply)
    streamed.pop("id"), at_once.pop("id")
    assert streamed == at_once


def test_order_of_events() -> None:
    reply = complete(Reply((Thinking("hm"), Text("a b"), ToolUse("t"))), REQUEST)
    names = [str(frame.event["type"]) for frame in frames(reply)]
    assert names[:2] == ["message_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 3


def test_stop_reason_and_ids_are_filled_in() -> None:
    reply = complete(Reply((ToolUse("t"), ToolUse("t", id="mine"))), REQUEST)
    first, second = reply.blocks
    assert isinstance(first, ToolUse) and first.id.startswith("toolu_")
    assert isinstance(second, ToolUse) and second.id == "mine"
    assert reply.stop_reason == "tool_use"
    assert reply.model == "m"
    assert complete(Reply((Text("x"),)), REQUEST).stop_reason == "end_turn"
    assert complete(Reply(stop_reason="max_tokens"), REQUEST).stop_reason == "max_tokens"


def test_usage_is_estimated_or_given() -> None:
    estimated = complete(Reply((Text("four four"),)), REQUEST).usage
    assert estimated is not None and estimated.input_tokens > 0 and estimated.output_tokens == 3
    given_usage = Usage(10, 20, 30, 40)
    reply = complete(Reply((Text("x"),), usage=given_usage), REQUEST)
    start, *_, delta, _ = list(frames(reply))
    assert start.event["message"]["usage"]["output_tokens"] == 1
    assert start.event["message"]["usage"]["cache_read_input_tokens"] == 40
    assert delta.event["usage"]["output_tokens"] == 20


def test_lone_surrogate_travels() -> None:
    reply = complete(Reply((Text("a\ud83cb"),)), REQUEST)
    assert b"\\ud83c" in b"".join(frame.encode() for frame in frames(reply))


def test_raw_arguments() -> None:
    reply = complete(Reply((ToolUse("t", raw='{"code": '),)), REQUEST)
    sent = [frame.event["delta"]["partial_json"] for frame in frames(reply) if frame.chars]
    assert "".join(sent) == '{"code": '


def test_pieces_by_words_or_length() -> None:
    by_words = [
        f.event["delta"]["text"]
        for f in frames(complete(Reply((Text("one two\n\nthree "),)), REQUEST))
        if f.chars
    ]
    assert by_words == ["one", " two", "\n\nthree", " "]
    fixed = [
        f.event["delta"]["text"]
        for f in frames(complete(Reply((Text("abcdefg"),), piece=3), REQUEST))
        if f.chars
    ]
    assert fixed == ["abc", "def", "g"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, "not_found_error"), (429, "rate_limit_error"), (502, "api_error"), (418, "invalid_request_error")],
)
def test_error_types(status: int, kind: str) -> None:
    assert error_type(status) == kind
    assert error_body(kind, "m") == {"type": "error", "error": {"type": kind, "message": "m"}}
