"""The SDK's messages as events, on messages recorded from the real CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ResultMessage
from claude_agent_sdk._internal.message_parser import parse_message  # the SDK has no public way in

from sandbox_chat.agent.calls import Calls
from sandbox_chat.agent.endpoint import Endpoint
from sandbox_chat.agent.errors import turn_trouble
from sandbox_chat.agent.translate import Translator, was_aborted
from sandbox_chat.events import (
    Event,
    Notice,
    Retry,
    Text,
    TextContent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolStarted,
)
from sandbox_chat.settings import Secret, Settings

RECORDED: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "recorded.json").read_text(encoding="utf-8")
)
GATEWAY = Endpoint("http://127.0.0.1:8000", Secret("t"), Secret(""), "claude-sonnet-4-5")


def play(
    name: str, translator: Translator | None = None
) -> tuple[list[Event], list[ResultMessage], Translator]:
    """Translate a recorded turn; return its events, its results and the translator."""
    translator = translator or Translator(Calls())
    translator.begin()
    events: list[Event] = []
    results = []
    for raw in RECORDED[name]:
        message = parse_message(raw)
        if message is None:
            continue
        events += translator.feed(message)
        if isinstance(message, ResultMessage):
            results.append(message)
    return events, results, translator


def kinds(events: list[Event]) -> list[str]:
    """Types of the events, runs of the same one once."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event.type:
            found.append(event.type)
    return found


def screen(events: list[Event]) -> str:
    """What a reader of the transcript sees as the answer, by the rules of the events."""
    blocks: list[str] = []
    open_block = ""
    for event in events:
        if isinstance(event, TextDelta):
            open_block += event.text
        elif isinstance(event, Text):
            blocks.append(event.text)
            open_block = ""
        elif isinstance(event, Retry):
            open_block = ""
        elif isinstance(event, ToolStarted):
            blocks, open_block = [*blocks, open_block] if open_block else blocks, ""
    return "\n".join([*blocks, open_block] if open_block else blocks)


def test_a_turn_with_a_tool() -> None:
    events, results, translator = play("tool")
    assert kinds(events) == [
        "text_delta", "text", "tool_input_delta", "tool_started", "tool_finished",
        "thinking_delta", "text_delta", "text",
    ]  # fmt: skip
    assert screen(events) == "Let me.\nDone."
    started = next(event for event in events if isinstance(event, ToolStarted))
    assert started.name == "mcp__sandbox__run_code"
    assert started.input == {"code": "print('hi')"}
    pieces = [event for event in events if isinstance(event, ToolInputDelta)]
    assert pieces[0].text == ""
    assert {piece.tool_use_id for piece in pieces} == {started.tool_use_id}
    assert json.loads("".join(piece.text for piece in pieces)) == started.input
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["hmm"]
    assert not was_aborted(results[0])
    assert translator.context_used > 0
    assert translator.close() == []


def test_a_handlers_call_is_told_once() -> None:
    calls = Calls()
    translator = Translator(calls)
    translator.begin()
    events: list[Event] = []
    for raw in RECORDED["tool"]:
        message = parse_message(raw)
        assert message is not None
        events += translator.feed(message)
        if events and isinstance(events[-1], ToolStarted) and not calls.handling:
            assert calls.handler_started(events[-1].tool_use_id, "again", {}) is None
    assert [event for event in events if isinstance(event, ToolFinished)] == []
    [open_id] = calls.open
    assert calls.handler_finished(open_id, (), is_error=False, interrupted=False, duration_ms=1) is not None
    assert calls.open == []


def test_an_interrupted_text_is_kept() -> None:
    events, results, translator = play("int_text")
    assert screen(events) == "word word word"
    assert isinstance(events[-1], Text)
    assert was_aborted(results[0])
    assert translator.close() == []
    assert "ede_diagnostic" not in translator.failure(results[0]).text


def test_an_interrupted_tool() -> None:
    events, results, _ = play("int_tool")
    assert was_aborted(results[0])
    assert "Request interrupted" not in screen(events)


def test_a_cut_reply_is_withdrawn() -> None:
    events, _, _ = play("cut")
    [retry] = [event for event in events if isinstance(event, Retry)]
    assert (retry.attempt, retry.delay_ms > 0) == (1, True)
    assert "cut" in retry.reason
    assert screen(events) == "Whole now."


def test_an_error_in_the_stream_is_mended_by_the_whole_reply() -> None:
    events, _, _ = play("errevent")
    assert screen(events) == "Whole now."
    assert any(isinstance(event, TextDelta) for event in events)


def test_a_reply_that_starts_anew_without_a_word_withdraws_the_first() -> None:
    translator = Translator(Calls())
    translator.begin()
    start = {"type": "message_start", "message": {}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}
    events: list[Event] = []
    for event in (start, delta, start, delta):
        message = parse_message({"type": "stream_event", "uuid": "u", "session_id": "s", "event": event})
        assert message is not None
        events += translator.feed(message)
    assert kinds(events) == ["text_delta", "retry", "text_delta"]
    [block] = translator.close()
    assert isinstance(block, Text)
    assert block.text == "Half"
    assert translator.close() == []


def stream(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "stream_event", "uuid": "u", "session_id": "s", "event": event}


def reply_start(reply: str) -> dict[str, Any]:
    return stream({"type": "message_start", "message": {"id": reply}})


def whole(reply: str, block: dict[str, Any]) -> dict[str, Any]:
    """A whole block of a reply, as it also comes without a stream."""
    message = {"id": reply, "role": "assistant", "model": "m", "content": [block]}
    return {"type": "assistant", "parent_tool_use_id": None, "session_id": "s", "message": message}


USE = {"type": "tool_use", "id": "t1", "name": "mcp__sandbox__run_code", "input": {}}
PARTS: dict[str, list[dict[str, Any]]] = {
    "text": [stream({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}})],
    "thinking": [
        stream({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}})
    ],
    "call": [stream({"type": "content_block_start", "index": 0, "content_block": USE})],
}  # fmt: skip
NEXT = {"type": "text", "text": "Whole."}
RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 5, "error": "x"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "after",
    [
        [whole("r2", NEXT)],
        [reply_start("r2"), whole("r2", NEXT)],
        [RETRY, reply_start("r2"), whole("r2", NEXT)],
    ],
    ids=["whole", "stream", "told"],
)
def test_whatever_a_cut_reply_left_unfinished_is_withdrawn_once(
    part: str, after: list[dict[str, Any]]
) -> None:
    translator = Translator(Calls())
    translator.begin()
    events: list[Event] = []
    for raw in [reply_start("r1"), *PARTS[part], *after]:
        message = parse_message(raw)
        assert message is not None
        events += translator.feed(message)
    assert [event.type for event in events][1:] == ["retry", "text"]
    assert translator.close() == []


@pytest.mark.parametrize(
    "name", ["tool", "int_text", "int_tool", "maxtok", "refusal", "unknowntool", "rawargs"]
)
def test_a_reply_that_was_not_cut_is_not_withdrawn(name: str) -> None:
    assert not [event for event in play(name)[0] if isinstance(event, Retry)]


def test_what_is_left_open_becomes_a_block_at_the_end() -> None:
    translator = Translator(Calls())
    translator.begin()
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}
    message = parse_message({"type": "stream_event", "uuid": "u", "session_id": "s", "event": delta})
    assert message is not None
    translator.feed(message)
    [block] = translator.close()
    assert isinstance(block, Text)
    assert block.text == "Half"


def test_results_that_are_not_our_handlers() -> None:
    for name, words in (("unknowntool", "No such tool"), ("rawargs", "could not be parsed")):
        events, _, _ = play(name)
        [finished] = [event for event in events if isinstance(event, ToolFinished)]
        assert finished.is_error
        [content] = finished.content
        assert isinstance(content, TextContent)
        assert words in content.text
        assert "tool_use_error" not in content.text


def test_synthetic_prompts_and_answers_are_not_shown() -> None:
    for name in ("maxtok", "refusal", "int_text", "e529", "e400"):
        shown = screen(play(name)[0])
        assert "Resume directly" not in shown
        assert "safety classifier" not in shown
        assert "API Error" not in shown
    assert screen(play("maxtok")[0]) == "Half\nrest"
    assert any(isinstance(event, Notice) for event in play("refusal")[0])


def test_control_bytes_become_visible() -> None:
    translator = Translator(Calls())
    translator.begin()
    events: list[Event] = []
    text = "a\x1b[2Jb\u202ec\ud83c"
    for raw in (
        {"type": "stream_event", "uuid": "u", "session_id": "s", "event": {
            "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}},
        {"type": "assistant", "uuid": "u", "session_id": "s", "message": {"id": "m", "model": "x", "content": [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": "t", "name": "n\x07", "input": {"a\x1b": ["\x1b]0;x\x07"]}}]}},
    ):  # fmt: skip
        message = parse_message(raw)
        assert message is not None
        events += translator.feed(message)
    assert "\x1b" not in "".join(str(getattr(event, "text", "")) for event in events)
    started = next(event for event in events if isinstance(event, ToolStarted))
    assert "\x1b" not in json.dumps(dict(started.input))
    assert "\x07" not in started.name


def test_messages_of_subagents_are_left_out() -> None:
    translator = Translator(Calls())
    translator.begin()
    message = parse_message(
        {"type": "assistant", "uuid": "u", "session_id": "s", "parent_tool_use_id": "t1",
         "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": "inner"}]}}
    )  # fmt: skip
    assert message is not None
    assert translator.feed(message) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("e400", ["400", "bad thing", "CLAUDE_MODEL"]),
        ("e401", ["401", "ANTHROPIC_AUTH_TOKEN"]),
        ("e403", ["403", "no access"]),
        ("e404", ["does not know the model", "CLAUDE_MODEL"]),
        ("e413", ["too large", "new session"]),
        ("e429", ["429", "slow down", "Wait"]),
        ("e500", ["500", "oops", "temporary"]),
        ("e529", ["overloaded", "529"]),
        ("long400", ["context", "new session"]),
        ("credit", ["credit"]),
        ("refused", ["refused", "ANTHROPIC_BASE_URL"]),
        ("timeout", ["No answer", "SANDBOX_CHAT_REQUEST_TIMEOUT"]),
        ("refusal", ["declined"]),
        ("maxturns", ["30 steps", "SANDBOX_CHAT_MAX_TURNS"]),
    ],
)
def test_errors_in_plain_words(name: str, words: list[str]) -> None:
    _, results, translator = play(name)
    assert results[0].is_error
    sentence = turn_trouble(
        translator.failure(results[0]), GATEWAY, Settings(), model="claude-sonnet-4-5"
    ).text
    for word in words:
        assert word in sentence
    for foreign in ("/login", "API_TIMEOUT_MS", "ede_diagnostic", "API Error", "\n", "inference gateway"):
        assert foreign not in sentence
    assert sentence.endswith(".")


def test_no_credential() -> None:
    _, results, translator = play("notoken")
    nothing = Endpoint("", Secret(""), Secret(""), "")
    sentence = turn_trouble(translator.failure(results[0]), nothing, Settings(), model="").text
    assert "ANTHROPIC_API_KEY" in sentence
    login = Endpoint("", Secret(""), Secret(""), "", use_login=True)
    assert "log in" in turn_trouble(translator.failure(results[0]), login, Settings(), model="").text
    key = Endpoint("", Secret(""), Secret("k"), "")
    _, results, translator = play("e401")
    assert "ANTHROPIC_API_KEY" in turn_trouble(translator.failure(results[0]), key, Settings(), model="").text


@pytest.mark.parametrize("ending", ["✓", "e\u0301", "👩\u200d"])
def test_nothing_follows_the_whole_of_a_block(ending: str) -> None:
    """The last sign is held back until more comes; the whole block comes before the end of its stream."""
    translator = Translator(Calls())
    translator.begin()
    events: list[Event] = []
    for raw in json.loads(json.dumps(RECORDED["tool"]).replace('Done."', f'Done{json.dumps(ending)[1:-1]}"')):
        message = parse_message(raw)
        assert message is not None
        events += translator.feed(message)
    text = next(event.text for event in reversed(events) if isinstance(event, Text))
    assert text.startswith("Done") and text != "Done"
    assert screen([*events, *translator.close()]) == f"Let me.\n{text}"


def streamed(event: dict[str, Any]) -> Any:
    return parse_message(
        {"type": "stream_event", "uuid": "u", "session_id": "s", "event": event, "parent_tool_use_id": None}
    )


def test_the_context_is_what_the_last_request_read_wherever_it_came_from() -> None:
    translator = Translator(Calls())
    assert translator.context_used is None
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40_000, "cache_creation_input_tokens": 500}
    translator.feed(
        streamed({"type": "message_start", "message": {"id": "a", "usage": {**usage, "output_tokens": 1}}})
    )
    assert translator.context_used == 40_503
    # The end of many a server's reply tells what was written, and of what was read a part.
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"input_tokens": 3, "output_tokens": 900},
    }
    translator.feed(streamed(end))
    assert translator.context_used == 40_503
    assert not translator.answered
    translator.feed(
        streamed({"type": "message_start", "message": {"id": "b", "usage": {"input_tokens": 70}}})
    )
    translator.feed(
        streamed(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
        )
    )
    assert translator.context_used == 70  # the context became smaller
    assert translator.answered
    translator.begin()
    assert not translator.answered
