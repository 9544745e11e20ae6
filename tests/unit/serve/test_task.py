"""A task's result by the events of its turn, and the events on their way to a client."""

from __future__ import annotations

import json

import pytest

from sandbox_chat.events import (
    Event,
    FileContent,
    ImageContent,
    Retry,
    Text,
    TextContent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from sandbox_chat.serve import task as module
from sandbox_chat.serve.asking import Ask
from sandbox_chat.serve.errors import Refused
from sandbox_chat.serve.task import Feed, Task, message


def finished(turn: str = "t", **more: object) -> TurnFinished:
    values: dict[str, object] = {
        "turn_id": turn, "subtype": "success", "is_error": False, "interrupted": False, "num_turns": 1,
        "duration_ms": 3, "cost_usd": 0.5, "total_cost_usd": 1.5, "usage": Usage(1, 2, 3, 4),
    }  # fmt: skip
    return TurnFinished(**(values | more))  # type: ignore[arg-type]


def task_of(*events: Event, stream: bool = False) -> Task:
    found = Task(Ask("ann", "hello"), stream=stream)
    found.turn_id, found.session_id = "t", "s"
    for event in events:
        found.take(event)
    return found


BEGIN = TurnStarted(turn_id="t", prompt="hello")


def test_the_result_of_a_turn() -> None:
    found = task_of(
        Text(text="of the turn before"),
        BEGIN,
        TextDelta(text="fir"),
        Text(text="first"),
        ToolStarted(tool_use_id="u", name="run_code", input={}),
        ToolFinished(tool_use_id="u", is_error=True, content=(), duration_ms=9),
        Text(text="second"),
        finished(),
        Text(text="too late"),
    )
    found.end("ok")
    assert found.result() == {
        "task": found.id,
        "session": "s",
        "turn": "t",
        "outcome": "ok",
        "answer": "first\n\nsecond",
        "answer_cut": False,
        "subtype": "success",
        "is_error": False,
        "interrupted": False,
        "error": "",
        "duration_ms": 3,
        "cost_usd": 0.5,
        "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_creation": 4},
        "tools": [{"name": "run_code", "is_error": True, "interrupted": False, "duration_ms": 9}],
        "files": [],
        "tools_left_out": 0,
    }


def test_what_calls_have_made_is_named_without_its_place() -> None:
    content = (
        TextContent("x"),
        ImageContent("/secret/place/a.png", "image/png", 1, 2),
        FileContent("/secret/place/b.html", "text/html", 5, "a plot"),
    )
    found = task_of(
        BEGIN, ToolFinished(tool_use_id="u", is_error=False, content=content, duration_ms=1), finished()
    )
    assert found.result()["files"] == [
        {"name": "a.png", "mime": "image/png", "title": ""},
        {"name": "b.html", "mime": "text/html", "title": "a plot"},
    ]


def test_pieces_count_where_no_whole_follows() -> None:
    found = task_of(
        BEGIN,
        TextDelta(text="lost"),
        Retry(reason="x", attempt=1, delay_ms=1),
        TextDelta(text="half"),
        finished(),
    )
    assert found.result()["answer"] == "half"


def test_the_end_of_another_turn_is_none_of_this() -> None:
    found = task_of(BEGIN, finished("other"))
    assert not found.turn_over.is_set()


def test_a_session_that_ends_leaves_a_result_too() -> None:
    found = task_of(BEGIN, TextDelta(text="half"))
    found.lost()
    found.end("failed")
    assert found.turn_over.is_set() and found.result()["is_error"] and found.result()["error"]


def test_a_long_answer_is_cut_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_LIMIT", 10)
    found = task_of(BEGIN, Text(text="12345"), TextDelta(text="x" * 9), Text(text="67890a"), finished())
    assert (found.result()["answer"], found.result()["answer_cut"]) == ("12345\n\n67890", True)
    assert not task_of(BEGIN, Text(text="1234567890"), finished()).result()["answer_cut"]


def test_only_the_last_calls_are_in_a_result() -> None:
    calls: list[Event] = []
    for number in range(module.TOOLS_LIMIT + 5):
        calls.append(ToolStarted(tool_use_id=str(number), name=f"n{number}", input={}))
        calls.append(ToolFinished(tool_use_id=str(number), is_error=False, content=(), duration_ms=1))
    result = task_of(BEGIN, *calls, finished()).result()
    assert (len(result["tools"]), result["tools_left_out"], result["tools"][0]["name"]) == (1000, 5, "n5")


def test_the_first_reason_to_stop_counts() -> None:
    found = task_of(BEGIN)
    found.stop("left")
    found.stop("timeout")
    assert found.stop_reason == "left"


# --- the stream -----------------------------------------------------------------------------------------


def test_a_message_is_an_event() -> None:
    event = Text(text="a\nb\r\u2028", seq=7)
    lines = message(event).decode().split("\n")
    assert lines[:2] == ["id: 7", "event: text"] and lines[3:] == ["", ""]
    assert json.loads(lines[2].removeprefix("data: "))["text"] == "a\nb\r\u2028"
    assert message(Text(text="x")).startswith(b"event: text\n")  # what passes has no number


async def test_a_feed_gives_what_there_is_and_then_its_end() -> None:
    found = task_of(BEGIN, finished(), stream=True)
    found.end("ok")
    assert found.feed is not None
    got = (await found.feed.take(1)).decode()
    assert got.count("\n\n") == 2 and got.index("turn_started") < got.index("turn_finished")
    assert await found.feed.take(1) == b"" and found.feed.closed


async def test_a_task_without_a_result_ends_with_an_error() -> None:
    found = task_of(stream=True)
    found.end("drained", Refused("draining"))
    assert found.feed is not None
    name, data = (await found.feed.take(1)).decode().strip().split("\n")
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "draining"


async def test_a_feed_is_bounded() -> None:
    feed = Feed(10)
    feed.put(b"12345678")
    assert await feed.take(1) == b"12345678"
    feed.put(b"12345678")
    feed.put(b"123")
    assert feed.over and await feed.take(1) == b""
    feed.put(b"more")
    assert await feed.take(1) == b""


def test_a_client_that_does_not_read_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Task(Ask("ann", "x"), stream=True)
    found.feed = Feed(100)
    found.take(TextDelta(text="x" * 200))
    assert found.stop_reason == "left"
