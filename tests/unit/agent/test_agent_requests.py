"""The requests of a turn, counted from their streams."""

from __future__ import annotations

from typing import Any

from sandbox_chat.agent.requests import Requests
from sandbox_chat.events import Usage


def start(**usage: int) -> dict[str, Any]:
    return {"type": "message_start", "message": {"model": "claude-x-2026", "usage": usage}}


def end(**usage: int | None) -> dict[str, Any]:
    return {"type": "message_delta", "usage": usage}


def test_requests_that_were_answered_are_added_up() -> None:
    requests = Requests()
    requests.begin()
    for _ in range(2):
        requests.take(start(input_tokens=10, cache_read_input_tokens=5, output_tokens=1), "claude-x")
        requests.take(end(output_tokens=7), "claude-x")  # tells what was written only
    assert requests.answered == {"claude-x": Usage(20, 14, 10, 0)}


def test_the_end_tells_more_than_the_beginning() -> None:
    requests = Requests()
    requests.take(start(input_tokens=10, output_tokens=1), "")
    requests.take(end(input_tokens=12, output_tokens=7, cache_read_input_tokens=None), "")
    assert requests.answered == {"claude-x-2026": Usage(12, 7)}


def test_a_request_that_was_cut_does_not_count() -> None:
    requests = Requests()
    requests.take(start(input_tokens=10, output_tokens=1), "m")
    assert requests.answered == {}
    requests.take(start(input_tokens=11, output_tokens=1), "m")  # asked anew
    requests.take(end(output_tokens=2), "m")
    requests.take(end(output_tokens=900), "m")  # belongs to none
    assert requests.answered == {"m": Usage(11, 2)}


def test_an_end_without_usage_does_not_count() -> None:
    requests = Requests()
    requests.take(start(input_tokens=10), "m")
    requests.take({"type": "message_delta"}, "m")
    requests.take({"type": "message_delta", "usage": None}, "m")
    assert requests.answered == {}


def test_a_turn_begins_with_nothing() -> None:
    requests = Requests()
    requests.take(start(input_tokens=10), "m")
    requests.take(end(output_tokens=2), "m")
    requests.begin()
    requests.take(end(output_tokens=2), "m")
    assert requests.answered == {}
